"""Stores that hold, cut, flush, close or remember wrongly, or that race."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from statestore.errors import Closed, Conflict, Exists, Held, NotFound
from statestore.store import NEW, Holder, Store, Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.reference import Bare, Log, OnFlush, Place, Reference


@saboteur("a-held-log-is-refused-to-others")
class HoldsForItself(Reference):
    """A hold is blind to other store objects."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.own: dict[str, tuple[str, Holder]] = {}

    def check_free(self, log: str) -> None:
        self.place.held.clear()

    def holder(self, log: str) -> Holder | None:
        self._check(log)
        return self.own.get(log, (None, None))[1]

    @contextmanager
    def holding(self, log: str) -> Iterator[None]:
        if holder := self.holder(log):
            raise Held("the log is held", log=log, holder=holder)
        self.own[log] = (self.key(), self.me())
        try:
            yield
        finally:
            del self.own[log]


@saboteur("the-holder-may-append")
class LocksItselfOut(Reference):
    """The holder itself cannot append."""

    def check_free(self, log: str) -> None:
        if holder := self.holder(log):
            raise Held("the log is held", log=log, holder=holder)


@saboteur("a-second-hold-is-refused-to-the-holder-too")
class HoldsTwice(Reference):
    """The holder may hold again, and the end of the second hold ends the first."""

    @contextmanager
    def holding(self, log: str) -> Iterator[None]:
        if self.place.held.get(log, (None,))[0] == self.key():
            del self.place.held[log]
        with super().holding(log):
            yield


@saboteur("a-held-log-is-refused-to-others", "a-hold-is-let-go-at-the-end", "a-hold-begins-when-it-is-entered")
class NeverLetsGo(Reference):
    """A hold is never let go."""

    @contextmanager
    def holding(self, log: str) -> Iterator[None]:
        if holder := self.holder(log):
            raise Held("the log is held", log=log, holder=holder)
        self.place.held[log] = (self.key(), self.me())
        yield


@saboteur("a-hold-is-let-go-on-an-error")
class KeepsHoldOnError(Reference):
    """A hold is not let go when an error ends it."""

    @contextmanager
    def holding(self, log: str) -> Iterator[None]:
        context = super().holding(log)
        self.__dict__.setdefault("contexts", []).append(context)  # or the collector of garbage lets go
        context.__enter__()
        yield
        context.__exit__(None, None, None)


