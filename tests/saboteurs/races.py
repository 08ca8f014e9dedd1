"""Stores that are right alone and wrong in company: each leaves a gap between looking and doing.

In a gap the thread waits a moment, as it would for a disk or a network, so that others always come between.
"""

from __future__ import annotations

import os
import threading
import time
from bisect import insort
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from statestore.errors import Conflict, Exists, Held, NotFound
from statestore.store import NEW, Holder, LogInfo, Tail, check_data, check_range
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Full, Log, Space


def gap(*, always: bool = False) -> None:
    if always or threading.current_thread() is not threading.main_thread():
        time.sleep(0.001)


class _Looks(Full):
    """Looks before it takes the lock, and acts on what it saw."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self._check(log)
        check_data(data, at)
        self.check_size(data)
        seen = self.look(log, data, at)
        gap()
        with self.locked():
            self._check_free(log)
            return self.act(seen, log, data, at) if seen is not None else self.place(log, data, at)

    def look(self, log: str, data: bytes, at: Tail) -> Any:
        raise NotImplementedError

    def act(self, seen: Any, log: str, data: bytes, at: Tail) -> Tail:
        raise NotImplementedError

    def ends(self, log: str, at: Tail) -> Log | None:
        found: Log | None = self.space.logs.get(log)
        return found if found and found.tail == at else None


@saboteur("threads-win-each-position-once", sample=0.5)
class ChecksBeforeTheLock(_Looks):
    """The conflict check comes before the lock, and the bytes are written where they were to go."""

    def look(self, log: str, data: bytes, at: Tail) -> Any:
        return self.ends(log, at)

    def act(self, seen: Any, log: str, data: bytes, at: Tail) -> Tail:
        if seen.tail == at:
            return self.add(log, seen, data)
        seen.data[at.size : at.size + len(data)] = data
        return Tail(at.size + len(data), seen.run)


@saboteur("store-objects-win-each-position-once", sample=0.5)
class LocksItself(Full):
    """Each store object has a lock of its own."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.lock = threading.RLock()

    def locked(self) -> AbstractContextManager[Any]:
        return self.lock

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        size = len(found.data)
        gap()
        found.data[size : size + len(data)] = data
        found.starts.append(size)
        self.sync(log)
        return Tail(size + len(data), found.run)


@saboteur("one-position-has-one-winner", sample=0.5)
class GoesToTheEndAfterAll(_Looks):
    """Who was overtaken between the check and the lock is appended behind the winner, as `O_APPEND` does."""

    def look(self, log: str, data: bytes, at: Tail) -> Any:
        return self.ends(log, at)

    def act(self, seen: Any, log: str, data: bytes, at: Tail) -> Tail:
        return self.add(log, seen, data) if self.space.logs.get(log) is seen else self.place(log, data, at)


@saboteur("one-position-has-one-winner-of-large-appends", sample=0.5)
class LargeAppendsLookFirst(_Looks):
    """An append of more than a megabyte is compared with the tail when its upload begins, and not when it ends."""

    def look(self, log: str, data: bytes, at: Tail) -> Any:
        return self.ends(log, at) if len(data) > 1 << 20 else None

    def act(self, seen: Any, log: str, data: bytes, at: Tail) -> Tail:
        del seen.data[at.size :]
        return self.add(log, seen, data)


@saboteur("a-creation-has-one-winner", sample=0.5)
class ExistsThenWrite(_Looks):
    """A creation looks whether there is a log, and then writes one."""

    def look(self, log: str, data: bytes, at: Tail) -> Any:
        return True if at == NEW and log not in self.space.logs else None

    def act(self, seen: Any, log: str, data: bytes, at: Tail) -> Tail:
        return self.create(log, data)


@saboteur("equal-creations-at-once-are-one-log", sample=0.5)
class CreationBelievesTheRefusal(_Looks):
    """A creation that finds a log where there was none is a conflict, even with its own bytes."""

    def look(self, log: str, data: bytes, at: Tail) -> Any:
        return True if at == NEW and log not in self.space.logs else None

    def act(self, seen: Any, log: str, data: bytes, at: Tail) -> Tail:
        if log in self.space.logs:
            raise Conflict("there is such a log already", log=log, expected=at, found=self.space.logs[log].tail)
        return self.create(log, data)


