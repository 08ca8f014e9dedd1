"""Sessions as logs, each event one record, together with the state that they share.

A session is the log ``<prefix>/<app>/sessions/<user>/<id>``. The application's state is ``<prefix>/<app>/app``, that of
a user ``<prefix>/<app>/users/<user>``. How a record and changes of shared state become one outcome: see `_shared`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from functools import lru_cache
from threading import Lock
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from statestore import names
from statestore.adapters.adk._brief import CREATED, EVENT
from statestore.adapters.adk._shared import RACES, VOID, Moved, Place, SharedLog, State
from statestore.errors import Conflict, Exists, NotFound
from statestore.records import Record, RecordLog, Scan
from statestore.store import NEW, Store, Tail

__all__ = ["Key", "Ledger", "Read"]

_VIEWS: Final = 20  # how often a reader looks again for a moment in which nothing was written
_SCOPES: Final = 1000  # scopes that are remembered
_START: Final = Place(NEW, 1)


class Key(NamedTuple):
    """Which session: its application, its user and its id."""

    app: str
    user: str
    id: str


class Read(NamedTuple):
    """A session and what it shares, all of it at one moment.

    Attributes:
        records: its records, without empty ones; the first has made it.
        place: where its log ends.
        shared: the application's and the user's state.
    """

    records: list[Record]
    place: Place
    shared: dict[str, dict[str, Any]]


class _Overtaken(Exception):
    """A place is taken: by a record, or together with its log by another one."""

    def __init__(self, record: Record | None, behind: Place) -> None:
        super().__init__()
        self.record = record
        self.behind = behind


class Ledger:
    """The sessions of a store. Any number of threads and processes may write to them.

    Args:
        store: the store that holds the logs.
        prefix: what their names begin with.
        patience: for how many seconds a writer of shared state waits for another one, before it takes its place.
    """

    def __init__(self, store: Store, prefix: str, patience: float) -> None:
        self.store = store
        self.prefix = names.check(prefix)
        self._shared = lru_cache(_SCOPES)(lambda name: SharedLog(store, name, patience))
        # Writers of one process wait here, rather than take each other's places.
        self._locks: WeakValueDictionary[str, Lock] = WeakValueDictionary()
        self._locking = Lock()

    def log(self, key: Key) -> str:
        """Return the name of a session's log.

        Raises:
            InvalidName: it would be too long.
        """
        return names.check(self.folder(key.app, key.user) + names.quote(key.id))

    def folder(self, app: str, user: str | None = None) -> str:
        """Return how the names of the logs of an application's sessions begin, or of one user's."""
        folder = f"{self.prefix}/{names.quote(app)}/sessions/"
        return folder if user is None else f"{folder}{names.quote(user)}/"

    def key(self, log: str) -> Key:
        """Return which session a log is that lies in an application's folder."""
        app, _, user, id_ = (names.unquote(part) for part in log.removeprefix(f"{self.prefix}/").split("/"))
        return Key(app, user, id_)

    def shared(self, scope: str, app: str, user: str) -> SharedLog:
        """Return the log of what all sessions of an application share, or those of one user."""
        tail = "app" if scope == "app" else f"users/{names.quote(user)}"
        return self._shared(names.check(f"{self.prefix}/{names.quote(app)}/{tail}"))

    def create(self, key: Key, body: bytes, deltas: Mapping[str, dict[str, Any]]) -> Place:
        """Make a session, and what it sets of shared state; return where its log ends.

        Raises:
            Exists: there is one.
            Conflict: others append all the time.
        """
        log = self.log(key)
        for _ in range(RACES):
            try:
                place = self._room(log) if any(deltas.values()) else _START
                return self._commit(key, place, CREATED, body, deltas)
            except _Overtaken as taken:
                if taken.record is not None:
                    raise Exists("there is such a session", log=log) from None
            except NotFound:
                pass
        raise Conflict("others make and delete the session all the time", log=log, attempts=RACES)

    def append(self, key: Key, place: Place, body: bytes, deltas: Mapping[str, dict[str, Any]]) -> Place:
        """Add an event at its place, and what it sets of shared state; return the place behind it.

        The same event at the same place is added once.

        Raises:
            NotFound: there is no such session.
            Conflict: the session has gone on; nothing was added.
        """
        try:
            return self._commit(key, place, EVENT, body, deltas)
        except _Overtaken as taken:
            if taken.record is not None and (taken.record.kind, taken.record.body) == (EVENT, body):
                return taken.behind
            if self.read_records(key) is None:
                raise NotFound("there is no such session", log=self.log(key)) from None
            raise Conflict(
                "the session has gone on: read it and decide again",
                log=self.log(key),
                expected=place.tail,
                found=taken.behind.tail,
            ) from None

    def _commit(self, key: Key, place: Place, kind: str, body: bytes, deltas: Mapping[str, dict[str, Any]]) -> Place:
        """Propose what is to be shared, then append the record that makes it so."""
        log, id_ = self.log(key), secrets.token_hex(8)
        scopes = [(self.shared(scope, key.app, key.user), delta) for scope, delta in deltas.items() if delta]
        with self._alone(shared.name for shared, _ in scopes):
            for tries in range(1, RACES + 1):
                for shared, delta in scopes:
                    shared.propose(delta, log, place, id_, tries)
                records = RecordLog(self.store, log)
                if place != _START:
                    records.resume(place.tail, place.number)
                try:
                    records.append(kind, body, id=id_, expect=place.number)
                except Conflict:
                    place = self._step_over(log, place)
                    continue
                assert records.end is not None
                return Place(*records.end)
        raise Conflict("others take the place all the time: try again", log=log, attempts=RACES)

    def _room(self, log: str) -> Place:
        """Return a place in a log that holds no session yet: one that is named in advance needs a log."""
        records = RecordLog(self.store, log)
        try:
            records.append(VOID, expect=1)
        except Conflict:
            return self._step_over(log, _START)
        assert records.end is not None
        return Place(*records.end)

    def _step_over(self, log: str, place: Place) -> Place:
        """Return the place behind the empty records that took this one.

        Raises:
            _Overtaken: a record that is not empty took it.
            NotFound: there is no such log.
        """
        snapshot = self.store.snapshot(log)
        run = snapshot.tail.run
        if place != _START and run != place.tail.run:
            raise _Overtaken(None, Place(snapshot.tail, 0))
        scan = Scan(snapshot.read, start=place.tail.size, number=place.number, log=log)
        for record in scan:
            if record.kind != VOID:
                raise _Overtaken(record, Place(Tail(record.end, run), record.n + 1))
        return Place(Tail(scan.end, run), scan.number)

    @contextmanager
    def _alone(self, logs: Iterator[str]) -> Iterator[None]:
        """Keep other threads of this process from proposing to some scopes, given in the one order that all keep."""
        with ExitStack() as stack:
            for log in logs:
                with self._locking:
                    lock = self._locks.get(log) or self._locks.setdefault(log, Lock())
                stack.enter_context(lock)
            yield

    def read_records(self, key: Key) -> tuple[list[Record], Place] | None:
        """Return a session's records, without empty ones, and where its log ends; None where there is none.

        Raises:
            Corrupt: one is damaged.
        """
        records, place, _ = self._scan(self.log(key))
        records = [record for record in records if record.kind != VOID]
        return (records, place) if records else None

    def _scan(self, log: str) -> tuple[list[Record], Place, Tail]:
        """Return all records of a log, where they end, and the log's tail."""
        try:
            snapshot = self.store.snapshot(log)
            scan = Scan(snapshot.read, log=log)
            return list(scan), Place(Tail(scan.end, snapshot.tail.run), scan.number), snapshot.tail
        except NotFound:
            return [], _START, NEW

    def read(self, key: Key) -> Read | None:
        """Return a session and what it shares; None where there is none.

        Where others write all the time, what is shared may be newer than the session.

        Raises:
            Corrupt: a record is damaged.
            Conflict: sessions are deleted all the time.
        """
        log = self.log(key)
        read = None
        for _ in range(_VIEWS):
            records, place, tail = self._scan(log)
            kept = [record for record in records if record.kind != VOID]
            if not kept:
                return None
            # Against the order in which they are written: what the first one shows is in those behind it.
            states = {scope: self.shared(scope, key.app, key.user).read() for scope in ("user", "app")}
            try:
                values = self._values(key, states, log, place, {record.offset: record.id for record in records})
            except Moved:
                continue
            read = Read(kept, place, values)
            if not any(states.values()) or self._is_still(key, log, tail, states["user"]):
                return read
        if read is None:
            raise Conflict("sessions are deleted all the time: try again", log=log, attempts=_VIEWS)
        return read

    def _values(
        self, key: Key, states: Mapping[str, State | None], log: str, place: Place, ids: Mapping[int, str]
    ) -> dict[str, dict[str, Any]]:
        """Return the shared values that count. A record that decides for several scopes is looked at once."""
        decided: dict[tuple[str, str, int, str], bool | None] = {}
        values: dict[str, dict[str, Any]] = {}
        for scope, state in states.items():
            if state is None:
                values[scope] = {}
                continue
            entry = state.last
            what = (entry.log, entry.run, entry.offset, entry.id)
            if what not in decided:
                if (entry.log, entry.run) == (log, place.tail.run):
                    decided[what] = ids.get(entry.offset) == entry.id
                else:
                    decided[what] = self.shared(scope, key.app, key.user).decided(state)
            values[scope] = deepcopy(state.after(decided[what] is True))
        return values

    def _is_still(self, key: Key, log: str, tail: Tail, user: State | None) -> bool:
        """Say whether nothing was written to a session and its user's state since they were read."""
        name = self.shared("user", key.app, key.user).name
        return self._tail(log) == tail and self._tail(name) == (user.tail if user else NEW)

    def _tail(self, log: str) -> Tail:
        try:
            return self.store.tail(log)
        except NotFound:
            return NEW

    def values(self, scope: str, app: str, user: str = "") -> dict[str, Any]:
        """Return the values of one scope.

        Raises:
            Corrupt: a record is damaged.
            Conflict: sessions are deleted all the time.
        """
        shared = self.shared(scope, app, user)
        for _ in range(RACES):
            try:
                return deepcopy(shared.values(shared.read()))
            except Moved:
                continue
        raise Conflict("sessions are deleted all the time: try again", log=shared.name, attempts=RACES)

    def delete(self, key: Key) -> None:
        """Delete a session; what it has set of shared state stays. Where there is none that is in order.

        Raises:
            NotSupported: the store deletes nothing.
            Held: somebody holds the session.
        """
        log = self.log(key)
        for _ in range(RACES):
            try:
                tail = self.store.tail(log)
                for scope in ("app", "user"):
                    self.shared(scope, key.app, key.user).close(log, tail.run)
                # Had it decided anything meanwhile, it would end elsewhere by now.
                return self.store.delete(log, at=tail)
            except NotFound:
                return None
            except Conflict:
                continue
        raise Conflict("others append all the time: try again", log=log, attempts=RACES)