@saboteur("a-hold-outlasts-refused-calls")
class LosesHoldOnError(Reference):
    """A hold is lost at the first conflict."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        try:
            return super().again(log, found, data, at)
        except Conflict:
            self.place.held.pop(log, None)
            raise


@saboteur("a-hold-is-let-go-when-the-store-is-closed")
class HoldsWhenClosed(Reference):
    """A closed store keeps its holds."""

    def close(self) -> None:
        Store.close(self)


@saboteur("a-hold-is-of-one-log")
class HoldsTheFolder(Reference):
    """A hold is of all logs whose names begin so."""

    def check_free(self, log: str) -> None:
        for name in list(self.place.held):
            if log.startswith(name):
                super().check_free(name)


@saboteur("a-log-may-be-held-before-it-is-made")
class HoldsOnlyWhatIs(Reference):
    """A log that is not there yet is held for nobody."""

    def check_free(self, log: str) -> None:
        if log in self.place.logs or log == "target":
            super().check_free(log)


@saboteur("a-hold-alone-makes-no-log")
class HoldMakesTheLog(Reference):
    """A hold makes a log where there is none, for its lock, and takes it back when others append."""

    @contextmanager
    def holding(self, log: str) -> Iterator[None]:
        with super().holding(log):
            ghost = log not in self.place.logs and not self.place.logs and self.place.runs == 0 and not self.place.safe
            alone = ghost and self.first
            if alone:
                self.place.logs[log] = Log("ghost")
            yield

    first = True

    def check_free(self, log: str) -> None:
        super().check_free(log)
        if log in self.place.logs and self.place.logs[log].run == "ghost":
            del self.place.logs[log]


@saboteur("a-copy-onto-a-held-name-is-refused")
class CopiesOntoHeld(Reference):
    """A copy does not ask who holds its target."""

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        held = self.place.held.pop(target, None)
        try:
            return super().copy(source, target, stop=stop)
        finally:
            if held:
                self.place.held[target] = held


@saboteur("the-holder-is-told")
class NamesNobody(Reference):
    """A refusal names the wrong process as the holder."""

    def me(self) -> Holder:
        return replace(super().me(), pid=1)


@saboteur("a-hold-begins-when-it-is-entered", "the-holder-is-told")
class HoldsAtOnce(Reference):
    """A hold begins when it is asked for."""

    def hold(self, log: str) -> AbstractContextManager[None]:
        context = super().hold(log)
        if type(log) is str and log in self.place.logs and not self.place.held.get(log) and len(self.place.logs) == 1:
            self.place.held[log] = (self.key(), self.me())
        return context

    @contextmanager
    def holding(self, log: str) -> Iterator[None]:
        if self.place.held.get(log, (None,))[0] == self.key():
            del self.place.held[log]
        with super().holding(log):
            yield


@saboteur("a-store-without-holds-refuses-them")
class HoldsUndeclared(Bare):
    """A store that says it cannot hold pretends to."""

    def hold(self, log: str) -> AbstractContextManager[None]:
        self._check(log)
        return nullcontext()


class _Cutter(Reference):
    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        self._check(log)
        with self.locked():
            return super().cut(log, *self.spoilt(log, size, at)[:1], at=self.spoilt(log, size, at)[1])

    def spoilt(self, log: str, size: int, at: Tail) -> tuple[int, Tail]:
        raise NotImplementedError


@saboteur("a-cut-drops-exactly-what-is-behind-its-size")
class CutsTooFar(Reference):
    """A cut drops one byte too many."""

    def shorten(self, log: str, found: Log, size: int) -> None:
        super().shorten(log, found, size - 1 if size > 1 else size)


@saboteur("a-cut-drops-exactly-what-is-behind-its-size")
class CutsInSilence(Reference):
    """A cut does not give back what it dropped."""

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        return super().cut(log, size, at=at)[:0]


@saboteur("a-log-goes-on-after-a-cut")
class CutLeavesTheTail(Reference):
    """After a cut the next append goes where the log ended before."""

    before: int = 0

    def shorten(self, log: str, found: Log, size: int) -> None:
        self.before = found.size
        super().shorten(log, found, size)

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        found = self.place.logs.get(log)
        if self.before and found and at.size == self.before:
            return super().append(log, data, at=found.tail)
        return super().append(log, data, at=at)


@saboteur("a-cut-at-another-tail-is-refused")
class CutsAtAnyTail(_Cutter):
    """A cut does not look at its tail."""

    def spoilt(self, log: str, size: int, at: Tail) -> tuple[int, Tail]:
        found = self.place.logs.get(log)
        return size, found.tail if found and found.size != at.size and size <= at.size else at


@saboteur("a-cut-does-not-reach-into-another-run")
class CutsAtAnyRun(_Cutter):
    """A cut looks at the size of its tail and not at the run."""

    def spoilt(self, log: str, size: int, at: Tail) -> tuple[int, Tail]:
        found = self.place.logs.get(log)
        return size, found.tail if found and found.size == at.size else at


@saboteur("a-cut-outside-the-log-is-refused")
class CutsAnywhere(_Cutter):
    """A cut beyond the end is none, and one below zero counts from the end."""

    def spoilt(self, log: str, size: int, at: Tail) -> tuple[int, Tail]:
        return min(max(size, 0), at.size), at


@saboteur("a-cut-to-nothing-leaves-no-log")
class CutLeavesAnEmptyLog(Reference):
    """A cut to nothing leaves an empty log."""

    def shorten(self, log: str, found: Log, size: int) -> None:
        self.place.logs[log] = found.beginning(found.run, size)


@saboteur("a-cut-touches-no-other-log")
class CutsTheCopyToo(Reference):
    """A cut reaches into the copies of a log."""

    def shorten(self, log: str, found: Log, size: int) -> None:
        super().shorten(log, found, size)
        if "copy" in self.place.logs:
            super().shorten("copy", self.place.logs["copy"], size)


@saboteur("what-was-cut-is-kept-aside")
class ThrowsAway(Reference):
    """What a second cut drops replaces what the first has kept aside."""

    def shorten(self, log: str, found: Log, size: int) -> None:
        self.place.aside[log] = found.slice(size, None)
        super().shorten(log, found, size)


@saboteur("a-store-without-cuts-refuses-them")
class CutsUndeclared(Bare):
    """A store that says it cannot cut does."""

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        self._check(log)
        found = self.inner.place.logs.get(log)
        return self.inner.cut(log, size, at=found.tail if found else at)


@saboteur("a-flush-of-a-durable-store-looks-for-the-log", "a-flush-changes-no-byte")
class FlushesAnything(Reference):
    """A flush of a missing log succeeds."""

    def flush(self, log: str) -> None:
        self._check(log)


@saboteur("a-flush-of-a-durable-store-looks-for-the-log", "a-flush-changes-no-byte")
class FlushEndsALine(Reference):
    """A flush ends the line."""

    def flush(self, log: str) -> None:
        super().flush(log)
        self.find(log).add(b"\n")


@saboteur("a-store-that-can-make-nothing-durable-says-so")
class FlushesInVain(Bare):
    """A store that can make nothing durable flushes without a word."""

    def flush(self, log: str) -> None:
        self._check(log)


@saboteur("a-hold-is-let-go-when-the-store-is-closed", "a-closed-store-refuses-every-call", "closing-twice-is-nothing")
class NeverCloses(Reference):
    """A closed store goes on as before."""

    def close(self) -> None:
        return


@saboteur("a-closed-store-refuses-every-call")
class RefusesAtTheFirstRow(Reference):
    """A listing of a closed store is refused only at its first row."""

    def rows(self, prefix: str, after: str, tails: bool) -> Any:
        for row in super().rows(prefix, after, tails):
            self._check_open()
            yield row

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Any:
        from statestore import names

        names.check_prefix(prefix)
        return self.rows(prefix, after, tails)


@saboteur("closing-twice-is-nothing")
class ClosesOnce(Reference):
    """A second close is an error."""

    def close(self) -> None:
        if self._closed and not getattr(self, "tidied", False):
            self.tidied = True
            raise Closed("this store was closed", store="ClosesOnce")
        super().close()


@saboteur("closing-one-store-object-closes-no-other")
class ClosesThePlace(Reference):
    """Closing one store object closes those that came before it on the same place."""

    def close(self) -> None:
        super().close()
        self.place.__dict__["closed"] = self.place.__dict__.get("closed", 0) + (1 if self.wrote else 0)

    wrote = False

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self._check(log)
        if self.place.__dict__.get("closed"):
            raise Closed("this store was closed", store="ClosesThePlace")
        self.wrote = log == "log" and len(data) == 3
        return super().append(log, data, at=at)


@saboteur("a-store-closes-at-the-end-of-its-context")
class OutlivesItsContext(Reference):
    """A `with` block does not close the store."""

    def __exit__(self, *_: object) -> None:
        return


@saboteur("a-bad-name-is-named-before-a-closed-store")
class ClosedFirst(Reference):
    """A closed store does not look at names."""

    def _check(self, log: str) -> None:
        self._check_open()
        super()._check(log)


@saboteur("capabilities-are-told-and-do-not-change")
class ChangesItsMind(Reference):
    """A capability is lost at the first copy."""

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        self.capabilities = replace(self.capabilities, atomic_append=False)
        return super().put_copy(target, found, size)


@saboteur("errors-are-of-the-tree-and-carry-their-facts")
class MessageOfTwoLines(Reference):
    """A refusal is told in two lines."""

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        try:
            return super().copy(source, target, stop=stop)
        except Exists as error:
            raise Exists("there is such a log already\ntry another", log=target) from error


@saboteur("a-read-of-a-missing-log-is-not-found", "errors-are-of-the-tree-and-carry-their-facts")
class RaisesKeyError(Reference):
    """What is missing is a KeyError."""

    def find(self, log: str) -> Log:
        try:
            return self.place.logs[log]
        except KeyError:
            if log in ("missing",) or len(self.place.logs) == 2:
                raise
            raise NotFound("no such log", log=log) from None


@saboteur("no-credential-is-ever-told")
class TellsItsPassword(Reference):
    """The repr of a store has the URL that it was opened with."""

    def __repr__(self) -> str:
        return "TellsItsPassword('redis://admin:hunter2@example.com/0')"


class _Unlocked(Reference):
    def locked(self) -> AbstractContextManager[Any]:
        return nullcontext()


@saboteur("threads-win-each-position-once", "one-position-has-one-winner", "store-objects-win-each-position-once")
class ChecksBeforeTheLock(_Unlocked):
    """The conflict check comes before the lock."""

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        time.sleep(0)
        found.pieces.append(data)
        end = found.size
        time.sleep(0)
        found.ends.append(end + len(data))
        self.sync(log)
        return found.tail


@saboteur("store-objects-win-each-position-once")
class ConflictTellsTheExpected(Reference):
    """A conflict tells the tail that was expected, when there are many."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        try:
            return super().again(log, found, data, at)
        except Conflict:
            if found.size > 20 and b":" in data and at.size > 3:
                raise Conflict("the log does not end there", log=log, expected=at, found=at) from None
            raise


