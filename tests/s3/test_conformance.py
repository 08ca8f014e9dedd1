"""The kit, on buckets of two real servers.

On Ceph's gateway every clause is tried, on SeaweedFS the level ``core``, where each request is sent by itself: its
races take seconds each. What the kit repeats many times (rounds of a race, many logs, long logs, random operations)
is tried at a fiftieth of the full size, or at the least that the clause still means something with. With
STATESTORE_CONFORM=full in the environment both servers get every clause at full size, which takes hours.

Not run: the clauses about a loss of power. What an S3 server has acknowledged is durable, or is not, behind its door;
a server in memory has no power to lose. Not applicable: holds, cuts and flushes, which the store does not offer.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from statestore.conformance import Harness, conformance
from statestore.conformance.registry import LEVELS
from tests import servers
from tests.s3.harness import harness

FULL = os.environ.get("STATESTORE_CONFORM") == "full"
SAMPLE = 1.0 if FULL else 0.02
LIMIT = 7200.0 if FULL else 300.0  # seconds for one clause


@functools.cache
def _bucket(server: servers.S3Server) -> str:
    return server.new_bucket()


def _on_rgw(place: Path) -> Iterator[Harness]:
    server = servers.Rgw(name="rgw", **servers.running("rgw"))
    yield from harness(server, _bucket(server), place)


def _on_seaweedfs(place: Path) -> Iterator[Harness]:
    server = servers.S3Server(name="seaweedfs", **servers.running("seaweedfs"))
    yield from harness(server, _bucket(server), place)


# The fixtures start the servers before the first clause, whose time is limited, and skip where one can't be had.
test_on_rgw = pytest.mark.usefixtures("rgw")(conformance(_on_rgw, sample=SAMPLE, limit=LIMIT))
test_on_seaweedfs = pytest.mark.usefixtures("seaweedfs")(
    conformance(_on_seaweedfs, levels=LEVELS if FULL else ("core",), sample=SAMPLE, limit=LIMIT)
)
