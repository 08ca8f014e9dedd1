"""What a sync does to a target, and what it never does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from statestore.errors import Corrupt, Held, InvalidName, Unavailable
from statestore.records import RecordLog
from statestore.store import NEW, LogInfo, Snapshot, Store, Tail
from statestore.sync import Equal, Known, Row, sync
from statestore.wrappers import Faulty
from statestore_local import LocalStore
from statestore_memory import MemoryStore

from .stores import Counting, Watched, contents, fill


def states(rows: list[Row]) -> dict[str, str]:
    return {row.log: row.state for row in rows}


@pytest.fixture
def source() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def target() -> MemoryStore:
    return MemoryStore()


def test_an_empty_target_becomes_equal_in_the_order_of_the_names(source: Store, target: Store) -> None:
    fill(source, {"b": b"two", "a/x": b"one", "a": b"\0\n\xff"})
    assert list(sync(source, target)) == [
        Row("a", "copied", 3, 3),
        Row("a/x", "copied", 3, 3),
        Row("b", "copied", 3, 3),
    ]
    assert contents(target) == contents(source)
    assert set(states(list(sync(source, target))).values()) == {"equal"}


def test_a_beginning_is_completed_and_only_what_is_missing_is_appended(source: Store, target: Store) -> None:
    fill(source, {"log": b"0123456789"})
    fill(target, {"log": b"0123"})
    counting = Counting(target)
    assert list(sync(source, counting)) == [Row("log", "copied", 10, 6)]
    assert counting.appended == 6
    assert contents(target) == contents(source)


@pytest.mark.parametrize(("there", "offset"), [(b"01x", 2), (b"x", 0), (b"0123456789x", 10), (b"012345678x9", 9)])
def test_a_log_that_is_no_beginning_has_diverged_and_is_not_touched(
    source: Store, target: Store, there: bytes, offset: int
) -> None:
    fill(source, {"log": b"0123456789", "next": b"1"})
    fill(target, {"log": there})
    before = target.tail("log")
    rows = list(sync(source, target))
    assert rows == [Row("log", "diverged", 10, offset=offset), Row("next", "copied", 1, 1)]
    assert (target.read("log"), target.tail("log")) == (there, before)


def test_a_log_that_the_source_has_not_is_extra_and_stays(source: Store, target: Store) -> None:
    fill(source, {"b": b"1"})
    fill(target, {"a": b"mine", "c": b"me"})
    assert list(sync(source, target)) == [Row("a", "extra", 4), Row("b", "copied", 1, 1), Row("c", "extra", 2)]
    assert contents(target) == {"a": b"mine", "b": b"1", "c": b"me"}


def test_a_prefix_leaves_all_other_logs_alone(source: Store, target: Store) -> None:
    fill(source, {"a/1": b"1", "a/2": b"2", "b": b"3"})
    fill(target, {"a/0": b"0", "c": b"4"})
    assert states(list(sync(source, target, prefix="a/"))) == {"a/0": "extra", "a/1": "copied", "a/2": "copied"}
    with pytest.raises(InvalidName):
        sync(source, target, prefix="no name")


def test_a_dry_run_tells_what_would_be_done_and_writes_nothing(source: Store, target: Store) -> None:
    fill(source, {"a": b"123", "b": b"123", "c": b"123"})
    fill(target, {"a": b"1", "b": b"x"})
    before = contents(target)
    rows = list(sync(source, target, dry_run=True))
    assert rows == [Row("a", "copied", 3, 2), Row("b", "diverged", 3, offset=0), Row("c", "copied", 3, 3)]
    assert contents(target) == before


def test_a_large_log_goes_in_pieces_that_the_target_takes(source: Store, target: Store) -> None:
    fill(source, {"log": bytes(range(256)) * 1000})

    class Narrow(Watched):
        def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
            assert len(data) <= 100_000
            return super().append(log, data, at=at)

    ours, theirs = Counting(source), Counting(target)
    assert states(list(sync(ours, Narrow(theirs, max_append=100_000)))) == {"log": "copied"}
    assert contents(target) == contents(source)
    assert (theirs.calls["append"], ours.calls["snapshot"]) == (3, 1)


class Noted(Watched):
    """Notes where appends begin."""

    def __init__(self, store: Store, **given: int) -> None:
        super().__init__(store, **given)
        self.begun: list[int] = []

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self.begun.append(at.size)
        return super().append(log, data, at=at)


@pytest.mark.parametrize("sizes", [[900] * 300, [100_000, 10, 20], [10, 250_000, 10, 40_000, 60_100, 10], [99_800] * 3])
def test_pieces_begin_where_records_do(source: Store, target: Store, sizes: list[int]) -> None:
    forged = b'{"n":7,"kind":"user","id":"00000000","time":"2026-12-01T00:00:00Z","len":1}\nx\n'
    log = RecordLog(source, "log")
    log.append("start", expect=1)
    for size in sizes:
        log.append("message", (forged * (size // len(forged) + 1))[:size])
    noted = Noted(target, max_append=100_000)
    assert states(list(sync(source, noted))) == {"log": "copied"}
    assert contents(target) == contents(source)
    begin = {record.offset: record.end for record in log}
    inside = [at for at in noted.begun if at not in begin]
    for at in inside:
        (of,) = (record for record in log if record.offset < at < record.end)
        assert of.end - of.offset > 100_000, "only what is too large for one append is cut"
    assert bool(inside) == (max(sizes) >= 99_990)


def test_a_record_that_one_append_takes_is_one_append(source: Store, target: Store) -> None:
    log = RecordLog(source, "log")
    log.append("start", expect=1)
    for size in (10, 5 << 20, 10, 9 << 20, 10):
        log.append("message", b"x" * size)
    noted = Noted(target, max_append=16 << 20)
    assert states(list(sync(source, noted))) == {"log": "copied"}
    assert contents(target) == contents(source)
    assert {*noted.begun} <= {record.offset for record in log}
    assert len(noted.begun) == 5


def test_a_store_is_not_copied_into_itself(source: Store, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a")
    outer = LocalStore(tmp_path / "a")
    for inner in (LocalStore(tmp_path / "a"), LocalStore(tmp_path / "a" / "b"), LocalStore(tmp_path / "link")):
        with pytest.raises(ValueError, match="into itself"):
            sync(outer, inner)
    with pytest.raises(ValueError, match="into itself"):
        sync(source, source)
    assert list(sync(outer, LocalStore(tmp_path / "ab"))) == []


def test_there_is_at_least_one_worker(source: Store, target: Store) -> None:
    with pytest.raises(ValueError, match="worker"):
        sync(source, target, workers=0)


def test_what_one_log_meets_does_not_stop_the_others(source: Store, target: Store) -> None:
    fill(source, {"a": b"1", "b": b"2", "c": b"3"})
    other = MemoryStore("held")
    space = MemoryStore("held")
    with other.hold("b"):
        rows = {row.log: row for row in sync(source, space)}
    assert states(list(rows.values())) == {"a": "copied", "b": "failed", "c": "copied"}
    assert isinstance(rows["b"].error, Held)
    assert states(list(sync(source, space))) == {"a": "equal", "b": "copied", "c": "equal"}


def test_a_target_that_may_not_be_written_to_fails_log_by_log(source: Store, target: Store) -> None:
    class ReadOnly(Watched):
        def before(self, call: str, log: str) -> None:
            if call == "append":
                raise Unavailable("no right to write", log=log)

    fill(source, {"a": b"1", "b": b"12"})
    fill(target, {"b": b"12"})
    rows = list(sync(source, ReadOnly(target)))
    assert states(rows) == {"a": "failed", "b": "equal"}
    assert isinstance(rows[0].error, Unavailable)


def test_a_listing_that_fails_ends_a_sync_with_its_error(source: Store, target: Store) -> None:
    class Blind(Watched):
        def before(self, call: str, log: str) -> None:
            if call == "list":
                raise Unavailable("no right to list")

    with pytest.raises(Unavailable, match="no right to list"):
        list(sync(source, Blind(target)))


def test_what_may_pass_is_tried_again_and_the_rest_is_not(source: Store, target: Store) -> None:
    fill(source, {"log": b"1"})
    plan = {1: "error", 3: "lost", 4: "timeout"}
    faulty = Faulty(target, plan=plan)
    assert states(list(sync(source, faulty, pause=0))) == {"log": "copied"}
    assert [step.number for step in faulty.trace] == [1, 3, 4]
    again = Faulty(MemoryStore(), plan=dict.fromkeys(range(2, 100), "error"))
    (row,) = sync(source, again, pause=0)
    assert row.state == "failed"
    assert isinstance(row.error, Unavailable)


def test_what_was_written_is_read_back(source: Store, target: Store) -> None:
    class Liar(Watched):
        """Changes a byte on its way to the disk."""

        def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
            return super().append(log, data[:-1] + b"?", at=at)

    fill(source, {"log": b"12345"})
    known = Known()
    (row,) = sync(source, Liar(target), known=known)
    assert row.state == "failed"
    assert isinstance(row.error, Corrupt)
    assert known.get("log") is None
    assert [row.state for row in sync(source, target)] == ["diverged"]
    (row,) = sync(source, Liar(MemoryStore()), verify=False)
    assert row.state == "copied"


def between(store: Store, call: str, act: Callable[[], object]) -> Watched:
    """Return the store, which does something else behind the first call of this kind."""

    class Between(Watched):
        done = False

        def after(self, met: str, log: str) -> None:
            if met == call and not self.done:
                self.done = True
                act()

    return Between(store)


def test_a_log_that_is_made_again_while_it_is_copied_is_not_mixed_with_its_successor(
    source: Store, target: Store
) -> None:
    old, new = b"a" * (3 << 20), b"b" * (4 << 20)
    fill(source, {"log": old})

    def make_again() -> None:
        source.delete("log")
        source.append("log", new, at=NEW)

    rows = list(sync(between(source, "stream", make_again), target, pause=0))
    found = contents(target).get("log", b"")
    assert found in (b"", new) or old.startswith(found)
    assert rows[0].state in ("copied", "diverged")
    assert rows[0].state == "diverged" or found == new


def test_a_log_that_is_deleted_before_its_turn_is_left_out(source: Store, target: Store) -> None:
    fill(source, {"a": b"1"})
    fill(target, {"b": b"1"})

    class Late(Watched):
        def before(self, call: str, log: str) -> None:
            if call == "snapshot":
                self.inner.delete(log)

    assert list(sync(Late(source), target)) == [Row("b", "extra", 1)]
    fill(source, {"b": b"12"})
    assert list(sync(Late(source), target)) == [Row("b", "extra", 1)]


def test_a_log_that_is_deleted_while_it_is_copied_is_told_as_extra_as_far_as_it_came(
    source: Store, target: Store
) -> None:
    fill(source, {"log": b"12345" * (1 << 20)})
    narrow = between(target, "append", lambda: source.delete("log"))
    narrow.capabilities = replace(narrow.capabilities, max_append=1 << 20)
    assert list(sync(source, narrow, pause=0)) == [Row("log", "extra", 1 << 20)]
    assert target.tail("log").size == 1 << 20


def test_a_stranger_who_appends_to_the_target_meanwhile_is_found_and_not_overwritten(
    source: Store, target: Store
) -> None:
    fill(source, {"log": b"12345"})
    meddler = between(source, "snapshot", lambda: target.append("log", b"12x", at=NEW))
    assert list(sync(meddler, target, pause=0)) == [Row("log", "diverged", 5, offset=2)]
    assert target.read("log") == b"12x"


def test_a_stranger_who_appends_behind_what_was_copied_is_found_at_once(source: Store, target: Store) -> None:
    fill(source, {"log": b"12345"})
    meddler = between(target, "append", lambda: target.append("log", b"x", at=target.tail("log")))
    assert list(sync(source, meddler, pause=0)) == [Row("log", "diverged", 5, offset=5)]


@pytest.mark.parametrize("call", ["snapshot", "stream"])
def test_another_sync_that_is_faster_does_no_harm(source: Store, target: Store, call: str) -> None:
    fill(source, {"log": b"12345"})

    def overtake() -> None:
        source.append("log", b"6789", at=source.tail("log"))
        assert states(list(sync(source, target))) == {"log": "copied"}

    assert states(list(sync(between(source, call, overtake), target, pause=0))) == {"log": "copied"}
    assert target.read("log") == b"123456789"


def test_the_source_is_only_read(source: Store, target: Store) -> None:
    fill(source, {"a": b"1", "b": b"2"})
    fill(target, {"a": b"x"})
    counting = Counting(source)
    list(sync(counting, target))
    assert set(counting.calls) <= {"list", "snapshot", "stream", "read"}


def test_an_abandoned_sync_ends_its_threads_and_can_be_taken_up(source: Store, target: Store) -> None:
    fill(source, {f"log{number:03}": b"x" * number for number in range(1, 300)})
    rows = sync(source, target, workers=2)
    assert next(rows).log == "log001"
    rows.close()  # type: ignore[attr-defined]
    assert len(contents(target)) < 299
    assert sum(row.state == "copied" for row in sync(source, target)) > 0
    assert contents(target) == contents(source)


def test_an_abandoned_sync_goes_on_with_no_log_that_is_under_way(
    source: Store, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(source, {"a": b"1", "b": b"0123456789"})
    under_way, abandoned = threading.Event(), threading.Event()

    class Slow(Watched):
        def before(self, call: str, log: str) -> None:
            if (call, log) == ("append", "a"):
                assert under_way.wait(60)
            if (call, log) == ("append", "b"):
                under_way.set()
                assert abandoned.wait(60)

    def shutdown(*args: object, **options: object) -> None:
        abandoned.set()
        ended(*args, **options)  # type: ignore[arg-type]

    ended = ThreadPoolExecutor.shutdown
    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", shutdown)
    rows = sync(source, Slow(target, max_append=1), workers=2)
    assert next(rows).log == "a"
    rows.close()  # type: ignore[attr-defined]
    assert target.tail("b").size == 1


def test_a_listing_that_fails_on_its_way_goes_on_behind_its_last_row(source: Store, target: Store) -> None:
    class Broken(Watched):
        failed = False

        def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
            for info in self.inner.list(prefix, after=after, tails=tails):
                yield info
                if info.name == "log2" and not self.failed:
                    self.failed = True
                    raise Unavailable("the connection was lost", retry=True)

    fill(source, {f"log{number}": b"%d" % number for number in range(5)})
    for pair in ((Broken(source), target), (source, Broken(target))):
        assert [row.log for row in sync(*pair, pause=0)] == [f"log{number}" for number in range(5)]
    assert contents(target) == contents(source)


# What is remembered, and what it saves.


def test_an_unchanged_store_costs_two_listings_and_a_changed_log_its_new_bytes(source: Store, target: Store) -> None:
    fill(source, {f"log{number:04}": b"%d" % number * 10 for number in range(1000)})
    known = Known()
    list(sync(source, target, known=known))
    ours, theirs = Counting(source), Counting(target)
    assert {row.state for row in sync(ours, theirs, known=known)} == {"equal"}
    assert ours.calls == theirs.calls == {"list": 1}
    changed = [f"log{number:04}" for number in range(0, 1000, 50)]
    for log in changed:
        source.append(log, b"more", at=source.tail(log))
    ours, theirs = Counting(source), Counting(target)
    rows = list(sync(ours, theirs, known=known))
    assert [row.log for row in rows if row.state == "copied"] == changed
    assert ours.calls == {"list": 1, "snapshot": 20, "stream": 20}
    # One snapshot and one stream read back what was written.
    assert theirs.calls == {"list": 1, "append": 20, "snapshot": 20, "stream": 20}
    assert theirs.appended == 20 * len(b"more")
    ours, theirs = Counting(source), Counting(target)
    source.append("log0000", b"!", at=source.tail("log0000"))
    list(sync(ours, theirs, known=known, verify=False))
    assert theirs.calls == {"list": 1, "append": 1}


@pytest.mark.parametrize("side", ["source", "target"])
def test_what_is_known_of_a_log_says_nothing_of_its_successor(source: Store, target: Store, side: str) -> None:
    fill(source, {"log": b"12345"})
    known = Known()
    list(sync(source, target, known=known))
    other = source if side == "source" else target
    other.delete("log")
    fill(other, {"log": b"xxxxx"})
    assert list(sync(source, target, known=known)) == [Row("log", "diverged", 5, offset=0)]


def test_what_is_known_beyond_an_end_is_not_believed(source: Store, target: Store) -> None:
    fill(source, {"log": b"12345"})
    fill(target, {"log": b"1x3"})
    known = Known()
    known.remember("log", Equal(source.tail("log").run, target.tail("log").run, 4))
    assert list(sync(source, target, known=known)) == [Row("log", "diverged", 5, offset=1)]


def test_nothing_is_believed_of_logs_that_have_no_run(source: Store, target: Store) -> None:
    class NoRuns(Watched):
        def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
            for info in self.inner.list(prefix, after=after, tails=tails):
                yield info._replace(tail=Tail(info.tail.size, "") if info.tail else None)

        def tail(self, log: str) -> Tail:
            return Tail(self.inner.tail(log).size, "")

        def snapshot(self, log: str) -> Snapshot:
            found = super().snapshot(log)
            found.tail = Tail(found.tail.size, "")
            return found

    bare = NoRuns(source)
    bare.capabilities = replace(bare.capabilities, runs=False)
    fill(source, {"log": b"12345"})
    known = Known()
    assert states(list(sync(bare, target, known=known))) == {"log": "copied"}
    source.delete("log")
    fill(source, {"log": b"xxxxx"})
    assert states(list(sync(bare, target, known=known))) == {"log": "diverged"}
