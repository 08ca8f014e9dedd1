"""The operator's cases, each by its number, on every system of sessions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any

import pytest

from statestore.errors import AlreadyAborted, Ambiguous, NotFound
from statestore.ops import Detail, PendingInput, State, Summary

from .places import OPEN, Place

A, B, C = "00000001", "00000002", "00000003"
SCHEMA = {
    "type": "object",
    "properties": {"approved": {"$ref": "#/$defs/yes"}},
    "required": ["approved"],
    "$defs": {"yes": {"type": "boolean"}},
}


def ids(rows: list[Summary]) -> list[str]:
    return [row.id for row in rows]


def plain(row: Summary | PendingInput) -> dict[str, Any]:
    return json.loads(row.model_dump_json())


def open_ids(place: Place, session: str = A) -> list[str]:
    """Return what is open, which a listing and a look say alike."""
    (row,) = (row for row in place.operator.list() if row.id == session)
    seen = place.operator.get(session)
    assert row.pending_interrupt_ids == seen.pending_interrupt_ids == [each.interrupt_id for each in seen.pending]
    return row.pending_interrupt_ids


def test_b1_an_empty_place_lists_nothing(place: Place) -> None:
    assert place.operator.list() == []
    assert place.names() == set()


def test_b2_text_is_idle_a_request_pauses_and_an_answer_ends_it(place: Place) -> None:
    place.create(A)
    place.text(A)
    assert place.operator.get(A).state is State.IDLE
    place.raise_input(A, "approve-1")
    assert place.operator.get(A).state is State.PAUSED
    assert open_ids(place) == ["approve-1"]
    place.answer(A, "approve-1", {"approved": True})
    place.text(A)
    assert place.operator.get(A).state is State.IDLE
    assert open_ids(place) == []


def test_b3_a_user_narrows_and_no_user_is_all(place: Place) -> None:
    place.create(A, "alice")
    place.create(B, "bob")
    assert ids(place.operator.list("alice")) == [A]
    assert ids(place.operator.list("")) == [B, A]
    assert place.operator.list("nobody") == []
    with pytest.raises(NotFound):
        place.operator.get(A, user_id="bob")


def test_b4_a_look_by_id_alone_fills_in_everything(place: Place) -> None:
    place.create(A, "bob")
    place.text(A, "bob")
    time = OPEN + timedelta(hours=1, microseconds=250_000)
    place.raise_input(A, "approve-1", "May I?", user="bob", schema=SCHEMA, payload={"a": 1}, time=time)
    seen = place.operator.get(A)
    assert (seen.app_name, seen.user_id, seen.id, seen.event_count) == (place.app, "bob", A, 2)
    (pending,) = seen.pending
    assert (pending.interrupt_id, pending.message, pending.author) == ("approve-1", "May I?", "agent")
    assert pending.raised_at == time
    assert (pending.response_schema, pending.payload) == (SCHEMA, {"a": 1})
    assert place.operator.get(A, user_id="bob") == seen


@pytest.mark.parametrize("user", ["", "alice"])
def test_b5_and_e3_what_is_not_there_is_not_found(place: Place, user: str) -> None:
    place.create(B)
    for call in ("get", "abort"):
        with pytest.raises(NotFound, match="session="):
            getattr(place.operator, call)(A, user_id=user)


def test_b7_an_abort_ends_all_and_counts_as_no_event(place: Place) -> None:
    place.create(A)
    place.text(A)
    place.raise_input(A, "approve-1")
    before = place.operator.get(A)
    place.operator.abort(A, "operator cancelled")
    seen = place.operator.get(A)
    assert (seen.state, seen.abort_reason) == (State.ABORTED, "operator cancelled")
    assert seen.pending == seen.pending_interrupt_ids == []
    assert not {"pending", "pending_interrupt_ids"} & plain(seen).keys()
    assert (seen.event_count, seen.last_event_time) == (before.event_count, before.last_event_time)
    (row,) = place.operator.list()
    assert (row.state, row.abort_reason) == (State.ABORTED, "operator cancelled")


def test_b8_a_second_abort_is_refused_and_the_first_stands(place: Place) -> None:
    place.create(A)
    place.operator.abort(A, "first")
    first = place.do(place.operator._operator.source.read(_key(place, A))).markers
    with pytest.raises(AlreadyAborted, match="reason=first"):
        place.another().abort(A, "second")
    assert place.do(place.operator._operator.source.read(_key(place, A))).markers == first
    assert place.operator.get(A).abort_reason == "first"


def _key(place: Place, session: str) -> Any:
    (key,) = place.do(place.operator._operator.source.find(session))
    return key


@pytest.mark.parametrize("user", ["", "alice"])
def test_b9_an_abort_of_nothing_makes_nothing(place: Place, user: str) -> None:
    place.create(B)
    before = place.names()
    with pytest.raises(NotFound):
        place.operator.abort(A, user_id=user)
    assert place.names() == before


def test_b11_what_was_answered_may_be_raised_again(place: Place) -> None:
    place.create(A)
    place.raise_input(A, "z", "one")
    place.answer(A, "z")
    place.raise_input(A, "z", "two")
    assert [each.message for each in place.operator.get(A).pending] == ["two"]
    assert open_ids(place) == ["z"]


def test_b12_raised_twice_it_is_open_once_with_what_was_said_last(place: Place) -> None:
    place.create(A)
    place.raise_input(A, "z", "one")
    place.raise_input(A, "z", "two", time=OPEN + timedelta(days=1))
    (pending,) = place.operator.get(A).pending
    assert (pending.message, pending.raised_at) == ("two", OPEN + timedelta(days=1))


def test_b14_its_place_in_the_order_is_that_of_the_raise_that_is_open(place: Place) -> None:
    place.create(A)
    for interrupt in ("a", "b"):
        place.raise_input(A, interrupt)
    place.raise_input(A, "a", "again")
    assert open_ids(place) == ["a", "b"]
    place.answer(A, "a")
    place.raise_input(A, "a")
    assert open_ids(place) == ["b", "a"]


def test_b15_an_answer_closes_its_own_request_and_nothing_else_does(place: Place) -> None:
    place.create(A)
    place.answer(A, "b")  # before the question it does not count
    place.raise_input(A, "a")
    place.raise_input(A, "b")
    place.answer(A, "a")
    assert open_ids(place) == ["b"]
    place.text(A, author="user")
    assert open_ids(place) == ["b"]
    place.answer(A, "B")
    assert open_ids(place) == ["b"]


def test_b16_what_says_nothing_is_passed_over(place: Place) -> None:
    place.create(A)
    place.raise_input(A, "a")
    count = place.oddities(A)
    assert open_ids(place) == ["a"]
    assert place.operator.get(A).event_count == count + 1


def test_b17_an_error_is_an_answer_too(place: Place) -> None:
    place.create(A)
    place.raise_input(A, "a")
    place.answer(A, "a", {"error": "the person has left"})
    assert open_ids(place) == []


@pytest.mark.parametrize(
    "payload", [[1, [2]], 7, 0, False, "", "text", 2.5, {"a": {"b": [None]}}, {}, [], None], ids=repr
)
def test_b18_payloads_and_schemas_come_back_as_they_went(place: Place, payload: Any) -> None:
    place.create(A)
    place.raise_input(A, "a", payload=payload, schema=SCHEMA)
    for operator in (place.operator, place.another()):
        operator.list()
        (pending,) = operator.get(A).pending
        assert (pending.payload, type(pending.payload)) == (payload, type(payload))
        assert pending.response_schema == SCHEMA
        assert plain(pending).get("payload") == payload


def test_b19_an_interruption_is_marked_cleared_and_marked_again(place: Place) -> None:
    place.create(A)
    place.operator.mark_interrupted(A, "first")
    seen = place.operator.get(A)
    assert (seen.state, seen.interrupt_reason) == (State.INTERRUPTED, "first")
    assert seen.interrupted_at is not None
    place.operator.mark_interrupted(A, "instead")
    assert place.operator.get(A).interrupt_reason == "instead"
    place.operator.clear_interrupted(A)
    seen = place.operator.get(A)
    assert seen.state is State.IDLE
    assert not {"interrupt_reason", "interrupted_at"} & plain(seen).keys()
    place.operator.mark_interrupted(A, "second")
    assert place.operator.list()[0].interrupt_reason == "second"
    assert [row.id for row in place.operator.scan_interrupted()] == [A]


def test_b20_an_interruption_needs_a_reason_and_a_session_or_a_user(place: Place) -> None:
    place.create(B)
    before = place.names()
    with pytest.raises(ValueError, match="reason"):
        place.operator.mark_interrupted(B, "")
    for call in (lambda: place.operator.mark_interrupted(A, "why"), lambda: place.operator.clear_interrupted(A)):
        with pytest.raises(NotFound):
            call()
    assert place.names() == before


def test_b21_with_a_user_given_an_interruption_waits_for_its_session(place: Place) -> None:
    place.operator.mark_interrupted(A, "early", user_id=place.user)
    assert place.operator.list() == []
    with pytest.raises(NotFound):
        place.operator.get(A, user_id=place.user)
    place.create(A)
    assert place.operator.get(A).interrupt_reason == "early"


def test_b22_aborted_before_paused_before_interrupted_before_idle(place: Place) -> None:
    place.create(A)
    place.operator.clear_interrupted(A)
    assert place.operator.get(A).state is State.IDLE
    place.operator.mark_interrupted(A, "shutdown")
    place.raise_input(A, "a")
    assert place.operator.get(A).state is State.PAUSED
    assert place.operator.scan_interrupted() == []
    place.operator.abort(A, "enough")
    place.operator.mark_interrupted(A, "again")
    seen = place.operator.get(A)
    assert (seen.state, seen.abort_reason, seen.interrupt_reason) == (State.ABORTED, "enough", "")
    assert [row.state for row in place.operator.list()] == [State.ABORTED]


def test_b23_and_e1_an_abort_without_a_reason_is_an_abort(place: Place) -> None:
    place.create(A)
    place.operator.abort(A, "")
    assert place.operator.get(A).abort_reason == "operator abort"
    with pytest.raises(AlreadyAborted):
        place.operator.abort(A)


def test_b24_companions_are_listed_nowhere_and_a_name_that_looks_like_one_is(place: Place) -> None:
    user, id_ = place.nearly_reserved
    place.create(A)
    place.create(id_, user)
    place.operator.abort(A)
    place.operator.abort(id_, user_id=user)
    assert set(ids(place.operator.list())) == {A, id_}
    assert place.operator.get(id_).user_id == user
    assert len(place.names()) == 4


def test_b25_the_id_of_a_companion_is_found_by_no_call(place: Place) -> None:
    place.create(A)
    place.operator.abort(A)
    before = place.names()
    user, id_ = place.reserved
    calls: list[Callable[[], object]] = [
        lambda: place.operator.get(id_, user_id=user),
        lambda: place.operator.abort(id_, user_id=user),
        lambda: place.operator.mark_interrupted(id_, "why", user_id=user),
        lambda: place.operator.clear_interrupted(id_, user_id=user),
        lambda: place.operator.resume(id_, "a", None, user_id=user),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            call()
    assert place.names() == before


def test_b26_an_abort_in_the_sessions_own_state_counts(place: Place) -> None:
    place.create(A, state={"mast_abort_reason": "of old"})
    seen = place.operator.get(A)
    assert (seen.state, seen.abort_reason) == (State.ABORTED, "of old")
    before = place.names()
    with pytest.raises(AlreadyAborted, match="of old"):
        place.operator.abort(A)
    assert place.names() == before


def test_b27_and_e2_an_interruption_in_the_sessions_own_state_can_be_cleared(place: Place) -> None:
    place.create(A, state={"mast_interrupted_reason": "of old"})
    assert place.operator.get(A).interrupt_reason == "of old"
    place.operator.clear_interrupted(A)
    assert place.operator.get(A).state is State.IDLE
    assert place.operator.list()[0].state is State.IDLE


def test_b28_an_empty_abort_of_old_is_none_and_both_calls_say_so(place: Place) -> None:
    place.create(A, state={"mast_abort_reason": ""})
    assert place.operator.get(A).state is State.IDLE
    place.operator.abort(A, "now")
    assert place.operator.get(A).abort_reason == "now"


def test_b29_the_newest_come_first_then_by_id_and_markers_move_nothing(place: Place) -> None:
    for hour, id_ in enumerate((A, B, C), 1):
        place.create(id_)
        place.text(id_, time=OPEN + timedelta(hours=hour))
    for id_, user in {"0000000b": "alice", "0000000a": "bob"}.items():
        place.create(id_, user)
        place.text(id_, user, time=OPEN + timedelta(hours=2))
    order = [C, B, "0000000a", "0000000b", A]
    assert ids(place.operator.list()) == order
    place.operator.mark_interrupted(A, "shutdown")
    place.operator.abort(B)
    assert ids(place.operator.list()) == order
    assert place.operator.list()[-1].last_event_time == OPEN + timedelta(hours=1)


def test_b31_a_session_without_events_is_as_old_as_it_is(place: Place) -> None:
    place.create(A, time=OPEN)
    seen = place.operator.get(A)
    assert (seen.state, seen.event_count) == (State.IDLE, 0)
    _close(seen)


def _close(seen: Detail) -> None:
    assert seen.last_event_time is not None
    assert seen.last_event_time.tzinfo is UTC


def test_b32_another_application_is_invisible(place: Place) -> None:
    place.create(A, app="other")
    other = place.other_app()
    assert ids(other.list()) == [A]
    assert place.operator.list() == []
    for call in (place.operator.get, place.operator.abort):
        with pytest.raises(NotFound):
            call(A)
    place.operator.mark_interrupted(A, "mine", user_id=place.user)
    assert other.get(A).state is State.IDLE


def test_b33_an_id_under_two_users_is_ambiguous_and_both_are_named(place: Place) -> None:
    if not place.shares_ids:
        pytest.skip("an id belongs to one user here")
    place.create(A, "alice")
    place.create(A, "bob")
    before = place.names()
    calls: list[Callable[[], object]] = [
        lambda: place.operator.get(A),
        lambda: place.operator.abort(A),
        lambda: place.operator.mark_interrupted(A, "why"),
        lambda: place.operator.clear_interrupted(A),
        lambda: place.operator.resume(A, "a", None),
    ]
    for call in calls:
        with pytest.raises(Ambiguous, match="users=alice,bob"):
            call()
    assert place.names() == before
    place.operator.abort(A, user_id="bob")
    assert place.operator.get(A, user_id="alice").state is State.IDLE
    assert place.operator.get(A, user_id="bob").state is State.ABORTED


def at_once(*calls: Callable[[], object]) -> list[BaseException | None]:
    """Make calls at the same time, and return what each raised."""
    barrier, raised = threading.Barrier(len(calls)), [None] * len(calls)

    def make(place: int, call: Callable[[], object]) -> None:
        barrier.wait()
        try:
            call()
        except BaseException as error:
            raised[place] = error  # type: ignore[call-overload]

    threads = [threading.Thread(target=make, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised  # type: ignore[return-value]


def test_b34_a_mark_and_an_abort_at_the_same_time_both_take_effect(place: Place) -> None:
    place.create(A)
    daemon, operator = place.another(), place.another()
    raised = at_once(
        *(lambda n=n: daemon.mark_interrupted(A, f"mark {n}") for n in range(4)), lambda: operator.abort(A)
    )
    assert raised == [None] * 5
    kinds = [kind for kind, _ in place.markers(A)]
    assert sorted(kinds) == ["abort", *["interrupt"] * 4]
    assert place.operator.get(A).state is State.ABORTED


def test_b35_and_e5_of_aborts_at_the_same_time_exactly_one_succeeds(place: Place) -> None:
    place.create(A)
    operators = [place.another() for _ in range(6)]
    raised = at_once(*(lambda each=each, n=n: each.abort(A, f"by {n}") for n, each in enumerate(operators)))
    winners = [n for n, error in enumerate(raised) if error is None]
    assert len(winners) == 1
    assert {type(error) for error in raised} == {type(None), AlreadyAborted}
    assert place.operator.get(A).abort_reason == f"by {winners[0]}"


def test_b38_the_json_has_the_keys_that_mean_something_and_times_in_utc(place: Place) -> None:
    place.create(A)
    place.text(A)
    place.create(B)
    place.text(B)
    place.raise_input(B, "approve-1", "May I?", schema=SCHEMA, time=OPEN + timedelta(seconds=90.5))
    paused, idle = (plain(row) for row in place.operator.list())
    assert idle.keys() == {"id", "app_name", "user_id", "last_event_time", "state"}
    assert paused == {
        "id": B,
        "app_name": place.app,
        "user_id": place.user,
        "last_event_time": "2026-09-28T12:01:30.5Z",
        "state": "paused",
        "pending_interrupt_ids": ["approve-1"],
    }
    seen = plain(place.operator.get(B))
    pending = {
        "interrupt_id": "approve-1",
        "message": "May I?",
        "author": "agent",
        "raised_at": "2026-09-28T12:01:30.5Z",
        "response_schema": SCHEMA,
    }
    assert seen == {**paused, "event_count": 2, "pending": [pending]}
    assert plain(place.operator.get(A)).keys() == {*idle, "event_count"}


def test_b39_no_json_has_the_year_1_or_a_null(place: Place) -> None:
    place.create(A)
    place.operator.clear_interrupted(A)
    for row in (*place.operator.list(), place.operator.get(A)):
        text = row.model_dump_json()
        assert "0001-" not in text
        assert "null" not in text


def test_b52_a_call_that_waits_is_a_request_until_its_result_comes(place: Place) -> None:
    place.create(A)
    place.park(A, "c1", "request_operator_input", "Which one?")
    (pending,) = place.operator.get(A).pending
    assert (pending.interrupt_id, pending.long_running, pending.tool_name, pending.message) == (
        "c1",
        True,
        "request_operator_input",
        "Which one?",
    )
    place.operator.mark_interrupted(A, "shutdown")
    assert place.operator.get(A).state is State.PAUSED
    place.answer(A, "c1", {"chosen": 1})
    assert place.operator.get(A).state is State.INTERRUPTED
