"""The contract of google-adk's session services, case by case; where a case is not ours alone, on its own one too."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.auth import AuthConfig
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.events.event import NodeInfo
from google.adk.events.event_actions import EventActions
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from statestore import RecordLog
from statestore.adapters.adk import StateStoreSessionService
from statestore.errors import Closed, Corrupt, Held, NotSupported, StateStoreError, Unavailable
from statestore.wrappers import ReadOnly
from statestore_local import LocalStore
from statestore_memory import MemoryStore
from tests.adapters.adk.services import ALL, APP, OURS, USER, on_memory, said, texts


@pytest.fixture(params=ALL)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> BaseSessionService:
    return ALL[request.param](tmp_path)


@pytest.fixture(params=OURS)
def ours(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StateStoreSessionService]:
    service = OURS[request.param](tmp_path)
    assert isinstance(service, StateStoreSessionService)
    yield service
    asyncio.run(service.close())


async def create(service: BaseSessionService, id_: str | None = None, user: str = USER, **more: Any) -> Session:
    return await service.create_session(app_name=APP, user_id=user, session_id=id_, **more)


async def get(service: BaseSessionService, id_: str, user: str = USER, **config: Any) -> Session | None:
    asked = GetSessionConfig(**config) if config else None
    return await service.get_session(app_name=APP, user_id=user, session_id=id_, config=asked)


async def listed(service: BaseSessionService, user: str | None = None) -> list[Session]:
    return (await service.list_sessions(app_name=APP, user_id=user)).sessions


def test_c1_state_goes_where_its_prefix_says(service):
    async def case():
        state = {"app:a": 1, "user:b": 2, "temp:c": 3, "k": 4}
        made = await create(service, "one", state=state)
        assert made.state == {"k": 4, "app:a": 1, "user:b": 2}
        assert (await create(service, "two", user="bob")).state == {"app:a": 1}
        assert (await create(service, "two")).state == {"app:a": 1, "user:b": 2}
        assert (await get(service, "one")).state == made.state

    asyncio.run(case())


def test_c2_ids_lose_their_blanks_at_every_door_and_are_taken_once(service):
    async def case():
        made = await create(service, "order-42\n")
        assert made.id == "order-42"
        for id_ in ("order-42", " order-42\t"):
            with pytest.raises(AlreadyExistsError):
                await create(service, id_)
        assert (await get(service, " order-42 ")).id == "order-42"
        await service.delete_session(app_name=APP, user_id=USER, session_id="\norder-42")
        assert await get(service, "order-42") is None
        fresh = {(await create(service, id_)).id for id_ in (None, "", "  ")}
        assert len(fresh) == 3
        assert all(uuid.UUID(id_) for id_ in fresh)

    asyncio.run(case())


def test_c3_temporary_state_is_the_callers_alone_and_values_replace_each_other(service):
    async def case():
        session = await create(service, "one")
        event = await service.append_event(session, said("a", delta={"temp:t": 1, "x": {"a": 1}, "n": None, "b": True}))
        assert session.state == {"temp:t": 1, "x": {"a": 1}, "n": None, "b": True}
        assert event.actions.state_delta == {"x": {"a": 1}, "n": None, "b": True}
        stored = await get(service, "one")
        assert stored.state == {"x": {"a": 1}, "n": None, "b": True}
        assert stored.state["b"] is True
        assert stored.events[0].actions.state_delta == {"x": {"a": 1}, "n": None, "b": True}
        await service.append_event(session, said("b", delta={"x": {"b": 2}}))
        assert (await get(service, "one")).state["x"] == {"b": 2}

    asyncio.run(case())


def test_c4_what_is_stored_is_what_the_caller_has(service):
    async def case():
        session = await create(service, "one", state={"k": 1, "user:u": 2})
        assert await get(service, "one") == session
        for number in range(3):
            event = said(f"{number}", delta={"k": number, "app:a": [number]})
            await service.append_event(session, event)
            assert session.last_update_time == event.timestamp
            stored = await get(service, "one")
            assert stored == session
            assert stored.events == session.events

    asyncio.run(case())


def test_c5_a_piece_of_an_event_changes_nothing(service):
    async def case():
        session = await create(service, "one")
        before = session.model_copy(deep=True)
        event = said("a", partial=True, delta={"k": 1, "temp:t": 1})
        assert await service.append_event(session, event) is event
        assert session == before
        assert event.actions.state_delta == {"k": 1, "temp:t": 1}
        assert await get(service, "one") == before

    asyncio.run(case())


def test_c6_an_object_that_is_not_the_newest_is_refused_whatever_the_clock_says(ours):
    async def case():
        await create(ours, "one")
        first, second = await get(ours, "one"), await get(ours, "one")
        await ours.append_event(first, said("a", timestamp=100.0))
        for timestamp in (99.0, 100.0, 101.0):
            with pytest.raises(StaleSessionError):
                await ours.append_event(second, said("b", timestamp=timestamp))
        await ours.append_event(first, said("c", timestamp=100.0))
        assert texts(await get(ours, "one")) == ["a", "c"]
        assert texts(second) == []
        newest = await get(ours, "one")
        await ours.append_event(newest, said("d", timestamp=1.0))
        assert texts(await get(ours, "one")) == ["a", "c", "d"]

    asyncio.run(case())


def test_c7_events_keep_their_order_with_equal_times_and_times_that_go_back(service):
    async def case():
        session = await create(service, "one")
        times = [100.0, 100.0, 50.0, 100.0, 75.0]
        for number, timestamp in enumerate(times):
            await service.append_event(session, said(str(number), timestamp=timestamp))
        stored = await get(service, "one")
        assert texts(stored) == ["0", "1", "2", "3", "4"]
        assert [event.timestamp for event in stored.events] == times
        assert stored.last_update_time == 75.0

    asyncio.run(case())


def test_c8_the_last_events_by_number_then_of_these_by_time(service):
    async def case():
        session = await create(service, "one")
        for number in range(5):
            await service.append_event(session, said(str(number), delta={"k": number}, timestamp=float(number)))
        assert texts(await get(service, "one", num_recent_events=3)) == ["2", "3", "4"]
        assert texts(await get(service, "one", num_recent_events=9)) == ["0", "1", "2", "3", "4"]
        none = await get(service, "one", num_recent_events=0)
        assert (none.events, none.state) == ([], {"k": 4})
        assert texts(await get(service, "one", after_timestamp=3.0)) == ["3", "4"]
        assert texts(await get(service, "one", num_recent_events=4, after_timestamp=3.0)) == ["3", "4"]
        assert texts(await get(service, "one", num_recent_events=1, after_timestamp=3.0)) == ["4"]
        assert texts(await get(service, "one", after_timestamp=9.0)) == []
        with pytest.raises(ValueError):
            await get(service, "one", num_recent_events=-1)

    asyncio.run(case())


def test_c8_an_object_with_some_of_the_events_goes_on_where_the_session_ends(ours):
    async def case():
        session = await create(ours, "one")
        for number in range(3):
            await ours.append_event(session, said(str(number)))
        for wanted in (0, 1):
            some = await get(ours, "one", num_recent_events=wanted)
            await ours.append_event(some, said("more"))
        with pytest.raises(StaleSessionError):
            await ours.append_event(session, said("late"))
        assert texts(await get(ours, "one")) == ["0", "1", "2", "more", "more"]

    asyncio.run(case())


def test_c9_a_listing_has_no_events_all_state_and_the_oldest_first(service):
    async def case():
        for id_, user, timestamp in [("b", "bob", 2.0), ("a", "alice", 3.0), ("c", "alice", 2.0), ("a", "bob", 2.0)]:
            session = await create(service, id_, user, state={"user:u": user})
            event = said("x", delta={"k": id_, "app:last": id_}, timestamp=timestamp)
            await service.append_event(session, event)
        rows = await listed(service)
        assert [(row.user_id, row.id) for row in rows] == [("alice", "c"), ("bob", "a"), ("bob", "b"), ("alice", "a")]
        assert [row.events for row in rows] == [[]] * 4
        assert rows[0].state == {"k": "c", "app:last": "a", "user:u": "alice"}
        assert [row.id for row in await listed(service, "alice")] == ["c", "a"]
        assert await listed(service, "") == []
        assert (await service.list_sessions(app_name="other")).sessions == []

    asyncio.run(case())


def test_c10_a_deleted_session_is_gone_for_its_old_objects_too_and_shared_state_stays(service):
    async def case():
        session = await create(service, "one", state={"app:a": 1})
        await service.append_event(session, said("a", delta={"user:u": 1}))
        await service.delete_session(app_name=APP, user_id=USER, session_id="one")
        await service.delete_session(app_name=APP, user_id=USER, session_id="one")
        await service.delete_session(app_name=APP, user_id=USER, session_id="never")
        with pytest.raises(SessionNotFoundError):
            await service.append_event(session, said("b", delta={"user:u": 2}))
        assert (await create(service, "two")).state == {"app:a": 1, "user:u": 1}
        assert [row.id for row in await listed(service)] == ["two"]

    asyncio.run(case())


def test_c11_a_session_made_again_under_the_same_id_is_another_one(ours):
    async def case():
        old = await create(ours, "one", state={"k": 1, "app:a": 1})
        await ours.delete_session(app_name=APP, user_id=USER, session_id="one")
        new = await create(ours, "one", state={"k": 2})
        with pytest.raises(StaleSessionError):
            await ours.append_event(old, said("old"))
        await ours.append_event(new, said("new"))
        assert texts(await get(ours, "one")) == ["new"]

    asyncio.run(case())


def test_c12_an_event_comes_back_with_all_that_it_holds(service):
    async def case():
        session = await create(service, "one")
        call = types.FunctionCall(id="c1", name="tool", args={"a": None, "b": [1.5, {"c": "\u2028\x00é"}]})
        event = Event(
            invocation_id="turn",
            author="agent",
            branch="a@1.b@2",
            content=types.Content(
                role="model",
                parts=[
                    types.Part(inline_data=types.Blob(data=bytes(range(256)), mime_type="x/y")),
                    types.Part(function_call=call, thought_signature=b"\xff\x00"),
                    types.Part(text="b\x00\n\u2028\U0001f600"),
                ],
            ),
            grounding_metadata=types.GroundingMetadata(web_search_queries=["q"]),
            long_running_tool_ids={"c1", "c0"},
            node_info=NodeInfo(path="wf@1/b@2", output_for=["wf@1"]),
            custom_metadata={"m": {"n": None}},
            output={"x": [1, None]},
            actions=EventActions(
                state_delta={"k": {"big": 10**30, "none": None}},
                artifact_delta={"f": 1},
                requested_tool_confirmations={"c1": ToolConfirmation(hint="h", payload={"p": 1})},
                requested_auth_configs={"c2": AuthConfig.model_validate(AUTH)},
                agent_state={"s": 1},
                rewind_before_invocation_id="t0",
            ),
        )
        sent = event.model_copy(deep=True)
        await service.append_event(session, event)
        (back,) = (await get(service, "one")).events
        assert back == sent

    asyncio.run(case())


AUTH = {
    "authScheme": {"type": "apiKey", "in": "header", "name": "key"},
    "rawAuthCredential": {"authType": "apiKey", "apiKey": "x"},
    "credentialKey": "k",  # else the config makes one by a method of its own that is deprecated
}


def test_c13_what_is_not_json_becomes_text_rather_than_lose_the_event(ours):
    async def case():
        session = await create(ours, "one", state={"f": len, "nan": float("nan"), "app:s": {"set"}})
        await ours.append_event(session, said("a", delta={"user:f": len, "half": "\ud800"}))
        stored = await get(ours, "one")
        assert stored.state["f"] == stored.state["user:f"] == repr(len)
        assert (stored.state["nan"], stored.state["app:s"]) == (None, ["set"])
        assert texts(stored) == ["a"]

    asyncio.run(case())


def test_c14_the_same_event_again_is_stored_once(service):
    async def case():
        session = await create(service, "one")
        event = said("a", delta={"app:k": 1, "temp:t": 1})
        for _ in range(3):
            assert await service.append_event(session, event) is event
        assert await service.append_event(session, event.model_copy(deep=True)) == event
        assert texts(session) == texts(await get(service, "one")) == ["a"]
        fresh = await get(service, "one")
        await service.append_event(fresh, event)
        await service.append_event(session, said("b"))
        assert texts(await get(service, "one")) == ["a", "b"]

    asyncio.run(case())


class Forgetful(MemoryStore):
    """A store that loses the answer to the appends of events as often as it is told to."""

    lose = 0

    def append(self, log: str, data: bytes, **more: Any) -> Any:
        tail = super().append(log, data, **more)
        if self.lose and b"adk.event" in data:
            self.lose -= 1
            raise Unavailable("the answer was lost", retry=False, effect_unknown=True)
        return tail


def test_c14_an_append_whose_outcome_is_not_known_is_made_again_and_happens_once(tmp_path):
    async def case():
        store = Forgetful()
        service = StateStoreSessionService(store, catalog=tmp_path / "catalog", patience=0.0)
        session = await create(service, "one")
        event = said("a", delta={"app:k": 1})
        store.lose = 1
        with pytest.raises(Unavailable):
            await service.append_event(session, event)
        assert texts(session) == []
        await service.append_event(session, event)
        await service.append_event(session, said("b"))
        assert texts(session) == texts(await get(service, "one")) == ["a", "b"]
        assert (await get(service, "one")).state == {"app:k": 1}

    asyncio.run(case())


def test_c15_a_users_state_is_read_without_a_session(service):
    async def case():
        assert await service.get_user_state(app_name=APP, user_id=USER) == {}
        session = await create(service, "one", state={"user:a": 1, "k": 1, "app:x": 1})
        await service.append_event(session, said("a", delta={"user:b": 2}))
        assert await service.get_user_state(app_name=APP, user_id=USER) == {"a": 1, "b": 2}
        assert await service.get_user_state(app_name=APP, user_id="bob") == {}
        assert await service.get_user_state(app_name="other", user_id=USER) == {}

    asyncio.run(case())


async def write(root: Path, name: str, begin: Callable[[], object]) -> None:
    """Make a session, and append 25 events to it that set state of the application."""
    service = StateStoreSessionService(LocalStore(root, sync="never"), catalog=root.with_name(name))
    session = await create(service, name, user=name)
    begin()
    for number in range(25):
        delta = {f"app:{name}{number}": True, "app:last": name, "user:n": number}
        await service.append_event(session, said(str(number), delta=delta))


WRITER = """
import asyncio, pathlib, sys
from tests.adapters.adk.test_service import write

