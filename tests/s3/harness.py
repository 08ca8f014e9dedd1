"""The kit's harness for a store in a bucket of a real server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from statestore import open_store
from statestore.conformance import Harness
from tests.servers import S3Server


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


def harness(server: S3Server, bucket: str, place: Path, **more: Any) -> Iterator[Harness]:
    """Yield a harness on an empty prefix of a bucket."""
    prefix = uuid.uuid4().hex
    url = f"s3://{bucket}/{prefix}"
    client = server.client()

    def raw_read(log: str) -> bytes:
        """Concatenate the appends of the newest run, as a person with a bucket browser would."""
        heads = client.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/heads/{log}!")["Contents"]
        head = client.get_object(Bucket=bucket, Key=heads[-1]["Key"])["Body"].read()
        singles = f"{prefix}/data/{log}!{head.split()[1].decode()}/t/"
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=singles)
        keys = [row["Key"] for page in pages for row in page["Contents"]]
        bodies = (client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in reversed(keys))
        return b"".join(body.partition(b"\n")[2] for body in bodies)

    again = partial(open_store, url, **options(server, **more))
    yield Harness(open=again, reopen=again, spawn=again, raw_read=raw_read, secrets=(server.secret_key,))