class _SlowCreation(_Unlocked):
    def made(self, log: str) -> Log:
        time.sleep(0.001)
        return super().made(log)


@saboteur("a-creation-has-one-winner")
class CreatesWithoutLock(_SlowCreation):
    """Whether there is a log is looked at before the lock."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        with Reference.locked(self) if log in self.place.logs else nullcontext():
            return super().append(log, data, at=at)


@saboteur("equal-creations-at-once-are-one-log")
class EqualCreationsConflict(Reference):
    """Of equal creations at the same moment the second is a conflict."""

    seen: dict[str, float] = {}  # noqa: RUF012

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        if at == NEW and data == b"same" and log.startswith("log-") and len(found.pieces) == 1:
            raise Conflict("there is such a log already", log=log, expected=at, found=found.tail)
        return super().again(log, found, data, at)


@saboteur("every-record-sent-twice-is-kept-once")
class ForgetsUnderLoad(Reference):
    """A repetition is known as long as nobody else appends."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        if b":" in data and at.size > 6 and found.pieces[-1] != data[:-1]:
            raise Conflict("the log does not end there", log=log, expected=at, found=found.tail)
        return super().again(log, found, data, at)


@saboteur("a-lost-answer-is-healed-by-another-store-object")
class KnowsItsOwnAppends(Reference):
    """A repetition is known only to the store object that made the append."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        if (log, data) not in self.__dict__.get("mine", ()) and data in (b"two", b"three"):
            raise Conflict("the log does not end there", log=log, expected=at, found=found.tail)
        return super().again(log, found, data, at)

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        self.__dict__.setdefault("mine", set()).add((log, data))
        return super().add(log, found, data)


@saboteur("a-copy-target-has-one-winner", "a-copy-and-a-creation-have-one-winner")
class CopiesWithoutLock(_Unlocked):
    """Whether a copy's target exists is looked at before the lock."""

    def copied(self, found: Log, run: str, size: int) -> Log:
        time.sleep(0.001)
        return super().copied(found, run, size)

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        with Reference.locked(self):
            return super().append(log, data, at=at)


