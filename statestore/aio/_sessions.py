"""Sessions, awaited."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from functools import partial
from typing import Any

from statestore import sessions
from statestore.aio._closing import Closing
from statestore.aio._each import each
from statestore.aio._holding import taken
from statestore.aio._records import RecordLog
from statestore.aio._stores import Store
from statestore.records import Draft, Record
from statestore.sessions import Conf, Status, Transcript

__all__ = ["Session", "Sessions"]


class Sessions:
    """The sessions of a store, awaited; each call is that of the same name of :class:`statestore.Sessions`.

    Args:
        store: the store that holds the logs.
        prefix: the scope, a name such as ``teams/a``.

    Attributes:
        store: the store that holds the logs.
        sync: the sessions themselves.
    """

    def __init__(self, store: Store, prefix: str = "") -> None:
        self.store = store
        self.sync = sessions.Sessions(store.sync, prefix)
        self._calls = store.calls

    def __repr__(self) -> str:
        return f"aio.{self.sync!r}"

    @property
    def prefix(self) -> str:
        """The scope."""
        return self.sync.prefix

    async def start(self, conf: Conf | None = None, *, id: str | None = None) -> Session:  # noqa: A002
        """Make a new session and return it, open for appending, and held where the store can hold."""
        return Session(await self._taken(partial(self.sync.start, conf, id=id)), self.store)

    async def open(self, id: str) -> Session:  # noqa: A002
        """Return a session, open for appending, and held where the store can hold."""
        return Session(await self._taken(partial(self.sync.open, id)), self.store)

    async def _taken(self, take: Callable[[], sessions.Session]) -> sessions.Session:
        return await taken(self._calls, take, lambda session: session.close())

    async def load(self, id: str, *, before: int | None = None) -> Transcript:  # noqa: A002
        """Return a session's records as they are now. Nothing is held and nothing changed; a torn end is left out."""
        return await self._calls.run(self.sync.load, id, before=before)

    async def fork(self, id: str, *, before: int | None = None, to: str | None = None) -> str:  # noqa: A002
        """Make a new session of the records in front of number `before`, byte for byte, and return its id."""
        return await self._calls.run(self.sync.fork, id, before=before, to=to)

    def path(self, id: str) -> str:  # noqa: A002
        """Say where a person finds the session: its file, or its log's name where there is nothing else."""
        return self.sync.path(id)

    async def status(self, id: str) -> Status:  # noqa: A002
        """Say what a session has come to, in bounded memory; ``stepping`` while somebody holds it."""
        return await self._calls.run(self.sync.status, id)

    def list(self, *, after: str = "") -> AsyncGenerator[str]:
        """Yield the sessions' ids in code-point order, lazily. A log whose name is no id is not shown."""
        return each(self._calls, partial(self.sync.list, after=after))


class Session(Closing):
    """A session that is open for appending; :class:`Sessions` gives it.

    Appends of several tasks are made one after another, in the order in which they were asked for.

    Attributes:
        log: its log, as records.
        sync: the session itself.
    """

    def __init__(self, session: sessions.Session, store: Store) -> None:
        self.log = RecordLog(store, session.log.name)
        self.log.sync = session.log
        self.sync = session
        self._calls = store.calls

    def __repr__(self) -> str:
        return f"aio.{self.sync!r}"

    @property
    def id(self) -> str:
        """The session's id."""
        return self.sync.id

    async def aclose(self) -> None:
        """Let the session go; closing twice is nothing. Afterwards every other call raises ``Closed``."""
        await self._calls.finish(self.sync.close)

    async def append(self, kind: str, body: bytes = b"", **fields: Any) -> Record:
        """Add one record at the end and return it; see :meth:`RecordLog.append` for what it takes and raises."""
        return await self._calls.in_turn(self.log.name, self.sync.append, kind, body, **fields)

    async def append_many(self, drafts: Iterable[Draft], *, expect: int | None = None) -> range:
        """Add several records in one write and return their numbers; see :meth:`RecordLog.append_many`."""
        return await self._calls.in_turn(self.log.name, self.sync.append_many, [*drafts], expect=expect)

    async def transcript(self) -> Transcript:
        """Return the session's records as they are now; only those that are new are read and looked at."""
        return await self._calls.run(self.sync.transcript)

    async def close_waiting(self, reason: str) -> list[Record]:
        """Answer every waiting call with one result that says why it has no other, and return these records."""
        return await self._calls.in_turn(self.log.name, self.sync.close_waiting, reason)
