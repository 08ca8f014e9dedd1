"""statestore: sessions over each kind of store, a message a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from threading import Lock
from typing import Any

from benchmarks.peers.peer import Kind, Peer, Place, Threads, read, spell
from statestore import RecordLog, Sessions, Store, open_store
from statestore.errors import NotFound
from statestore.sessions import Session
from statestore_local import LocalStore
from statestore_memory import MemoryStore

__all__ = ["KINDS"]


class Ours(Threads):
    """Sessions that stay open, and held where the store can, as an agent's session is while it works."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sessions = Sessions(store)
        self._open: dict[str, Session] = {}
        self._lock = Lock()

    def append(self, session: str, texts: Sequence[str]) -> None:
        log = self._opened(session)
        for words in texts:
            log.append("message", spell(words), type="application/json")

    def load(self, session: str) -> list[str]:
        return [read(record.body) for record in islice(self._sessions.load(session), 1, None)]

    def last(self, session: str, count: int) -> list[str]:
        return [read(record.body) for record in RecordLog(self._store, session).last(count)]

    def fork(self, session: str, count: int, to: str) -> None:
        self._sessions.fork(session, before=count + 2, to=to)  # the first record is the session's start

    def sessions(self) -> list[str]:
        return list(self._sessions.list())

    def close(self) -> None:
        for session in self._open.values():
            session.close()
        self._store.close()

    def _opened(self, session: str) -> Session:
        with self._lock:
            if session not in self._open:
                try:
                    self._open[session] = self._sessions.open(session)
                except NotFound:
                    self._open[session] = self._sessions.start(id=session)
            return self._open[session]


def _local(sync: str) -> Callable[[Place], Peer]:
    return lambda place: Ours(LocalStore(place.folder, sync=sync))  # type: ignore[arg-type]


def _memory(place: Place) -> Peer:
    return Ours(MemoryStore(place.prefix))


def _fsspec(place: Place) -> Peer:
    return Ours(open_store(f"fsspec://memory://{place.prefix}", single_writer=True))


def _s3(place: Place) -> Peer:
    where: dict[str, Any] = {"endpoint_url": place.there.endpoint, "region": place.there.region}
    keys = {"key": place.there.access_key, "secret": place.there.secret_key}
    return Ours(open_store(f"s3://{place.bucket}/{place.prefix}", **where, **keys))


KINDS = [
    Kind("statestore local", "never", _local("never")),
    Kind("statestore local", "always", _local("always")),
    Kind("statestore memory", "memory", _memory),
    Kind("statestore fsspec on memory", "memory", _fsspec, needs={"fsspec": "fsspec"}, items=1000, sessions=1000),
    Kind("statestore S3", "bucket", _s3, needs={"s3fs": "s3fs"}, items=1000, sessions=1000),
]
