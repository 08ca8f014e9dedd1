"""What the network does to requests costs time and nothing else.

STATESTORE_FAULTS=1000 in the environment lets so many storms rage.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from statestore import Store
from statestore_fsspec import Settings
from tests.faultproxy import FaultProxy
from tests.s3.raw import Place, connection
from tests.s3.storm import WRITERS, Storm
from tests.servers import Rgw

STORMS = int(os.environ.get("STATESTORE_FAULTS", "40"))
BATCH = 10
SETTINGS = Settings(windows=(64, 256))
HASTY = Settings(grace=1.0, windows=(64, 256))


@pytest.fixture(scope="session")
def proxy(rgw: Rgw) -> Iterator[FaultProxy]:
    with FaultProxy(rgw.endpoint) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def files(rgw: Rgw) -> Any:
    return connection(rgw)


@pytest.fixture(scope="session")
def harmed(rgw: Rgw, proxy: FaultProxy) -> list[Any]:
    """Several connections through the proxy, which wait for an answer for a second."""
    return [connection(rgw.through(proxy), timeout=1.0) for _ in range(WRITERS + 4)]


def stores(spot: Place, settings: Settings, harmed: list[Any]) -> list[Store]:
    spot.put("statestore.json", settings.spell())
    return [spot.quick(one, tries=6, backoff=0.005) for one in harmed]


@pytest.mark.parametrize("batch", range(0, STORMS, BATCH))
def test_four_writers_in_a_storm_lose_nothing_that_was_acknowledged(rgw, place, proxy, files, harmed, batch):
    spots = {settings: Place(rgw, f"{place}/{settings.grace:.0f}") for settings in (SETTINGS, HASTY)}
    clients = {settings: stores(spots[settings], settings, harmed) for settings in spots}
    for seed in range(batch, min(batch + BATCH, STORMS)):
        kind = seed % BATCH
        settings = HASTY if kind == 9 else SETTINGS
        storm = Storm(
            seed,
            spots[settings],
            proxy,
            clients[settings],
            spots[settings].quick(files),
            deletes=4 if kind in (2, 5, 8) or seed % 20 == 19 else 0,
            compacts=kind in (4, 5, 6),
            collects=settings is HASTY,
        )
        storm.rage()
