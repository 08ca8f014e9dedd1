"""Where the operator's cases are tried: one class for each system of sessions, which says how its sessions are written.

To add a system, write a `Place` and name it in ``conftest.py``. Its calls are synchronous; what is asynchronous runs on
the operator's own loop, with `Place.do`.
"""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from statestore import RecordLog, Store, names
from statestore.ops import ConversationsSource, Key, SessionsSource, Source, SyncOperator, request_input
from statestore.records import draft
from statestore_local import LocalStore
from statestore_memory import MemoryStore

T = TypeVar("T")

OPEN = datetime(2026, 9, 28, 12, tzinfo=UTC)


class Place(ABC):
    """One empty place for sessions, and how sessions are written there.

    Ids are eight hexadecimal digits, which every system takes. Where no time is given, each event comes one second
    after the one before.
    """

    app: ClassVar[str] = "app"
    """What the application is called in the keys."""

    user: ClassVar[str] = "alice"
    """The user that sessions belong to where no other is named."""

    reserved: ClassVar[tuple[str, str]]
    """The user and the id of a companion, if a session "00000001" of `user` has one."""

    nearly_reserved: ClassVar[tuple[str, str]]
    """The user and the id of a session whose name merely contains what is reserved."""

    shares_ids: ClassVar[bool] = True
    """Whether two users may each have a session with one id."""

    def __init__(self) -> None:
        self.opened = ExitStack()
        self.ticks = 0
        self.operator = self.another()

    @abstractmethod
    def source(self, app: str = "") -> Source:
        """Open another source over the same place, which knows nothing; of another application where one is named."""

    @abstractmethod
    def create(
        self,
        session: str,
        user: str = "",
        *,
        app: str = "",
        time: datetime | None = None,
        state: dict[str, str] | None = None,
    ) -> None:
        """Make a session; `state` is what an older program has left in it."""

    @abstractmethod
    def text(self, session: str, user: str = "", *, author: str = "agent", time: datetime | None = None) -> None:
        """Add one event of text."""

    @abstractmethod
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
        """Add one event that asks for input."""

    @abstractmethod
    def answer(self, session: str, interrupt: str, response: Any = None, *, user: str = "") -> None:
        """Add one event of the user's that answers."""

    @abstractmethod
    def park(self, session: str, call: str, tool: str, message: str, *, user: str = "") -> None:
        """Have the agent call a tool whose result comes later."""

    @abstractmethod
    def oddities(self, session: str) -> int:
        """Add the events of B16, which mean nothing, as far as the system can hold them; return how many."""

    @abstractmethod
    def names(self) -> set[str]:
        """Return the names of all that the system holds, companions among them."""

    def another(self) -> SyncOperator:
        """Return another operator over the same place, which knows nothing."""
        return self.opened.enter_context(SyncOperator(self.source()))

    def other_app(self) -> SyncOperator:
        """Return an operator over the sessions of an application "other" in the same system."""
        return self.opened.enter_context(SyncOperator(self.source("other")))

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        """Run something asynchronous on the operator's loop."""
        return self.operator._run(call)

    def markers(self, session: str, user: str = "") -> list[tuple[str, str]]:
        """Return the kinds and reasons of a session's markers."""
        source = self.operator._operator.source
        found = self.do(source.markers(Key(source.app_name, user or self.user, session)))
        return [(marker.kind, marker.reason) for marker in found.all]

    def tick(self, time: datetime | None) -> datetime:
        """Return the time given, or the next second."""
        self.ticks += 1
        return time or OPEN + timedelta(seconds=self.ticks)

    def close(self) -> None:
        """Let go of everything."""
        self.opened.close()


