"""The SQLiteSession of the OpenAI Agents SDK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.peers.peer import Kind, Place, Tasks, message

__all__ = ["KINDS"]


class OpenAi(Tasks):
    """One object a session, all in one file, in WAL mode; each call goes to a thread, behind one lock of the file."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._path = place.folder / "sessions.sqlite3"
        self._sessions: dict[str, Any] = {}

    async def add(self, session: str, words: str) -> None:
        await self._session(session).add_items([message(words)])

    def know(self, session: str) -> None:
        self._session(session)

    def load(self, session: str) -> list[str]:
        return _texts(self.run(self._session(session).get_items()))

    def last(self, session: str, count: int) -> list[str]:
        return _texts(self.run(self._session(session).get_items(limit=count)))

    def fork(self, session: str, count: int, to: str) -> None:
        async def copy() -> None:
            items = await self._session(session).get_items()
            await self._session(to).add_items(items[:count])

        self.run(copy())

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()
        super().close()

    def _session(self, session: str) -> Any:
        from agents import SQLiteSession

        if session not in self._sessions:
            self._sessions[session] = SQLiteSession(session, self._path)
        return self._sessions[session]


def _texts(items: Sequence[Any]) -> list[str]:
    return [item["content"] for item in items]


KINDS = [
    Kind(
        "OpenAI SQLiteSession",
        "always",
        OpenAi,
        needs={"openai-agents": "agents"},
        cannot={"list": "a session object knows its own name only"},
        note="synchronous=full, which cannot be set",
        notes={"fork": "all items are read, and half of them added in one call", "workers": "tasks"},
    )
]
