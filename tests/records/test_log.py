"""A log of records: appended by many, torn, damaged, deleted, copied, and a store below that fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from statestore.errors import Closed, Conflict, Corrupt, Exists, Held, InvalidName, NotFound, Unavailable
from statestore.records import Header, Record, RecordLog, draft, encode, scan
from statestore.records.scan import CHUNK
from statestore.store import NEW, Snapshot, Store, Tail
from statestore.wrappers import Wrapper
from statestore_local import LocalStore
from statestore_memory import MemoryStore

SESSION_12 = (Path(__file__).parents[1] / "vectors" / "statefile" / "session-12.state").read_bytes()
RECORDS = list(scan(SESSION_12))
Open = Callable[[], Store]


@pytest.fixture(params=["memory", "local"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Open one place again and again: each time another store object."""
    opened: list[Store] = []

    def make() -> Store:
        opened.append(MemoryStore(f"{tmp_path}") if request.param == "memory" else LocalStore(tmp_path, sync="never"))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(reopen: Open) -> Store:
    return reopen()


@pytest.fixture
def log(store: Store) -> RecordLog:
    """A log of the twelve records of a session."""
    store.append("log", SESSION_12, at=NEW)
    return RecordLog(store, "log")


def bodies(log: RecordLog) -> list[bytes]:
    return [record.body for record in log]


def numbers(log: RecordLog) -> list[int]:
    return [record.n for record in log]


# Appending


def test_a_log_begins_with_the_record_that_is_expected_to_be_number_one(store: Store) -> None:
    log = RecordLog(store, "log")
    first = log.append("start", expect=1)
    second = log.append("message", b"hello", via="cli")
    assert (first.n, second.n) == (1, 2)
    assert store.read("log") == first.raw + second.raw
    assert list(log) == [first, second]
    assert list(RecordLog(store, "log")) == [first, second]


def test_an_append_to_a_log_that_does_not_exist_is_refused_and_says_how_to_create_it(store: Store) -> None:
    with pytest.raises(NotFound, match="expect=1"):
        RecordLog(store, "log").append("message")
    assert list(store.list()) == []


def test_a_record_has_the_time_and_an_id_of_its_own(store: Store) -> None:
    log = RecordLog(store, "log")
    log.append_many([draft("text") for _ in range(600)], expect=1)
    found = list(log)
    assert len({record.id for record in found}) == 600
    assert all(len(record.id) == 8 and set(record.id) <= set("0123456789abcdef") for record in found)
    given = log.append("text", id="mine", time="2026-09-28T12:00:00.500Z")
    assert (given.id, given.header.time) == ("mine", "2026-09-28T12:00:00.5Z")


