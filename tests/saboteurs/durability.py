"""Stores that forget: when they are closed, when they crash, or when the power goes."""

from __future__ import annotations

from typing import Any

from statestore.errors import Conflict, NotFound
from statestore.store import Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import ROOM, Full, Log, OnFlush, Space


class _Unsaved(Full):
    """Remembers which copies it has made."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.copies: dict[str, Any] = {}

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        tail = super().put_copy(target, found, size)
        self.copies[target] = self.space.logs[target]
        return tail

    def forget(self) -> None:
        for log, made in self.copies.items():
            if self.space.logs.get(log) is made:
                del self.space.logs[log]
                self.space.order.remove(log)
        self.copies.clear()


@saboteur("an-append-that-does-not-fit-is-refused")
class ForgetsWriteErrors(Full):
    """The client of the storage forgets which of its writes have failed, and half an append is told as whole."""

    def stored(self, data: bytes) -> bytes:
        return data[:ROOM] if self.space.full else data


@saboteur("an-append-that-does-not-fit-is-refused")
class KeepsWhatDidNotFit(Full):
    """An append that fails for lack of room leaves a beginning of itself, in a store that says that it never does."""

    def stored(self, data: bytes) -> bytes:
        if self.space.full and len(data) > ROOM and self.space.logs:
            next(iter(self.space.logs.values())).data.extend(data[:ROOM])
        return super().stored(data)


@saboteur("everything-is-there-after-reopening")
class CopiesEndWithTheirMaker(_Unsaved):
    """A copy is gone when the store object that made it is closed."""

    def close(self) -> None:
        super().close()
        self.forget()


@saboteur("everything-is-there-after-a-crash")
class CopiesAreSavedAtClosing(_Unsaved):
    """A copy is written to the storage when the store object that made it is closed, and not before."""

    def crashed(self) -> None:
        self.forget()


@saboteur("a-lost-answer-is-healed-after-reopening")
class ClosingSealsRepetitions(Full):
    """What was there when a store object was closed is not compared with a repeated append any more."""

    def close(self) -> None:
        super().close()
        for log, found in self.space.logs.items():
            self.space.notes[log] = len(found.data)

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        if 0 < at.size < self.space.notes.get(log, 0):
            raise Conflict("the log does not end there", log=log, expected=at, found=found.tail)
        return super().again(log, found, data, at)


@saboteur("a-run-is-never-given-twice-across-reopening")
class CountsRunsAnew(Full):
    """Runs are counted from the beginning again once the store was closed."""

    def close(self) -> None:
        super().close()
        self.space.runs = 0


@saboteur("a-deletion-lasts")
class DeletionsAreMarks(Full):
    """A deletion takes a log out of the listing and leaves a mark, and the mark goes when the store is closed."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        with self.locked():
            found = self.space.logs.get(log)
            super().delete(log, at=at)
            self.space.notes[log] = found, self

    def create(self, log: str, data: bytes) -> Tail:
        self.space.notes.pop(log, None)
        return super().create(log, data)

    def _find(self, log: str) -> Any:
        try:
            return super()._find(log)
        except NotFound:
            found, deleter = self.space.notes.get(log, (None, self))
            if found is None or not deleter._closed:
                raise
            return found


@saboteur("a-cut-lasts")
class CutsEndWithTheirMaker(Full):
    """What was cut is there again, behind what was added since, when the store object that cut it is closed."""

    def shorten(self, log: str, found: Log, size: int) -> bytes:
        dropped = super().shorten(log, found, size)
        self.space.notes[log] = found, dropped, self
        return dropped

    def close(self) -> None:
        super().close()
        for found, dropped, cutter in self.space.notes.values():
            if cutter is self:
                found.data.extend(dropped)


@saboteur("a-boundary-after-reopening-is-where-an-append-began")
class GuessesBoundaries(Full):
    """Only the store object that has begun a log knows its boundaries, and others guess."""

    def create(self, log: str, data: bytes) -> Tail:
        self.space.notes[log] = self
        return super().create(log, data)

    def boundary(self, log: str, before: int) -> int:
        place = super().boundary(log, before)
        return place if self.space.notes.get(log, self) is self else max(place, before - 3)


@saboteur("an-acknowledged-append-survives-the-loss-of-power")
class SyncSkipped(Full):
    """Only a creation is made durable, and no later append."""

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        safe = self.space.safe.get(log)
        tail = super().add(log, found, data)
        if safe:
            self.space.safe[log] = safe
        return tail


@saboteur("a-creation-survives-the-loss-of-power")
class NamesNotSynced(Full):
    """A new log's name is made durable by the next append to any log, and not by its creation."""

    def create(self, log: str, data: bytes) -> Tail:
        tail = super().create(log, data)
        self.space.notes[log] = self.space.safe.pop(log)
        return tail

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        self.space.safe.update(self.space.notes)
        self.space.notes.clear()
        return super().add(log, found, data)


@saboteur("a-copy-survives-the-loss-of-power")
class CopiesNotSynced(Full):
    """A copy is not made durable."""

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        tail = super().put_copy(target, found, size)
        del self.space.safe[target]
        return tail


@saboteur("a-deletion-survives-the-loss-of-power")
class DeletionsNotSynced(Full):
    """A deletion is not made durable."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        safe = self.space.safe.get(log)
        super().delete(log, at=at)
        self.space.safe[log] = safe


@saboteur("a-repeated-append-is-as-durable-as-a-fresh-one")
class RepetitionsNotSynced(Full):
    """A repeated append finds its bytes and does not make them durable."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        safe = self.space.safe.get(log)
        tail = super().again(log, found, data, at)
        if safe is None:
            self.space.safe.pop(log, None)
        else:
            self.space.safe[log] = safe
        return tail


@saboteur("a-flushed-log-survives-the-loss-of-power")
class FlushesNothing(OnFlush):
    """A flush does nothing, though the store says that it makes a log durable."""

    def flush(self, log: str) -> None:
        self.tail(log)