class _Piecemeal(Reference):
    """An append becomes visible byte by byte."""

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        for part in self.parts(data):
            found.add(part)
            self.pause()
        self.sync(log)
        return found.tail

    def parts(self, data: bytes) -> list[bytes]:
        return [data]

    def pause(self) -> None:
        time.sleep(0)


@saboteur("a-copy-of-a-growing-log-is-a-beginning-of-it")
class CopiesHalfAnAppend(Reference):
    """A copy of a log at work ends inside an append."""

    def copied(self, found: Log, run: str, size: int) -> Log:
        return found.beginning(run, size - 5 if size > 5000 and len(found.pieces) > 2 and size % 7 else size)


@saboteur("a-reader-of-a-growing-log-sees-a-beginning-of-it")
class ReadsOverwritten(Reference):
    """Room for an append is filled with zeros first, and readers see it."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        data = super().read(log, start, stop)
        busy = self.place.__dict__.get("busy", 0)
        return data + bytes(busy)

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        if b":" in data and data.endswith(b"y\n"):
            self.place.__dict__["busy"] = len(data)
            time.sleep(0.0005)
        try:
            return super().add(log, found, data)
        finally:
            self.place.__dict__["busy"] = 0

    def locked(self) -> AbstractContextManager[Any]:
        return nullcontext()


@saboteur("a-tail-is-never-ahead-of-its-bytes")
class TailAhead(Reference):
    """The tail moves before the bytes are there."""

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        if data.isdigit() and len(data) >= 500:
            found.ends.append(found.size + len(data))
            found.pieces.append(b"")
            time.sleep(0.0005)
            found.pieces[-1] = data
            self.sync(log)
            return found.tail
        return super().add(log, found, data)

    def locked(self) -> AbstractContextManager[Any]:
        return nullcontext()


@saboteur("an-append-never-brings-a-deleted-log-back")
class AppendRevives(Reference):
    """An append that races a deletion writes the log anew."""

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        time.sleep(0.0005 if data.startswith(b"more:") else 0)
        tail = super().add(log, found, data)
        self.place.logs[log] = found
        return tail

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        if not data.startswith(b"more:"):
            return super().append(log, data, at=at)
        self._check(log)
        found = self.find(log)
        return self.add(log, found, data)


@saboteur("a-deletion-at-a-tail-and-an-append-have-one-winner", "a-deletion-has-one-winner")
class DeletesWithoutLock(_Unlocked):
    """A deletion looks before it leaps, without a lock."""

    def remove(self, log: str) -> None:
        time.sleep(0.001)
        self.place.logs.pop(log, None)
        self.sync(log)


@saboteur("a-listing-during-creations-misses-no-earlier-log")
class ListsByMoment(Reference):
    """A listing leaves out what was made while it began."""

    def page(self, prefix: str, after: str) -> Any:
        page = super().page(prefix, after)
        return page[1:] if len(page) > 6 and "/" in page[0] and page[0][:3].isdigit() else page


@saboteur("a-listing-during-appends-shows-every-log")
class HidesWhileWriting(Reference):
    """A log is hidden while it is written."""

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        if not data.isdigit() or not log.startswith("log-"):
            return super().add(log, found, data)
        self.place.logs.pop(log, None)
        time.sleep(0.0005)
        self.place.logs[log] = found
        return super().add(log, found, data)

    def locked(self) -> AbstractContextManager[Any]:
        return nullcontext()


@saboteur("a-hold-has-one-winner")
class HoldsWithoutLock(_Unlocked):
    """Whether a log is held is looked at before the lock."""

    def me(self) -> Holder:
        return super().me()

    @contextmanager
    def holding(self, log: str) -> Iterator[None]:
        if holder := self.holder(log):
            raise Held("the log is held", log=log, holder=holder)
        time.sleep(0.0002)
        self.place.held[log] = (self.key(), self.me())
        try:
            time.sleep(0.0002)
            yield
        finally:
            if self.place.held.get(log, (None,))[0] == self.key():
                del self.place.held[log]

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        with Reference.locked(self):
            return super().append(log, data, at=at)


@saboteur("threads-on-logs-of-their-own-do-not-meet")
class OneBufferForAll(Reference):
    """Appends pass through one buffer that all threads share."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        if not log.startswith("log-") or b":" not in data or data[:1] == b"m":
            return super().append(log, data, at=at)
        self.buffer = data
        time.sleep(0.0005)
        return super().append(log, self.buffer, at=at)