def test_a_batch_is_one_write_with_numbers_in_order(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    log = RecordLog(store, "log")
    log.append("start", expect=1)
    writes = []
    real = type(store).append
    monkeypatch.setattr(type(store), "append", lambda self, *a, **k: writes.append(a) or real(self, *a, **k))
    got = log.append_many([draft("text", b"%d" % n) for n in range(100)])
    assert list(got) == list(range(2, 102))
    assert len(writes) == 1
    assert numbers(log) == list(range(1, 102))
    assert bodies(log)[1:] == [b"%d" % n for n in range(100)]


@pytest.mark.parametrize("count", [1, 2, 100, 101, 350])
@pytest.mark.parametrize("before", [1, 8, 9, 97, 98, 99, 100, 198, 199, 9_998])
def test_a_batch_is_spelled_as_its_records_one_by_one(before: int, count: int) -> None:
    log = RecordLog(MemoryStore(), "log")
    log.append_many([draft("text")] * before, expect=1)
    got = log.append_many([draft("text", b"%d" % n, id="a", time="2026-09-28T12:00:00Z") for n in range(count)])
    assert list(got) == list(range(before + 1, before + count + 1))
    one_by_one = [
        encode(Header(n=n, kind="text", id="a", time="2026-09-28T12:00:00Z"), b"%d" % i) for i, n in enumerate(got)
    ]
    assert [record.raw for record in log.last(count)] == one_by_one


def test_a_batch_of_nothing_touches_nothing(store: Store) -> None:
    assert list(RecordLog(store, "log").append_many([])) == []
    assert list(store.list()) == []


def test_the_number_that_is_expected_must_be_the_next_one(log: RecordLog, store: Store) -> None:
    for expect in (1, 12, 14, 2**63):
        for append in (
            lambda n: log.append("message", expect=n),
            lambda n: log.append_many([draft("message")], expect=n),
            lambda n: RecordLog(store, "log").append("message", expect=n),
        ):
            with pytest.raises(Conflict) as caught:
                append(expect)
            assert (caught.value.facts["record"], caught.value.facts["next"]) == (expect, 13)
            assert caught.value.found == store.tail("log")
    assert store.read("log") == SESSION_12
    assert log.append("message", expect=13).n == 13


@pytest.mark.parametrize("expect", [0, -1])
def test_no_record_has_a_number_below_one(log: RecordLog, expect: int) -> None:
    for append in (lambda: log.append("x", expect=expect), lambda: log.append_many([draft("x")], expect=expect)):
        with pytest.raises(ValueError, match="counted from 1"):
            append()
    with pytest.raises(ValueError, match="counted from 1"):
        log.read(expect)


def test_a_plain_append_finds_the_end_that_another_has_moved(log: RecordLog, reopen: Open) -> None:
    other = RecordLog(reopen(), "log")
    assert [log.append("x").n, other.append("x").n, other.append("x").n, log.append("x").n] == [13, 14, 15, 16]
    with pytest.raises(Conflict):
        other.append("x", expect=16)
    assert numbers(log) == list(range(1, 17))


def test_a_writer_that_was_paused_is_refused_where_it_expects_the_old_end(log: RecordLog, reopen: Open) -> None:
    paused, other = RecordLog(reopen(), "log"), RecordLog(reopen(), "log")
    paused.append("message", b"one")
    other.append("message", b"two")
    with pytest.raises(Conflict):
        paused.append("message", b"three", expect=14)
    assert bodies(log)[12:] == [b"one", b"two"]


def test_eight_threads_with_logs_of_their_own_get_every_number_once(reopen: Open) -> None:
    RecordLog(reopen(), "log").append("start", b"0", expect=1)
    ready = threading.Barrier(8)

    def work(worker: int) -> list[int]:
        log = RecordLog(reopen(), "log")
        ready.wait()
        return [log.append("message", b"%d.%d" % (worker, turn)).n for turn in range(50)]

    with ThreadPoolExecutor(8) as pool:
        got = [n for numbers in pool.map(work, range(8)) for n in numbers]
    assert sorted(got) == list(range(2, 402))
    found = list(RecordLog(reopen(), "log"))
    assert [record.n for record in found] == list(range(1, 402))
    assert {record.body for record in found[1:]} == {b"%d.%d" % (w, t) for w in range(8) for t in range(50)}


def test_eight_threads_with_one_log_object_get_every_number_once(store: Store) -> None:
    log = RecordLog(store, "log")
    log.append("start", expect=1)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda n: log.append("message", b"%d" % n).n, range(400)))
    assert sorted(got) == list(range(2, 402))
    assert sorted(map(int, bodies(log)[1:])) == list(range(400))


def test_of_many_who_create_a_log_at_once_one_wins(reopen: Open) -> None:
    ready = threading.Barrier(8)

    def create(worker: int) -> bool:
        log = RecordLog(reopen(), "log")
        ready.wait()
        try:
            return log.append("start", b"%d" % worker, expect=1).n == 1
        except Conflict:
            return False

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(create, range(8)))
    assert won.count(True) == 1
    assert bodies(RecordLog(reopen(), "log")) == [b"%d" % won.index(True)]


def test_while_a_log_is_held_others_are_refused_and_the_holder_is_not(log: RecordLog, reopen: Open) -> None:
    other = RecordLog(reopen(), "log")
    with log.hold():
        log.append("message", b"mine")
        for append in (lambda: other.append("message"), lambda: other.append("message", expect=14)):
            with pytest.raises(Held) as caught:
                append()
            assert caught.value.holder.pid == os.getpid()
        assert len(bodies(other)) == 13, "reading asks nobody"
    assert other.append("message").n == 14