def begin():
    print("ready", flush=True)
    sys.stdin.readline()

asyncio.run(write(pathlib.Path(sys.argv[1]), "x", begin))
"""


def test_c16_two_processes_that_set_state_of_one_application_lose_nothing(tmp_path):
    root = tmp_path / "store"
    command = [sys.executable, "-c", WRITER, str(root)]
    other = subprocess.Popen(command, cwd=Path(__file__).parents[3], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdin is not None
    assert other.stdout is not None

    def begin() -> None:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == b"ready\n"
        other.stdin.write(b"\n")
        other.stdin.flush()

    asyncio.run(write(root, "y", begin))
    other.communicate()
    assert other.returncode == 0

    async def case():
        service = StateStoreSessionService(LocalStore(root), catalog=tmp_path / "catalog")
        for name in "xy":
            session = await get(service, name, user=name)
            shared = {key for key in session.state if key.startswith("app:") and key != "app:last"}
            assert shared == {f"app:{each}{number}" for each in "xy" for number in range(25)}
            assert session.state["user:n"] == 24
            assert texts(session) == [str(number) for number in range(25)]

    asyncio.run(case())


def test_objects_of_one_session_in_one_process_lose_nothing_to_each_other(ours):
    async def case():
        sessions = [await create(ours, str(number)) for number in range(4)]

        async def write(session: Session) -> None:
            for number in range(5):
                await ours.append_event(session, said(str(number), delta={f"app:{session.id}-{number}": True}))

        await asyncio.gather(*(write(session) for session in sessions))
        assert len((await get(ours, "0")).state) == 20

    asyncio.run(case())


def test_what_a_caller_changes_in_place_changes_nothing_that_is_stored(service):
    async def case():
        state = {"k": {"a": 1}, "user:u": {"a": 1}, "app:s": {"a": 1}}
        changed = [await create(service, "one", state=state), await get(service, "one"), *await listed(service)]
        for session in changed:
            for value in session.state.values():
                value["a"] = 2
        (await service.get_user_state(app_name=APP, user_id=USER))["u"]["a"] = 2
        again = [await get(service, "one"), *await listed(service)]
        assert [session.state for session in again] == [{"k": {"a": 1}, "user:u": {"a": 1}, "app:s": {"a": 1}}] * 2
        assert await service.get_user_state(app_name=APP, user_id=USER) == {"u": {"a": 1}}

    asyncio.run(case())


def test_branches_that_share_one_object_append_one_after_the_other(ours):
    async def case():
        session = await create(ours, "one")
        await asyncio.gather(*(ours.append_event(session, said(str(number))) for number in range(10)))
        assert sorted(texts(session)) == sorted(map(str, range(10)))
        assert texts(await get(ours, "one")) == texts(session)

    asyncio.run(case())


def test_an_append_that_is_cancelled_is_finished_and_the_object_goes_on(tmp_path):
    async def case():
        gate = Gated()
        service = StateStoreSessionService(gate, catalog=tmp_path / "catalog")
        session = await create(service, "one")
        loop = asyncio.get_running_loop()
        begun = asyncio.Event()
        gate.entered = lambda: loop.call_soon_threadsafe(begun.set)
        task = asyncio.ensure_future(service.append_event(session, said("a")))
        await begun.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        loop.call_soon(gate.go.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        await service.append_event(session, said("b"))
        assert texts(session) == texts(await get(service, "one")) == ["a", "b"]

    asyncio.run(case())


class Gated(MemoryStore):
    """A store whose appends of events say that they have begun, and wait."""

    def __init__(self) -> None:
        import threading

        super().__init__()
        self.go = threading.Event()
        self.entered: Any = lambda: None

    def append(self, log: str, data: bytes, **more: Any) -> Any:
        if b"adk.event" in data:
            self.entered()
            self.go.wait()
        return super().append(log, data, **more)


def test_an_object_made_of_json_goes_on_if_its_last_event_is_the_sessions(ours):
    async def case():
        session = await create(ours, "one")
        copies = [Session.model_validate_json(session.model_dump_json())]
        await ours.append_event(session, said("a"))
        copies.append(Session.model_validate_json(session.model_dump_json()))
        with pytest.raises(StaleSessionError):
            await ours.append_event(copies[0], said("old"))
        await ours.append_event(copies[1], said("b"))
        with pytest.raises(StaleSessionError):
            await ours.append_event(session, said("c"))
        gone = Session(app_name=APP, user_id=USER, id="never")
        with pytest.raises(SessionNotFoundError):
            await ours.append_event(gone, said("d"))
        assert texts(await get(ours, "one")) == ["a", "b"]

    asyncio.run(case())


def test_a_copy_of_an_object_knows_where_the_session_ends(ours):
    async def case():
        session = await create(ours, "one")
        await ours.append_event(session, said("a"))
        copy = session.model_copy(update={"events": [*session.events]})
        await ours.append_event(copy, said("b"))
        with pytest.raises(StaleSessionError):
            await ours.append_event(session, said("c"))

    asyncio.run(case())


@pytest.mark.parametrize("text", ["a/b", "..", ".a", "é\n\x00", "~ops", "%2F", "x" * 200, "UPPER", "upper"])
def test_any_text_is_an_id_and_no_two_share_a_session(ours, text):
    async def case():
        await create(ours, "other", state={"k": 1})
        made = await ours.create_session(app_name=text, user_id=text, session_id=text, state={"user:k": 2, "app:k": 2})
        assert (made.app_name, made.user_id, made.id) == (text, text, text)
        (row,) = (await ours.list_sessions(app_name=text)).sessions
        assert (row.user_id, row.id, row.state) == (text, text, {"user:k": 2, "app:k": 2})
        assert (await get(ours, "other")).state == {"k": 1}

    asyncio.run(case())


def test_a_damaged_session_is_listed_with_the_others_and_getting_it_tells_what_is_wrong(tmp_path, caplog):
    async def case():
        store = MemoryStore()
        service = StateStoreSessionService(store, catalog=tmp_path / "catalog")
        await create(service, "good", state={"k": 1})
        bad = await create(service, "bad", state={"k": 2})
        log = RecordLog(store, f"adk/{APP}/sessions/{USER}/bad")
        log.append("adk.event", b"no event")
        rows = {row.id: row.state for row in await listed(service)}
        assert rows == {"good": {"k": 1}, "bad": {}}
        with pytest.raises(Corrupt) as error:
            await get(service, "bad")
        assert error.value.record == 2
        with pytest.raises(StaleSessionError):
            await service.append_event(bad, said("more"))

    asyncio.run(case())
    assert "a session cannot be read" in caplog.text


def test_a_session_that_somebody_holds_is_not_written_to(ours):
    async def case():
        session = await create(ours, "one")
        other = OTHER(ours)
        with other.hold(f"adk/{APP}/sessions/{USER}/one"), pytest.raises(Held):
            await ours.append_event(session, said("a"))
        await ours.append_event(session, said("a"))
        other.close()

    asyncio.run(case())


def OTHER(service: StateStoreSessionService) -> Any:
    store = service.store
    return LocalStore(store._root) if isinstance(store, LocalStore) else MemoryStore(store.name)


def test_reading_works_where_nothing_can_be_written(tmp_path):
    async def case():
        store = LocalStore(tmp_path / "store", sync="never")
        service = StateStoreSessionService(store, catalog=tmp_path / "catalog")
        session = await create(service, "one", state={"app:a": 1, "user:u": 2})
        reader = StateStoreSessionService(ReadOnly(store), catalog=tmp_path / "other")
        assert await get(reader, "one") == session
        assert [row.state for row in await listed(reader)] == [session.state]
        assert await reader.get_user_state(app_name=APP, user_id=USER) == {"u": 2}
        with pytest.raises(StateStoreError):
            await reader.append_event(session, said("a"))
        assert texts(await get(reader, "one")) == []

    asyncio.run(case())


def test_a_store_that_cannot_tell_a_session_from_its_successor_is_refused():
    class Blind(MemoryStore):
        from statestore.store import Capabilities

        capabilities = Capabilities(atomic_append=True)

    with pytest.raises(NotSupported, match="made again"):
        StateStoreSessionService(Blind())


def test_a_closed_service_refuses_every_call_and_leaves_the_store_open(tmp_path):
    async def case():
        service = on_memory(tmp_path)
        session = await create(service, "one")
        async with service:
            await listed(service)
        with pytest.raises(Closed):
            await get(service, "one")
        with pytest.raises(Closed):
            await service.append_event(session, said("a"))
        assert list(service.store.list())

    asyncio.run(case())


def test_flush_makes_durable_what_was_written_where_the_store_does_that_on_demand(tmp_path, monkeypatch):
    async def case():
        store = LocalStore(tmp_path / "store", sync="on_flush")
        service = StateStoreSessionService(store, catalog=tmp_path / "catalog")
        session = await create(service, "one", state={"app:a": 1})
        await service.append_event(session, said("a", delta={"user:u": 1}))
        flushed: list[str] = []
        monkeypatch.setattr(store, "flush", flushed.append)
        await service.flush()
        await service.flush()
        assert sorted(flushed) == sorted(info.name for info in store.list())

    asyncio.run(case())