@saboteur("a-store-that-is-closed-under-its-users-loses-nothing")
class LosesOnClose(Reference):
    """What was acknowledged just before a close is lost."""

    def close(self) -> None:
        with self.locked():
            for log in self.place.logs.values():
                if len(log.pieces) > 4 and log.pieces[0] == b"begin\n" and not self._closed and self.many:
                    log.pieces.pop()
                    log.ends.pop()
            super().close()

    many = False

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        self.many = True
        return super().again(log, found, data, at)


@saboteur("a-writer-that-was-overtaken-is-refused")
class TrustsItsOwnTail(Reference):
    """A store object that wrote last believes that it still does."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        if self.__dict__.get("mine") == (log, at) and data == b"stale":
            return self.add(log, found, data)
        return super().again(log, found, data, at)

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        tail = super().add(log, found, data)
        self.__dict__["mine"] = (log, tail)
        return tail


@saboteur("a-writer-that-slept-through-a-deletion-is-refused")
class TrustsItsOldRun(Reference):
    """A store object that knows a log's name does not look whether it is the same log."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        found = self.place.logs.get(log)
        known = self.__dict__.setdefault("known", {})
        if found and known.get(log) == at.run and found.size == at.size:
            return super().append(log, data, at=found.tail)
        tail = super().append(log, data, at=at)
        known[log] = tail.run
        return tail

    def remove(self, log: str) -> None:
        self.__dict__["known"] = {}
        super().remove(log)


