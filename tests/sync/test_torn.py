"""What is copied of a source where an append can tear: what will stay, and no byte of what a crash cut short."""

from __future__ import annotations

from pathlib import Path

import pytest

from statestore import RecordLog, draft
from statestore.store import NEW, Store
from statestore.sync import Known, Row, sync
from statestore_local import LocalStore
from statestore_memory import MemoryStore

from .stores import Counting, Watched, contents


@pytest.fixture
def source(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "source", sync="never")


@pytest.fixture
def target() -> MemoryStore:
    return MemoryStore()


def tear(store: Store, log: str, rest: bytes) -> None:
    store.append(log, rest, at=store.tail(log))


TORN = [b'{"n":2,"ki', b'{"n":2,"kind":"message","id":"aa","time":"2026-09-28T09:00:04Z","len":9}\nhalf', b"\0" * 5000]


@pytest.mark.parametrize("rest", TORN, ids=["header", "body", "zeros"])
@pytest.mark.parametrize("remembered", [False, True])
def test_a_torn_end_is_left_out_and_what_takes_its_place_follows(
    source: LocalStore, target: MemoryStore, rest: bytes, remembered: bool
) -> None:
    known = Known()
    log = RecordLog(source, "log")
    log.append("message", b"one", expect=1)
    whole = source.tail("log").size
    if remembered:
        list(sync(source, target, known=known))
    tear(source, "log", rest)
    copied = 0 if remembered else whole
    state = "equal" if remembered else "copied"
    assert list(sync(source, target, known=known)) == [Row("log", state, whole, copied, torn=len(rest))]
    assert target.read("log") == source.read("log", 0, whole)
    # The next append cuts it, and it is as if it had never been there.
    RecordLog(source, "log").append("message", b"two")
    (row,) = sync(source, target, known=known)
    assert (row.state, row.torn) == ("copied", 0)
    assert contents(target) == contents(source)


def test_a_log_of_which_nothing_is_whole_is_not_made(source: LocalStore, target: MemoryStore) -> None:
    source.append("a", b'{"n":1,"kind":"mess', at=NEW)
    source.append("b", b"\0" * 100, at=NEW)
    assert list(sync(source, target)) == [Row("a", "equal", torn=19), Row("b", "equal", torn=100)]
    assert contents(target) == {}


def test_a_target_that_got_a_torn_end_otherwise_is_left_alone(source: LocalStore, target: MemoryStore) -> None:
    RecordLog(source, "log").append("message", b"one", expect=1)
    whole = source.tail("log").size
    tear(source, "log", TORN[0])
    target.append("log", source.read("log"), at=NEW)
    assert list(sync(source, target)) == [Row("log", "equal", whole, torn=len(TORN[0]))]


@pytest.mark.parametrize("data", [b"no records", b'{"a":1}', b"\0\0x", b'{"n":x}\n', b'{"n":1}\nand more'])
def test_what_is_no_record_is_copied_to_its_last_byte(source: LocalStore, target: MemoryStore, data: bytes) -> None:
    source.append("log", data, at=NEW)
    known = Known()
    assert list(sync(source, target, known=known)) == [Row("log", "copied", len(data), len(data))]
    assert contents(target) == {"log": data}
    # It may be cut and go on otherwise in the same run, so nothing is remembered of it.
    source.cut("log", 1, at=source.tail("log"))
    source.append("log", b"x" * (len(data) - 1), at=source.tail("log"))
    assert list(sync(source, target, known=known)) == [Row("log", "diverged", len(data), offset=1)]


def test_a_log_with_damage_in_the_middle_is_copied_as_it_is(source: LocalStore, target: MemoryStore) -> None:
    log = RecordLog(source, "log")
    log.append_many([draft("message", b"%d" % number) for number in range(20)], expect=1)
    data = source.read("log").replace(b'{"n":9,', b'{"n"x9,')
    source.append("damaged", data, at=NEW)
    assert {row.state for row in sync(source, target)} == {"copied"}
    assert target.read("damaged") == data


def test_a_store_that_never_tears_is_copied_whole_whatever_it_holds(target: MemoryStore) -> None:
    source = MemoryStore()
    source.append("log", TORN[1], at=NEW)
    (row,) = sync(source, target)
    assert (row.size, row.torn) == (len(TORN[1]), 0)


def test_an_end_that_is_cut_and_replaced_while_it_is_judged_is_judged_anew(
    source: LocalStore, target: MemoryStore
) -> None:
    log = RecordLog(source, "log")
    log.append("message", b"one", expect=1)
    size = source.tail("log").size
    tear(source, "log", TORN[1])

    class Replacing(Watched):
        """Has the torn end replaced by something that the first read of it did not see."""

        done = False

        def before(self, call: str, log: str) -> None:
            if call == "read" and not self.done:
                self.done = True
                self.inner.cut(log, size, at=self.inner.tail(log))
                self.inner.append(log, b"\n" * 100, at=self.inner.tail(log))

    (row,) = sync(Replacing(source), target, pause=0)
    assert row.state == "copied"
    assert contents(target) == contents(source)


@pytest.mark.parametrize("bodies", [[b"TWO"], [b"TWO", b"three"], [b"2" * 9000]], ids=["same size", "more", "large"])
def test_whole_records_that_a_power_cut_took_and_others_replaced_are_found_whatever_is_remembered(
    source: LocalStore, target: MemoryStore, bodies: list[bytes]
) -> None:
    known = Known()
    log = RecordLog(source, "log")
    log.append("message", b"one", expect=1)
    kept = source.tail("log").size
    log.append("message", b"two")
    list(sync(source, target, known=known))
    source.cut("log", kept, at=source.tail("log"))
    RecordLog(source, "log").append_many([draft("message", body) for body in bodies])
    before = target.read("log")
    (row,) = sync(source, target, known=known)
    assert row.state == "diverged"
    assert row.offset in range(kept, len(before))
    assert target.read("log") == before


def test_what_is_remembered_of_a_source_that_tears_saves_the_target_all_questions(
    source: LocalStore, target: MemoryStore
) -> None:
    known = Known()
    for name in ("a", "b"):
        RecordLog(source, name).append("message", b"one" * 3000, expect=1)
    list(sync(source, target, known=known))
    ours, theirs = Counting(source), Counting(target)
    assert {row.state for row in sync(ours, theirs, known=known)} == {"equal"}
    assert theirs.calls == {"list": 1}
    assert ours.calls["stream"] == 0
