"""Torn and corrupt logs, storages that fail, logs that were made anew, sync policies."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statestore import NEW, RecordLog, Store, Tail
from statestore.conversations import Conversations, ConversationState, Message
from statestore.errors import Conflict, Corrupt, NotFound, Unavailable
from statestore.wrappers import Wrapper
from statestore_local import LocalStore, _sync
from statestore_memory import MemoryStore
from tests.conversations.places import contents, user

LOG = "conversations/c"
READERS: dict[str, Callable[[Conversations], Any]] = {
    "load": lambda talks: talks.load("c"),
    "load_recent_messages": lambda talks: talks.load_recent_messages("c", 5),
    "log_load": lambda talks: talks.log_load("c"),
    "log_len": lambda talks: talks.log_len("c"),
    "message_count": lambda talks: talks.message_count("c"),
    "load_metadata": lambda talks: talks.load_metadata("c"),
    "load_summaries": lambda talks: talks.load_summaries("c"),
    "load_list": lambda talks: talks.load_list("c", "l"),
    "fork": lambda talks: talks.fork("c", "d"),
}


@pytest.fixture
def place(tmp_path: Path) -> Callable[[], Conversations]:
    """Opens conversations in local files that know nothing."""
    return lambda: Conversations(LocalStore(tmp_path / "state", sync="never"), catalog=tmp_path / "catalog")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / f"{LOG}.state"


def three(talks: Conversations) -> list[int]:
    """Add three messages, each in a record, and return the offset behind each."""
    talks.append_messages("c", [user("a")])
    talks.append_messages("c", [user("b")])
    talks.append_messages("c", [user("c")])
    return [record.end for record in RecordLog(talks.store, LOG)]


def test_A85_a_torn_end_is_left_out_and_cut_by_the_next_write(place: Callable[[], Conversations], file: Path) -> None:
    ends = three(place())
    for size in (ends[-1] - 1, ends[-2] + 1, ends[-2] + 20):
        os.truncate(file, size)
        for talks in (place(), place()):
            assert contents(talks.load("c").messages) == ["a", "b"]
            assert talks.message_count("c") == talks.log_len("c") == 2
            assert contents(talks.load_recent_messages("c", 1)) == ["b"]
            talks.fork("c", "d")
            assert contents(talks.load("d").messages) == ["a", "b"]
        assert file.stat().st_size == size
        assert talks.log_append("c", 0, [user("a"), user("b"), user("C")]) == 3
        assert contents(place().load("c").messages) == ["a", "b", "C"]
        assert talks.list() == ["c", "d"]


def test_A85_a_creation_that_died_is_no_conversation(place: Callable[[], Conversations], file: Path) -> None:
    ends = three(place())
    os.truncate(file, ends[0] - 1)
    talks = place()
    assert talks.list() == []
    with pytest.raises(NotFound):
        talks.load("c")
    with pytest.raises(NotFound):
        talks.fork("c", "d")
    talks.append_messages("src", [user("whole")])
    talks.fork("src", "c")
    assert contents(talks.load("c").messages) == ["whole"]


def test_what_is_known_follows_a_log_whose_torn_end_was_cut(place: Callable[[], Conversations], file: Path) -> None:
    talks, other = place(), place()
    three(talks)
    with open(file, "r+b") as log:
        log.seek(0, os.SEEK_END)
        log.write(b'{"n":4,"kind":"conver')
    assert talks.message_count("c") == 3
    other.append_messages("c", [user("d")])
    assert contents(talks.load("c").messages) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("reader", READERS)
def test_A86_damage_in_the_middle_is_told_by_every_reader(
    place: Callable[[], Conversations], file: Path, reader: str
) -> None:
    ends = three(place())
    data = bytearray(file.read_bytes())
    data[ends[0]] ^= 1  # the second record's header begins otherwise
    file.write_bytes(data)
    before = file.read_bytes()
    with pytest.raises(Corrupt) as told:
        READERS[reader](place())
    assert (told.value.record, told.value.offset) == (2, ends[0])
    for change in (
        lambda: place().append_messages("c", [user("d")]),
        lambda: place().merge_metadata("c", {"k": 1}),
        lambda: place().save(ConversationState(id="c")),
    ):
        with pytest.raises(Corrupt):
            change()
    assert file.read_bytes() == before
    assert place().list() == ["c"]
    assert place().list(user_id="u") == []
    assert list(place().sweep(0.001, dry_run=False)) == []


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("conversation.messages", b'{"messages":['),
        ("conversation.messages", b"[]"),
        ("conversation.messages", b'{"messages":[],"more":1}'),
        ("conversation.items", b'{"list":"l","items":["no base64!"]}'),
        ("conversation.saved", b'{"profile":{},"metadata":{},"keep":9}'),
        ("conversation.later", b"{}"),
    ],
)
def test_a_record_that_cannot_be_understood_is_corrupt(
    place: Callable[[], Conversations], kind: str, body: bytes
) -> None:
    talks = place()
    three(talks)
    record = RecordLog(talks.store, LOG).append(kind, body)
    for one in (talks, place()):
        for _ in range(2):
            with pytest.raises(Corrupt) as told:
                one.load("c")
            assert (told.value.record, told.value.offset) == (4, record.offset)
        with pytest.raises(Corrupt):
            one.log_len("c")


def test_a_message_that_is_none_is_corrupt(place: Callable[[], Conversations]) -> None:
    talks = place()
    three(talks)
    RecordLog(talks.store, LOG).append("conversation.messages", b'{"messages":[1]}')
    with pytest.raises(Corrupt, match="should be an object"):
        talks.load("c")


def test_a_profile_that_is_none_is_corrupt(place: Callable[[], Conversations]) -> None:
    talks = place()
    three(talks)
    RecordLog(talks.store, LOG).append("conversation.saved", b'{"profile":{"user_id":5},"metadata":{}}')
    with pytest.raises(Corrupt, match="user_id"):
        talks.load("c")
    assert talks.list() == ["c"]
    assert talks.list(user_id="u") == []


def test_records_of_other_kinds_say_nothing(place: Callable[[], Conversations]) -> None:
    talks = place()
    three(talks)
    RecordLog(talks.store, LOG).append("note", b"\x00 by hand", time="2026-01-01T00:00:00Z")
    for one in (talks, place()):
        assert contents(one.load("c").messages) == ["a", "b", "c"]
        assert one.load("c").last_accessed_at.isoformat() == "2026-01-01T00:00:00+00:00"
    assert talks.log_append("c", 3, [user("d")]) == 4


def test_a_record_that_was_taken_back_after_it_was_read_is_forgotten(
    place: Callable[[], Conversations], file: Path
) -> None:
    talks, other = place(), place()
    ends = three(other)
    assert talks.message_count("c") == 3
    os.truncate(file, ends[-2])
    place().append_messages("c", [user("C" * 50), user("D")])
    assert contents(talks.load("c").messages) == ["a", "b", "C" * 50, "D"]


class Runless(Wrapper):
    """A store that cannot tell a log from another one under its name."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.capabilities = replace(store.capabilities, runs=False)

    def _plain(self, tail: Tail) -> Tail:
        return Tail(tail.size, "")

    def tail(self, log: str) -> Tail:
        return self._plain(super().tail(log))

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        try:
            found = super().tail(log)
        except NotFound:
            found = NEW
        return self._plain(super().append(log, data, at=found if at.size == found.size else at))


