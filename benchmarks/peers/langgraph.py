"""The SQLite saver of LangGraph, called as a graph calls it, without the graph."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from benchmarks.peers.peer import Kind, Peer, Place, Threads, message

__all__ = ["KINDS"]


class LangGraph(Threads):
    """A thread a session, a checkpoint a message: each holds all messages so far. One connection, behind a lock."""

    def __init__(self, place: Place, synchronous: str) -> None:
        from langgraph.checkpoint.sqlite import SqliteSaver

        self._connection = sqlite3.connect(place.folder / "checkpoints.sqlite3", check_same_thread=False)
        self._connection.execute(f"pragma synchronous={synchronous}")
        self._saver = SqliteSaver(self._connection)
        self._saver.setup()  # which turns the WAL on
        self._heads: dict[str, tuple[Any, list[Any]]] = {}
        self._lock = Lock()

    def append(self, session: str, texts: Sequence[str]) -> None:
        config, messages = self._head(session)
        for words in texts:
            messages = [*messages, message(words)]
            config = self._put(config, messages)
        self._heads[session] = config, messages

    def load(self, session: str) -> list[str]:
        return [each["content"] for each in self._messages(self._saver.get_tuple(_config(session)))]

    def last(self, session: str, count: int) -> list[str]:
        return self.load(session)[-count:]

    def fork(self, session: str, count: int, to: str) -> None:
        (found,) = self._saver.list(_config(session), filter={"step": count}, limit=1)
        self._put(_config(to), self._messages(found))

    def sessions(self) -> list[str]:
        return list({each.config["configurable"]["thread_id"] for each in self._saver.list(None)})

    def close(self) -> None:
        self._connection.close()

    def _put(self, config: Any, messages: list[Any]) -> Any:
        from langgraph.checkpoint.base import empty_checkpoint

        version = f"{len(messages):032}"
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": messages}
        checkpoint["channel_versions"] = {"messages": version}
        step = {"source": "loop", "step": len(messages), "parents": {}}
        return self._saver.put(config, checkpoint, step, {"messages": version})

    def _head(self, session: str) -> tuple[Any, list[Any]]:
        with self._lock:
            if session not in self._heads:
                found = self._saver.get_tuple(_config(session))
                self._heads[session] = (found.config, self._messages(found)) if found else (_config(session), [])
            return self._heads[session]

    @staticmethod
    def _messages(found: Any) -> list[Any]:
        messages = found.checkpoint["channel_values"]["messages"]
        assert isinstance(messages, list)
        return messages


def _config(session: str) -> Any:
    return {"configurable": {"thread_id": session, "checkpoint_ns": ""}}


def _open(synchronous: str) -> Callable[[Place], Peer]:
    return lambda place: LangGraph(place, synchronous)


_GROWS = "each append stores the whole conversation again, so that it grows with what is there"

KINDS = [
    Kind(
        "LangGraph SqliteSaver",
        durability,
        _open(synchronous),
        needs={"langgraph-checkpoint-sqlite": "langgraph.checkpoint.sqlite"},
        items=500,
        note=f"synchronous={synchronous}",
        notes={"append": f"synchronous={synchronous}; {_GROWS}", "last": "a load of all"},
    )
    for durability, synchronous in (("never", "off"), ("always", "full"))
]
