"""Sessions of google-adk as places for the operator's cases. Imported only where one is opened: it takes seconds."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy
from google.adk.events import Event
from google.adk.events.request_input import RequestInput
from google.adk.sessions import BaseSessionService, DatabaseSessionService, InMemorySessionService, Session
from google.adk.workflow.utils._workflow_hitl_utils import create_request_input_event
from google.genai import types

from statestore.adapters.adk import AdkSource, StateStoreSessionService
from statestore_memory import MemoryStore
from tests.ops.places import Place


def hurry(connection: Any, _: object) -> None:
    """Have a database sync nothing: what these cases try is no loss of power."""
    connection.execute("PRAGMA synchronous=OFF")


@cache
def empty_database() -> Path:
    """Return a database with its tables, to copy: making them takes the most of a case's time."""
    path = Path(tempfile.mkdtemp()) / "sessions.db"

    async def make() -> None:
        async with DatabaseSessionService(f"sqlite+aiosqlite:///{path}") as service:
            await service.prepare_tables()

    asyncio.run(make())
    return path


class OneAtATime(InMemorySessionService):
    """The service in memory, for threads that each have a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    async def create_session(self, **more: Any) -> Session:
        with self.lock:
            return await super().create_session(**more)

    async def get_session(self, **more: Any) -> Session | None:
        with self.lock:
            return await super().get_session(**more)

    async def list_sessions(self, **more: Any) -> Any:
        with self.lock:
            return await super().list_sessions(**more)

    async def append_event(self, session: Session, event: Event) -> Event:
        with self.lock:
            return await super().append_event(session, event)


class AdkPlace(Place):
    """Sessions of one of google-adk's services."""

    reserved = ("alice", "00000001:mast-ops")
    nearly_reserved = ("alice", "a:mast-ops:b")

    def __init__(self, serve: Callable[[], BaseSessionService]) -> None:
        self.serve = serve
        super().__init__()
        self.service: BaseSessionService = self.operator._operator.source.service

    @classmethod
    def memory(cls, directory: Path) -> AdkPlace:
        service = OneAtATime()
        return cls(lambda: service)

    @classmethod
    def sqlite(cls, directory: Path) -> AdkPlace:
        shutil.copyfile(empty_database(), directory / "sessions.db")

        def serve() -> DatabaseSessionService:
            service = DatabaseSessionService(f"sqlite+aiosqlite:///{directory}/sessions.db")
            sqlalchemy.event.listen(service.db_engine.sync_engine, "connect", hurry)
            return service

        return cls(serve)

    @classmethod
    def ours_on_memory(cls, directory: Path) -> AdkPlace:
        space = uuid.uuid4().hex
        return cls(lambda: cls.ours(MemoryStore(space), directory))

    @staticmethod
    def ours(store: Any, directory: Path) -> StateStoreSessionService:
        return StateStoreSessionService(store, catalog=directory / f"{uuid.uuid4().hex}.sqlite3")

    def source(self, app: str = "") -> AdkSource:
        return AdkSource(self.serve(), app or self.app, own=True)

    def create(
        self,
        session: str,
        user: str = "",
        *,
        app: str = "",
        time: datetime | None = None,
        state: dict[str, str] | None = None,
    ) -> None:
        from google.adk.platform import time as clock

        made = self.tick(time).timestamp()
        clock.set_time_provider(lambda: made)
        try:
            names = {"app_name": app or self.app, "user_id": user or self.user, "session_id": session}
            self.do(self.service.create_session(state=state, **names))
        finally:
            clock.reset_time_provider()

    def put(self, session: str, event: Event, user: str = "", time: datetime | None = None) -> None:
        async def append() -> None:
            names = {"app_name": self.app, "user_id": user or self.user, "session_id": session}
            found = await self.service.get_session(**names)
            assert found is not None
            event.timestamp = self.tick(time).timestamp()
            event.invocation_id = event.invocation_id or "turn"
            await self.service.append_event(found, event)

        self.do(append())

    def text(self, session: str, user: str = "", *, author: str = "agent", time: datetime | None = None) -> None:
        content = types.Content(role="user" if author == "user" else "model", parts=[types.Part(text="hello")])
        self.put(session, Event(author=author, content=content), user, time)

    def raise_input(
        self,
        session: str,
        interrupt: str,
        message: str = "",
        *,
        user: str = "",
        schema: Any = None,
        payload: Any = None,
        author: str = "agent",
        time: datetime | None = None,
    ) -> None:
        asked = RequestInput(interrupt_id=interrupt, message=message, response_schema=schema, payload=payload)
        event = create_request_input_event(asked)
        event.author = author
        self.put(session, event, user, time)

    def answer(self, session: str, interrupt: str, response: Any = None, *, user: str = "") -> None:
        answered = response if isinstance(response, dict) else {"result": response}
        told = types.FunctionResponse(id=interrupt, name="adk_request_input", response=answered)
        content = types.Content(role="user", parts=[types.Part(function_response=told)])
        self.put(session, Event(author="user", content=content), user)

    def park(self, session: str, call: str, tool: str, message: str, *, user: str = "") -> None:
        called = types.FunctionCall(id=call, name=tool, args={"message": message})
        content = types.Content(role="model", parts=[types.Part(function_call=called)])
        self.put(session, Event(author="agent", content=content, long_running_tool_ids={call}), user)

    def oddities(self, session: str) -> int:
        empty = types.FunctionResponse(id="", name="adk_request_input", response={})
        events = [
            Event(author="user", content=types.Content(role="user", parts=[types.Part(function_response=empty)])),
            Event(author="agent"),
            Event(author="agent", content=types.Content(role="model", parts=None)),
            Event(author="agent", content=types.Content(role="model", parts=[types.Part()])),
            Event(author="agent", long_running_tool_ids={""}),
            Event(
                author="agent",
                content=types.Content(
                    role="model", parts=[types.Part(function_call=types.FunctionCall(name="adk_request_input"))]
                ),
            ),
        ]
        for event in events:
            self.put(session, event)
        return len(events)

    def names(self) -> set[str]:
        rows = self.do(self.service.list_sessions(app_name=self.app)).sessions
        # With some services an abort makes one more companion, which the cases, made for all systems, do not count.
        return {f"{row.user_id}/{row.id}" for row in rows if not row.id.endswith(":abort:mast-ops")}
