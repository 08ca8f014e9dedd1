"""Stores that cut or flush wrongly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from statestore.errors import NotFound
from statestore.store import Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Bare, Full, Log


@saboteur("a-cut-drops-exactly-what-is-behind-its-size")
class CutsTooFar(Full):
    """A cut drops the byte before its size too."""

    def shorten(self, log: str, found: Log, size: int) -> bytes:
        return super().shorten(log, found, size - (1 < size < len(found.data)))


@saboteur("a-cut-drops-exactly-what-is-behind-its-size")
class CutsTooLittle(Full):
    """A cut leaves the byte behind its size."""

    def shorten(self, log: str, found: Log, size: int) -> bytes:
        return super().shorten(log, found, min(size + 1, len(found.data)))


@saboteur("a-cut-drops-exactly-what-is-behind-its-size")
class CutBytesNotReturned(Full):
    """A cut returns nothing of what it drops."""

    def shorten(self, log: str, found: Log, size: int) -> bytes:
        super().shorten(log, found, size)
        return b""


@saboteur("a-log-goes-on-after-a-cut")
class WritesWhereItEnded(Full):
    """An append after a cut is written where the log had ended before, with zeros in between."""

    def shorten(self, log: str, found: Log, size: int) -> bytes:
        dropped = super().shorten(log, found, size)
        if size:
            self.space.notes[log] = len(dropped)
        return dropped

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        return super().add(log, found, bytes(self.space.notes.pop(log, 0)) + data)


@saboteur("a-cut-at-another-tail-is-refused")
class CutsAnyway(Full):
    """A cut ignores `at`."""

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        return super().cut(log, size, at=self.tail(log))


@saboteur("a-cut-does-not-reach-into-another-run")
class CutsBySize(Full):
    """A cut compares sizes and no runs."""

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        return super().cut(log, size, at=Tail(at.size, self.tail(log).run))


@saboteur("a-cut-outside-the-log-is-refused")
class CutsLengthen(Full):
    """A cut beyond the end fills the log with zeros, as truncating a file does."""

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        if at.size < size < 100:
            self._find(log).data.extend(bytes(size - at.size))
            return b""
        return super().cut(log, size, at=at)


@saboteur("a-cut-outside-the-log-is-refused")
class CutsFromTheEnd(Full):
    """A cut to a size below zero counts from the end."""

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        return super().cut(log, size + at.size if size < 0 else size, at=at)


@saboteur("a-cut-to-nothing-leaves-no-log")
class CutsLeaveAnEmptyLog(Full):
    """A cut to 0 leaves an empty log."""

    def shorten(self, log: str, found: Log, size: int) -> bytes:
        dropped = super().shorten(log, found, size)
        if not size:
            self.space.make(log, b"")
        return dropped


@saboteur("a-cut-touches-no-other-log")
class CutsCopiesToo(Full):
    """A copy shares its bytes with the source until one of them is appended to, and a cut is no append."""

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        self.space.notes[target] = found
        return super().put_copy(target, found, size)

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        self.space.notes.pop(log, None)
        return super().add(log, found, data)

    def shorten(self, log: str, found: Log, size: int) -> bytes:
        for target, source in self.space.notes.items():
            if source is found and target in self.space.logs:
                del self.space.logs[target].data[size:]
        return super().shorten(log, found, size)


@saboteur("what-was-cut-is-kept-aside")
class KeepsTheLastCut(Full):
    """Only the last cut of a log is kept aside."""

    def shorten(self, log: str, found: Log, size: int) -> bytes:
        self.space.aside.pop(log, None)
        return super().shorten(log, found, size)


@saboteur("what-was-cut-is-kept-aside")
class KeepsNoCut(Full):
    """What is cut is gone."""

    def shorten(self, log: str, found: Log, size: int) -> bytes:
        dropped = super().shorten(log, found, size)
        self.space.aside[log] = b""
        return dropped


@saboteur("a-store-without-cuts-refuses-them")
class CutsAndRefuses(Bare):
    """A cut is refused as not supported when it has been made."""

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        self._check(log)
        if log in self.inner.space.logs and 0 < size < at.size:
            self.inner.cut(log, size, at=self.inner.tail(log))
        raise self._refusal("cuts")


@saboteur("a-flush-of-a-durable-store-looks-for-the-log")
class FlushesWhatIsNot(Full):
    """A flush of a missing log succeeds."""

    def flush(self, log: str) -> None:
        self._check(log)


@saboteur("a-flush-of-a-durable-store-looks-for-the-log")
class RefusesToFlush(Full):
    """A store that is always durable refuses to flush."""

    capabilities = replace(Full.capabilities, flushes=False)

    def flush(self, log: str) -> None:
        self._check(log)
        raise self._refusal("flushes")


@saboteur("a-flush-changes-no-byte")
class FlushesRewrite(Full):
    """A flush writes the log anew, as another run."""

    def flush(self, log: str) -> None:
        super().flush(log)
        found: Any = self._find(log)
        found.run = self.run(log) + "-flushed"


@saboteur("a-store-that-can-make-nothing-durable-says-so")
class FlushDoesNothing(Bare):
    """A flush that can make nothing durable succeeds."""

    def flush(self, log: str) -> None:
        self._check(log)
        if log not in self.inner.space.logs:
            raise NotFound("no such log", log=log)
