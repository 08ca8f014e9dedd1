"""What is wrong with one session is told of it, never taken for an answer, and keeps nobody else from being shown."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from statestore import NEW, RecordLog, Store, names
from statestore.conversations import Conversations
from statestore.errors import AlreadyAborted, Closed, Conflict, Corrupt, InvalidName, StateStoreError, Unavailable
from statestore.ops import ConversationsSource, SessionsSource, State, Summary, SyncOperator, request_input
from statestore.sessions import Sessions
from statestore.wrappers import Wrapper
from statestore_local import LocalStore
from statestore_memory import MemoryStore
from tests.cli.test_usage import snapshot
from tests.disks import ROOT_ONLY, read_only, small_disk
from tests.ops.test_cases import A, B, C

T = TypeVar("T")


class Failing(Wrapper):
    """A store that fails for some calls on companions.

    Attributes:
        fail: for these calls.
        lost: whether they are done all the same, and only the answer is lost.
    """

    fail: frozenset[str] = frozenset()
    lost = False

    def _run(self, call: str, log: str, act: Callable[[], T]) -> T:
        if call in self.fail and log.endswith("/~ops"):
            if self.lost:
                act()
            raise Unavailable("the network is down", effect_unknown=self.lost, log=log)
        return act()


@pytest.fixture
def store() -> Failing:
    store = Failing(MemoryStore())
    sessions = Sessions(store)
    for id_ in (A, B, C):
        sessions.start(id=id_).close()
    return store


@pytest.fixture
def operator(store: Store) -> Iterator[SyncOperator]:
    with SyncOperator(SessionsSource(store)) as operator:
        yield operator


def by_id(operator: SyncOperator, **how: Any) -> dict[str, Summary]:
    return {row.id: row for row in operator.list(**how)}


def damage(store: Store, log: str) -> None:
    store.append(log, b"this is no record\n", at=store.tail(log))


def test_e6_a_damaged_session_is_marked_and_the_others_are_listed(store: Failing, operator: SyncOperator) -> None:
    damage(store, B)
    for scan in (False, True):
        rows = by_id(operator, scan=scan)
        assert rows.keys() == {A, B, C}
        assert (rows[B].state, rows[B].last_event_time, rows[A].state) == (None, None, State.IDLE)
        assert "record=2" in rows[B].error
        assert list(rows)[-1] == B
    assert "state" not in rows[B].model_dump(mode="json")
    assert {row.id for row in operator.list(state="idle")} == {A, C}
    for call in (operator.get, lambda id_: operator.resume(id_, "a", None)):
        with pytest.raises(Corrupt):
            call(B)


def test_a_session_damaged_from_its_first_byte_is_still_one(store: Failing, operator: SyncOperator) -> None:
    store.append("00000009", b"this is no record\n", at=NEW)
    assert by_id(operator)["00000009"].state is None
    with pytest.raises(Corrupt):
        operator.get("00000009")


def test_a_damaged_session_can_be_aborted_and_says_so(store: Failing, operator: SyncOperator) -> None:
    damage(store, B)
    operator.abort(B, "broken")
    row = by_id(operator)[B]
    assert (row.state, row.abort_reason) == (State.ABORTED, "broken")
    assert "record=2" in row.error
    with pytest.raises(AlreadyAborted):
        operator.abort(B)


@pytest.mark.parametrize("how", ["damage", "failure", "tomorrow"])
def test_e9_what_was_said_of_a_session_and_cannot_be_read_is_never_nothing(
    store: Failing, operator: SyncOperator, how: str
) -> None:
    operator.abort(A, "enough")
    if how == "damage":
        damage(store, f"{A}/~ops")
    elif how == "tomorrow":
        RecordLog(store, f"{A}/~ops").append("ops.forgiven", b"{}")
    else:
        store.fail = frozenset({"snapshot", "read"})
    row = by_id(operator, scan=True)[A]
    assert row.state is None
    assert row.error
    assert by_id(operator, scan=True)[B].state is State.IDLE
    for call in (
        lambda: operator.get(A),
        lambda: operator.abort(A),
        lambda: operator.mark_interrupted(A, "why"),
        lambda: operator.resume(A, "a", None),
    ):
        with pytest.raises(StateStoreError) as caught:
            call()
        assert isinstance(caught.value, Corrupt | Unavailable)


def test_a_marker_whose_answer_was_lost_is_looked_for_and_counts_once(store: Failing, operator: SyncOperator) -> None:
    store.fail, store.lost = frozenset({"append"}), True
    operator.abort(A, "once")
    store.fail = frozenset()
    assert operator.get(A).abort_reason == "once"
    assert len(list(RecordLog(store, f"{A}/~ops"))) == 1


def test_a_marker_that_could_not_be_written_is_told(store: Failing, operator: SyncOperator) -> None:
    store.fail = frozenset({"append"})
    with pytest.raises(Unavailable):
        operator.abort(A)
    store.fail = frozenset()
    assert operator.get(A).state is State.IDLE


@pytest.mark.parametrize(
    "body",
    [
        b"{nope",
        b"[]",
        b'{"interrupt_id": "a", "payload": 1e400}',
        b'{"interrupt_id": "a", "payload": NaN}',
        b'{"interrupt_id": "a", "payload": "\\ud800"}',
        b'{"interrupt_id": "a", "payload": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"interrupt_id": "\xff"}',
    ],
    ids=lambda body: str(body[:45]),
)
def test_a_request_that_nobody_can_read_is_damage_and_not_nothing(
    store: Failing, operator: SyncOperator, body: bytes
) -> None:
    RecordLog(store, A).append("input.requested", body)
    RecordLog(store, "talks/a").append("conversation.messages", b'{"messages": [%b]}' % body, expect=1)
    with SyncOperator(ConversationsSource(store, "talks")) as others:
        for each, id_ in ((operator, A), (others, "a")):
            row = by_id(each)[id_]
            assert row.state is None
            assert "cannot be understood" in row.error
            with pytest.raises(Corrupt):
                each.get(id_)
    assert by_id(operator)[B].state is State.IDLE


def test_no_time_is_absent_and_never_the_year_1(store: Failing, operator: SyncOperator) -> None:
    data = b'{"n":1,"kind":"start","id":"0","time":"0001-01-01T00:00:00Z","len":0}\n\n'
    store.append("00000009", data, at=NEW)
    RecordLog(store, "00000009").append_many([request_input("a")])
    data = b'{"n":3,"kind":"input.requested","id":"0","time":"0001-01-01T00:00:00Z","len":20}\n{"interrupt_id":"b"}\n'
    store.append("00000009", data, at=store.tail("00000009"))
    seen = operator.get("00000009")
    assert seen.last_event_time is None
    assert [each.raised_at is None for each in seen.pending] == [False, True]
    assert "0001" not in seen.model_dump_json()
    assert list(by_id(operator))[-1] == "00000009"


def test_texts_that_no_file_takes_hide_nobody(store: Failing, operator: SyncOperator) -> None:
    Sessions(store, names.quote("\ud800")).start(id="00000009").close()
    operator.mark_interrupted("00000009", "\ud800")
    rows = by_id(operator)
    assert rows.keys() == {A, B, C, "00000009"}
    assert rows["00000009"].user_id == "\ud800"
    assert json.dumps([row.model_dump(mode="json") for row in rows.values()])


def test_a_child_does_not_wait_for_the_thread_of_its_parent(operator: SyncOperator) -> None:
    assert operator.list()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
        child = os.fork()
    if child == 0:
        try:
            operator.list()
        except Closed:
            operator.close()
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize("place", ["memory", "local"])
def test_whoever_holds_a_session_is_not_disturbed_by_markers(tmp_path: Path, place: str) -> None:
    def open_store() -> Store:
        return MemoryStore(str(tmp_path)) if place == "memory" else LocalStore(tmp_path / "state", sync="never")

    with (
        open_store() as theirs,
        open_store() as ours,
        SyncOperator(SessionsSource(ours)) as operator,
        Sessions(theirs).start(id=A) as session,
    ):
        session.append("message", b"hello")
        operator.mark_interrupted(A, "shutdown")
        operator.abort(A, "enough")
        operator.clear_interrupted(A)
        assert operator.get(A).state is State.ABORTED
        session.append("message", b"and on", expect=3)
        assert [record.n for record in session.log] == [1, 2, 3]


def test_b37_a_look_leaves_every_byte_and_time_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / "state"
    with LocalStore(root, sync="never") as store, Sessions(store, "app").start(id=A) as session:
        session.append_many([request_input("a")])
    before = snapshot(root)
    with LocalStore(root, create=False) as store, SyncOperator(SessionsSource(store, "app")) as operator:
        assert operator.list()[0].state is operator.get(A).state is State.PAUSED
        operator.list(scan=True)
    assert snapshot(root) == before


@ROOT_ONLY
def test_b37_a_disk_that_takes_no_writes_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    with small_disk("1m") as disk:
        with LocalStore(disk / "state", sync="never") as store:
            Sessions(store, "app").start(id=A).close()
        read_only(disk)
        monkeypatch.setenv("XDG_CACHE_HOME", str(disk))
        with LocalStore(disk / "state", create=False) as store, SyncOperator(SessionsSource(store, "app")) as operator:
            assert operator.list()[0].state is operator.get(A).state is State.IDLE
            with pytest.raises(StateStoreError):
                operator.abort(A)
            assert operator.get(A).state is State.IDLE


def test_the_reserved_name_is_refused_at_every_door() -> None:
    store = MemoryStore()
    for prefix in ("~ops", "a/~ops", "~ops/a"):
        for make in (Sessions, Conversations, SessionsSource, ConversationsSource):
            with pytest.raises(InvalidName, match="reserved"):
                make(store, prefix)
    talks = Conversations(store)
    with pytest.raises(InvalidName, match="reserved"):
        talks.append_messages("~ops", [])
    assert list(store.list()) == []


def test_companions_show_in_no_listing_of_what_they_are_beside(store: Failing, operator: SyncOperator) -> None:
    talks = Conversations(store, "talks")
    talks.append_messages("a", [])
    with SyncOperator(ConversationsSource(store, "talks")) as others:
        others.abort("a")
        operator.abort(A)
        assert list(Sessions(store).list()) == [A, B, C]
        assert talks.list() == [row.id for row in others.list()] == ["a"]
        assert {info.name for info in store.list()} >= {f"{A}/~ops", "talks/a/~ops"}


def test_a_conversation_that_is_removed_takes_what_was_said_of_it_with_it(store: Failing) -> None:
    talks = Conversations(store, "talks")
    talks.append_messages("a", [])
    talks.append_messages("b", [])
    with SyncOperator(ConversationsSource(store, "talks")) as operator:
        operator.abort("a")
        operator.abort("b")
        talks.delete("a")
        assert [id_ for id_, _ in talks.sweep(1, dry_run=False, now=datetime(2999, 1, 1, tzinfo=UTC))] == ["b"]
        assert not list(store.list("talks/"))
        talks.append_messages("a", [])
        assert operator.get("a").state is State.IDLE


def test_only_what_begins_as_a_session_is_one(store: Failing, operator: SyncOperator) -> None:
    Conversations(store).append_messages("deadbeef", [])
    RecordLog(store, "0000000d").append("message", b"x", expect=1)
    for log in ("deep/er/0000000e", "%FF/0000000f", "~ops/0000000f", f"{A}/~ops/0000000f"):
        RecordLog(store, log).append("start", expect=1)
    assert by_id(operator).keys() == {A, B, C}
    assert operator._run(operator._operator.source.find("deadbeef")) == []


def test_a_marker_is_refused_where_others_have_come_first(store: Failing, operator: SyncOperator) -> None:
    from statestore.ops import Key, Marker

    source = operator._operator.source
    key = Key("", "", A)
    seen = operator._run(source.markers(key))
    operator.mark_interrupted(A, "first")
    with pytest.raises(Conflict):
        operator._run(source.mark(key, Marker("abort", "late", None), seen.at))
    assert operator.get(A).state is State.INTERRUPTED


def test_what_is_closed_says_so(store: Failing) -> None:
    operator = SyncOperator(SessionsSource(store))
    operator.close()
    operator.close()
    with pytest.raises(Closed):
        operator.list()
    source = SessionsSource(store)
    with SyncOperator(source) as operator:
        operator._run(source.aclose())
        for call in (operator.list, lambda: operator.get(A), lambda: operator.mark_interrupted(A, "why", user_id="u")):
            with pytest.raises(Closed):
                call()
    store.append("x", b"the store is open", at=NEW)