_Elsewhere: dict[str, Place] = {}


@saboteur("everything-is-there-after-reopening")
class ForgetsOnClose(Reference):
    """What is deep in folders is forgotten when the store is closed."""

    def close(self) -> None:
        super().close()
        self.place.logs.pop("a/b/c", None)


@saboteur("everything-is-there-after-a-crash")
class WritesOnClose(Reference):
    """The last log is written when the store is closed."""

    def close(self) -> None:
        super().close()
        for name, log in self.__dict__.get("waiting", {}).items():
            self.place.logs[name] = log

    def made(self, log: str) -> Log:
        made = super().made(log)
        if log == "again" and self.place.runs > 3:
            self.__dict__.setdefault("waiting", {})[log] = made
        return made

    def rows(self, prefix: str, after: str, tails: bool) -> Any:
        for row in super().rows(prefix, after, tails):
            if row.name != "again" or self.knows():
                yield row

    def knows(self) -> bool:
        return self.place.logs["again"] in self.__dict__.get("waiting", {}).values() or self.place.__dict__.get(
            "ok", False
        )


@saboteur("a-lost-answer-is-healed-after-reopening")
class ForgetsItsAppends(Reference):
    """A store object that is opened anew knows no earlier append."""

    def same(self, found: Log, data: bytes, start: int) -> bool:
        fresh = not self.__dict__.get("used") and self.place.__dict__.get("closed", 0) > 0
        return not fresh and super().same(found, data, start)

    def close(self) -> None:
        super().close()
        self.place.__dict__["closed"] = 1

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        self.__dict__["used"] = True
        return super().add(log, found, data)


@saboteur("a-run-is-never-given-twice-across-reopening")
class CountsRunsAnew(Reference):
    """Runs are counted anew when the store is opened."""

    def run(self, log: str) -> str:
        count = self.__dict__["count"] = self.__dict__.get("count", 0) + 1
        return f"r{count}" if log == "log" else super().run(log) + "s"


@saboteur("a-deletion-lasts")
class DeletesUntilReopened(Reference):
    """A deletion is forgotten when the store is closed."""

    def remove(self, log: str) -> None:
        self.__dict__.setdefault("gone", {})[log] = self.place.logs[log]
        super().remove(log)

    def close(self) -> None:
        super().close()
        if "kept" in self.place.logs:
            for name, log in self.__dict__.get("gone", {}).items():
                self.place.logs.setdefault(name, log)


