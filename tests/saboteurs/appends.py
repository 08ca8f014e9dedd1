"""Stores that append wrongly."""

from __future__ import annotations

from typing import Any

from statestore.errors import Conflict
from statestore.store import NEW, Tail, check_data
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Full, Log


@saboteur("an-append-at-new-creates-the-log")
class EmptyLogFirst(Full):
    """A log is there, empty, as soon as somebody has asked for it."""

    def _find(self, log: str) -> Any:
        if log not in self.space.logs:
            self.space.make(log, b"")
        return super()._find(log)


@saboteur("an-append-at-new-creates-the-log")
class SwallowedError(Full):
    """An error of the storage is swallowed: the append is acknowledged, and nothing is there."""

    def create(self, log: str, data: bytes) -> Tail:
        try:
            raise OSError("no space left")
        except OSError:
            return Tail(len(data), self.run(log))


@saboteur("an-append-returns-the-tail-behind-its-bytes")
class TailBefore(Full):
    """An append returns the tail before its bytes."""

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        before = found.tail
        super().add(log, found, data)
        return before


@saboteur("an-append-returns-the-tail-behind-its-bytes")
class PartialBatch(Full):
    """A long append is written in part and told as whole."""

    def kept(self, data: bytes) -> bytes:
        return data[:1024]


@saboteur("an-append-before-the-end-is-refused")
class IgnoresAt(Full):
    """An append goes to the end, whatever `at` says."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        return self.add(log, found, data)


@saboteur("an-append-before-the-end-is-refused")
class OverwritesAt(Full):
    """An append is written at its place, over what is there."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        if at.size > len(found.data):
            return super().again(log, found, data, at)
        found.data[at.size : at.size + len(data)] = data
        return Tail(at.size + len(data), found.run)


@saboteur("an-append-before-the-end-is-refused")
class RefusesAfterTheEffect(Full):
    """An append at the wrong place is refused when it has been added already."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        try:
            return super().again(log, found, data, at)
        except Conflict:
            self.add(log, found, data)
            raise


@saboteur("an-append-before-the-end-is-refused")
class ExistsForConflict(Full):
    """An append at the wrong place is refused by the wrong error."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        try:
            return super().again(log, found, data, at)
        except Conflict as error:
            raise FileExistsError(log) from error


@saboteur("an-append-beyond-the-end-is-refused")
class FillsGaps(Full):
    """An append beyond the end fills the gap with zeros."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        if len(found.data) < at.size < 100_000:
            return self.add(log, found, bytes(at.size - len(found.data)) + data)
        return super().again(log, found, data, at)


@saboteur("a-creation-where-a-log-is-refused")
class CreatesOver(Full):
    """A creation replaces the log that has the name already."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        if at == NEW and not self.same(found, data, 0):
            return self.create(log, data)
        return super().again(log, found, data, at)


@saboteur("an-append-to-a-missing-log-is-not-found")
class CreatesOnAppend(Full):
    """An append to a missing log creates it."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        return super().append(log, data, at=at if log in self.space.logs else NEW)


@saboteur("the-same-append-again-is-success")
class ConflictsWithItself(Full):
    """A repeated append is a conflict with itself."""

    def same(self, found: Log, data: bytes, start: int) -> bool:
        return False


@saboteur("the-same-append-again-is-success")
class DoublesRetries(Full):
    """A repeated append is appended again."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        super().again(log, found, data, at)
        return self.add(log, found, data)


@saboteur("the-same-append-again-after-others-is-success")
class KnowsOnlyTheLast(Full):
    """A repeated append is known only while it is the last one."""

    def same(self, found: Log, data: bytes, start: int) -> bool:
        return start + len(data) == len(found.data) and super().same(found, data, start)


@saboteur("the-same-append-again-after-others-is-success")
class RepeatsToTheEnd(Full):
    """A repeated append returns the tail of the whole log."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        super().again(log, found, data, at)
        return found.tail


@saboteur("the-same-creation-again-is-success")
class NoSecondCreation(Full):
    """A repeated creation is a conflict, as if it were somebody else's."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        if at == NEW:
            raise Conflict("there is such a log already", log=log, expected=at, found=found.tail)
        return super().again(log, found, data, at)


