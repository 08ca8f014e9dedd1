"""Stores that read wrongly, or tell a wrong tail or boundary."""

from __future__ import annotations

from collections.abc import Iterator

from statestore.errors import NotFound
from statestore.store import Store, Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Bare, Full, Log, Space

_MIB = 1 << 20


@saboteur("a-read-is-a-slice-of-what-was-appended")
class StopInclusive(Full):
    """A read has the byte at `stop` too."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        return super().read(log, start, None if stop is None else stop + 1)


@saboteur("a-read-is-a-slice-of-what-was-appended")
class StopIgnored(Full):
    """A read goes to the end of the log, whatever `stop` says."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        return super().read(log, start)


@saboteur("a-read-is-a-slice-of-what-was-appended")
class ClampedWrong(Full):
    """A read from beyond the end gives the last byte."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        return super().read(log, min(start, max(self.tail(log).size - 1, 0)), stop)


@saboteur("a-read-is-a-slice-of-what-was-appended")
class EmptyRangeIsAll(Full):
    """A read to 0 is a read of everything, since 0 is false."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        return super().read(log, start, stop or None)


@saboteur("a-read-of-a-missing-log-is-not-found")
class EmptySliceOfNothing(Full):
    """A read of no bytes does not look whether there is a log."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        if stop is not None and start >= stop >= 0:
            self._check(log)
            return b""
        return super().read(log, start, stop)


@saboteur("an-offset-below-zero-is-refused")
class CountsFromTheEnd(Full):
    """Offsets below zero count from the end."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        return super().read(log)[start:stop]


@saboteur("the-tail-is-where-the-log-ends")
class TailOfTheLastMatch(Full):
    """The tail is that of the last log whose name begins so."""

    def tail(self, log: str) -> Tail:
        super().tail(log)
        return super().tail(max(name for name in self.space.logs if name.startswith(log)))


@saboteur("a-store-without-runs-gives-none")
class RunsUndeclared(Bare):
    """A store that says it has no runs gives some."""

    def plain(self, tail: Tail) -> Tail:
        return tail

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self._check(log)
        return self.inner.append(log, data, at=at)


@saboteur("a-run-stays-while-the-log-lives")
class CopyRenewsTheRun(Full):
    """A copy gives its source another run."""

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        tail = super().put_copy(target, found, size)
        found.run += "+"
        return tail


@saboteur("a-stream-is-the-same-slice-in-pieces")
class StreamsWhole(Full):
    """A stream is always of the whole log."""

    def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
        return super()._stream(log, 0, None)


@saboteur("a-stream-is-the-same-slice-in-pieces")
class StreamsViews(Full):
    """A stream yields views of its buffer and not bytes."""

    def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
        for piece in super()._stream(log, start, stop):
            yield memoryview(piece)  # type: ignore[misc]


@saboteur("a-stream-joins-its-pieces-without-a-seam")
class LosesSeams(Full):
    """A stream leaves out the byte at the edge of its buffer."""

    def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
        for number, piece in enumerate(super()._stream(log, start, stop)):
            yield piece[1:] if number else piece


@saboteur("a-stream-ends-where-the-log-ended")
class FollowsTheLog(Full):
    """A stream goes on while the log grows."""

    def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
        while piece := self.read(log, start, start + _MIB if stop is None else min(start + _MIB, stop)):
            start += len(piece)
            yield piece


@saboteur("a-read-changes-nothing")
class ReadsRenewTheRun(Full):
    """Asking for a boundary makes the log another run."""

    def boundary(self, log: str, before: int) -> int:
        place = super().boundary(log, before)
        self._find(log).run += "+"
        return place


@saboteur("an-append-shows-to-another-store-object")
class KeepsWhatItHasSeen(Full):
    """A store object that has asked where a log ends believes it until it has written the log itself."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.seen: dict[str, Tail] = {}

    def tail(self, log: str) -> Tail:
        return self.seen.setdefault(log, super().tail(log))

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self.seen.pop(log, None)
        return super().append(log, data, at=at)

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        self.seen.pop(log, None)
        super().delete(log, at=at)


@saboteur("a-boundary-is-where-an-append-began")
class SearchesBackwards(Full):
    """A boundary is found by searching backwards for a line end."""

    def boundary(self, log: str, before: int) -> int:
        super().boundary(log, before)
        return self.read(log, 0, before).rfind(b"\n") + 1


@saboteur("a-boundary-is-where-an-append-began")
class BoundaryBehind(Full):
    """A boundary is the next one and not the one before."""

    def boundary(self, log: str, before: int) -> int:
        super().boundary(log, before)
        return min((start for start in self._find(log).starts if start >= before), default=0)


@saboteur("a-boundary-is-near")
class KnowsNoBoundaries(Full):
    """A store that says it knows boundaries knows only the first."""

    def boundary(self, log: str, before: int) -> int:
        return Store.boundary(self, log, before)


@saboteur("a-store-without-boundaries-says-the-beginning")
class BoundariesUndeclared(Bare):
    """A store that says it knows no boundaries tells some."""

    def boundary(self, log: str, before: int) -> int:
        super().boundary(log, before)
        return self.inner.boundary(log, before)


@saboteur("an-append-at-new-creates-the-log")
class MissingIsEmpty(Full):
    """A missing log reads as an empty one."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        try:
            return super().read(log, start, stop)
        except NotFound:
            return b""
