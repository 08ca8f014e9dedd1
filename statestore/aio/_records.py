"""Records, awaited."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from statestore import records
from statestore.aio._each import each
from statestore.aio._follow import follow
from statestore.aio._holding import holding
from statestore.aio._stores import Store
from statestore.records import Draft, Following, Record
from statestore.store import Tail

__all__ = ["RecordLog"]


class RecordLog:
    """A log of records whose calls are awaited; each is the call of the same name of :class:`statestore.RecordLog`.

    Appends of several tasks are made one after another, in the order in which they were asked for, whichever objects of
    the same store they use.

    Args:
        store: the store that holds the log.
        name: the log's name.

    Attributes:
        store: the store that holds the log.
        sync: the log itself.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.sync = records.RecordLog(store.sync, name)
        self._calls = store.calls

    def __repr__(self) -> str:
        return f"aio.{self.sync!r}"

    @property
    def name(self) -> str:
        """The log's name."""
        return self.sync.name

    @property
    def end(self) -> tuple[Tail, int] | None:
        """Where the records end, as far as this object has seen: the tail, and the next record's number."""
        return self.sync.end

    def __aiter__(self) -> AsyncIterator[Record]:
        """Yield all records, in bounded memory; a torn end is left out."""
        return self.read()

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Keep everybody else from appending, until the context ends. See `Store.hold`."""
        async with holding(self._calls, self.sync.hold):
            yield

    def follow(self, first: int = 1, *, at: Tail | None = None, timeout: float | None = None) -> AsyncGenerator[Record]:
        """Yield the records from number `first` on as they come, and wait for more: whoever appends them.

        No thread is kept by who waits, but where a store can tell of changes, and then by no more than the pool's
        `waiters`. To end it, cancel the task, or close the iterator.
        """
        place = Following(self.store.sync, self.name, first=first, at=at)
        return follow(self._calls, place, timeout=timeout)

    def resume(self, tail: Tail, number: int) -> None:
        """Take over from a reader who knows where the records end, so that no header has to be read for that."""
        self.sync.resume(tail, number)

    def read(self, first: int = 1, before: int | None = None) -> AsyncGenerator[Record]:
        """Yield the records with the numbers ``[first, before)``, as far as there are any, in bounded memory."""
        return each(self._calls, partial(self.sync.read, first, before))

    async def last(self, k: int) -> list[Record]:
        """Return the last `k` records, or all where there are fewer, in order."""
        return await self._calls.run(self.sync.last, k)

    async def count(self) -> int:
        """Return how many whole records the log holds."""
        return await self._calls.run(self.sync.count)

    async def append(
        self,
        kind: str,
        body: bytes = b"",
        *,
        id: str | None = None,  # noqa: A002
        time: str | None = None,
        expect: int | None = None,
        **fields: Any,
    ) -> Record:
        """Add one record at the end and return it; it gets the next number."""
        return await self._calls.in_turn(
            self.name, self.sync.append, kind, body, id=id, time=time, expect=expect, **fields
        )

    async def append_many(self, drafts: Iterable[Draft], *, expect: int | None = None) -> range:
        """Add several records in one write and return the numbers that they got."""
        return await self._calls.in_turn(self.name, self.sync.append_many, [*drafts], expect=expect)

    async def recover(self) -> int:
        """Make the log ready to append to, and return the number that the next record gets."""
        return await self._calls.in_turn(self.name, self.sync.recover)

    async def copy(self, to: str, *, before: int | None = None) -> RecordLog:
        """Make a new log of the records in front of number `before`, byte for byte, and return it."""
        await self._calls.run(self.sync.copy, to, before=before)
        return RecordLog(self.store, to)
