"""A listing scales with what has changed, and a scan that believes nothing says the same."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statestore import NEW, RecordLog
from statestore.conversations import Conversations, ConversationState, Message
from statestore.ops import (
    Call,
    ConversationsSource,
    Event,
    Part,
    Requested,
    Response,
    SessionsSource,
    State,
    SyncOperator,
    go_rules,
    request_input,
)
from statestore.records import draft
from statestore.records.header import Header
from statestore.records.record import encode
from statestore.sessions import Sessions
from statestore_memory import MemoryStore
from tests.sync.stores import Counting

SESSIONS = int(os.environ.get("STATESTORE_SESSIONS", "500"))
START = encode(Header(n=1, kind="start", id="0", time="2026-01-01T00:00:00Z"), b"")


def test_of_many_sessions_one_listing_and_what_has_changed_are_read() -> None:
    store = Counting(MemoryStore())
    for number in range(SESSIONS):
        store.append(f"app/{number:08x}", START, at=NEW)
        store.append(f"app/deep/er/{number:08x}", START, at=NEW)
    with SyncOperator(SessionsSource(store, "app")) as operator:
        store.calls.clear()
        assert len(operator.list()) == SESSIONS
        assert store.calls == {"list": 1, "snapshot": SESSIONS, "read": SESSIONS}
        changed = [f"{number:08x}" for number in range(0, SESSIONS, SESSIONS // 10)]
        for id_ in changed:
            RecordLog(store.inner, f"app/{id_}").append_many([request_input("a")])
        operator.abort(changed[0])
        store.calls.clear()
        rows = operator.list()
        # The companion is new, so it is one more.
        assert store.calls == {"list": 1, "snapshot": len(changed) + 1, "read": len(changed) + 1}
        assert sum(row.state is State.PAUSED for row in rows) == len(changed) - 1
        store.calls.clear()
        assert operator.list() == rows
        assert store.calls == {"list": 1}
        assert operator.list(scan=True) == rows
        assert store.calls["read"] > SESSIONS


def test_what_is_kept_of_sessions_outlives_the_source_and_damage_to_its_file(tmp_path: Path) -> None:
    from statestore_local import LocalStore

    file = tmp_path / "catalog.sqlite3"
    with LocalStore(tmp_path / "state", sync="never") as inner:
        with Sessions(inner).start(id="00000001") as session:
            session.append_many([request_input("a", payload={"big": 2**70}, response_schema={"type": "integer"})])
        for damaged in (False, False, True):
            if damaged:
                file.write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)
            store = Counting(inner)
            with SyncOperator(SessionsSource(store, catalog=file)) as operator:
                (row,) = operator.list()
                assert row.pending_interrupt_ids == ["a"]
                assert operator.get("00000001").pending[0].payload == {"big": 2**70}


IDS = st.sampled_from(["a", "b", "c"])
STEPS = st.sampled_from(["s", "t"])
RECORDS = st.one_of(
    st.tuples(st.just("request"), IDS),
    st.tuples(st.just("answer"), IDS),
    st.tuples(st.just("result"), IDS),
    st.tuples(st.just("call"), IDS, STEPS),
    st.tuples(st.just("step"), STEPS),
    st.tuples(st.just("message")),
    st.tuples(st.sampled_from(["abort", "interrupt", "clear"])),
    st.tuples(st.sampled_from(["own abort", "own interrupt", "own clear"])),
    st.tuples(st.just("look")),
)
OPERATIONS = st.lists(st.tuples(st.sampled_from([1, 2]), RECORDS), max_size=25)


@given(OPERATIONS)
@settings(max_examples=30, deadline=timedelta(seconds=5))
def test_a_listing_and_a_scan_agree_with_the_events_after_any_operations(operations: list[Any]) -> None:
    store = MemoryStore()
    events: dict[str, list[Event]] = {}
    calls: dict[str, dict[str, list[str]]] = {}
    for number in (1, 2):
        Sessions(store, "app").start(id=f"0000000{number}").close()
    with SyncOperator(SessionsSource(store, "app")) as operator:
        for number, (what, *more) in operations:
            id_ = f"0000000{number}"
            log, told = RecordLog(store, f"app/{id_}"), events.setdefault(id_, [])
            waiting = calls.setdefault(id_, {})
            if what == "request":
                log.append_many([request_input(more[0])])
                told.append(Event(requested_input=Requested(more[0])))
            elif what in ("answer", "result"):
                log.append("input.answered" if what == "answer" else "result", b"1", for_=more[0])
                told.append(Event(parts=[Part(response=Response(more[0]))]))
            elif what == "call":
                log.append("call", b"", id=more[0], step=more[1])
                waiting.setdefault(more[1], []).append(more[0])
                told.append(Event())
            elif what == "step":
                log.append("step", id=more[0])
                closed = waiting.pop(more[0], [])
                told.append(Event(long_running=closed, parts=[Part(call=Call(each)) for each in closed]))
            elif what == "message":
                log.append("message", b"x")
                told.append(Event())
            elif what.startswith("own"):
                kind = {"abort": "ops.aborted", "interrupt": "ops.interrupted", "clear": "ops.cleared"}[what[4:]]
                log.append_many([draft(kind, b'{"reason": "own"}')])
            elif what == "look":
                operator.list()
            elif what == "abort" and operator.get(id_).state is not State.ABORTED:
                operator.abort(id_)
            elif what == "interrupt":
                operator.mark_interrupted(id_, "why")
            elif what == "clear":
                operator.clear_interrupted(id_)
        rows = operator.list()
        assert operator.list(scan=True) == rows
        for row in rows:
            seen = operator.get(row.id)
            assert seen.model_dump(include=set(type(row).model_fields)) == row.model_dump()
            expected = [request.interrupt_id for request in go_rules(events.get(row.id, []))]
            if row.state is not State.ABORTED:
                assert row.pending_interrupt_ids == expected
                assert (row.state is State.PAUSED) == bool(expected)
            assert seen.event_count == len(events.get(row.id, []))


def said(what: str, id_: str) -> Message:
    if what == "call":
        return Message(role="assistant", tool_calls=[{"id": id_, "name": "f", "args": {"message": "m"}}])
    if what == "result":
        return Message(role="tool", tool_result={"id": id_, "name": "f"})
    if what == "request":
        return Message(role="assistant", meta={"requested_input": {"interrupt_id": id_, "payload": [id_]}})
    if what == "answer":
        return Message(role="user", meta={"answered_input": {"interrupt_id": id_, "response": 1}})
    return Message(role="user", content=id_)


def heard(message: Message) -> Event:
    """What an event of a message is, told once more."""
    asked = (message.meta or {}).get("requested_input")
    ids = [call["id"] for call in message.tool_calls or ()]
    closed = [
        (message.tool_result or {}).get("id"),
        ((message.meta or {}).get("answered_input") or {}).get("interrupt_id"),
    ]
    return Event(
        requested_input=Requested(asked["interrupt_id"]) if asked else None,
        long_running=ids,
        parts=[*(Part(call=Call(each)) for each in ids), *(Part(response=Response(each)) for each in closed if each)],
    )


SAID = st.tuples(st.sampled_from(["call", "result", "request", "answer", "text"]), IDS)
CHANGES = st.one_of(
    st.tuples(st.just("append"), st.lists(SAID, max_size=4)),
    st.tuples(st.just("save"), st.tuples(st.integers(0, 6), st.lists(SAID, max_size=3))),
    st.tuples(st.just("look"), st.none()),
)


@given(st.lists(CHANGES, max_size=12))
@settings(max_examples=30, deadline=timedelta(seconds=5))
def test_a_conversation_that_goes_back_to_an_earlier_message_goes_back_to_what_was_open(changes: list[Any]) -> None:
    store = MemoryStore()
    talks = Conversations(store)
    talks.save(ConversationState(id="x", user_id="alice"))
    with SyncOperator(ConversationsSource(store)) as operator:
        for what, more in changes:
            if what == "append":
                talks.append_messages("x", [said(*each) for each in more])
            elif what == "save":
                keep, rest = more
                state = talks.load("x")
                state.messages = [*state.messages[:keep], *(said(*each) for each in rest)]
                talks.save(state)
            else:
                operator.list()
        rows = operator.list()
        assert operator.list(scan=True) == rows
        messages = talks.load("x").messages
        seen = operator.get("x")
        assert seen.pending_interrupt_ids == [each.interrupt_id for each in go_rules(map(heard, messages))]
        assert (seen.event_count, seen.user_id) == (len(messages), "alice")
        assert rows[0].pending_interrupt_ids == seen.pending_interrupt_ids


@pytest.mark.parametrize("source", [SessionsSource, ConversationsSource])
def test_a_state_is_told_again_from_its_bytes(source: Any) -> None:
    fold = source(MemoryStore(), "app")._fold
    assert fold.load(fold.dump(fold.initial())) == fold.initial()
    assert json.loads(fold.dump(fold.initial()))
