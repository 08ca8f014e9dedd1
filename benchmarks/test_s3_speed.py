"""Each call on a bucket beside the least that the same client needs: the raw requests that it is made of.

The floor is sent by the very client that the store uses, over its connections, in turns with the store's own call.
Round trips are counted in tests/s3/test_round_trips.py, requests in tests/s3/test_requests.py.
"""

from __future__ import annotations

from itertools import accumulate, count
from typing import NamedTuple

import pytest

from benchmarks.conftest import BODY, Compare
from benchmarks.s3 import Raw, records
from statestore import NEW, RecordLog, Store
from statestore_fsspec import Settings
from statestore_fsspec import _layout as layout
from tests.s3.raw import Place, connection
from tests.servers import Rgw

PARALLEL = 224  # as by default


class Bench(NamedTuple):
    """A store in a bucket, and its client."""

    spot: Place
    store: Store
    raw: Raw


@pytest.fixture
def bench(rgw: Rgw) -> Bench:
    spot = Place(rgw, f"{rgw.new_bucket()}/root")
    spot.put("statestore.json", Settings().spell())
    files = connection(rgw)
    store = spot.quick(files, parallel=PARALLEL)
    store.append("warm", b"x", at=NEW)
    return Bench(spot, store, Raw(files, f"{spot.bucket}/{spot.prefix}"))


@pytest.fixture
def lines(request: pytest.FixtureRequest) -> list[bytes]:
    """The records of a log: a thousand where it is measured, and otherwise a few."""
    disabled = request.config.getoption("benchmark_disable") and not request.config.getoption("benchmark_enable")
    return records(30 if disabled else 1000, BODY)


@pytest.fixture
def whole(bench: Bench, lines: list[bytes]) -> bytes:
    """What the log holds, each of whose records was appended by itself."""
    run = layout.new_run(1, "0" * 16)
    starts = [0, *accumulate(map(len, lines))]
    singles = (
        (layout.single_key("log", run, start), layout.segment_object(line))
        for start, line in zip(starts, lines, strict=False)
    )
    bench.spot.put_all([(layout.head_key("log", 1), layout.spell_live(run)), *singles])
    return b"".join(lines)


def test_append_one_record_in_a_bucket(bench: Bench, compare: Compare) -> None:
    log = RecordLog(bench.store, "log")
    data = layout.segment_object(log.append("message", BODY, expect=1).raw)
    appended = count(1)

    def work() -> None:
        log.append("message", BODY)
        next(appended)

    compare(work, lambda: bench.raw.put(data), against="a raw put of the same bytes", rounds=100, bar=1.3)
    found = list(RecordLog(bench.store, "log"))
    assert [record.n for record in found] == list(range(1, next(appended) + 1))
    assert {record.body for record in found} == {BODY}


def test_create_a_log_in_a_bucket(bench: Bench, compare: Compare) -> None:
    data, head = layout.segment_object(BODY), layout.spell_live(layout.new_run(1, "0" * 16))
    number = count()

    def floor() -> None:
        assert bench.raw.list("nothing/") == []
        bench.raw.put(data)
        bench.raw.put(head)

    made: list[str] = []

    def work() -> None:
        made.append(f"log-{next(number):05}")
        bench.store.append(made[-1], BODY, at=NEW)

    compare(work, floor, against="one listing and two puts")
    assert [info.name for info in bench.store.list("log-")] == made


def test_open_a_log_in_a_bucket_to_append_to_it(bench: Bench, compare: Compare) -> None:
    tail = bench.store.append("log", BODY, at=NEW)

    def floor() -> None:
        assert len(bench.raw.list("heads/log!")) == 1
        assert len(bench.raw.list("data/log!")) == 1

    def work() -> None:
        assert bench.store.tail("log") == tail

    compare(work, floor, against="two listings of one object")


def test_list_logs_in_a_bucket(bench: Bench, lines: list[bytes], compare: Compare) -> None:
    names = [f"log-{number:05}" for number in range(len(lines))]
    bench.spot.put_all((layout.head_key(name, 1), layout.spell_live(layout.new_run(1, "0" * 16))) for name in names)

    def floor() -> None:
        assert len(bench.raw.list("heads/log-")) == len(names)

    def work() -> None:
        assert [info.name for info in bench.store.list("log-")] == names

    compare(work, floor, against="one listing of as many objects", rounds=20)


def test_read_a_log_in_a_bucket_that_is_not_merged(bench: Bench, whole: bytes, compare: Compare) -> None:
    keys = bench.raw.list("data/log!")

    def floor() -> None:
        assert sum(map(len, bench.raw.get_all(keys, PARALLEL))) == len(whole) + len(keys) * layout.PREAMBLE

    def work() -> None:
        assert bench.store.read("log") == whole

    compare(work, floor, against="a raw get of each append, as many at once", rounds=3)


def test_read_the_same_log_beside_one_object(bench: Bench, whole: bytes, compare: Compare) -> None:
    one = bench.raw.put(whole)

    def work() -> None:
        assert bench.store.read("log") == whole

    compare(work, lambda: bench.raw.get(one), against="a raw get of one object of that size", rounds=3)


@pytest.mark.parametrize("collected", [False, True], ids=["compacted", "compacted and collected"])
def test_read_a_log_in_a_bucket(bench: Bench, whole: bytes, collected: bool, compare: Compare) -> None:
    store = bench.store
    gone = store.maintenance.compact("log")
    assert gone > 0
    if collected:  # by hand: a collector waits for the grace period
        begin = bench.spot.keys("data/log!")
        used = {segment.key for segment in store.snapshot("log")._walk.segments}  # type: ignore[attr-defined]
        bench.spot.remove(*(key for key in begin if key not in used))
    one = bench.raw.put(whole)

    def work() -> None:
        assert store.read("log") == whole

    compare(work, lambda: bench.raw.get(one), against="a raw get of one object of that size", rounds=20, bar=3.0)
