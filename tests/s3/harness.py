"""The kit's harness for a store in a bucket of a real server."""

from __future__ import annotations

import functools
import uuid
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from statestore import NEW, Store, open_store
from statestore.conformance import Harness
from tests.servers import S3Server

_SETTINGS = "statestore.json"


def options(server: S3Server, **more: Any) -> dict[str, Any]:
    """Return the options that open a store on a server; its waits are short, since it is next door."""
    given = {
        "endpoint_url": server.endpoint,
        "region": server.region,
        "key": server.access_key,
        "secret": server.secret_key,
        "backoff": 0.01,
    }
    return {**given, **more}


def prepared(server: S3Server, bucket: str) -> str:
    """Return the URL of an empty root in a bucket that holds its settings already."""
    prefix = uuid.uuid4().hex
    _client(server).put_object(Bucket=bucket, Key=f"{prefix}/{_SETTINGS}", Body=_settings(server, bucket))
    return f"s3://{bucket}/{prefix}"


def harness(server: S3Server, bucket: str, place: Path, **more: Any) -> Iterator[Harness]:
    """Yield a harness on an empty prefix of a bucket, where nothing is but the settings of a root.

    To try the storage before the first write takes fifty requests, and a kit of 200 clauses has 200 roots. So one
    root of the bucket is made by a store, after it has tried the storage, and all others get its settings.
    """
    url = prepared(server, bucket)
    prefix = url.rpartition("/")[2]
    client = _client(server)

    def put(key: str, data: bytes) -> None:
        client.put_object(Bucket=bucket, Key=f"{prefix}/{key}", Body=data)

    def raw_read(log: str) -> bytes:
        """Concatenate the appends of the newest run, as a person with a bucket browser would."""
        heads = client.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/heads/{log}!")["Contents"]
        head = client.get_object(Bucket=bucket, Key=heads[-1]["Key"])["Body"].read()
        singles = f"{prefix}/data/{log}!{head.split()[1].decode()}/t/"
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=singles)
        keys = [row["Key"] for page in pages for row in page["Contents"]]
        bodies = (client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in reversed(keys))
        return b"".join(body.partition(b"\n")[2] for body in bodies)

    def raw_write(log: str, data: bytes) -> None:
        """Make a log of one append by hand, after what the document says of the layout."""
        run = "0000000001.0123456789abcdef"
        put(f"data/{log}!{run}/t/999999999999999", b"sts1 a %08x%08x\n" % (zlib.crc32(data), len(data)) + data)
        head = f"live {run}"
        put(f"heads/{log}!0000000001", b"%s %08x\n" % (head.encode(), zlib.crc32(head.encode())))

    again = partial(open_store, url, **options(server, **more))
    yield Harness(
        open=again,
        reopen=again,
        spawn=again,
        raw_read=raw_read,
        raw_write=raw_write,
        crash=_crash,
        secrets=(server.secret_key,),
    )


def _crash(store: Store) -> None:
    """Drop a store: nothing of a log lies outside the bucket."""


@functools.cache
def _client(server: S3Server) -> Any:
    return server.client()


@functools.cache
def _settings(server: S3Server, bucket: str) -> bytes:
    """Return the settings of a root that a store made in this bucket."""
    place = f"{bucket}/made-by-a-store"
    with open_store(f"s3://{place}", **options(server)) as store:
        store.append("log", b"data", at=NEW)
    key = f"{place.partition('/')[2]}/{_SETTINGS}"
    return bytes(_client(server).get_object(Bucket=bucket, Key=key)["Body"].read())