def test_a_name_that_no_log_can_have_is_refused_before_anything_is_touched(store: Store) -> None:
    for name in ("../x", "", "a//b", "a\0", "x" * 300):
        with pytest.raises(InvalidName):
            RecordLog(store, name)
        with pytest.raises(InvalidName):
            RecordLog(store, "log").copy(name)
    assert list(store.list()) == []


# Reading


def test_a_range_of_records_is_a_slice_of_them_all(log: RecordLog) -> None:
    for first in range(1, 15):
        for before in (None, *range(15)):
            expected = RECORDS[first - 1 : None if before is None else max(before - 1, 0)]
            assert list(log.read(first, before)) == expected


def test_the_last_records_are_the_end_of_them_all(log: RecordLog) -> None:
    for k in range(15):
        assert log.last(k) == RECORDS[max(12 - k, 0) :]
    with pytest.raises(ValueError):
        log.last(-1)


def test_reading_a_log_that_does_not_exist_is_refused(store: Store) -> None:
    log = RecordLog(store, "log")
    for read in (lambda: list(log), lambda: log.last(1), log.count, lambda: log.copy("x"), log.recover):
        with pytest.raises(NotFound):
            read()


def test_a_reader_sees_what_others_append_while_it_reads(log: RecordLog, reopen: Open) -> None:
    records = iter(RecordLog(reopen(), "log"))
    assert next(records).n == 1
    log.append("message", b"x" * (2 << 20))
    rest = list(records)
    assert [record.n for record in rest] in (list(range(2, 13)), list(range(2, 14)))


def test_records_are_counted_from_where_they_were_known_to_end(log: RecordLog, reopen: Open) -> None:
    assert log.count() == 12
    log.append("message")
    RecordLog(reopen(), "log").append("message")
    assert log.count() == 14


def test_unknown_fields_and_odd_spellings_survive_a_read_and_a_copy(store: Store) -> None:
    odd = b'{ "n" : 1, "seq-key":{"b":[1.0,null]}, "kind":"m","LEN": 2,"time":"2026-09-28T12:00:00,50Z" }\nhi\n'
    store.append("log", odd + SESSION_12, at=NEW)
    log = RecordLog(store, "log")
    first = next(iter(log))
    assert (first.raw, first.kind, first.body) == (odd, "m", b"hi")
    copied = log.copy("copy", before=3)
    assert store.read("copy") == odd + RECORDS[0].raw
    assert copied.append("message").n == 3
    assert store.read("log") == odd + SESSION_12
    assert store.read("copy").startswith(odd)


def test_a_copy_goes_its_own_way(log: RecordLog) -> None:
    copied = log.copy("copy", before=6)
    assert list(copied) == RECORDS[:5]
    log.append("message", b"original")
    copied.append("message", b"copy")
    assert (bodies(log)[-1], bodies(copied)[-1]) == (b"original", b"copy")
    assert (len(bodies(log)), len(bodies(copied))) == (13, 6)
    with pytest.raises(Exists):
        log.copy("copy")


# Torn ends


def test_a_torn_end_is_left_out_by_readers_and_changes_nothing(store: Store) -> None:
    torn = SESSION_12[:-5]
    store.append("log", torn, at=NEW)
    log = RecordLog(store, "log")
    assert list(log) == RECORDS[:11]
    assert log.last(3) == RECORDS[8:11]
    assert log.count() == 11
    log.copy("copy")
    assert store.read("copy") == b"".join(record.raw for record in RECORDS[:11])
    assert store.read("log") == torn


@pytest.mark.parametrize("knows", [True, False], ids=["known", "unknown"])
def test_a_tear_at_any_byte_of_a_record_is_cut_and_kept_aside_by_the_next_append(tmp_path: Path, knows: bool) -> None:
    """Whoever appends next: one that knows where the log ended before the tear, or one that does not."""
    whole = SESSION_12[: RECORDS[1].end]
    path = tmp_path / "log.state"
    record = RECORDS[2].raw
    for cut in range(1, len(record)):
        with LocalStore(tmp_path, sync="never") as store:
            store.append("log", whole, at=NEW)
            log = RecordLog(store, "log")
            assert not knows or log.recover() == 3
            with path.open("ab") as file:
                file.write(record[:cut])
            new = log.append("message", b"new")
            assert path.read_bytes() == whole + new.raw
            (aside,) = tmp_path.glob(".log.cut-*")
            assert aside.read_bytes() == record[:cut]
            aside.unlink()
            store.delete("log")


