"""google-adk's sessions in a store of ours."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from copy import deepcopy
from threading import Lock
from typing import Any, Final, Self, TypeVar
from weakref import WeakValueDictionary

import msgspec
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.platform import time as platform_time
from google.adk.platform import uuid as platform_uuid
from google.adk.sessions import BaseSessionService, Session, State
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse

from statestore.adapters.adk._brief import EVENT, SHARED, Brief, BriefFold, Created, shared_part
from statestore.adapters.adk._events import dump_event, dump_state, load_event
from statestore.adapters.adk._finishing import finish
from statestore.adapters.adk._ledger import Key, Ledger, Read
from statestore.adapters.adk._shared import Place
from statestore.catalog import Catalog, Row
from statestore.errors import Closed, Conflict, Exists, NotFound, NotSupported
from statestore.store import Store, Tail

__all__ = ["StateStoreSessionService"]

T = TypeVar("T")

_log: Final = logging.getLogger("statestore")
_FOLD: Final = BriefFold()


class StateStoreSessionService(BaseSessionService):
    """Keeps the sessions of google-adk in a store: each a log, each event one record of it.

    - Events come back in the order in which they were appended, whatever their timestamps.
    - A session object that is not the newest is refused, exactly: it knows the place in the log at which it ends.
    - An event and all the state that it sets, the session's, the user's and the application's, happen together or not
      at all, whatever crashes.

    Any number of processes may use one store. It is not closed with the service.

    Args:
        store: the store; it tells the runs of a log apart.
        prefix: what the names of all logs begin with.
        catalog: the local file in which is kept what a listing asks of each session; by default one in the user's
            directory of caches. See :class:`statestore.catalog.Catalog`.
        patience: for how many seconds a writer of shared state waits for another one that may have died.

    Raises:
        InvalidName: `prefix` is no name.
        NotSupported: the store cannot tell a session from one that is made again under its name.
    """

    def __init__(
        self,
        store: Store,
        *,
        prefix: str = "adk",
        catalog: str | os.PathLike[str] | None = None,
        patience: float = 1.0,
    ) -> None:
        if not store.capabilities.runs:
            raise NotSupported(
                "this store cannot tell a session from one that is made again under its name",
                capability="runs",
                store=type(store).__name__,
            )
        self.store = store
        self._ledger = Ledger(store, prefix, patience)
        self._path = catalog
        self._catalog: Catalog[Brief] | None = None
        self._making = Lock()
        self._closed = False
        self._flushes = store.capabilities.flushes and not store.capabilities.durable
        self._written: set[str] = set()  # what is to be flushed
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    def __repr__(self) -> str:
        return f"StateStoreSessionService({self.store!r}, prefix={self._ledger.prefix!r})"

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Make a session and return it.

        Args:
            app_name: the application.
            user_id: whose it is.
            state: what it begins with; keys that begin with ``app:`` and ``user:`` are set for all sessions that share
                them, those with ``temp:`` are dropped.
            session_id: its id, without blanks around it; by default a new one.

        Raises:
            AlreadyExistsError: the user has a session with this id.
            InvalidName: a name is too long.
        """
        key = Key(app_name, user_id, (session_id or "").strip() or platform_uuid.new_uuid())
        kept = dump_state(
            {name: value for name, value in (state or {}).items() if not name.startswith(State.TEMP_PREFIX)}
        )
        body = msgspec.json.encode(Created(*key, platform_time.get_time(), kept))

        def make() -> Read | None:
            self._ledger.create(key, body, shared_part(kept))
            return self._ledger.read(key)

        try:
            read = await self._run(make, key)
        except Exists as error:
            raise AlreadyExistsError(f"Session with id {key.id} already exists.") from error
        if read is None:
            raise SessionNotFoundError(f"Session {key.id} was deleted as soon as it was made.")
        return self._session(key, read, None)

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return a session as it is now; None where there is none.

        Args:
            app_name: the application.
            user_id: whose it is.
            session_id: its id, without blanks around it.
            config: which events to return: first the last ones by number, then of these the ones by time.

        Raises:
            Corrupt: a record is damaged.
        """
        key = Key(app_name, user_id, session_id.strip())

        def get() -> Session | None:
            read = self._ledger.read(key)
            return self._session(key, read, config) if read else None

        return await self._run(get)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Return the sessions of an application without their events, those first whose last event is oldest.

        What each has come to is kept in a catalog, so only what is new is read. One that is damaged is listed with an
        empty state; getting it tells what is wrong.

        Args:
            app_name: the application.
            user_id: only this user's; None means all.
        """
        return ListSessionsResponse(sessions=await self._run(lambda: self._list(app_name, user_id)))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session; what it has set for others stays. Where there is none that is in order.

        Raises:
            NotSupported: the store deletes nothing.
        """
        key = Key(app_name, user_id, session_id.strip())
        await self._run(lambda: self._ledger.delete(key))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return what a user's sessions share, keys without their prefix."""
        return await self._run(lambda: self._ledger.values("user", app_name, user_id))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event to a session, in the store and in the object, and return it.

        An event that the object has already is not appended again, nor one that is in the store just behind what the
        object has: so an append whose outcome is not known may be repeated.

        Once it has begun it is finished: where the caller is cancelled meanwhile, that counts afterwards.

        Raises:
            StaleSessionError: the session has gone on since the object was read; nothing was appended.
            SessionNotFoundError: there is no such session.
            Unavailable: the storage failed; ``error.effect_unknown`` says whether the event may be there.
        """
        if event.partial:
            return event
        return await finish(self._append(session, event))

    async def _append(self, session: Session, event: Event) -> Event:
        key = Key(session.app_name, session.user_id, session.id)
        name = (id(asyncio.get_running_loop()), self._ledger.log(key))
        lock = self._locks.setdefault(name, asyncio.Lock())
        # Branches that run at once share one object: each has to see what the one before it has left.
        async with lock:
            self._apply_temp_state(session, event)
            event = self._trim_temp_delta_state(event)
            if any(each.id == event.id and each == event for each in session.events):
                return event
            body, state = dump_event(event)
            deltas = shared_part(state)

            def append() -> Place:
                place = _read_marker(session._storage_update_marker) or self._find(key, session)
                return self._ledger.append(key, place, body, deltas)

            try:
                place = await self._run(append, key)
            except NotFound as error:
                raise SessionNotFoundError(f"Session {session.id} not found.") from error
            except Conflict as error:
                raise StaleSessionError(f"The session was modified since it was loaded: reload it. {error}") from error
            session._storage_update_marker = _marker(place)
            session.last_update_time = event.timestamp
            return self._commit_event_to_session(session, event)

    async def flush(self) -> None:
        """Make durable what this service has written, where the store does that on demand only."""
        while self._written:
            log = self._written.pop()
            try:
                await asyncio.to_thread(self.store.flush, log)
            except NotFound:
                pass
            except BaseException:
                self._written.add(log)
                raise

    async def close(self) -> None:
        """Let go of the catalog; every later call but this one raises ``Closed``."""
        with self._making:
            self._closed = True
            if self._catalog is not None:
                self._catalog.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, work: Callable[[], T], *writes: Key) -> T:
        """Do work in a thread, to its end."""
        if self._closed:
            raise Closed("this service was closed: make another one", store=type(self.store).__name__)
        for key in writes if self._flushes else ():
            self._written |= {self._ledger.log(key)} | {
                self._ledger.shared(scope, key.app, key.user).name for scope in SHARED
            }
        return await finish(asyncio.to_thread(work))

    def _session(self, key: Key, read: Read, config: GetSessionConfig | None) -> Session:
        """Return what was read as ADK has it."""
        brief = _FOLD.initial()
        for record in read.records:
            brief = _FOLD.step(brief, record)
        found = [record for record in read.records if record.kind == EVENT]
        if config is not None and config.num_recent_events is not None:
            found = found[len(found) - min(config.num_recent_events, len(found)) :]
        events = [load_event(record, self._ledger.log(key)) for record in found]
        if config is not None and config.after_timestamp is not None:
            events = [event for event in events if event.timestamp >= config.after_timestamp]
        session = Session(
            app_name=key.app,
            user_id=key.user,
            id=key.id,
            state=_merged(brief.state, read.shared),
            events=events,
            last_update_time=brief.updated,
        )
        session._storage_update_marker = _marker(read.place)
        return session

    def _find(self, key: Key, session: Session) -> Place:
        """Return where a session ends, for an object that does not say it: one that was made of another's JSON.

        Its last event has to be the session's.

        Raises:
            NotFound: there is no such session.
            Conflict: the session has gone on.
        """
        found = self._ledger.read_records(key)
        if found is None:
            raise NotFound("there is no such session", log=self._ledger.log(key))
        records, place = found
        last = load_event(records[-1], self._ledger.log(key)).id if records[-1].kind == EVENT else ""
        if last != (session.events[-1].id if session.events else ""):
            raise Conflict("the session has gone on: read it and decide again", log=self._ledger.log(key))
        return place

    def _list(self, app_name: str, user_id: str | None) -> list[Session]:
        with self._making:
            if self._catalog is None:
                self._catalog = Catalog(self.store, _FOLD, path=self._path)
        rows = list(self._catalog.refresh(self._ledger.folder(app_name, user_id)))
        app = self._ledger.values("app", app_name)
        users: dict[str, dict[str, Any]] = {}
        sessions = []
        for row in rows:
            brief = row.value if row.value is not None else self._damaged(row)
            if not brief.exists:
                continue
            if brief.user not in users:
                users[brief.user] = self._ledger.values("user", app_name, brief.user)
            shared = deepcopy({"app": app, "user": users[brief.user]})
            sessions.append(
                Session(
                    app_name=app_name,
                    user_id=brief.user,
                    id=brief.id,
                    state=_merged(brief.state, shared),
                    last_update_time=brief.updated,
                )
            )
        return sorted(sessions, key=lambda session: (session.last_update_time, session.user_id, session.id))

    def _damaged(self, row: Row[Brief]) -> Brief:
        """Return what is shown of a session that cannot be read."""
        key = self._ledger.key(row.log)
        _log.warning("a session cannot be read, and is listed without its state: %s", row.error)
        return Brief(key.user, key.id, exists=True)


def _merged(own: dict[str, Any], shared: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return own | {prefix + key: value for scope, prefix in SHARED.items() for key, value in shared[scope].items()}


def _marker(place: Place) -> str:
    """Return what a session object carries to say where the session ends."""
    return f"statestore {place.number} {place.tail.size} {place.tail.run}"


def _read_marker(marker: str | None) -> Place | None:
    """Return the place that a marker names; None where it is not one of ours."""
    parts = (marker or "").split(" ", 3)
    if len(parts) != 4 or parts[0] != "statestore":
        return None
    return Place(Tail(int(parts[2]), parts[3]), int(parts[1]))