@saboteur("every-record-sent-twice-is-kept-once", sample=0.5)
class RepeatsToTheEndOfTheMoment(_Looks):
    """A repeated append that was the last one returns where the log ends by the time of the answer."""

    def look(self, log: str, data: bytes, at: Tail) -> Any:
        found: Log | None = self.space.logs.get(log)
        mine = found and at.run in ("", found.run) and self.same(found, data, at.size)
        if not found or not mine or at.size + len(data) != len(found.data):
            return None
        gap()
        gap()
        return found

    def act(self, seen: Any, log: str, data: bytes, at: Tail) -> Tail:
        tail: Tail = seen.tail
        return tail


@saboteur("a-copy-target-has-one-winner", sample=0.5)
class CopyLooksFirst(Full):
    """A copy looks whether there is a target, and then writes one."""

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        free = not self._closed and source in self.space.logs and target not in self.space.logs
        if not free or stop is not None or threading.current_thread() is threading.main_thread():
            return super().copy(source, target, stop=stop)
        gap()
        found = self._find(source)
        return self.put_copy(target, found, len(found.data))


_copying = threading.RLock()


@saboteur("a-copy-and-a-creation-have-one-winner", sample=0.5)
class CopiesHaveTheirLock(Full):
    """Copies keep each other out, and no creation."""

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        with _copying:
            if stop is not None or source not in self.space.logs or target in self.space.logs:
                return super().copy(source, target, stop=stop)
            self._check(target)
            self._check_free(target)
            gap()
            found = self._find(source)
            return self.put_copy(target, found, len(found.data))


class _Slow(Full):
    def add(self, log: str, found: Log, data: bytes) -> Tail:
        gap()
        return super().add(log, found, data)

    def in_two(self, found: Log) -> bytes:
        """Return all bytes of a log, its second half a moment after the first."""
        whole = bytes(found.data)
        half = len(whole) // 2
        gap()
        return whole[:half] + bytes(found.data)[half - len(whole) :]


@saboteur("a-copy-of-a-growing-log-is-a-beginning-of-it", sample=0.5)
class CopiesInTwo(_Slow):
    """A copy takes the second half of a log by its distance from the end."""

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        if stop is not None or source not in self.space.logs or target in self.space.logs:
            return super().copy(source, target, stop=stop)
        self._check(target)
        data = self.in_two(self._find(source))
        with self.locked():
            self._check_free(target)
            if target in self.space.logs:
                raise Exists("there is such a log already", log=target)
            self.space.make(target, data)
            self.sync(target)
            return self.tail(target)


@saboteur("a-reader-of-a-growing-log-sees-a-beginning-of-it", sample=0.5)
class ReadsInTwo(_Slow):
    """A read of a whole log takes the second half by its distance from the end."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        if (start, stop) != (0, None) or threading.current_thread() is threading.main_thread():
            return super().read(log, start, stop)
        return self.in_two(self._find(log))


@saboteur("a-tail-is-never-ahead-of-its-bytes", sample=0.5)
class TailAheadOfTheData(Full):
    """The size of a log is told before its bytes are there."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        self._check(log)
        check_range(start, stop)
        return bytes(self._find(log).data[start:stop])

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        self.space.notes[log] = Tail(len(found.data) + len(data), found.run)
        try:
            gap()
            return super().add(log, found, data)
        finally:
            del self.space.notes[log]

    def tail(self, log: str) -> Tail:
        ahead: Tail | None = self.space.notes.get(log)
        return ahead or super().tail(log)


@saboteur("an-append-never-brings-a-deleted-log-back", sample=0.5)
class WritesTheLogBack(_Looks):
    """An append writes the log back as it was when the append began."""

    def look(self, log: str, data: bytes, at: Tail) -> Any:
        return self.ends(log, at)

    def act(self, seen: Any, log: str, data: bytes, at: Tail) -> Tail:
        if self.ends(log, at) is None and log in self.space.logs:
            return self.place(log, data, at)
        if log not in self.space.logs:
            insort(self.space.order, log)
        self.space.logs[log] = seen
        return self.add(log, seen, data)


@saboteur("a-deletion-at-a-tail-and-an-append-have-one-winner", sample=0.5)
class DeletesWhatItSaw(Full):
    """A deletion compares the tail before it takes the lock."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        if at is None or self.tail(log) != at:
            return super().delete(log, at=at)
        gap()
        return super().delete(log)


@saboteur("a-deletion-has-one-winner", sample=0.5)
class DeletesWhatIsGone(Full):
    """A deletion looks whether there is a log, and then is content with whatever it finds."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        if at is not None or log not in self.space.logs:
            return super().delete(log, at=at)
        gap()
        try:
            return super().delete(log)
        except NotFound:
            return None