def test_a_log_that_tore_in_its_first_record_is_created_anew(tmp_path: Path) -> None:
    for cut in (1, 40, RECORDS[0].end - 1):
        with LocalStore(tmp_path, sync="never") as store:
            (tmp_path / "log.state").write_bytes(SESSION_12[:cut])
            log = RecordLog(store, "log")
            assert list(log) == []
            assert log.append("start", expect=1).n == 1
            assert numbers(log) == [1]
            store.delete("log")


def test_zeros_at_the_end_are_cut_and_kept_aside(tmp_path: Path) -> None:
    (tmp_path / "log.state").write_bytes(SESSION_12[:-100] + bytes(5000))
    with LocalStore(tmp_path, sync="never") as store:
        log = RecordLog(store, "log")
        whole = len(list(log))
        assert log.recover() == whole + 1
        assert (tmp_path / "log.state").read_bytes() == SESSION_12[: RECORDS[whole - 1].end]
        (aside,) = tmp_path.glob(".log.cut-*")
        assert aside.read_bytes() == (SESSION_12[:-100] + bytes(5000))[RECORDS[whole - 1].end :]


def test_a_tear_in_a_store_that_never_tears_is_refused_and_not_cut() -> None:
    store = MemoryStore()
    store.append("log", SESSION_12[:-5], at=NEW)
    with pytest.raises(Corrupt) as caught:
        RecordLog(store, "log").append("message")
    assert (caught.value.record, caught.value.offset) == (12, RECORDS[11].offset)
    assert store.read("log") == SESSION_12[:-5]


# Damage


@pytest.mark.parametrize("k", [1, 5, 12])
def test_a_damaged_log_is_read_up_to_the_damage_and_never_changed(store: Store, tmp_path: Path, k: int) -> None:
    record = RECORDS[k - 1]
    data = SESSION_12[: record.offset + 10] + bytes(20) + SESSION_12[record.offset + 30 :]
    store.append("log", data, at=NEW)
    log = RecordLog(store, "log")
    found: list[Record] = []
    with pytest.raises(Corrupt) as caught:
        found.extend(log)
    assert found == RECORDS[: k - 1]
    for record_ in range(1, k):
        assert list(log.read(record_, k)) == RECORDS[record_ - 1 : k - 1]
    assert (caught.value.record, caught.value.offset) == (k, record.offset)
    before = sorted(path.name for path in tmp_path.iterdir())
    for call in (
        lambda: log.append("message"),
        lambda: log.append("message", expect=k),
        lambda: log.append("message", expect=13),
        lambda: log.append_many([draft("message")]),
        log.recover,
        log.count,
        lambda: log.copy("copy"),
        lambda: log.copy("copy", before=k + 1),
        lambda: log.last(12),
    ):
        with pytest.raises(Corrupt) as caught:
            call()
        assert (caught.value.record, caught.value.offset) == (k, record.offset)
        assert caught.value.facts["log"] == "log"
    assert store.read("log") == data
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    if k > 1:
        assert list(log.copy("copy", before=k)) == RECORDS[: k - 1]


def test_records_whose_numbers_are_wrong_are_counted_by_their_place(store: Store) -> None:
    """The next number comes from framing, never from what headers say."""
    data = b"".join(encode(Header(n=n, kind="x"), b"") for n in (7, 7, 2))
    store.append("log", data, at=NEW)
    log = RecordLog(store, "log")
    assert log.append("message").n == 4
    assert [record.n for record in log] == [7, 7, 2, 4]


# A store that fails


class Failing(MemoryStore):
    """Fails appends as told, one plan each: `lost` takes effect and fails, `refused` fails, `final` may not repeat."""

    def __init__(self) -> None:
        super().__init__()
        self.plan: list[str] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self.appends = 0

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self.appends += 1
        plan = self.plan.pop(0) if self.plan else "done"
        if plan == "refused":
            raise Unavailable("no", retry=True)
        tail = super().append(log, data, at=at)
        if plan == "done":
            return tail
        self.meanwhile()
        raise Unavailable("the answer was lost", retry=plan != "final", effect_unknown=True)


