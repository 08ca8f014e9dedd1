"""What each call costs: HTTP requests, counted between the client and a real server.

STATESTORE_LOGS=10000 in the environment lists so many logs; 2,500 otherwise.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from urllib.parse import unquote

import pytest
from botocore.exceptions import ParamValidationError

from statestore import NEW, RecordLog, Store, draft
from statestore.errors import Unavailable
from statestore.records import Following
from statestore_fsspec import Settings
from statestore_fsspec import _layout as layout
from tests.faultproxy import Fault, FaultProxy
from tests.s3.raw import Place, asked, counted, name
from tests.servers import Rgw

LOGS = int(os.environ.get("STATESTORE_LOGS", "2500"))
PROBE = 53
FIND = ["list heads", "list data"]
CREATE = ["list heads", "create data", "create heads"]


@pytest.fixture
def proxy(rgw: Rgw) -> Iterator[FaultProxy]:
    with FaultProxy(rgw.endpoint) as proxy:
        yield proxy


@pytest.fixture
def spot(rgw: Rgw, place: str) -> Place:
    return Place(rgw, place)


def warm(spot: Place, proxy: FaultProxy) -> Store:
    """Open a store that has written before, at a root that need not be tried any more, and count from here."""
    spot.put("statestore.json", Settings().spell())
    store = spot.open(spot.server.through(proxy))
    store.append("warm", b"0123456789", at=NEW)
    proxy.clear()
    return store


def test_nothing_is_asked_before_the_first_call(spot, proxy):
    store = spot.open(spot.server.through(proxy))
    repr(store), store.location("a"), store.capabilities, store.maintenance
    assert asked(proxy) == []


def test_the_first_write_at_a_new_root_tries_the_storage_and_makes_the_settings(spot, proxy):
    spot.open(spot.server.through(proxy)).append("a", b"data", at=NEW)
    names = asked(proxy)
    assert [name for name in names if "probe" not in name] == [
        "get statestore",
        "create statestore",
        "get statestore",
        *CREATE,
    ]
    assert len([name for name in names if "probe" in name]) == PROBE
    assert spot.keys("probe/") == []


def test_the_first_write_at_a_root_that_is_there_costs_two_more(spot, proxy):
    warm(spot, proxy)
    spot.open(spot.server.through(proxy)).append("a", b"data", at=NEW)
    assert asked(proxy) == ["get statestore", "create statestore", *CREATE]


def test_a_reader_never_writes_and_asks_for_the_settings_once(spot, proxy):
    warm(spot, proxy)
    reader = spot.open(spot.server.through(proxy))
    assert reader.read("warm") == b"0123456789"
    assert asked(proxy) == ["get statestore", *FIND, "get data"]
    assert reader.tail("warm").size == 10
    assert asked(proxy) == FIND


def test_a_follower_asks_for_the_tail_at_each_look_and_for_what_is_new(spot, proxy):
    store = warm(spot, proxy)
    log = RecordLog(store, "log")
    log.append("note", b"one", expect=1)
    place = Following(store, "log")
    assert len(list(place.news())) == 1
    proxy.clear()
    for _ in range(3):
        assert list(place.news()) == []
        assert asked(proxy) == FIND
    log.append("note", b"two")
    proxy.clear()
    assert len(list(place.news())) == 1
    assert asked(proxy) == [*FIND, "get data"]


def test_an_append_at_the_tail_that_was_seen_last_is_one_request(spot, proxy):
    store = warm(spot, proxy)
    tail = store.append("a", b"0", at=NEW)
    proxy.clear()
    for _ in range(5):
        tail = store.append("a", b"1", at=tail)
        assert asked(proxy) == ["create data"]


def test_creating_a_log_is_three(spot, proxy):
    warm(spot, proxy).append("a", b"0", at=NEW)
    assert asked(proxy) == CREATE


def test_opening_a_log_to_append_to_it_is_three(spot, proxy):
    spot.open().append("a", b"0", at=NEW)
    store = warm(spot, proxy)
    tail = store.append("a", b"1", at=store.tail("a"))
    assert asked(proxy) == [*FIND, "create data"]
    spot.open().append("a", b"2", at=tail)
    store.append("a", b"3", at=store.snapshot("a").tail)
    assert asked(proxy) == [*FIND, "create data"]


def test_an_append_at_a_tail_that_somebody_else_has_seen_is_three(spot, proxy):
    store = warm(spot, proxy)
    tail = spot.open().append("a", b"0", at=NEW)
    store.append("a", b"1", at=tail)
    assert asked(proxy) == [*FIND, "create data"]


def test_deleting_is_four(spot, proxy):
    warm(spot, proxy).delete("warm")
    assert asked(proxy) == [*FIND, "create data", "create heads"]


@pytest.mark.parametrize("segments", [1, 2, 20])
def test_reading_is_two_and_one_for_each_segment(spot, proxy, segments):
    store = warm(spot, proxy)
    tail = NEW
    for _ in range(segments):
        tail = store.append("a", b"0123456789", at=tail)
    proxy.clear()
    assert store.read("a") == b"0123456789" * segments
    assert asked(proxy) == [*FIND, *["get data"] * segments]
    assert store.read("a", max(tail.size - 15, 0), tail.size - 5)[-5:] == b"01234"
    assert asked(proxy) == [*FIND, *["get data"] * min(segments, 2)]


def test_reading_beyond_the_end_gets_nothing(spot, proxy):
    assert warm(spot, proxy).read("warm", 10, 20) == b""
    assert asked(proxy) == FIND


def test_segments_are_read_side_by_side_within_a_bound(spot, proxy):
    warm(spot, proxy)
    store = spot.open(spot.server.through(proxy), parallel=4)
    tail = NEW
    for _ in range(12):
        tail = store.append("a", b"0123456789", at=tail)
    proxy.inject(Fault.STALLED, method="GET", target="/data/", times=None)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(store.read, "a")
        for _ in range(3):
            proxy.wait_held(4)
            assert len(proxy.release()) == 4
        assert reading.result(60) == b"0123456789" * 12


def test_of_segments_that_are_read_side_by_side_only_those_that_failed_are_asked_for_again(spot, proxy):
    store = warm(spot, proxy)
    tail = NEW
    for _ in range(5):
        tail = store.append("a", b"0123456789", at=tail)
    proxy.clear()
    proxy.inject(Fault.SLOW_DOWN, method="GET", target="/data/", nth=2, times=2)
    assert store.read("a") == b"0123456789" * 5
    assert asked(proxy) == [*FIND, *["get data"] * 7]


def test_of_segments_that_are_read_side_by_side_none_is_asked_for_again_once_one_is_refused_for_good(
    spot, proxy, monkeypatch
):
    store = warm(spot, proxy)
    first = store.append("a", b"0123456789", at=NEW)
    store.append("a", b"0123456789", at=first)
    asks = []

    async def refuse(path, **limits):
        asks.append(path)
        raise TimeoutError if len(asks) == 1 else ParamValidationError(report="wrong")

    monkeypatch.setattr(store._engine.drive.files, "_cat_file", refuse)
    with pytest.raises(Unavailable, match="could not be made") as caught:
        store.read("a")
    assert (len(asks), caught.value.retry) == (2, False)


def test_a_snapshot_costs_two_and_then_only_the_segments_that_are_not_at_hand(spot, proxy):
    store = warm(spot, proxy)
    store.append("a", b"b" * 10, at=store.append("a", b"a" * 10, at=NEW))
    proxy.clear()
    snapshot = store.snapshot("a")
    assert asked(proxy) == FIND
    assert snapshot.read(12, 15) == b"bbb"
    assert asked(proxy) == ["get data"]
    assert (snapshot.read(10, 20), snapshot.boundary(19), snapshot.boundary(9)) == (b"b" * 10, 10, 0)
    assert asked(proxy) == []


@pytest.mark.parametrize("stop", [None, 5], ids=["whole", "part"])
def test_copying_a_log_of_one_segment_is_six(spot, proxy, stop):
    store = warm(spot, proxy)
    store.copy("warm", "to", stop=stop)
    assert asked(proxy) == [*FIND, "list heads", "get data", "create data", "create heads"]
    assert store.read("to") == b"0123456789"[:stop]


def test_copying_a_merge_is_five_since_the_storage_copies_it(spot, proxy):
    store = warm(spot, proxy)
    tail = store.append("a", b"56789", at=store.append("a", b"01234", at=NEW))
    spot.put(layout.merge_key("a", tail.run, 0, 10), layout.segment_object(b"0123456789", merged=True))
    proxy.clear()
    store.copy("a", "to")
    assert asked(proxy) == [*FIND, "list heads", "copy data", "create heads"]
    assert store.read("to") == b"0123456789"


def test_copying_a_snapshot_is_at_most_six_together_with_it(spot, proxy):
    store = warm(spot, proxy)
    store.snapshot("warm").copy("whole")
    assert asked(proxy) == [*FIND, "list heads", "get data", "create data", "create heads"]
    store.snapshot("warm").copy("part", stop=3)
    assert asked(proxy) == [*FIND, "list heads", "get data", "create data", "create heads"]


def test_a_copy_of_what_was_read_long_ago_looks_at_the_log_again(spot, proxy, monkeypatch):
    store = warm(spot, proxy)
    snapshot = store.snapshot("warm")
    assert snapshot.read() == b"0123456789"
    now, grace = store._engine.now, Settings().grace
    monkeypatch.setattr(store._engine, "now", lambda: now() + grace)
    proxy.clear()
    snapshot.copy("to")
    assert asked(proxy) == ["list heads", *FIND, *CREATE]
    assert store.read("to") == b"0123456789"


def test_a_copied_log_is_appended_to_in_one_request_by_whoever_copied_it(spot, proxy):
    store = warm(spot, proxy)
    tail = store.copy("warm", "to")
    proxy.clear()
    store.append("to", b"more", at=tail)
    assert len(asked(proxy)) <= 3


def test_trying_the_storage_costs_what_the_first_write_adds(spot, proxy):
    warm(spot, proxy).maintenance.probe()
    assert counted(proxy).total() == PROBE


def test_reading_after_compacting_is_one_request_for_each_merge(spot, proxy):
    store = spot.open(spot.server.through(proxy), windows=(100, 1000))
    tail = NEW
    for number in range(101):
        tail = store.append("a", b"%010d" % number, at=tail)
    proxy.clear()
    assert store.maintenance.compact("a") == 99
    names = counted(proxy)
    assert (names["create data"], names["get data"]) == (1, 100)  # the window of 1000 at once, and none within it
    assert store.read("a")[-10:] == b"%010d" % 100
    assert asked(proxy) == [*FIND, "get data", "get data"]


def logs(names: list[str], data: bool = True) -> Iterator[tuple[str, bytes]]:
    """Yield the objects of logs of one byte."""
    for number, log in enumerate(names):
        run = layout.new_run(1, f"{number:016x}")
        yield layout.head_key(log, 1), layout.spell_live(run)
        if data:
            yield layout.single_key(log, run, 0), layout.segment_object(b"x")


def names_of(count: int) -> list[str]:
    """Return names in code-point order, of which many begin with others."""
    ends = ("", "-", "-2", ".x", "/a", "/a-b", "/a/b", "0", "~")
    return sorted(f"s{number // 9:05d}{ends[number % 9]}" for number in range(count))


def test_listing_many_logs_is_one_request_for_each_thousand(rgw, proxy):
    spot = Place(rgw, f"{rgw.new_bucket()}/deep/root")
    names = names_of(LOGS)
    spot.put_all([("statestore.json", Settings().spell()), *logs(names)])
    store = spot.open(rgw.through(proxy))
    pages = -(-LOGS // 1000)

    assert [info.name for info in store.list()] == names
    assert counted(proxy) == {"get statestore": 1, "list heads": pages}
    rows = list(store.list(tails=True))
    assert [info.name for info in rows] == names
    assert {info.tail.size for info in rows} == {1}
    assert counted(proxy) == {"list heads": pages, "list data": -(-(LOGS + 1) // 1000)}

    assert [info.name for info in islice(store.list(tails=True), 50)] == names[:50]
    assert counted(proxy) == {"list heads": 1, "list data": 1}
    assert [info.name for info in store.list("s00012/")] == ["s00012/a", "s00012/a-b", "s00012/a/b"]
    assert [info.name for info in store.list("s00012", after=names[12 * 9 + 3])] == names[12 * 9 + 4 : 13 * 9]
    assert counted(proxy) == {"list heads": 2}

    # Others come and go while the pages are read.
    other = spot.open()
    luck = random.Random(1)
    going = sorted(luck.sample(names, 40))
    coming = [f"s{number:05d}.new" for number in luck.sample(range(LOGS // 9), 40)]
    changes = [*going, *coming]
    luck.shuffle(changes)
    seen: list[str] = []
    for info in store.list():
        seen.append(info.name)
        if len(seen) % 30 == 0 and changes:
            log = changes.pop()
            if log in going:
                other.delete(log)
            else:
                other.append(log, b"new", at=NEW)
    assert not changes
    assert seen == sorted(set(seen))
    assert [log for log in seen if log not in {*going, *coming}] == [log for log in names if log not in going]
    assert [info.name for info in store.list()] == sorted({*names, *coming} - set(going))


def test_finding_a_tail_is_one_request_for_each_thousand_segments_that_are_not_merged(rgw, proxy):
    spot = Place(rgw, rgw.new_bucket() + "/root")
    run = layout.new_run(1, "0" * 16)
    one = layout.segment_object(b"0123456789")
    singles = [(layout.single_key("a", run, 10 * number), one) for number in range(1050)]
    spot.put_all([("statestore.json", Settings().spell()), *logs(["a"], data=False), *singles])
    store = spot.open(rgw.through(proxy))

    # Which run a log of several pages is has to be read from its head, once.
    assert store.tail("a").size == 10500
    assert counted(proxy) == {"get statestore": 1, "list heads": 1, "get heads": 1, "list data": 2}
    assert store.tail("a").size == 10500
    assert counted(proxy) == {"list heads": 1, "list data": 2}
    assert [info.tail.size for info in store.list(tails=True)] == [10500]
    assert counted(proxy) == {"list heads": 1, "list data": 2}

    spot.put(layout.merge_key("a", run, 0, 10000), layout.segment_object(b"0123456789" * 1000, merged=True))
    assert store.tail("a").size == 10500
    assert counted(proxy) == {"list heads": 1, "list data": 1}
    assert store.read("a", 9995, 10005) == b"5678901234"
    assert counted(proxy) == {"list heads": 1, "list data": 1, "get data": 2}


def fetched(spot: Place, proxy: FaultProxy) -> int:
    """Return how many bytes the objects have that were read since the last call, and forget the requests."""
    paths = [unquote(request.target.partition("?")[0]) for request in proxy.requests if name(request) == "get data"]
    proxy.clear()
    return sum(len(spot.get(path.partition(f"/{spot.prefix}/")[2])) for path in paths)


def test_forking_the_records_of_one_segment_is_six_since_what_was_read_is_not_read_again(spot, proxy):
    store = warm(spot, proxy)
    log = RecordLog(store, "a")
    log.append_many([draft("note", b"x")] * 10, expect=1)
    proxy.clear()
    log.copy("whole")
    assert asked(proxy) == [*FIND, "get data", *CREATE]
    log.copy("part", before=6)
    assert asked(proxy) == [*FIND, "get data", *CREATE]
    assert (RecordLog(store, "whole").count(), RecordLog(store, "part").count()) == (10, 5)


def test_the_last_ten_of_a_hundred_thousand_records_are_a_dozen_requests_and_nine_mebibytes(spot, proxy):
    store = warm(spot, proxy)
    log = RecordLog(store, "a")
    batch = [draft("note", b"x" * 40)] * 10_000
    for number in range(10):
        log.append_many(batch, expect=1 + 10_000 * number)
    for merged in (False, True):
        if merged:
            assert store.maintenance.compact("a") > 0
        proxy.clear()
        assert [record.n for record in RecordLog(store, "a").last(10)] == list(range(99_991, 100_001))
        assert len(proxy.requests) <= 12
        assert fetched(spot, proxy) <= 9 << 20


def test_the_last_ten_records_that_were_appended_one_by_one_are_a_dozen_requests(spot, proxy):
    store = spot.open(spot.server.through(proxy), windows=(1000, 10_000))
    log = RecordLog(store, "a")
    log.append("note", b"x", expect=1)
    for _ in range(40):
        log.append("note", b"x" * 20)
    store.maintenance.compact("a")
    proxy.clear()
    assert [record.n for record in log.last(10)] == list(range(32, 42))
    assert len(proxy.requests) <= 12
