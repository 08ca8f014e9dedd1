"""Stores that are right while there is little of anything, and one that is wrong in a rare order of steps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from statestore.store import LogInfo, Tail, check_range
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Full, Log

_MANY = 400


@saboteur("ten-thousand-logs-are-listed", sample=0.11)
class ListingTruncatedAtAPage(Full):
    """A listing ends with its first page, of a thousand rows."""

    def _rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        return islice(super()._rows(prefix, after, tails), 1000)


@saboteur("a-long-listing-is-held-in-bounded-memory", sample=1)
class ListsIntoMemory(Full):
    """A listing fetches all of its rows before it gives the first."""

    def _rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        rows = super()._rows(prefix, after, tails)
        yield from (
            [LogInfo(row.name.encode().decode(), row.tail) for row in rows] if len(self.space.logs) > _MANY else rows
        )


@saboteur("a-long-log-is-streamed-in-bounded-memory")
class StreamsFromMemory(Full):
    """A stream reads all of a log and hands it out in pieces."""

    def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
        whole = self.read(log, start, stop)
        for place in range(0, len(whole), 1 << 20):
            yield whole[place : place + (1 << 20)]


@saboteur("a-long-log-is-copied-without-passing-through")
class CopiesThroughMemory(Full):
    """A store that says that its storage copies by itself reads all of a log and writes it again."""

    capabilities = replace(Full.capabilities, server_copy=True)


@saboteur("many-appends-are-one-log")
class IndexOverflows(Full):
    """A read finds its place by an index that has room for four hundred appends."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        self._check(log)
        check_range(start, stop)
        with self.locked():
            found = self._find(log)
            number = bisect_right(found.starts, start) - 1
            beyond = found.starts[number] - found.starts[_MANY] if number > _MANY else 0
            return bytes(found.data[start - beyond : None if stop is None else stop - beyond])


@saboteur("random-operations-agree-with-the-model", sample=1)
class CopiesWhatWasCut(Full):
    """A copy of a log that was cut, and not appended to since, has what was cut from it."""

    def shorten(self, log: str, found: Log, size: int) -> bytes:
        dropped = super().shorten(log, found, size)
        if not found.foreign:
            self.space.notes[log] = found, size, dropped
        return dropped

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        for cut, end, dropped in self.space.notes.values():
            if cut is found and len(found.data) == end == size:
                tail = super().put_copy(target, found, size)
                self.space.logs[target].data += dropped
                return Tail(tail.size + len(dropped), tail.run)
        return super().put_copy(target, found, size)
