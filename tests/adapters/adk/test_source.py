"""The operator's surface over google-adk's services: what only they have. The cases of all systems are in tests/ops."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.adk.events.request_input import RequestInput
from google.adk.sessions import BaseSessionService, DatabaseSessionService, InMemorySessionService, Session
from google.adk.workflow.utils._workflow_hitl_utils import create_request_input_event
from google.genai import types

from statestore.adapters.adk import AdkSource, StateStoreSessionService, open_source
from statestore.errors import (
    AlreadyAborted,
    Conflict,
    InvalidAnswer,
    NotFound,
    NotSupported,
    PluginError,
    StateStoreError,
    Unavailable,
)
from statestore.ops import Detail, Key, Marker, Operator, State
from statestore_local import LocalStore
from tests.adapters.adk.services import ALL, APP, USER, on_memory, said

SERVICES = {
    **{name: ALL[name] for name in ("memory", "control")},
    "sqlite": lambda directory: DatabaseSessionService(f"sqlite+aiosqlite:///{directory}/sessions.db"),
}


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseSessionService]:
    service = SERVICES[request.param](tmp_path)
    yield service
    if isinstance(service, DatabaseSessionService):
        asyncio.run(service.close())


def operator(service: BaseSessionService, **more: Any) -> Operator:
    return Operator(AdkSource(service, APP, **more))


async def told(service: BaseSessionService, *events: Event, id_: str = "one", state: Any = None) -> Detail:
    """Make a session of events, one second apart, and return what the operator says of it."""
    session = await service.create_session(app_name=APP, user_id=USER, session_id=id_, state=state)
    for number, event in enumerate(events):
        event.timestamp = 1000.0 + number
        await service.append_event(session, event)
    return await operator(service).get(id_)


def calls(*called: tuple[str, str, dict[str, Any]], waits: set[str] | None = None, **more: Any) -> Event:
    parts = [types.Part(function_call=types.FunctionCall(id=id_, name=name, args=args)) for id_, name, args in called]
    content = types.Content(role="model", parts=parts)
    return Event(**{"author": "agent", "invocation_id": "turn", **more}, content=content, long_running_tool_ids=waits)


def answers(id_: str, author: str = "user", name: str = "tool", **more: Any) -> Event:
    part = types.Part(function_response=types.FunctionResponse(id=id_, name=name, response={"ok": True}))
    return Event(
        **{"author": author, "invocation_id": "turn", **more}, content=types.Content(role="user", parts=[part])
    )


def test_b59_a_request_as_adk_makes_it_says_all_that_it_was_given(service):
    async def case():
        schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
        asked = RequestInput(interrupt_id="approve-1", message="May I?", payload={"a": 1}, response_schema=schema)
        event = create_request_input_event(asked)
        event.author = "planner"
        seen = await told(service, said("hello"), event)
        assert seen.state is State.PAUSED
        (pending,) = seen.pending
        assert pending.interrupt_id == "approve-1"
        assert pending.message == "May I?"
        assert pending.author == "planner"
        assert pending.payload == {"a": 1}
        assert pending.response_schema == schema
        assert pending.raised_at == datetime.fromtimestamp(1001, UTC)
        assert not pending.long_running

    asyncio.run(case())


def test_b60_the_interim_answer_of_a_tool_that_runs_on_leaves_its_call_open(service):
    async def case():
        parked = calls(("c1", "ticket", {"message": "M"}), waits={"c1"})
        seen = await told(service, parked, answers("c1", author="agent"))
        assert [(each.interrupt_id, each.tool_name, each.message) for each in seen.pending] == [("c1", "ticket", "M")]
        seen = await told(service, parked, answers("c1", author="agent"), answers("c1"), id_="two")
        assert seen.state is State.IDLE

    asyncio.run(case())


def test_b61_an_event_first_closes_then_opens(service):
    async def case():
        both = calls(("c1", "adk_request_input", {"message": "again"}), waits={"c1"}, author="user")
        both.content.parts += answers("c1").content.parts
        first = calls(("c1", "adk_request_input", {"message": "first"}), waits={"c1"})
        seen = await told(service, first, both)
        assert [each.message for each in seen.pending] == ["again"]

    asyncio.run(case())


def test_b62_sessions_of_older_versions_do_not_say_what_waits(service):
    async def case():
        seen = await told(
            service,
            calls(("i1", "adk_request_input", {"message": "M"}), ("k1", "adk_request_credential", {"message": "K"})),
            calls(("n1", "some_tool", {})),
        )
        assert seen.pending_interrupt_ids == ["i1", "k1"]

    asyncio.run(case())


def test_b63_what_was_taken_back_and_what_was_aborted_waits_no_more(service):
    async def case():
        rewind = Event(author="user", invocation_id="t3", actions=EventActions(rewind_before_invocation_id="t2"))
        asked = calls(("i2", "adk_request_input", {}), waits={"i2"}, invocation_id="t2")
        kept = calls(("i1", "adk_request_input", {}), waits={"i1"}, invocation_id="t1")
        seen = await told(service, kept, asked, rewind)
        assert seen.pending_interrupt_ids == ["i1"]
        assert seen.event_count == 3
        sealed = answers("i1", author="agent", error_code="INVOCATION_ABORTED")
        assert (await told(service, kept, sealed, id_="two")).state is State.IDLE

    asyncio.run(case())


def test_b64_a_confirmation_says_which_call_it_is_about(service):
    async def case():
        original = {"id": "c1", "name": "wipe", "args": {"disk": 1}}
        args = {"originalFunctionCall": original, "toolConfirmation": {"hint": "Wipe disk 1?", "confirmed": False}}
        bare = {"originalFunctionCall": original, "toolConfirmation": {"confirmed": False}}
        seen = await told(
            service,
            calls(("f1", "adk_request_confirmation", args), waits={"f1"}),
            calls(("f2", "adk_request_confirmation", bare), waits={"f2"}),
        )
        first, second = seen.pending
        assert first.tool_name == "adk_request_confirmation"
        assert first.message == "Wipe disk 1?"
        assert first.payload == original
        assert "wipe" in second.message

    asyncio.run(case())


def test_b65_a_users_turn_on_a_branch_below_a_call_closes_it(service):
    async def case():
        parked = calls(("c1", "sub", {}), ("c2", "sub", {}), waits={"c1", "c2"})
        seen = await told(service, parked, answers("other", branch="agent@1.sub@c1.leaf@9"))
        assert seen.pending_interrupt_ids == ["c2"]

    asyncio.run(case())


def test_b66_pieces_count_for_nothing_and_calls_of_one_event_keep_their_order(service):
    async def case():
        ids = [f"c{number}" for number in (5, 3, 9, 1, 7)]
        piece = calls(("p1", "adk_request_input", {}), waits={"p1"}, partial=True)
        parked = calls(*((id_, "tool", {}) for id_ in ids), waits=set(ids))
        for id_ in ("one", "two"):
            assert (await told(service, piece, parked, id_=id_)).pending_interrupt_ids == ids

    asyncio.run(case())


def test_b69_an_id_is_found_without_the_blanks_that_it_was_made_with(service):
    async def case():
        await service.create_session(app_name=APP, user_id=USER, session_id=" order-1\n")
        for asked in ("order-1", " order-1 "):
            assert (await operator(service).get(asked)).id.strip() == "order-1"
        await operator(service).abort(" order-1", "done")
        # One of the services keeps the blanks.
        assert [(row.id.strip(), row.state) for row in await operator(service).list()] == [("order-1", State.ABORTED)]

    asyncio.run(case())


def test_b70_state_that_others_share_aborts_nothing(service):
    async def case():
        state = {"app:mast_abort_reason": "x", "user:mast_abort_reason": "y", "user:mast_interrupted_reason": "z"}
        seen = await told(service, said("a", delta=state), state=state)
        assert seen.state is State.IDLE

    asyncio.run(case())


ASKED = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_b71_an_answer_is_checked_then_given_to_the_runner_and_nothing_is_written(service):
    async def case():
        asked = RequestInput(interrupt_id="i1", response_schema=ASKED)
        await told(service, create_request_input_event(asked))
        op = operator(service)
        with pytest.raises(InvalidAnswer) as error:
            await op.resume("one", "i1", {"n": "x"})
        assert error.value.facts["path"] == "$.n"
        with pytest.raises(NotFound):
            await op.resume("one", "i2", {"n": 1})
        answer = await op.resume("one", "i1", {"n": 1})
        assert not answer.written
        content = types.Content.model_validate(answer.content)
        (response,) = (part.function_response for part in content.parts)
        assert (content.role, response.id, response.name, response.response) == (
            "user",
            "i1",
            "adk_request_input",
            {"n": 1},
        )
        assert (await op.get("one")).event_count == 1
        session = await service.get_session(app_name=APP, user_id=USER, session_id="one")
        await service.append_event(session, Event(author="user", invocation_id="turn", content=content))
        with pytest.raises(NotFound, match="answered already"):
            await op.resume("one", "i1", {"n": 1})
        await told(service, create_request_input_event(asked), id_="two")
        await op.abort("two")
        with pytest.raises(AlreadyAborted):
            await op.resume("two", "i1", {"n": 1})

    asyncio.run(case())


@pytest.mark.parametrize(
    "value", [7, "yes", "12", '"q"', None, [1], {"result": 1}, {"result": "1"}, {"response": 1}, {}, "null"]
)
def test_b71_an_answer_arrives_as_it_was_given(value, tmp_path):
    from google.adk.workflow.utils._rehydration_utils import _unwrap_response

    async def case():
        service = on_memory(tmp_path)
        await told(service, create_request_input_event(RequestInput(interrupt_id="i1")))
        answer = await operator(service).resume("one", "i1", value)
        (part,) = types.Content.model_validate(answer.content).parts
        assert _unwrap_response(part.function_response.response) == value
        answer = await operator(service, answers="go").resume("one", "i1", value)
        assert answer.content["parts"][0]["functionResponse"]["response"] == {"response": value}

    asyncio.run(case())


def test_a_confirmation_is_answered_under_its_own_name(service):
    async def case():
        await told(service, calls(("f1", "adk_request_confirmation", {}), waits={"f1"}))
        for form in ("python", "go"):
            answer = await operator(service, answers=form).resume("one", "f1", {"confirmed": True})
            assert answer.content["parts"][0]["functionResponse"] == {
                "id": "f1",
                "name": "adk_request_confirmation",
                "response": {"confirmed": True},
            }
        with pytest.raises(InvalidAnswer):
            await operator(service).resume("one", "f1", "yes")

    asyncio.run(case())


def test_the_request_of_an_event_of_the_go_runtime_is_read():
    class GoEvent(Event):
        requested_input: dict[str, Any] | None = None

    async def case():
        asked = {"interrupt_id": "g1", "message": "M", "response_schema": ASKED, "payload": [1]}
        seen = await told(InMemorySessionService(), GoEvent(author="agent", requested_input=asked))
        (pending,) = seen.pending
        assert (pending.interrupt_id, pending.message, pending.response_schema, pending.payload) == (
            "g1",
            "M",
            ASKED,
            [1],
        )

    asyncio.run(case())


class Choosing(InMemorySessionService):
    """A service that chooses all ids, and says nothing."""

    async def create_session(self, *, session_id: str | None = None, **more: Any) -> Session:
        return await super().create_session(**more)


class Refusing(InMemorySessionService):
    """A service that refuses to be given an id."""

    async def create_session(self, *, session_id: str | None = None, **more: Any) -> Session:
        if session_id:
            raise ValueError("user-provided session ids are not supported")
        return await super().create_session(**more)


@pytest.mark.parametrize("kind", [Choosing, Refusing])
def test_a_service_that_chooses_all_ids_takes_no_markers_and_says_so(kind):
    async def case():
        service = kind()
        made = await service.create_session(app_name=APP, user_id=USER)
        with pytest.raises(NotSupported, match="chooses all ids itself"):
            await operator(service).abort(made.id)
        assert [row.id for row in await operator(service).list()] == [made.id]
        assert len((await service.list_sessions(app_name=APP)).sessions) == 1

    asyncio.run(case())


class Failing(InMemorySessionService):
    """A service that cannot read some ids."""

    broken: tuple[str, ...] = ()

    async def get_session(self, *, session_id: str, **more: Any) -> Session | None:
        if session_id in self.broken:
            raise ConnectionError("no route")
        return await super().get_session(session_id=session_id, **more)


def test_e6_and_e9_what_cannot_be_read_is_marked_and_never_idle():
    async def case():
        service = Failing()
        for id_ in ("one", "two", "three"):
            await told(service, said("a"), id_=id_)
        await operator(service).abort("two")
        service.broken = ("one", "two:mast-ops")
        rows = {row.id: row for row in await operator(service).list()}
        assert {id_: row.state for id_, row in rows.items()} == {"one": None, "two": None, "three": State.IDLE}
        assert "no route" in rows["one"].error
        assert "no route" in rows["two"].error
        for id_ in ("one", "two"):
            with pytest.raises(Unavailable, match="no route"):
                await operator(service).get(id_)
        with pytest.raises(Unavailable):
            await operator(service).abort("one")

    asyncio.run(case())


async def mast(service: BaseSessionService, keys: dict[str, str], id_: str = "one:mast-ops") -> None:
    """Write a marker as the Go system does."""
    names = {"app_name": APP, "user_id": USER, "session_id": id_}
    session = await service.get_session(**names) or await service.create_session(**names)
    content = types.Content(role="user", parts=[types.Part(text="session aborted by operator: x")])
    event = Event(
        author="operator", invocation_id="operator-abort", content=content, actions=EventActions(state_delta=keys)
    )
    await service.append_event(session, event)


def test_markers_of_the_go_system_are_read(service):
    async def case():
        op = operator(service)
        await told(service, said("a"))
        cut = {"mast_interrupted_reason": "restart", "mast_interrupted_time": "2026-03-01T10:00:00.123456789Z"}
        await mast(service, cut)
        seen = await op.get("one")
        assert (seen.state, seen.interrupt_reason) == (State.INTERRUPTED, "restart")
        assert seen.interrupted_at == datetime(2026, 3, 1, 10, 0, 0, 123456, UTC)
        await mast(service, {"mast_interrupted_reason": "", "mast_interrupted_time": ""})
        assert (await op.get("one")).state is State.IDLE
        await mast(service, {"mast_abort_reason": "stop", "mast_abort_time": "2026-03-01T10:00:00Z"})
        assert [(row.state, row.abort_reason) for row in await op.list()] == [(State.ABORTED, "stop")]
        with pytest.raises(AlreadyAborted):
            await op.abort("one", "again")

    asyncio.run(case())


def test_our_markers_are_what_the_go_system_reads(service):
    async def case():
        op = operator(service)
        await told(service, said("a"))
        await op.mark_interrupted("one", "restart")
        await op.clear_interrupted("one")
        await op.abort("one", "stop")
        row = await service.get_session(app_name=APP, user_id=USER, session_id="one:mast-ops")
        cut, clear, abort = row.events
        assert [event.invocation_id for event in row.events] == [
            "shutdown-interrupt",
            "shutdown-interrupt-clear",
            "operator-abort",
        ]
        assert [event.author for event in row.events] == ["daemon", "daemon", "operator"]
        assert clear.actions.state_delta == {"mast_interrupted_reason": "", "mast_interrupted_time": ""}
        assert abort.actions.state_delta["mast_abort_reason"] == row.state["mast_abort_reason"] == "stop"
        assert abort.actions.state_delta["mast_abort_time"].endswith("Z")
        assert abort.content.role == "user"
        assert abort.content.parts[0].text == "session aborted by operator: stop"
        assert cut.content.parts[0].text == "turn interrupted by daemon shutdown: restart"
        session = await service.get_session(app_name=APP, user_id=USER, session_id="one")
        assert (len(session.events), session.state) == (1, {})

    asyncio.run(case())


def test_a_companion_that_was_made_with_its_state_is_read_too(service):
    async def case():
        await told(service, said("a"))
        await service.create_session(
            app_name=APP, user_id=USER, session_id="one:mast-ops", state={"mast_abort_reason": "stop"}
        )
        assert (await operator(service).get("one")).abort_reason == "stop"

    asyncio.run(case())


def test_two_operators_who_saw_the_same_are_told_apart_by_our_service(tmp_path):
    async def case():
        service = on_memory(tmp_path)
        source = AdkSource(service, APP)
        assert source.exact
        assert not AdkSource(InMemorySessionService(), APP).exact
        await told(service, said("a"))
        outcomes = await asyncio.gather(
            *(operator(service).abort("one", f"by {number}") for number in range(8)), return_exceptions=True
        )
        winners = [number for number, outcome in enumerate(outcomes) if outcome is None]
        assert len(winners) == 1
        assert all(isinstance(outcome, AlreadyAborted) for outcome in outcomes if outcome is not None)
        assert (await operator(service).get("one")).abort_reason == f"by {winners[0]}"

    asyncio.run(case())


def test_e5_of_two_aborts_that_rest_on_the_same_look_one_succeeds(service):
    async def case():
        await told(service, said("a"))
        first, second = AdkSource(service, APP), AdkSource(service, APP)
        key = Key(APP, USER, "one")
        looks = [await source.markers(key) for source in (first, second)]
        await first.mark(key, Marker("abort", "first", datetime.now(UTC), "n1"), looks[0].at)
        with pytest.raises(Conflict):
            await second.mark(key, Marker("abort", "second", datetime.now(UTC), "n2"), looks[1].at)
        assert [marker.reason for marker in (await second.markers(key)).all] == ["first"]
        # The Go system sees it too.
        row = await service.get_session(app_name=APP, user_id=USER, session_id="one:mast-ops")
        assert [event.id for event in row.events] == ["n1"]

    asyncio.run(case())


def test_an_abort_and_a_mark_that_rest_on_the_same_look_are_both_there(service):
    async def case():
        await told(service, said("a"))
        source, key = AdkSource(service, APP), Key(APP, USER, "one")
        look = await source.markers(key)
        await source.mark(key, Marker("interrupt", "cut", datetime.now(UTC), "n1"), look.at)
        try:
            await source.mark(key, Marker("abort", "stop", datetime.now(UTC), "n2"), look.at)
        except Conflict:
            assert source.exact
            await source.mark(key, Marker("abort", "stop", datetime.now(UTC), "n2"), (await source.markers(key)).at)
        assert {marker.nonce for marker in (await source.markers(key)).all} == {"n1", "n2"}

    asyncio.run(case())


def test_b68_whoever_holds_a_session_is_not_disturbed_by_markers(service):
    async def case():
        await told(service, said("a"))
        held = await service.get_session(app_name=APP, user_id=USER, session_id="one")
        await operator(service).mark_interrupted("one", "cut")
        await operator(service).abort("one", "stop")
        await operator(service).clear_interrupted("one")
        await service.append_event(held, said("b"))
        assert (await operator(service).get("one")).event_count == 2

    asyncio.run(case())


# Files.


async def fill(path: Path, apps: tuple[str, ...] = (APP,)) -> None:
    async with DatabaseSessionService(f"sqlite+aiosqlite:///{path}") as service:
        for app in apps:
            session = await service.create_session(app_name=app, user_id=USER, session_id="one")
            await service.append_event(session, create_request_input_event(RequestInput(interrupt_id="i1")))


def state_of(directory: Path) -> dict[str, tuple[str, int]]:
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in directory.iterdir()
    }


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
@pytest.mark.parametrize("old", [False, True], ids=["today's", "without-its-indexes"])
def test_b37_and_e7_looking_at_a_file_changes_nothing_in_it_or_beside_it(tmp_path, journal, old):
    async def case():
        path = tmp_path / "a b?#%.db"
        await fill(tmp_path / "new.db")
        (tmp_path / "new.db").rename(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA journal_mode={journal}")
            if old:
                connection.execute("DROP INDEX idx_events_app_user_session_ts_id")
        path.chmod(0o400)
        before = state_of(tmp_path)
        address = "sqlite:///" + str(path).replace("%", "%25").replace("?", "%3F").replace("#", "%23")
        async with Operator(open_source(address)) as op:
            (row,) = await op.list()
            assert (row.id, row.app_name, row.state) == ("one", APP, State.PAUSED)
            assert (await op.get("one")).pending[0].interrupt_id == "i1"
        assert state_of(tmp_path) == before

    asyncio.run(case())


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_b51_a_marker_goes_into_the_file_without_a_daemon(tmp_path, journal):
    async def case():
        path = tmp_path / "sessions.db"
        await fill(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA journal_mode={journal}")
        async with Operator(open_source(f"sqlite:///{path}")) as op:
            await op.abort("one", "stop")
            with pytest.raises(AlreadyAborted):
                await op.abort("one", "again")
            assert (await op.get("one")).abort_reason == "stop"

    asyncio.run(case())


def test_who_looks_again_sees_what_a_writer_has_added_meanwhile(tmp_path):
    async def case():
        path = tmp_path / "sessions.db"
        await fill(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
        async with Operator(open_source(f"sqlite:///{path}")) as op:
            assert len(await op.list()) == 1
            async with DatabaseSessionService(f"sqlite+aiosqlite:///{path}") as service:
                await service.create_session(app_name=APP, user_id=USER, session_id="two")
                assert len(await op.list()) == 2
            assert len(await op.list()) == 2

    asyncio.run(case())


def test_b47_what_is_not_there_is_named_and_not_made(tmp_path):
    with pytest.raises(Unavailable, match="missing"):
        open_source(f"sqlite:///{tmp_path}/missing.db")
    (tmp_path / "text").write_bytes(b"no database")
    with pytest.raises(Unavailable, match="no SQLite database"):
        open_source(f"sqlite:///{tmp_path}/text")
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE t (a)")
    with pytest.raises(Unavailable, match=r"other\.db"):
        open_source(f"sqlite:///{tmp_path}/other.db")
    with pytest.raises(Unavailable):
        open_source(f"file://{tmp_path}/missing")
    for address in ("sqlite://host/path", "sqlite:///", "sqlite:///x?mode=rwc"):
        with pytest.raises(PluginError, match="sqlite:///"):
            open_source(address)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.db", "text"]


def test_an_application_need_not_be_named_where_there_is_one(tmp_path):
    async def case():
        await fill(tmp_path / "two.db", ("a", "b"))
        with pytest.raises(NotFound, match="apps=a,b"):
            open_source(f"sqlite:///{tmp_path}/two.db")
        async with Operator(open_source(f"sqlite:///{tmp_path}/two.db", "b")) as op:
            assert [row.app_name for row in await op.list()] == ["b"]

    asyncio.run(case())


def test_a_store_is_opened_by_its_url_and_not_made(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    async def case():
        with LocalStore(tmp_path / "store", sync="never") as store:
            service = StateStoreSessionService(store, catalog=tmp_path / "catalog")
            for app, id_ in [("a", "one"), ("a", "two"), ("a-b", "three")]:
                await service.create_session(app_name=app, user_id=USER, session_id=id_, state={"app:x": 1})
        with pytest.raises(NotFound, match="apps=a-b,a"):
            open_source(f"file://{tmp_path}/store")
        async with Operator(open_source(f"file://{tmp_path}/store", "a")) as op:
            await op.abort("one")
            assert {row.id: row.state for row in await op.list()} == {"one": State.ABORTED, "two": State.IDLE}
        (tmp_path / "empty").mkdir()
        async with Operator(open_source(f"file://{tmp_path}/empty")) as op:
            assert await op.list() == []

    asyncio.run(case())


def test_errors_of_the_source_are_all_of_one_tree():
    class Odd(InMemorySessionService):
        async def list_sessions(self, **more: Any) -> Any:
            raise KeyError("x")

    with pytest.raises(StateStoreError, match="KeyError"):
        asyncio.run(operator(Odd()).list())


def test_what_is_not_installed_is_named_with_what_to_install(tmp_path, monkeypatch):
    asyncio.run(fill(tmp_path / "sessions.db"))
    code = "import sys; sys.modules['google.adk'] = None; from statestore.cli import main; main()"
    command = [sys.executable, "-c", code, "sessions", "ls", f"adk+sqlite:///{tmp_path}/sessions.db"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "statestore[adk]" in ran.stderr
    assert "Traceback" not in ran.stderr
    monkeypatch.setitem(sys.modules, "aiosqlite", None)
    with pytest.raises(PluginError, match=r"google-adk\[db\]"):
        open_source(f"sqlite:///{tmp_path}/sessions.db")
