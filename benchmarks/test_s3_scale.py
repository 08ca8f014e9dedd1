"""Logs in a bucket at scale: what each operation asks of Ceph's gateway, and how long that took.

Requests and bytes are asserted, seconds are only shown. By default the sizes are small; STATESTORE_SCALE=full in the
environment takes those of docs/performance.md, for which the machine should be idle.
"""

from __future__ import annotations

import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import accumulate, pairwise
from multiprocessing import get_context
from typing import Any

import pytest

from benchmarks.s3 import HEAD, Tell, Traffic, records, sized, stream, told, watched, work
from statestore import NEW, RecordLog, Store
from statestore_fsspec import Settings
from statestore_fsspec import _finding as finding
from statestore_fsspec import _layout as layout
from statestore_fsspec._steps import NOW, List, Page
from tests.s3.harness import options
from tests.s3.raw import Place
from tests.servers import Rgw, eventually

_MIB = 1 << 20
_SETTINGS = "statestore.json"


@pytest.fixture(scope="module")
def tell(request: pytest.FixtureRequest) -> Iterator[Tell]:
    """Keep lines for the end of the file."""
    lines: list[str] = []
    yield lambda what, traffic: lines.append(told(what, traffic))
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("\n" + "\n".join([HEAD, *lines]))


@pytest.fixture
def spot(rgw: Rgw) -> Place:
    """A root in a bucket of its own. Its settings are there, so that nothing is tried before the first write."""
    spot = Place(rgw, f"{rgw.new_bucket()}/root")
    spot.put(_SETTINGS, Settings().spell())
    return spot


