"""What our own sources share: sessions that are logs, their companions beside them, and a catalog that knows both.

One listing with tails tells which logs have grown; only those are read. The states of the others come from the
catalog's file.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple

from statestore.catalog import Catalog, Fold, Row
from statestore.companions import RESERVED, check_free, companion
from statestore.errors import Closed, Corrupt, InvalidName, NotFound, StateStoreError
from statestore.ops._digest import Digest
from statestore.ops._events import Request
from statestore.ops._markers import decode, encode
from statestore.ops._source import Answer, Key, Marker, Markers, Seen
from statestore.records import Draft, RecordLog, Scan
from statestore.store import Store, Tail

__all__ = ["LogSource"]


class _End(NamedTuple):
    """Where a log's records end, and the number of the next one."""

    tail: Tail
    number: int


class LogSource(ABC):
    """Sessions that are logs of a store.

    Args:
        store: the store that holds the logs; it is not closed with the source.
        prefix: the name of the place that the logs are in; also the application's name.
        fold: what a log comes to.
        catalog: the local file in which is kept what logs have come to; by default one in the user's directory of
            caches. See :class:`statestore.catalog.Catalog`.

    Raises:
        InvalidName: `prefix` is no name, or is reserved.
    """

    exact = True

    def __init__(
        self, store: Store, prefix: str, fold: Fold[Digest], catalog: str | os.PathLike[str] | None = None
    ) -> None:
        self.store = store
        self.app_name = prefix
        self._before = f"{check_free(prefix)}/" if prefix else ""
        self._fold = fold
        self._path = catalog
        self._catalog: Catalog[Digest] | None = None
        self._making = Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r}, {self.app_name!r})"

    @abstractmethod
    def _key(self, log: str) -> Key | None:
        """Return the key of the session that a log is, as far as its name tells; None where it can be none."""

    @abstractmethod
    def _log(self, key: Key) -> str | None:
        """Return the name of a session's log; None where no session has such a key."""

    @abstractmethod
    def _draft(self, request: Request, response: Any) -> tuple[Draft, dict[str, Any]]:
        """Return the record that answers a request, and what it says."""

    async def sessions(self, user_id: str = "", *, scan: bool = False) -> AsyncIterator[Seen]:
        """Yield all sessions with their markers; see :class:`Source`."""
        for seen in await asyncio.to_thread(self._list, user_id, scan):
            yield seen

    async def find(self, id: str) -> list[Key]:  # noqa: A002 - what it is called everywhere
        """Return the keys of all sessions with this id; see :class:`Source`."""
        return await asyncio.to_thread(self._find, id)

    async def read(self, key: Key) -> Seen | None:
        """Return one session as it is now; see :class:`Source`."""
        return await asyncio.to_thread(self._read, key)

    async def markers(self, key: Key) -> Markers:
        """Return a session's markers; see :class:`Source`."""
        return await asyncio.to_thread(self._markers, self._named(key))

    async def mark(self, key: Key, marker: Marker, at: Any) -> None:
        """Add one marker behind `at`, unless there are others by now; see :class:`Source`."""
        await asyncio.to_thread(self._append, companion(self._named(key)), encode(marker), at)

    async def answer(self, seen: Seen, request: Request, response: Any) -> Answer:
        """Answer an open request by a record in the session's log; see :class:`Source`."""
        record, told = self._draft(request, response)
        await asyncio.to_thread(self._append, self._named(seen.key), record, seen.at)
        return Answer(told, written=True)

    async def aclose(self) -> None:
        """Let go of the catalog's file; the store stays open."""
        self._closed = True
        with self._making:
            if self._catalog is not None:
                self._catalog.close()

    def _named(self, key: Key) -> str:
        log = self._log(key)
        if log is None:
            raise NotFound("there is no such session, and none can have this id", session=key.id, user=key.user_id)
        return log

    def _list(self, user_id: str, scan: bool) -> list[Seen]:
        catalog = self._open_catalog()
        work = catalog.rebuild if scan else catalog.refresh
        rows = {row.log: row for row in work(self._before, select=self._is_ours)}
        found: list[Seen] = []
        for log, row in rows.items():
            key = self._key(log)
            if key is None or (row.value is not None and not row.value.is_session):
                continue
            seen = Seen(key=key, error=row.error) if row.value is None else self._seen(key, row.value)
            if user_id in ("", seen.key.user_id):
                found.append(_with_markers(seen, rows.get(f"{log}/{RESERVED}")))
        return found

    def _is_ours(self, log: str) -> bool:
        """Say whether a log may be a session, or the companion of one."""
        return self._key(log.removesuffix(f"/{RESERVED}")) is not None

    def _seen(self, key: Key, digest: Digest, error: StateStoreError | None = None, at: Any = None) -> Seen:
        return digest.seen(key._replace(user_id=digest.user_id or key.user_id), error, at)

    def _find(self, id_: str) -> list[Key]:
        self._check_open()
        keys = {log: key for log in self._logs(id_) if (key := self._key(log)) is not None and key.id == id_}
        return sorted(filter(None, (self._identify(key, log) for log, key in keys.items())))

    def _identify(self, key: Key, log: str) -> Key | None:
        """Return the key of a session with all that its log says; None where there is none."""
        seen = self._read_log(key, log)
        return seen.key if seen is not None else None

    def _logs(self, id_: str) -> Iterator[str]:
        """Yield the names of the logs among which are all with an id."""
        return (info.name for info in self.store.list(self._before))

    def _read(self, key: Key) -> Seen | None:
        self._check_open()
        log = self._log(key)
        seen = self._read_log(key, log) if log is not None else None
        if log is None or seen is None or seen.key.user_id != key.user_id:
            return None
        try:
            return replace(seen, markers=self._markers(log))
        except StateStoreError as error:
            return replace(seen, markers=None, marker_error=error)

    def _read_log(self, key: Key, log: str) -> Seen | None:
        """Return a session without its markers; None where there is no such log, or it is no session."""
        state, error, at = self._fold.initial(), None, None
        try:
            snapshot = self.store.snapshot(log)
            records = Scan(snapshot.read, log=log)
            for record in records:
                state = self._fold.step(state, record)
            at = _End(Tail(records.end, snapshot.tail.run), records.number)
        except NotFound:
            return None
        except Corrupt as damage:
            error = damage
        # What cannot be read from its first record on may be a session: that is what its name says.
        return self._seen(key, state, error, at) if state.is_session or (error and not state.records) else None

    def _markers(self, log: str) -> Markers:
        self._check_open()
        found: list[Marker] = []
        try:
            snapshot = self.store.snapshot(companion(log))
            records = Scan(snapshot.read, log=snapshot.log)
            found += filter(None, map(decode, records))
        except NotFound:
            return Markers()
        except InvalidName:  # too long a name: nobody can have marked it
            return Markers()
        return Markers(tuple(found), _End(Tail(records.end, snapshot.tail.run), records.number))

    def _append(self, log: str, record: Draft, at: _End | None) -> None:
        self._check_open()
        records = RecordLog(self.store, log)
        if at is not None and at.tail.size:
            records.resume(*at)
        records.append_many([record], expect=at.number if at else 1)

    def _open_catalog(self) -> Catalog[Digest]:
        with self._making:
            self._check_open()
            if self._catalog is None:
                self._catalog = Catalog(self.store, self._fold, path=self._path)
            return self._catalog

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("this source was closed: make another one", source=type(self).__name__)


def _with_markers(seen: Seen, row: Row[Digest] | None) -> Seen:
    """Return what is seen of a session with what its companion's row says."""
    if row is None:
        return seen
    if row.value is None:
        return replace(seen, markers=None, marker_error=row.error)
    return replace(seen, markers=Markers(row.value.markers))