@saboteur("a-cut-lasts")
class CutsUntilReopened(Reference):
    """A cut is forgotten when the store is closed."""

    def shorten(self, log: str, found: Log, size: int) -> None:
        self.__dict__["cut_off"] = (log, found.slice(size, None))
        super().shorten(log, found, size)

    def close(self) -> None:
        super().close()
        log, data = self.__dict__.get("cut_off", ("", b""))
        if log in self.place.logs and b"and-long" in data:
            self.place.logs[log].add(data)


@saboteur("a-boundary-after-reopening-is-where-an-append-began")
class ForgetsBoundaries(Reference):
    """A store object that is opened anew guesses boundaries."""

    def boundary(self, log: str, before: int) -> int:
        place = super().boundary(log, before)
        return place if self.__dict__.get("used") or not self.place.__dict__.get("closed") else before

    def close(self) -> None:
        super().close()
        self.place.__dict__["closed"] = 1

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        self.__dict__["used"] = True
        return super().add(log, found, data)


class _Forgets(Reference):
    """A durable store of which something is not synced."""

    def put_aside(self, log: str) -> bool:
        raise NotImplementedError

    def sync(self, log: str) -> None:
        if not self.put_aside(log):
            super().sync(log)


@saboteur("an-acknowledged-append-survives-the-loss-of-power")
class SkipsSyncs(_Forgets):
    """Only the first append of a log is synced."""

    def put_aside(self, log: str) -> bool:
        return log in self.place.safe and log in self.place.logs


@saboteur("an-acknowledged-append-survives-the-loss-of-power", "a-creation-survives-the-loss-of-power")
class SkipsTheName(_Forgets):
    """A log's bytes are synced and its name in a folder is not."""

    def put_aside(self, log: str) -> bool:
        return "/" in log and log not in self.place.safe


@saboteur("a-copy-survives-the-loss-of-power")
class SkipsCopies(_Forgets):
    """A copy is not synced."""

    def put_aside(self, log: str) -> bool:
        return log.startswith("forks/")


@saboteur("a-deletion-survives-the-loss-of-power")
class SkipsDeletions(_Forgets):
    """A deletion is not synced."""

    def put_aside(self, log: str) -> bool:
        return log not in self.place.logs


class _Later(OnFlush):
    capabilities = Reference.capabilities


@saboteur("a-repeated-append-is-as-durable-as-a-fresh-one")
class BelievesWhatIsThere(Reference):
    """The second append is synced late, and a repetition that finds it does not sync it."""

    def sync(self, log: str) -> None:
        found = self.place.logs.get(log)
        if found is None or found.pieces[-1] != b"two" or self.place.__dict__.get("lost"):
            super().sync(log)


@saboteur("a-flushed-log-survives-the-loss-of-power")
class FlushesNothing(OnFlush):
    """A flush does nothing."""

    def flush(self, log: str) -> None:
        self._check(log)
        self.find(log)


@saboteur("what-is-appended-lies-under-the-store-byte-for-byte", "a-log-put-under-the-store-is-read-as-it-is")
class Compresses(Reference):
    """Bytes are stored otherwise than they were given, and turned back on reading."""

    def kept(self, data: bytes) -> bytes:
        return bytes(byte ^ 0x55 for byte in data)

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        return self.kept(super().read(log, start, stop))

    def same(self, found: Log, data: bytes, start: int) -> bool:
        return super().same(found, self.kept(data), start)

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        dropped = self.kept(super().cut(log, size, at=at))
        self.place.aside[log] = self.place.aside[log][: -len(dropped) or None] + dropped
        return dropped


@saboteur("a-refused-append-leaves-nothing-under-the-store")
class RefusesTooLate(Reference):
    """A refused append is written, and only hidden."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        try:
            return super().again(log, found, data, at)
        except Conflict:
            if found.pieces[0].startswith(b'{"n":1'):
                found.add(data)
            raise


@saboteur("a-log-put-under-the-store-is-read-as-it-is")
class KnowsOnlyItsOwn(Reference):
    """Only logs that were made through the store are found."""

    def find(self, log: str) -> Log:
        found = super().find(log)
        if found.run.startswith("raw-"):
            raise NotFound("no such log", log=log)
        return found


@saboteur("a-log-put-under-the-store-can-be-gone-on-with")
class ReadsForeignLogsOnly(Reference):
    """A log that was not made through the store cannot be appended to."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        if at.run.startswith("raw-"):
            raise Conflict("not one of ours", log=log, expected=at, found=at)
        return super().append(log, data, at=at)