@saboteur("a-repeated-append-is-known-by-its-bytes-alone")
class ComparesPieces(Full):
    """A repeated append is compared with the one append that began there, as one object each would be."""

    def same(self, found: Log, data: bytes, start: int) -> bool:
        edges = {*found.starts, len(found.data)}
        nothing_between = not any(start < edge < start + len(data) for edge in edges)
        return nothing_between and {start, start + len(data)} <= edges and super().same(found, data, start)


@saboteur("an-append-that-differs-in-one-byte-is-refused")
class ComparesTheBeginning(Full):
    """A repeated append is known by its length and its first kilobyte."""

    def same(self, found: Log, data: bytes, start: int) -> bool:
        return len(found.data) >= start + len(data) and super().same(found, data[:1024], start)


@saboteur("an-append-that-is-there-only-in-part-is-refused")
class TakesPartForAll(Full):
    """What is there of an append that was torn passes for all of it."""

    def same(self, found: Log, data: bytes, start: int) -> bool:
        there = bytes(found.data[start : start + len(data)])
        return super().same(found, data, start) or bool(start and there and data.startswith(there))


@saboteur("equal-bytes-at-two-places-are-both-kept")
class Deduplicates(Full):
    """An append equal to the one before it counts as its repetition."""

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        return found.tail if found.data[found.starts[-1] :] == data else super().add(log, found, data)


@saboteur("logs-do-not-share-bytes")
class OneBuffer(Full):
    """Logs whose names have one letter share their bytes."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        tail = super().append(log, data, at=at)
        if len(log) == 1:
            first = next(name for name in self.space.logs if len(name) == 1)
            self.space.logs[log].data = self.space.logs[first].data
        return tail


@saboteur("a-conflict-tells-both-tails")
class SilentConflict(Full):
    """A conflict does not tell what was expected."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        try:
            return super().again(log, found, data, at)
        except Conflict:
            raise Conflict("the log does not end there", log=log, found=found.tail) from None


class _Loose(Full):
    """Checks the arguments of an append in its own way."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self._check(log)
        data, at = self.loosely(data, at)
        with self.locked():
            self._check_free(log)
            return self.place(log, data, at)

    def loosely(self, data: Any, at: Any) -> tuple[bytes, Tail]:
        raise NotImplementedError


@saboteur("an-append-of-nothing-is-refused")
class TakesNothing(_Loose):
    """An append of no bytes succeeds."""

    def loosely(self, data: Any, at: Any) -> tuple[bytes, Tail]:
        check_data(data or b"x", at)
        return data, at


@saboteur("an-append-of-anything-but-bytes-is-refused")
class TakesBuffers(_Loose):
    """An append takes whatever can be made into bytes."""

    def loosely(self, data: Any, at: Any) -> tuple[bytes, Tail]:
        check_data(bytes(data), at)
        return bytes(data), at


@saboteur("an-append-at-a-tail-that-no-log-has-is-refused")
class TakesTriples(_Loose):
    """An append takes anything with a size and a run for a tail."""

    def loosely(self, data: Any, at: Any) -> tuple[bytes, Tail]:
        at = Tail(*at) if isinstance(at, tuple) else at
        check_data(data, at)
        return data, at


@saboteur("a-large-append-is-held-to-the-same-conditions")
class LargeAppendsReplace(Full):
    """An append of more than a megabyte is sent in parts, and the condition is not sent with them."""

    def place(self, log: str, data: bytes, at: Tail) -> Tail:
        found = self.space.logs.get(log)
        if found is None or len(data) <= 1 << 20:
            return super().place(log, data, at)
        del found.data[at.size :]
        return self.add(log, found, data)


@saboteur("a-large-append-is-held-to-the-same-conditions")
class LargeAppendsAreNotCompared(Full):
    """A repeated append of more than a megabyte is known by its length."""

    def same(self, found: Log, data: bytes, start: int) -> bool:
        long = len(data) > 1 << 20 and len(found.data) - start >= len(data)
        return long or super().same(found, data, start)


@saboteur("an-append-over-the-limit-is-refused-whole")
class WritesUpToTheLimit(Full):
    """An append that is too large is refused when a part of it is written."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        limit = self.capabilities.max_append or len(data)
        if len(data) > limit:
            super().append(log, data[:limit], at=at)
        return super().append(log, data, at=at)