class SessionsPlace(Place):
    """Sessions as logs of a store."""

    reserved = ("~ops", "00000001")
    nearly_reserved = ("a~ops.b", "0000000c")

    def __init__(self, open_store: Callable[[], Store], directory: Path) -> None:
        self.open_store = open_store
        self.directory = directory
        super().__init__()
        self.store = self.opened.enter_context(open_store())

    @classmethod
    def memory(cls, directory: Path) -> SessionsPlace:
        return cls(partial(MemoryStore, uuid.uuid4().hex), directory)

    @classmethod
    def local(cls, directory: Path) -> SessionsPlace:
        return cls(partial(LocalStore, directory / "state", sync="never"), directory)

    def source(self, app: str = "") -> SessionsSource:
        catalog = self.directory / f"{uuid.uuid4().hex}.sqlite3"
        return SessionsSource(self.opened.enter_context(self.open_store()), app or self.app, catalog=catalog)

    def log(self, session: str, user: str = "", app: str = "") -> RecordLog:
        return RecordLog(self.store, f"{app or self.app}/{names.quote(user or self.user)}/{session}")

    def create(
        self,
        session: str,
        user: str = "",
        *,
        app: str = "",
        time: datetime | None = None,
        state: dict[str, str] | None = None,
    ) -> None:
        log = self.log(session, user, app)
        log.append("start", expect=1, time=self.tick(time).isoformat())
        for key, reason in (state or {}).items():
            kind = {"mast_abort_reason": "ops.aborted", "mast_interrupted_reason": "ops.interrupted"}[key]
            log.append(kind, json.dumps({"reason": reason}).encode())

    def text(self, session: str, user: str = "", *, author: str = "agent", time: datetime | None = None) -> None:
        kind = "message" if author == "user" else "text"
        self.log(session, user).append(kind, b"hello", time=self.tick(time).isoformat())

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
        record = request_input(interrupt, message, response_schema=schema, payload=payload, author=author)
        header, body = self.spelled(record)
        self.log(session, user).append(header, body, time=self.tick(time).isoformat(), type="application/json")

    def answer(self, session: str, interrupt: str, response: Any = None, *, user: str = "") -> None:
        body = json.dumps(response).encode()
        self.log(session, user).append("input.answered", body, for_=interrupt, time=self.tick(None).isoformat())

    def park(self, session: str, call: str, tool: str, message: str, *, user: str = "") -> None:
        body = json.dumps({"name": tool, "arguments": {"message": message}}).encode()
        step = uuid.uuid4().hex[:8]
        records = [draft("call", body, id=call, step=step), draft("step", id=step, model="agent")]
        self.log(session, user).append_many(records)

    def oddities(self, session: str) -> int:
        log = self.log(session)
        log.append("input.answered", b"null", for_="")
        log.append("input.requested", b"null")
        log.append("input.requested", b"{}")
        log.append("input.requested", b'{"interrupt_id": ""}')
        log.append("input.requested", b'{"interrupt_id": null, "message": null}')
        log.append("input.requested", b'{"interrupt_id": 7}')
        log.append("call", b"\xff")
        log.append("step")
        log.append("a kind of tomorrow", b"\0")
        return 9

    def names(self) -> set[str]:
        return {info.name for info in self.store.list()}

    @staticmethod
    def spelled(record: Any) -> tuple[str, bytes]:
        """Return the kind and the body of a draft, to give it another time."""
        line, _, body = record.rest.partition(b"\n")
        return json.loads(b"{" + line[1:])["kind"], body[:-1]


class ConversationsPlace(Place):
    """Conversations as logs of a store."""

    app = "talks"
    reserved = ("", "~ops")
    nearly_reserved = ("alice", "a~ops b")
    shares_ids = False

    def __init__(self, directory: Path) -> None:
        self.space = uuid.uuid4().hex
        self.directory = directory
        super().__init__()
        self.store = self.opened.enter_context(MemoryStore(self.space))

    def source(self, app: str = "") -> ConversationsSource:
        return ConversationsSource(self.opened.enter_context(MemoryStore(self.space)), app or self.app)

    def put(self, session: str, kind: str, body: Any, app: str = "", time: datetime | None = None, **more: Any) -> None:
        segment = names.quote(session)
        log = RecordLog(self.store, f"{app or self.app}/{segment}")
        log.append(f"conversation.{kind}", json.dumps(body).encode(), time=self.tick(time).isoformat(), **more)

    def say(self, session: str, message: dict[str, Any], time: datetime | None = None) -> None:
        self.put(session, "messages", {"messages": [message]}, time=time)

    def create(
        self,
        session: str,
        user: str = "",
        *,
        app: str = "",
        time: datetime | None = None,
        state: dict[str, str] | None = None,
    ) -> None:
        body = {"profile": {"user_id": user or self.user}, "metadata": state or {}}
        self.put(session, "saved", body, app, time, expect=1)

    def text(self, session: str, user: str = "", *, author: str = "agent", time: datetime | None = None) -> None:
        self.say(session, {"role": "user" if author == "user" else "assistant", "content": "hello"}, time)

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
        asked = {"interrupt_id": interrupt, "message": message, "response_schema": schema, "payload": payload}
        self.say(session, {"role": author, "meta": {"requested_input": asked}}, time)

    def answer(self, session: str, interrupt: str, response: Any = None, *, user: str = "") -> None:
        answered = {"interrupt_id": interrupt, "response": response}
        self.say(session, {"role": "user", "meta": {"answered_input": answered}})

    def park(self, session: str, call: str, tool: str, message: str, *, user: str = "") -> None:
        calls = [{"id": call, "name": tool, "args": {"message": message}}]
        self.say(session, {"role": "assistant", "tool_calls": calls})

    def oddities(self, session: str) -> int:
        odd = [
            {"role": "tool", "tool_result": {"id": ""}},
            {"role": "user", "parts": None, "content": None, "meta": None, "tool_calls": None, "tool_result": None},
            {"role": "assistant", "tool_calls": [None, {}, {"id": None}, {"id": 7}]},
            {"role": "assistant", "meta": {"requested_input": None, "answered_input": None}},
            {"role": "assistant", "meta": {"requested_input": {"interrupt_id": ""}}},
            {"role": 7, "tool_calls": 7, "tool_result": [], "meta": "", "timestamp": {}},
            {"role": None, "tool_calls": {"id": "a"}, "tool_result": {"id": ["a"]}, "meta": {"answered_input": []}},
            {},
        ]
        self.put(session, "messages", {"messages": odd})
        return len(odd)

    def names(self) -> set[str]:
        return {info.name for info in self.store.list()}
