"""How many round trips a read takes: waves of requests that are under way together, counted and not timed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import pytest

from benchmarks.s3 import records
from statestore import RecordLog
from statestore_fsspec import Settings
from statestore_fsspec import _layout as layout
from tests.s3.raw import Place
from tests.s3.waves import waves
from tests.servers import Rgw

LINES = records(1001, b"b" * 1024)


@pytest.fixture(scope="module")
def spot(rgw: Rgw) -> Iterator[Place]:
    """A root with one log: its creation and a thousand appends, which were never merged."""
    spot = Place(rgw, f"{rgw.new_bucket()}/root")
    run = layout.new_run(1, "0" * 16)
    starts = [0, *accumulate(map(len, LINES))]
    singles = (
        (layout.single_key("log", run, start), layout.segment_object(line))
        for start, line in zip(starts, LINES, strict=False)
    )
    head = (layout.head_key("log", 1), layout.spell_live(run))
    spot.put_all([("statestore.json", Settings().spell()), head, *singles])
    return spot


def test_a_thousand_appends_that_are_not_merged_are_read_in_at_most_ten_round_trips(spot: Place) -> None:
    store = spot.open()
    with waves() as sent:
        assert [record.raw for record in RecordLog(store, "log")] == LINES
    # The settings, the heads, the first page of a listing, the head since there is more, the rest; and then the log.
    assert sent == [1, 1, 1, 1, 1, 224, 224, 224, 224, 105]
    with waves() as sent:
        assert len(RecordLog(store, "log").last(10)) == 10
    assert sent == [1, 1, 1, 10]


def test_once_they_are_merged_they_are_read_in_three(spot: Place) -> None:
    store = spot.open()
    store.maintenance.compact("log")
    with waves() as sent:
        assert [record.raw for record in RecordLog(store, "log")] == LINES
    assert len(sent) == 3
    assert sum(sent) <= 2 + 12