class _ListsUnlocked(Full):
    """Lists without a lock."""

    def _rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        self._check_open()
        while page := self.page(prefix, after):
            self.space.requests += 1
            yield from (self.row(name, tails) for name in page if name in self.space.logs)
            after = page[-1]


@saboteur("a-listing-during-creations-misses-no-earlier-log", sample=0.5)
class SortsAfterwards(_ListsUnlocked):
    """A new name is put at the end of the index, and the index is sorted then."""

    def create(self, log: str, data: bytes) -> Tail:
        tail = super().create(log, data)
        self.space.order.remove(log)
        self.space.order.append(log)
        gap()
        self.space.order.sort()
        return tail


@saboteur("a-listing-during-appends-shows-every-log", sample=0.5)
class HidesWhatIsWritten(_ListsUnlocked):
    """While a log is appended to, it is missing from the index."""

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        self.space.notes["hidden"] = log
        gap()
        tail = super().add(log, found, data)
        self.space.notes["hidden"] = None
        return tail

    def _rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        for row in super()._rows(prefix, after, tails):
            if tails or row.name != self.space.notes.get("hidden"):
                yield row


@saboteur("a-hold-has-one-winner", sample=0.5)
class HoldsWhatWasFree(Full):
    """A hold looks whether the log is free, and then takes it."""

    @contextmanager
    def _hold(self, log: str) -> Iterator[None]:
        self._check_open()
        mine = (self, Holder(os.getpid(), "here", "2026-09-28T12:00:00Z"))
        if holder := self._holder(log):
            raise Held("the log is held", log=log, holder=holder)
        gap()
        self.space.holds[log] = mine
        try:
            yield
        finally:
            if self.space.holds.get(log) is mine:
                del self.space.holds[log]


@saboteur("threads-on-logs-of-their-own-do-not-meet", sample=0.5)
class OneLogAtATime(Full):
    """A store object remembers the log that it works on in one place."""

    current = ""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self.current = log
        gap()
        return super().append(self.current, data, at=at)


@saboteur("a-store-that-is-closed-under-its-users-loses-nothing", sample=0.5)
class DropsWhatCloseMet(_Looks):
    """What is on its way when the store is closed is dropped, and acknowledged."""

    def look(self, log: str, data: bytes, at: Tail) -> Any:
        return self.ends(log, at)

    def act(self, seen: Any, log: str, data: bytes, at: Tail) -> Tail:
        if self._closed and seen.tail == at:
            return Tail(at.size + len(data), at.run)
        return self.place(log, data, at)


class _Remembers(Full):
    """Each store object remembers something of the logs that it has written."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.mine: dict[str, Tail] = {}

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        super().delete(log, at=at)
        self.mine.pop(log, None)

    def shorten(self, log: str, found: Log, size: int) -> bytes:
        self.mine.pop(log, None)
        return super().shorten(log, found, size)


@saboteur("a-writer-that-was-overtaken-is-refused", sample=0.5)
class CountsForItself(_Remembers):
    """The store object that began a log goes by its own count of the log's bytes."""

    def create(self, log: str, data: bytes) -> Tail:
        self.mine[log] = super().create(log, data)
        return self.mine[log]

    def place(self, log: str, data: bytes, at: Tail) -> Tail:
        found = self.space.logs.get(log)
        if found is None or self.mine.get(log) != at or at.run != found.run:
            return super().place(log, data, at)
        self.mine[log] = self.add(log, found, data)
        return self.mine[log]


@saboteur("a-writer-that-slept-through-a-deletion-is-refused", sample=0.5)
class RemembersRuns(_Remembers):
    """A store object takes the run of a log that it has begun from memory."""

    def create(self, log: str, data: bytes) -> Tail:
        self.mine[log] = super().create(log, data)
        return self.mine[log]

    def place(self, log: str, data: bytes, at: Tail) -> Tail:
        found = self.space.logs.get(log)
        known = found and log in self.mine and at.run == self.mine[log].run and at.size == len(found.data)
        return super().place(log, data, found.tail if known else at)


@saboteur("a-lost-answer-is-healed-by-another-store-object", sample=0.5)
class KnowsItsOwnAppends(_Remembers):
    """A repeated append, other than a creation, is known only to a store object that has written the log."""

    def create(self, log: str, data: bytes) -> Tail:
        self.mine[log] = super().create(log, data)
        return self.mine[log]

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        self.mine[log] = super().add(log, found, data)
        return self.mine[log]

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        if at.size and log not in self.mine:
            raise Conflict("the log does not end there", log=log, expected=at, found=found.tail)
        return super().again(log, found, data, at)
