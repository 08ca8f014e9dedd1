"""The kit, on a bucket of a real server."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

from statestore.conformance import Harness, conformance
from tests import servers
from tests.s3.harness import harness


@functools.cache
def _bucket() -> tuple[servers.Rgw, str]:
    server = servers.Rgw(name="rgw", **servers.running("rgw"))
    return server, server.new_bucket()


def _on_rgw(place: Path) -> Iterator[Harness]:
    yield from harness(*_bucket(), place)


test_conformance = conformance(_on_rgw, sample=0.02)