def pages(count: int) -> int:
    return max(-(-count // 1000), 1)


def test_many_workers_append_to_many_sessions(rgw: Rgw, spot: Place, tell: Tell) -> None:
    """Each session is written by two workers, who meet; each record is there once."""
    sessions, workers, turns = sized(100, 4), sized(16, 2), sized(10, 3)
    logs = [f"tenant-{number % 7}/{number:03}" for number in range(sessions)]
    store = spot.open()
    for log in logs:
        RecordLog(store, log).append("session", expect=1)
    mine = [
        [log for k, log in enumerate(logs) if worker in (k % workers, (k + 1) % workers)] for worker in range(workers)
    ]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        given = [(spot.url, options(rgw), worker, mine[worker], turns) for worker in range(workers)]
        done = list(pool.map(work, *zip(*given, strict=True)))
    assert sum(count for count, _ in done) == 2 * sessions * turns
    assert [info.name for info in store.list()] == sorted(logs)
    for number, log in enumerate(logs):
        found = list(RecordLog(store, log))
        assert [record.n for record in found] == list(range(1, 2 * turns + 2))
        expected = [b"%d %d" % (w, turn) for w in (number % workers, (number + 1) % workers) for turn in range(turns)]
        assert Counter(record.body for record in found[1:]) == Counter(expected)
    seconds = max(each for _, each in done)
    tell(
        f"{sum(count for count, _ in done):,} appends to {sessions} logs by {workers} processes",
        Traffic(seconds=seconds),
    )


def test_a_long_log_before_and_after_it_is_compacted(spot: Place, tell: Tell) -> None:
    count = sized(100_000, 80)
    lines = records(count, b"b" * sized(1024, 8192))
    whole = b"".join(lines)
    starts = [0, *accumulate(map(len, lines))]
    run = layout.new_run(1, "0" * 16)
    singles = (
        (layout.single_key("log", run, at), layout.segment_object(line))
        for at, line in zip(starts, lines, strict=False)
    )
    head = (layout.head_key("log", 1), layout.spell_live(run))
    spot.put_all([head, *singles])
    store = spot.open()
    RecordLog(store, "warm").append("session", expect=1)
    size = f"{count:,} appends"

    with watched() as traffic:
        assert store.tail("log").size == len(whole)
    # Which run a log of several pages is has to be read from its head, once.
    found = Counter({"list heads": 1, "list data": pages(count)})
    assert traffic.requests == found + (Counter({"get heads": 1}) if count > 1000 else Counter())
    tell(f"{size}: tail, the first", traffic)
    _measure(store, lines, whole, tell, size, segments=count, listings=pages(count))

    with watched() as traffic:
        gone = store.maintenance.compact("log")
    merges = traffic.requests["create data"]
    assert traffic.requests["get data"] <= count + merges
    tell(f"{size}: compact", traffic)
    segments = count - gone
    steps = [len(lines[0]), *Settings().windows, len(whole)]
    assert segments <= sum(wide // narrow for narrow, wide in pairwise(steps))
    _measure(store, lines, whole, tell, f"{size}, compacted", segments=segments, listings=1)

    # What was merged away is kept for a grace period, which this root now has a short one of.
    short = Settings(grace=4.0)
    spot.put(_SETTINGS, short.spell())
    keeper = spot.open()
    eventually(lambda: len(list(keeper.maintenance.collect())) == gone + merges)
    with watched() as traffic:
        removed = len(list(keeper.maintenance.collect(dry_run=False)))
    assert traffic.requests["remove data"] == removed
    assert len(spot.keys("data/log!")) == segments
    tell(f"{size}: gc", traffic)
    spot.put(_SETTINGS, Settings().spell())
    _measure(spot.open(), lines, whole, tell, f"{size}, compacted and collected", segments=segments, listings=1)


def _measure(
    store: Store, lines: list[bytes], whole: bytes, tell: Tell, what: str, *, segments: int, listings: int
) -> None:
    """Ask for a log in each way."""
    find = Counter({"list heads": 1, "list data": listings})
    store.tail("log")
    with watched() as traffic:
        assert store.tail("log").size == len(whole)
    assert traffic.requests == find
    tell(f"{what}: tail", traffic)
    with watched() as traffic:
        last = RecordLog(store, "log").last(10)
    assert [record.raw for record in last] == lines[-10:]
    assert traffic.requests["get data"] <= 10
    if listings == 1:  # the bar for a log that was compacted: a dozen requests and 9 MiB
        assert traffic.requests.total() <= 12
        assert traffic.got <= 9 * _MIB
    assert traffic.requests - Counter({"get data": traffic.requests["get data"]}) == find
    tell(f"{what}: last(10)", traffic)
    with watched() as traffic:
        crc = length = 0
        for piece in store.stream("log"):
            crc, length = zlib.crc32(piece, crc), length + len(piece)
    assert (length, crc) == (len(whole), zlib.crc32(whole))
    assert traffic.requests == find + Counter({"get data": segments})
    tell(f"{what}: read everything", traffic)


def test_many_logs_are_listed_a_thousand_at_a_time(spot: Place, tell: Tell) -> None:
    count = sized(10_000, 1001)
    names = [f"{number // 100:03}/{number:05}" for number in range(count)]
    runs = [layout.new_run(1, f"{number:016x}") for number in range(count)]
    heads = ((layout.head_key(log, 1), layout.spell_live(run)) for log, run in zip(names, runs, strict=True))
    data = ((layout.single_key(log, run, 0), layout.segment_object(b"x")) for log, run in zip(names, runs, strict=True))
    spot.put_all([*heads, *data])
    store = spot.open()
    store.tail(names[0])
    for tails, expected in (
        (False, {"list heads": pages(count)}),
        (True, {"list heads": pages(count), "list data": pages(count + 1)}),  # none before its head
    ):
        with watched() as traffic:
            rows = list(store.list(tails=tails))
        assert [row.name for row in rows] == names
        assert not tails or all(row.tail and row.tail.size == 1 for row in rows)
        assert traffic.requests == expected
        tell(f"list {count:,} logs" + (" with tails" if tails else ""), traffic)


@pytest.mark.skipif(sys.platform != "linux", reason="how much memory a process had at most is told by Linux alone")
def test_a_log_is_streamed_in_less_memory_than_it_has(rgw: Rgw, spot: Place, tell: Tell) -> None:
    piece = 8 * _MIB
    count = sized(128, 9)
    store, tail, crc = spot.open(), NEW, 0
    with watched() as traffic:
        for number in range(count):
            data = (b"%016x" % number) * (piece // 16)
            crc = zlib.crc32(data, crc)
            tail = store.append("log", data, at=tail)
    assert traffic.requests["create data"] == count
    tell(f"write {count * 8:,} MiB in appends of 8 MiB", traffic)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        length, found, grown, seconds = pool.submit(stream, spot.url, options(rgw), "log").result()
    assert (length, found) == (tail.size, crc)
    tell(f"stream it: memory grew by {grown / _MIB:.0f} MiB", Traffic(got=length, seconds=seconds))
    assert grown < 64 * _MIB, f"the memory grew by {grown / _MIB:.1f} MiB"


def test_a_listing_of_many_pages_is_walked_over_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not again for each page, which for a hundred pages takes fifty times as long."""
    run = layout.new_run(1, "0" * 16)
    keys = sorted(layout.single_key("log", run, number) for number in range(5_000))
    rows = [layout.Entry(key, layout.PREAMBLE + 1, 0.0) for key in keys]
    walks = 0

    def walk(segments: Any) -> Any:
        nonlocal walks
        walks += 1
        return plain(segments)

    plain = finding.walk
    monkeypatch.setattr(finding, "walk", walk)
    steps = finding.Finder(86400.0).find("log")
    request, begun = next(steps), 0
    while True:
        reply: object = 0.0
        if isinstance(request, List) and request.prefix.startswith("heads/"):
            head = layout.spell_live(run)
            reply = Page((layout.Entry(layout.head_key("log", 1), len(head), 0.0),), False)
        elif isinstance(request, List):
            begun = next((k for k, row in enumerate(rows) if row.key > request.after), 0)
            reply = Page(tuple(rows[begun : begun + 1000]), begun + 1000 < len(rows))
        elif request is not NOW:
            reply = [layout.spell_live(run)]
        try:
            request = steps.send(reply)
        except StopIteration as end:
            found = end.value
            break
    assert found.walk.size == 5_000
    assert walks <= 3