@pytest.mark.parametrize("first", ["made here", "read here"])
def test_a_log_made_anew_is_known_by_its_records_where_there_are_no_runs(first: str) -> None:
    store = MemoryStore(f"runless {first}")
    talks, other = Conversations(Runless(store)), Conversations(store)
    maker = talks if first == "made here" else other
    maker.append_messages("c", [user("a")])
    assert talks.message_count("c") == 1
    other.delete("c")
    other.append_messages("c", [user("b")])
    other.append_messages("c", [user("c")])
    assert contents(talks.load("c").messages) == ["b", "c"]
    assert contents(talks.load_recent_messages("c", 1)) == ["c"]


class Failing(Wrapper):
    """Fails at its next appends, before or behind their effect."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.failures: list[str] = []

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        failure = self.failures.pop(0) if self.failures else ""
        if failure == "before":
            raise Unavailable("the storage is away", retry=True)
        tail = super().append(log, data, at=at)
        if failure == "behind":
            raise Unavailable("the answer was lost", retry=True, effect_unknown=True)
        return tail


@pytest.mark.parametrize("failure", ["before", "behind"])
@pytest.mark.parametrize("times", [1, 4])
def test_a_failure_that_passes_doubles_and_loses_nothing(failure: str, times: int) -> None:
    store = Failing(MemoryStore())
    talks = Conversations(store)
    for number in range(5):
        store.failures = [failure] * times
        if times == 1:
            assert talks.log_append("c", number, [user(str(number))]) == number + 1
        else:
            with pytest.raises(Unavailable):
                talks.log_append("c", number, [user(str(number))])
            assert talks.log_append("c", number, [user(str(number))]) == number + 1
    assert contents(talks.load("c").messages) == list("01234")


def test_an_append_that_is_always_overtaken_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Overtaken(Wrapper):
        def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
            raise Conflict("always", found=at)

    monkeypatch.setattr("statestore.conversations._log._RACES", 5)
    monkeypatch.setattr("statestore.records.log._RACES", 3)
    with pytest.raises(Conflict, match=r"others append all the time.*attempts=5"):
        Conversations(Overtaken(MemoryStore())).append_messages("c", [])


@pytest.mark.parametrize(
    ("sync", "append", "save"), [("always", True, True), ("on_flush", False, True), ("never", False, False)]
)
def test_A96_what_is_synced_follows_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: Any, append: bool, save: bool
) -> None:
    calls: list[bool] = []
    for name in ("fsync", "fdatasync"):
        real = getattr(_sync, name)

        def count(fd: int, real: Callable[[int], None] = real) -> None:
            calls.append(os.path.isdir(f"/proc/self/fd/{fd}"))
            real(fd)

        monkeypatch.setattr(_sync, name, count)
    talks = Conversations(LocalStore(tmp_path / "state", sync=sync))
    talks.save(ConversationState(id="c"))
    assert (False in calls) == (True in calls) == save  # the file, and the directory that names it
    for _ in range(3):
        calls.clear()
        talks.append_messages("c", [Message(role="user")])
        assert bool(calls) == append
    calls.clear()
    talks.save(ConversationState(id="c", user_id="u"))
    assert bool(calls) == save
