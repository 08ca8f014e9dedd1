"""Stores, awaited."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from statestore import plugins, snapshot, store
from statestore.aio._calls import Calls
from statestore.aio._closing import Closing
from statestore.aio._each import each
from statestore.aio._holding import holding, taken
from statestore.aio._pool import Pool
from statestore.store import Capabilities, Finding, Garbage, Holder, LogInfo, Problem, Tail

__all__ = ["Maintenance", "Snapshot", "Store", "open_store"]


async def open_store(url: str | os.PathLike[str], /, *, pool: Pool | None = None, **options: Any) -> Store:
    """Open the store at a path or a URL; closing it closes what was opened.

    Args:
        url: where the store is.
        pool: the threads to use; by default a pool of this store's own.
        options: as for :func:`statestore.open_store`, whose errors it raises.
    """
    threads = pool or Pool()
    try:
        opened = await taken(Calls(threads), partial(plugins.open_store, url, **options), lambda store: store.close())
    except BaseException:
        if pool is None:
            await threads.aclose()
        raise
    return Store(opened, pool=threads, own=pool is None)


class Store(Closing):
    """A store whose calls are awaited; each is the call of the same name of :class:`statestore.Store`.

    What each takes, returns and raises is said there. An error of an iteration comes with its first item.

    Args:
        store: the store.
        pool: the threads that its calls run on; by default a pool of its own.
        own: whether the pool is closed with the store; by default where none is given.

    Attributes:
        sync: the store itself.
        calls: what makes its calls.
    """

    def __init__(self, store: store.Store, *, pool: Pool | None = None, own: bool | None = None) -> None:
        self.sync = store
        self.calls = self._calls = Calls(pool or Pool())
        self._own = pool is None if own is None else own

    def __repr__(self) -> str:
        return f"aio.{self.sync!r}"

    async def aclose(self) -> None:
        """Close the store, when the calls that are under way are over; closing twice is nothing."""
        try:
            await self._calls.aclose()
        finally:
            try:
                await self._calls.finish(self.sync.close)
            finally:
                if self._own:
                    await self._calls.pool.aclose()

    @property
    def capabilities(self) -> Capabilities:
        """What the store can do."""
        return self.sync.capabilities

    @property
    def maintenance(self) -> Maintenance | None:
        """What the store offers its operator; None where that is nothing."""
        found = self.sync.maintenance
        return Maintenance(found, self._calls) if found is not None else None

    @asynccontextmanager
    async def hold(self, log: str) -> AsyncIterator[None]:
        """Keep everybody else from appending to, deleting or holding the log, until the context ends."""
        async with holding(self._calls, partial(self.sync.hold, log)):
            yield

    async def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        """Add `data` to the end of `log`, if the log ends exactly at `at`; return the new tail."""
        return await self._calls.run(self.sync.append, log, data, at=at)

    async def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the log's end as slices are."""
        return await self._calls.run(self.sync.read, log, start, stop)

    async def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to ``source[:stop]``, whole or not at all; return its tail."""
        return await self._calls.run(self.sync.copy, source, target, stop=stop)

    async def tail(self, log: str) -> Tail:
        """Return the log's tail as it is now."""
        return await self._calls.run(self.sync.tail, log)

    async def snapshot(self, log: str) -> Snapshot:
        """Return the log as it ends now, to be read in several calls that all mean the same log."""
        return Snapshot(await self._calls.run(self.sync.snapshot, log), self)

    def stream(self, log: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, in bounded memory."""
        return each(self._calls, partial(self.sync.stream, log, start, stop))

    async def boundary(self, log: str, before: int) -> int:
        """Return an offset, at most `before`, where an append began: a reader may start there."""
        return await self._calls.run(self.sync.boundary, log, before)

    async def delete(self, log: str, *, at: Tail | None = None) -> None:
        """Remove the log at once and for all; where `at` is given, only if the log ends there."""
        await self._calls.run(self.sync.delete, log, at=at)

    async def holder(self, log: str) -> Holder | None:
        """Say who holds the log now, without disturbing them; None where nobody does."""
        return await self._calls.run(self.sync.holder, log)

    def location(self, log: str) -> str:
        """Say where a person finds the log: a file's path, an address, or its name where there is nothing else."""
        return self.sync.location(log)

    async def flush(self, log: str) -> None:
        """Make all of the log durable. Where every append is so already, this only looks that the log is there."""
        await self._calls.run(self.sync.flush, log)

    async def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        """Drop what a crash left behind `size`, if the log still ends exactly at `at`; return the bytes dropped."""
        return await self._calls.run(self.sync.cut, log, size, at=at)

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> AsyncGenerator[LogInfo]:
        """Yield the logs whose names begin with `prefix` and come after `after`, in code-point order."""
        return each(self._calls, partial(self.sync.list, prefix, after=after, tails=tails))


class Snapshot:
    """A log as it ended at one moment, read by one task at a time; :meth:`Store.snapshot` makes one.

    Attributes:
        store: whose log it is.
        sync: the snapshot itself.
    """

    def __init__(self, snapshot: snapshot.Snapshot, store: Store) -> None:
        self.store = store
        self.sync = snapshot
        self._calls = store.calls

    def __repr__(self) -> str:
        return f"aio.{self.sync!r}"

    @property
    def log(self) -> str:
        """The log's name."""
        return self.sync.log

    @property
    def tail(self) -> Tail:
        """Where the log ended."""
        return self.sync.tail

    async def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the snapshot's end as slices are."""
        return await self._calls.run(self.sync.read, start, stop)

    def stream(self, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, in bounded memory; see `read`."""
        return each(self._calls, partial(self.sync.stream, start, stop))

    async def boundary(self, before: int) -> int:
        """Return an offset, at most `before`, where an append began; see `Store.boundary`."""
        return await self._calls.run(self.sync.boundary, before)

    async def copy(self, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to the snapshot's ``[0, stop)``; see `Store.copy`."""
        return await self._calls.run(self.sync.copy, target, stop=stop)


class Maintenance:
    """What a store offers its operator: see :class:`statestore.store.Maintenance`.

    Attributes:
        sync: the maintenance itself.
    """

    def __init__(self, maintenance: store.Maintenance, calls: Calls) -> None:
        self.sync = maintenance
        self._calls = calls

    async def compact(self, log: str) -> int:
        """Merge a log's pieces in the storage; return how many fewer pieces a reader needs now."""
        return await self._calls.run(self.sync.compact, log)

    def collect(self, prefix: str = "", *, dry_run: bool = True) -> AsyncGenerator[Garbage]:
        """Yield what no log whose name begins with `prefix` needs any more, and remove it unless it is a dry run."""
        collect = partial(self.sync.collect, prefix, dry_run=dry_run)
        return each(self._calls, collect) if dry_run else each(self._calls, collect, most=1)

    def check(self, prefix: str = "") -> AsyncGenerator[Problem]:
        """Yield all that is wrong under the logs whose names begin with `prefix`; every byte is read."""
        return each(self._calls, partial(self.sync.check, prefix))

    def examine(self) -> AsyncGenerator[Finding]:
        """Yield what the storage really does, tried one by one in a scratch place that is emptied afterwards."""
        return each(self._calls, partial(self.sync.examine))

    async def probe(self) -> None:
        """Try whether the storage keeps its promises; raise ``Unavailable`` where it does not."""
        await self._calls.run(self.sync.probe)
