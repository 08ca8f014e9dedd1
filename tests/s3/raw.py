"""What lies in a bucket, seen and changed behind the store's back; and what a store asked for, through the proxy."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from statestore import Store, open_store
from statestore_fsspec import FsspecStore
from statestore_fsspec._s3 import S3Drive, s3_settings
from tests.faultproxy import FaultProxy, Request
from tests.s3.harness import options
from tests.servers import S3Server

_CONNECTIONS = 8


class Place:
    """One store's place in a bucket."""

    def __init__(self, server: S3Server, place: str) -> None:
        self.server = server
        self.url = f"s3://{place}"
        self.bucket, _, self.prefix = place.partition("/")
        self.client = server.client(max_pool_connections=32)

    def open(self, server: S3Server | None = None, **more: Any) -> Store:
        """Open a store there, with the same keys or another server's, through a proxy or not."""
        return open_store(self.url, **options(server or self.server, **more))

    def keys(self, begin: str = "") -> list[str]:
        """Return the keys that begin so, in byte order."""
        return sorted(key for key, _ in self._rows(begin))

    def tags(self) -> dict[str, str]:
        """Return each key with a fingerprint of what it holds."""
        return dict(self._rows(""))

    def quick(self, files: Any, **more: Any) -> FsspecStore:
        """Open a store with a connection that is there already, which takes a thousandth of the time.

        It tries nothing, sends nothing again on its own but what may be sent twice, and must not be closed.
        """
        root = f"{self.bucket}/{self.prefix}"
        given = {"probe": False, "tries": 3, "backoff": 0.001, **more}
        return FsspecStore(lambda: S3Drive(files, root), self.url, **given)

    def _rows(self, begin: str) -> Iterable[tuple[str, str]]:
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=f"{self.prefix}/{begin}"
        )
        for page in pages:
            for row in page.get("Contents", ()):
                yield row["Key"][len(self.prefix) + 1 :], row["ETag"]

    def key(self, begin: str, place: int = -1) -> str:
        """Return one of the keys that begin so: the last in byte order, unless told otherwise."""
        return self.keys(begin)[place]

    def get(self, key: str) -> bytes:
        """Return what an object holds."""
        return bytes(self.client.get_object(Bucket=self.bucket, Key=f"{self.prefix}/{key}")["Body"].read())

    def objects(self, begin: str = "") -> dict[str, bytes]:
        """Return what lies under the keys that begin so."""
        return {key: self.get(key) for key in self.keys(begin)}

    def put(self, key: str, data: bytes) -> None:
        """Make an object, or change it."""
        self.client.put_object(Bucket=self.bucket, Key=f"{self.prefix}/{key}", Body=data)

    def change(self, key: str, how: Callable[[bytes], bytes]) -> None:
        """Change what an object holds."""
        self.put(key, how(self.get(key)))

    def remove(self, *keys: str) -> None:
        """Remove objects."""
        for key in keys:
            self.client.delete_object(Bucket=self.bucket, Key=f"{self.prefix}/{key}")

    def put_all(self, objects: Iterable[tuple[str, bytes]]) -> None:
        """Make many objects, nine times as fast as one by one: the bucket, which no other test may use, is opened
        to unsigned requests."""
        rule = {"Effect": "Allow", "Principal": {"AWS": ["*"]}, "Action": ["s3:*"]}
        policy = {"Version": "2012-10-17", "Statement": [{**rule, "Resource": [f"arn:aws:s3:::{self.bucket}/*"]}]}
        self.client.put_bucket_policy(Bucket=self.bucket, Policy=json.dumps(policy))
        everything = list(objects)
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            list(pool.map(self._put_some, (everything[k::_CONNECTIONS] for k in range(_CONNECTIONS))))

    def _put_some(self, objects: Iterable[tuple[str, bytes]]) -> None:
        server = urlsplit(self.server.endpoint)
        assert server.hostname
        with closing(HTTPConnection(server.hostname, server.port, timeout=120)) as connection:
            for key, data in objects:
                connection.request("PUT", quote(f"/{self.bucket}/{self.prefix}/{key}", safe="/"), body=data)
                answer = connection.getresponse()
                said = answer.read()
                assert answer.status == 200, said


def connection(server: S3Server, **more: Any) -> Any:
    """Return a file system for `Place.quick`, set up as the plugin does it."""
    from s3fs import S3FileSystem

    where = {"endpoint_url": server.endpoint, "region": server.region}
    keys = {"key": server.access_key, "secret": server.secret_key}
    settings = s3_settings(**{"storage_options": {}, "timeout": 20.0, "parallel": 16, **where, **keys, **more})
    return S3FileSystem(**settings, skip_instance_cache=True, use_listings_cache=False)


_WHAT = re.compile(r"(heads|data|probe|clock|statestore)\b")


def name(request: Request) -> str:
    """Return in two words what a request is: what is done, and to what kind of object."""
    path, _, query = request.target.partition("?")
    verb = {"PUT": "create" if request.condition else "put", "DELETE": "remove"}.get(request.method, "get")
    where = path
    if "list-type=2" in query:
        verb, where = "list", query
    elif request.method == "HEAD":
        verb = "ask"
    elif request.method == "PUT" and not request.condition and not request.sent:
        verb = "copy"
    kinds = _WHAT.findall(unquote(where).partition("prefix=")[2] if verb == "list" else unquote(path))
    return f"{verb} {kinds[0] if kinds else '?'}"


def asked(proxy: FaultProxy) -> list[str]:
    """Return what was asked for since the last call, in the order of arrival."""
    names = [name(request) for request in proxy.requests]
    proxy.clear()
    return names


def counted(proxy: FaultProxy) -> Counter[str]:
    """Return how often each kind of request came since the last call."""
    return Counter(asked(proxy))