@pytest.fixture
def failing() -> Failing:
    made = Failing()
    RecordLog(made, "log").append("start", b"first", expect=1)
    made.appends = 0
    return made


@pytest.mark.parametrize("knows", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("plan", [["lost"], ["refused"], ["lost", "lost"], ["lost", "refused"], ["refused", "lost"]])
@pytest.mark.parametrize("how", ["append", "append_many", "expect"])
def test_an_append_whose_answer_was_lost_succeeds_and_is_there_once(
    failing: Failing, plan: list[str], how: str, knows: bool
) -> None:
    log = RecordLog(failing, "log")
    assert not knows or log.recover() == 2
    failing.plan = plan
    if how == "append_many":
        assert list(log.append_many([draft("message", b"a"), draft("message", b"b")])) == [2, 3]
        assert bodies(log) == [b"first", b"a", b"b"]
    else:
        assert log.append("message", b"a", expect=2 if how == "expect" else None).n == 2
        assert bodies(log) == [b"first", b"a"]
    assert failing.plan == []


def test_a_creation_whose_answer_was_lost_is_there_once(failing: Failing) -> None:
    failing.plan = ["lost"]
    log = RecordLog(failing, "new")
    assert log.append("start", expect=1).n == 1
    assert numbers(log) == [1]


@pytest.mark.parametrize("same", [True, False], ids=["by the same object", "by another object"])
@pytest.mark.parametrize("how", ["append", "append_many"])
def test_an_append_whose_answer_was_lost_while_others_appended_is_there_once(
    failing: Failing, how: str, same: bool
) -> None:
    """Others have moved the end meanwhile, perhaps through the very same object: still the first place counts."""
    log = RecordLog(failing, "log")
    log.recover()
    other = log if same else RecordLog(failing, "log")
    failing.plan = ["lost"]
    failing.meanwhile = lambda: other.append("message", b"other")
    if how == "append":
        assert log.append("message", b"mine").n == 2
    else:
        assert list(log.append_many([draft("message", b"mine")])) == [2]
    assert bodies(log) == [b"first", b"mine", b"other"]
    assert log.append("message", b"next").n == 4


@pytest.mark.parametrize("knows", [True, False], ids=["known", "unknown"])
def test_a_store_that_keeps_failing_is_given_up(failing: Failing, knows: bool) -> None:
    log = RecordLog(failing, "log")
    assert not knows or log.recover() == 2
    failing.plan = ["refused"] * 10
    with pytest.raises(Unavailable):
        log.append("message")
    assert 3 <= failing.appends <= 4
    failing.plan = []
    assert log.append("message").n == 2
    assert numbers(log) == [1, 2]


@pytest.mark.parametrize("knows", [True, False], ids=["known", "unknown"])
def test_a_failure_that_trying_again_does_not_heal_is_not_tried_again(failing: Failing, knows: bool) -> None:
    log = RecordLog(failing, "log")
    assert not knows or log.recover() == 2
    failing.plan = ["final"]
    with pytest.raises(Unavailable) as caught:
        log.append("message", b"there all the same")
    assert caught.value.effect_unknown
    assert failing.appends == 1
    assert log.append("message").n == 3, "the end is looked for again"


# Logs that go


def test_a_log_that_was_deleted_is_not_found_and_can_be_created_again(log: RecordLog, store: Store) -> None:
    log.append("message")
    store.delete("log")
    for append in (lambda: log.append("message"), lambda: log.append("message", expect=14), lambda: list(log)):
        with pytest.raises(NotFound):
            append()
    assert list(store.list()) == []
    assert log.append("start", expect=1).n == 1
    assert log.append("message").n == 2
    assert numbers(log) == [1, 2]


def test_a_log_that_was_deleted_and_made_again_is_another_one(log: RecordLog, store: Store, reopen: Open) -> None:
    if not store.capabilities.runs:
        pytest.skip("this file system has no generation numbers, so a store cannot tell two runs of a name apart")
    log.append("message", b"old")
    store.delete("log")
    other = RecordLog(reopen(), "log")
    other.append("start", b"new", expect=1)
    for _ in range(20):
        other.append("message", b"n" * 300)
    before = store.read("log")
    for append in (
        lambda: log.append("message"),
        lambda: log.append("message", expect=14),
        lambda: log.append_many([draft("message")]),
    ):
        with pytest.raises(Conflict):
            append()
    assert store.read("log") == before
    assert log.count() == 21
    assert RecordLog(store, "log").append("message").n == 22


def test_a_closed_store_refuses_every_call(log: RecordLog, store: Store) -> None:
    log.append("message")
    store.close()
    for call in (
        lambda: log.append("message"),
        lambda: log.append("message", expect=14),
        lambda: log.append_many([draft("message")]),
        lambda: list(log),
        lambda: log.last(1),
        lambda: log.copy("copy"),
        log.count,
        log.recover,
    ):
        with pytest.raises(Closed):
            call()


# Reading little


class Counted(MemoryStore):
    """Knows where appends began, where told to, and counts the bytes that are read."""

    def __init__(self, *, boundaries: bool = True) -> None:
        super().__init__()
        self.capabilities = replace(MemoryStore.capabilities, boundaries=boundaries)
        self.begun = [0]
        self.reads: list[tuple[int, int]] = []
        self.boundaries = boundaries

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        tail = super().append(log, data, at=at)
        self.begun.append(tail.size)
        return tail

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        data = super().read(log, start, stop)
        self.reads.append((start, len(data)))
        return data

    def boundary(self, log: str, before: int) -> int:
        super().boundary(log, before)
        return max(offset for offset in self.begun if offset <= before) if self.boundaries else 0


def test_the_last_records_are_read_from_where_an_append_began_near_the_end() -> None:
    store = Counted()
    log = RecordLog(store, "log")
    log.append("start", expect=1)
    log.append_many([draft("message", b"x" * 1000) for _ in range(5000)])
    for n in range(100):
        log.append("message", b"%d" % n)
    size = store.tail("log").size
    store.reads.clear()
    assert [record.body for record in log.last(10)] == [b"%d" % n for n in range(90, 100)]
    assert min(start for start, _ in store.reads) > size - 10_000
    assert sum(count for _, count in store.reads) < size / 100


def test_the_last_records_are_found_though_an_append_began_in_the_middle_of_one() -> None:
    store = Counted()
    tail = NEW
    for start in range(0, len(SESSION_12), 97):
        tail = store.append("log", SESSION_12[start : start + 97], at=tail)
    log = RecordLog(store, "log")
    for k in range(14):
        assert log.last(k) == RECORDS[max(12 - k, 0) :]


def test_whoever_appends_and_knows_nothing_reads_the_last_append() -> None:
    store = Counted()
    log = RecordLog(store, "log")
    log.append("start", expect=1)
    log.append_many([draft("message", b"x" * 1000) for _ in range(3000)])
    log.append_many([draft("message", b"x" * 1000) for _ in range(3)])
    store.reads.clear()
    assert RecordLog(store, "log").append("message").n == 3005
    assert min(start for start, _ in store.reads) == store.begun[-3]
    with pytest.raises(Conflict):
        RecordLog(store, "log").append("message", expect=3005)
    assert RecordLog(store, "log").append("message", expect=3006).n == 3006
    assert log.count() == 3006


@pytest.mark.parametrize("piece", [1, 50, 97, 400])
def test_an_append_goes_to_the_end_wherever_others_began(piece: int) -> None:
    store = Counted()
    tail = NEW
    for start in range(0, len(SESSION_12), piece):
        tail = store.append("log", SESSION_12[start : start + piece], at=tail)
    assert RecordLog(store, "log").append("message").n == 13
    assert RecordLog(store, "log").recover() == 14


def test_damage_behind_the_beginning_of_the_last_append_is_told_with_its_place() -> None:
    store = Counted()
    log = RecordLog(store, "log")
    for n in range(1, 21):
        log.append("message", expect=n)
    last = RecordLog(Counted(), "x").append("message", expect=1).raw.replace(b'"n":1', b'"n":21')
    begin = store.tail("log")
    store.append("log", last + b"[damaged]\n" + last, at=begin)
    with pytest.raises(Corrupt) as caught:
        RecordLog(store, "log").append("message")
    assert caught.value.facts["record"] == 22
    assert caught.value.facts["offset"] == begin.size + len(last)


def test_without_boundaries_the_last_of_large_records_are_read_with_little_else() -> None:
    """Of 100 MB, ten bodies of 1 MB are asked for: to find them, a chunk and one in a hundred bytes are read."""
    store = Counted(boundaries=False)
    log = RecordLog(store, "log")
    log.append("start", expect=1)
    for n in range(100):
        log.append("message", b"%d" % n * 500_000)
    size = store.tail("log").size
    store.reads.clear()
    found = log.last(10)
    assert [record.body[:2] for record in found] == [b"%d" % n for n in range(90, 100)]
    asked = sum(len(record.raw) for record in found)
    assert sum(count for _, count in store.reads) < 1.05 * asked + CHUNK + size / 100


@pytest.mark.parametrize(("first", "size"), [(b"small", 4096), (b"x" * 100_000, 4096 + CHUNK)])
def test_whoever_wants_one_record_does_not_fetch_a_thousand(first: bytes, size: int) -> None:
    store = Counted()
    log = RecordLog(store, "log")
    log.append("start", first, expect=1)
    log.append_many([draft("message", b"x" * 1000) for _ in range(3000)])
    store.reads.clear()
    assert [record.body for record in log.read(before=2)] == [first]
    assert sum(count for _, count in store.reads) <= size
    assert len(store.reads) <= 2


def test_only_what_is_new_is_read_to_find_an_end_that_others_have_moved() -> None:
    store = Counted()
    log, other = RecordLog(store, "log"), RecordLog(store, "log")
    log.append("start", expect=1)
    log.append_many([draft("message", b"x" * 1000) for _ in range(3000)])
    other.recover()
    log.append("message", b"new")
    end = store.begun[-2]
    store.reads.clear()
    assert other.append("message").n == 3003
    assert min(start for start, _ in store.reads) == end
    assert log.count() == 3003


# A writer that is killed

WRITER = """
import sys
from statestore_local import LocalStore
from statestore.records import RecordLog, draft

log = RecordLog(LocalStore(sys.argv[1], sync="never"), "log")
turn = 0
while True:
    turn += 1
    got = log.append_many([draft("text", b"%d " % turn * 1_000_000) for _ in range(12)])
    sys.stdout.write(f"{got[-1]}\\n")
    sys.stdout.flush()
"""


@pytest.mark.parametrize("life", range(6))
def test_a_writer_killed_in_the_middle_of_a_batch_leaves_whole_records_and_a_log_to_append_to(
    tmp_path: Path, life: int
) -> None:
    path = tmp_path / "log.state"
    with LocalStore(tmp_path, sync="never") as store:
        RecordLog(store, "log").append("start", expect=1)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    acknowledged = [writer.stdout.readline()]
    size = path.stat().st_size
    # Kill it as soon as the next batch begins to show in the file.
    while path.stat().st_size == size and writer.poll() is None:
        pass
    writer.send_signal(signal.SIGKILL)
    acknowledged += writer.stdout.readlines()
    writer.stdout.close()
    assert writer.wait() == -signal.SIGKILL
    last = int([line for line in acknowledged if line.endswith(b"\n")][-1])
    with LocalStore(tmp_path, sync="never") as store:
        log = RecordLog(store, "log")
        found = 0
        for found, record in enumerate(log, 1):
            assert record.n == found
            assert found == 1 or record.body == b"%d " % ((found - 2) // 12 + 1) * 1_000_000
        assert last <= found <= last + 12
        new = log.append("message", b"after")
        assert new.n == found + 1
        assert log.last(1) == [new]
        assert path.stat().st_size == new.end


# Beside a list


class LogsBesideAList(RuleBasedStateMachine):
    """Three `RecordLog`s over one store, beside a list of what the log holds: None where there is no log."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.logs = [RecordLog(self.store, "log") for _ in range(3)]
        self.model: list[bytes] | None = None
        self.copies = 0

    who = st.integers(0, 2)

    @rule(who=who, body=st.binary(max_size=20))
    def create(self, who: int, body: bytes) -> None:
        if self.model is None:
            assert self.logs[who].append("start", body, expect=1).n == 1
            self.model = [body]
        else:
            with pytest.raises(Conflict):
                self.logs[who].append("start", body, expect=1)

    @rule(who=who, bodies=st.lists(st.binary(max_size=20), min_size=1, max_size=4), expect=st.booleans())
    def append(self, who: int, bodies: list[bytes], expect: bool) -> None:
        log = self.logs[who]
        drafts = [draft("message", body) for body in bodies]
        if self.model is None:
            with pytest.raises(NotFound):
                log.append_many(drafts)
            return
        number = len(self.model) + 1
        got = log.append_many(drafts, expect=number if expect else None)
        assert list(got) == list(range(number, number + len(bodies)))
        self.model += bodies

    @rule(who=who, off=st.sampled_from([-1, 1, 5]))
    @precondition(lambda self: self.model is not None)
    def append_elsewhere(self, who: int, off: int) -> None:
        expect = len(self.model or []) + 1 + off
        with pytest.raises(Conflict):
            self.logs[who].append("message", expect=expect)

    @rule(who=who, first=st.integers(1, 8), before=st.none() | st.integers(0, 9), k=st.integers(0, 9))
    @precondition(lambda self: self.model is not None)
    def read(self, who: int, first: int, before: int | None, k: int) -> None:
        model, log = self.model or [], self.logs[who]
        stop = None if before is None else max(before - 1, 0)
        assert [record.body for record in log.read(first, before)] == model[first - 1 : stop]
        assert [record.body for record in log.last(k)] == model[max(len(model) - k, 0) :]
        assert log.count() == len(model)

    @rule(who=who, before=st.integers(2, 9))
    @precondition(lambda self: self.model is not None)
    def copy(self, who: int, before: int) -> None:
        model = self.model or []
        self.copies += 1
        if before > len(model) + 1:
            with pytest.raises(NotFound):
                self.logs[who].copy(f"copy-{self.copies}", before=before)
        else:
            copied = self.logs[who].copy(f"copy-{self.copies}", before=before)
            assert bodies(copied) == model[: before - 1]

    @rule()
    @precondition(lambda self: self.model is not None)
    def delete(self) -> None:
        self.store.delete("log")
        self.logs = [RecordLog(self.store, "log") for _ in range(3)]
        self.model = None

    @invariant()
    def the_log_is_the_list(self) -> None:
        if self.model is None:
            assert not any(info.name == "log" for info in self.store.list())
        else:
            found = list(scan(self.store.read("log")))
            assert [record.body for record in found] == self.model
            assert [record.n for record in found] == list(range(1, len(self.model) + 1))


TestLogsBesideAList: Any = LogsBesideAList.TestCase
TestLogsBesideAList.settings = settings(max_examples=50, stateful_step_count=25, deadline=None)


def test_a_log_that_goes_on_where_a_reader_has_come_to_reads_no_header(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    first = RecordLog(store, "log")
    assert first.end is None
    first.append("start", expect=1)
    first.append("message", b"two")
    assert first.end == (store.tail("log"), 3)
    other = RecordLog(store, "log")
    other.resume(*first.end)
    monkeypatch.setattr(store, "read", lambda *_: pytest.fail("it reads"))
    assert other.append("message", b"three", expect=3).n == 3
    assert other.end == (store.tail("log"), 4)
    monkeypatch.undo()
    with pytest.raises(Conflict):
        first.append("message", b"late", expect=3)


def test_a_conflict_met_while_another_record_is_being_written_is_no_damage(tmp_path: Path) -> None:
    """A tail that is seen amid a write lies inside a record: nothing is read from there on."""
    whole = RecordLog(LocalStore(tmp_path, sync="never"), "log")
    whole.append("note", b"1", expect=1)
    writer = RecordLog(whole.store, "log")
    late = RecordLog(whole.store, "log")
    late.resume(whole.store.tail("log"), 2)
    for n in (2, 3):
        writer.append("note", b"x" * 100, expect=n)
    file = tmp_path / "log.state"
    data = file.read_bytes()

    class Growing(Wrapper):
        def snapshot(self, log: str) -> Snapshot:
            found = super().snapshot(log)
            file.write_bytes(data)
            return found

    file.write_bytes(data[:-50])
    late.store = Growing(late.store)
    with pytest.raises(Conflict):
        late.append("note", b"2", expect=2)
    assert file.read_bytes() == data
