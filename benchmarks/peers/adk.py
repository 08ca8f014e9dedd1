"""google-adk: its own sessions in SQLite, and the same interface over our stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.peers.peer import Kind, Peer, Place, Tasks
from statestore import Store
from statestore_local import LocalStore

__all__ = ["KINDS"]

WHO = {"app_name": "app", "user_id": "user"}


class Adk(Tasks):
    """An event a message. A session object is kept for each session, as ADK's runner does while it works."""

    def __init__(self, make: Callable[[], Any], store: Store | None = None) -> None:
        super().__init__()
        self._service = make()
        self._store = store
        self._sessions: dict[str, Any] = {}

    async def add(self, session: str, words: str) -> None:
        from google.adk.events import Event
        from google.genai.types import Content, Part

        if session not in self._sessions:
            self._sessions[session] = await self._get(session) or await self._service.create_session(
                **WHO, session_id=session
            )
        event = Event(author="user", invocation_id="turn", content=Content(role="user", parts=[Part(text=words)]))
        await self._service.append_event(self._sessions[session], event)

    def load(self, session: str) -> list[str]:
        return _texts(self.run(self._get(session)))

    def last(self, session: str, count: int) -> list[str]:
        from google.adk.sessions.base_session_service import GetSessionConfig

        return _texts(self.run(self._get(session, config=GetSessionConfig(num_recent_events=count))))

    def sessions(self) -> list[str]:
        return [each.id for each in self.run(self._service.list_sessions(**WHO)).sessions]

    def close(self) -> None:
        self.run(self._service.close())
        if self._store is not None:
            self._store.close()
        super().close()

    async def _get(self, session: str, **more: Any) -> Any:
        return await self._service.get_session(**WHO, session_id=session, **more)


def _texts(session: Any) -> list[str]:
    return [event.content.parts[0].text for event in session.events]


def _database(synchronous: str) -> Callable[[Place], Peer]:
    def open_(place: Place) -> Peer:
        from google.adk.sessions import DatabaseSessionService
        from sqlalchemy import event

        def make() -> Any:
            service = DatabaseSessionService(f"sqlite+aiosqlite:///{place.folder}/adk.sqlite3")
            pragma = f"pragma synchronous={synchronous}"
            event.listen(service.db_engine.sync_engine, "connect", lambda connection, _: connection.execute(pragma))
            return service

        return Adk(make)

    return open_


def _ours(sync: str) -> Callable[[Place], Peer]:
    def open_(place: Place) -> Peer:
        from statestore.adapters.adk import StateStoreSessionService

        store = LocalStore(place.folder / "state", sync=sync)  # type: ignore[arg-type]
        return Adk(lambda: StateStoreSessionService(store, catalog=place.folder / "catalog.sqlite3"), store)

    return open_


_SHARED: dict[str, Any] = {
    "needs": {"google-adk": "google.adk", "sqlalchemy": "sqlalchemy", "aiosqlite": "aiosqlite"},
    "cannot": {"fork": "no call of ADK copies a session: each event would be appended again"},
    "notes": {"workers": "tasks"},
    "items": 500,
    "sessions": 500,
}


def _kinds(name: str, open_: Callable[[str], Callable[[Place], Peer]], modes: Sequence[str], note: str) -> list[Kind]:
    durabilities = ("never", "always")
    return [
        Kind(name, durability, open_(mode), note=note.format(mode), **_SHARED)
        for durability, mode in zip(durabilities, modes, strict=True)
    ]


KINDS = [
    *_kinds("ADK on statestore", _ours, ("never", "always"), ""),
    *_kinds("ADK DatabaseSessionService", _database, ("off", "full"), "SQLite, rollback journal, synchronous={}"),
]
