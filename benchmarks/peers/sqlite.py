"""SQLite in WAL mode, by hand: one table, one row a message."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence

from benchmarks.peers.peer import Kind, Peer, Place, Threads, read, spell

__all__ = ["KINDS"]

_CREATE = "create table if not exists messages (session text, seq integer, body text, primary key (session, seq))"
_ADD = "insert into messages select ?1, coalesce(max(seq), -1) + 1, ?2 from messages where session = ?1"
_FORK = "insert into messages select ?2, seq, body from messages where session = ?1 and seq < ?3"


class Sqlite(Threads):
    """A connection a thread; each append is a transaction, which finds its place by itself."""

    def __init__(self, path: str, synchronous: str) -> None:
        self._path = path
        self._synchronous = synchronous
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        self._connection().execute(_CREATE)

    def append(self, session: str, texts: Sequence[str]) -> None:
        connection = self._connection()
        for words in texts:
            connection.execute(_ADD, (session, spell(words).decode()))

    def load(self, session: str) -> list[str]:
        rows = self._connection().execute("select body from messages where session = ? order by seq", (session,))
        return [read(body) for (body,) in rows]

    def last(self, session: str, count: int) -> list[str]:
        query = "select body from messages where session = ? order by seq desc limit ?"
        rows = self._connection().execute(query, (session, count))
        return [read(body) for (body,) in rows][::-1]

    def fork(self, session: str, count: int, to: str) -> None:
        self._connection().execute(_FORK, (session, to, count))

    def sessions(self) -> list[str]:
        return [name for (name,) in self._connection().execute("select distinct session from messages")]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def _connection(self) -> sqlite3.Connection:
        if not hasattr(self._local, "connection"):
            connection = sqlite3.connect(self._path, timeout=60, isolation_level=None, check_same_thread=False)
            connection.execute("pragma journal_mode=wal")
            connection.execute(f"pragma synchronous={self._synchronous}")
            self._local.connection = connection
            with self._lock:
                self._connections.append(connection)
        connection = self._local.connection
        assert isinstance(connection, sqlite3.Connection)
        return connection


def _open(synchronous: str) -> Callable[[Place], Peer]:
    return lambda place: Sqlite(str(place.folder / "messages.sqlite3"), synchronous)


KINDS = [
    Kind("SQLite WAL", "never", _open("off"), note="synchronous=off"),
    Kind("SQLite WAL", "always", _open("full"), note="synchronous=full"),
]