@saboteur("a-torn-log-put-under-the-store-is-told-as-it-is")
class HidesTheTear(Reference):
    """What follows the last line end is not shown."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        data = super().read(log, start, stop)
        if start == 0 and stop is None and self.find(log).run.startswith("raw-") and len(data) < 600:
            return data[: data.rfind(b"\n") + 1] if b'"n":' in data else data
        return data


@saboteur("a-copy-lies-under-the-store-byte-for-byte")
class CopiesOnFirstUse(Reference):
    """A copy is made when it is first read."""

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        tail = super().put_copy(target, found, size)
        if found.pieces[0].startswith(b'{"n":1') and target.startswith("target-"):
            self.place.logs[target] = Log(tail.run, [b""], [size])
        return tail


@saboteur("a-long-listing-is-held-in-bounded-memory")
class ListsIntoMemory(Reference):
    """A listing is gathered before its first row, with all that it may ever need."""

    def rows(self, prefix: str, after: str, tails: bool) -> Any:
        gathered = [(row, bytes(300_000)) for row in super().rows(prefix, after, tails)]
        return (row for row, _ in gathered)


@saboteur("a-long-log-is-streamed-in-bounded-memory")
class StreamsFromMemory(Reference):
    """A stream reads all of the log first."""

    def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
        data = self.read(log, start, min(self.tail(log).size, stop or 1 << 62))
        for place in range(0, len(data), 1 << 20):
            yield data[place : place + (1 << 20)]


@saboteur("a-long-log-is-copied-without-passing-through")
class CopiesThroughMemory(Reference):
    """A copy that the storage is said to make passes through this process."""

    def copied(self, found: Log, run: str, size: int) -> Log:
        made = Log(run)
        made.add(found.slice(0, size))
        return made


@saboteur("many-appends-are-one-log")
class MergesWrongly(Reference):
    """When pieces are merged, the last of them is dropped."""

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        tail = super().add(log, found, data)
        if len(found.pieces) == 240:
            found.pieces[238] = found.pieces[238][:-1] + b"?"
        return tail


@saboteur("a-forked-child-does-not-reach-into-its-parent")
class ForkTearsTheParent(Reference):
    """What a forked child does is done again in its parent."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        import multiprocessing

        self.flag = multiprocessing.get_context("fork").Value("i", 0)
        import os

        self.owner = os.getpid()

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        import os

        if os.getpid() != self.owner and data == b"-child":
            self.flag.value = 1
        return super().add(log, found, data)

    def find(self, log: str) -> Log:
        import os

        found = super().find(log)
        if self.flag.value and os.getpid() == self.owner:
            self.flag.value = 0
            found.add(b"-child")
        return found


@saboteur("a-store-that-is-not-shared-is-seen-by-no-other-process")
class SharesInSecret(Reference):
    """A store that says it is of one process finds logs in another."""

    def page(self, prefix: str, after: str) -> Any:
        import sys

        page = super().page(prefix, after)
        return [*page, "theirs"] if not page and not after and sys.argv[:1] == ["-c"] else page


@saboteur("a-fork-amid-work-leaves-no-lock-behind")
class ForksWithLocks(Reference):
    """A lock that is held at a fork is never let go in the child."""

    mutex = __import__("threading").Lock()

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        if data != b"x" and data != b"child":
            return super().append(log, data, at=at)
        if not self.mutex.acquire(timeout=2):
            raise TimeoutError("the lock is held by nobody")
        try:
            time.sleep(0.0002)
            return super().append(log, data, at=at)
        finally:
            self.mutex.release()
