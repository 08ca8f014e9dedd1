"""Stores that hold wrongly."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Any

from statestore.errors import Conflict, Held
from statestore.store import Holder, Store, Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Bare, Full, Log


@saboteur("a-held-log-is-refused-to-others")
class HoldsAreAdvice(Full):
    """A hold keeps out holds, and no append."""

    def _check_free(self, log: str) -> None:
        pass


@saboteur("a-held-log-is-refused-to-others")
class HoldBlindToOthers(Full):
    """A hold keeps out the store object that has it, and is unknown to all others."""

    def _holder(self, log: str) -> Holder | None:
        store, _ = self.space.holds.get(log, (None, None))
        return super()._holder(log) if store is self else None


@saboteur("a-held-log-is-refused-to-others")
class HeldLogsCanBeDeleted(Full):
    """A hold keeps out appends, and no deletion."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        with self.locked():
            held = self.space.holds.pop(log, None)
            try:
                super().delete(log, at=at)
            finally:
                if held:
                    self.space.holds[log] = held


@saboteur("the-holder-may-append")
class HoldsOfThreads(Full):
    """A hold belongs to a thread and not to the store object."""

    @contextmanager
    def _hold(self, log: str) -> Iterator[None]:
        with super()._hold(log):
            self.space.notes[log] = threading.get_ident()
            try:
                yield
            finally:
                del self.space.notes[log]

    def _check_free(self, log: str) -> None:
        super()._check_free(log)
        if self.space.notes.get(log, threading.get_ident()) != threading.get_ident():
            raise Held("the log is held", log=log)


@saboteur("a-second-hold-is-refused-to-the-holder-too")
class HoldsAreReentrant(Full):
    """A store object may hold twice what it holds."""

    @contextmanager
    def _hold(self, log: str) -> Iterator[None]:
        store, _ = self.space.holds.get(log, (None, None))
        with nullcontext() if store is self else super()._hold(log):
            yield


@saboteur("a-hold-is-let-go-at-the-end")
class HoldsLinger(Full):
    """Behind the end of a hold, only the same store object may hold again."""

    @contextmanager
    def _hold(self, log: str) -> Iterator[None]:
        if self.space.notes.get(log, self) is not self:
            raise Held("the log is held", log=log)
        with super()._hold(log):
            self.space.notes[log] = self
            yield


@saboteur("a-hold-is-let-go-on-an-error")
class HoldLostOnError(Full):
    """A hold is not let go when an error ends it."""

    @contextmanager
    def _hold(self, log: str) -> Iterator[None]:
        held = super()._hold(log)
        held.__enter__()
        self.space.notes["kept", id(held)] = held  # or the garbage collector would let go
        yield
        held.__exit__(None, None, None)


@saboteur("a-hold-outlasts-refused-calls")
class ConflictEndsTheHold(Full):
    """The holder's hold is lost at its first conflict."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        try:
            return super().again(log, found, data, at)
        except Conflict:
            self.space.holds.pop(log, None)
            raise


@saboteur("a-hold-is-let-go-when-the-store-is-closed")
class CloseKeepsHolds(Full):
    """Closing a store lets go of no hold."""

    def close(self) -> None:
        Store.close(self)


@saboteur("a-hold-is-let-go-when-the-store-is-closed")
class LateEndTakesAnothersHold(Full):
    """The end of a hold that is over takes the hold of whoever has it now."""

    @contextmanager
    def _hold(self, log: str) -> Iterator[None]:
        with super()._hold(log):
            try:
                yield
            finally:
                self.space.holds.pop(log, None)


@saboteur("a-hold-is-of-one-log")
class HoldsTheFolder(Full):
    """A hold is also of every log in the folder of its name."""

    def _check_free(self, log: str) -> None:
        while log:
            super()._check_free(log)
            log = log.rpartition("/")[0]


@saboteur("a-log-may-be-held-before-it-is-made")
class HoldsOnlyWhatIs(Full):
    """The hold of a log that is not there keeps nobody from making it."""

    def _check_free(self, log: str) -> None:
        if log in self.space.logs:
            super()._check_free(log)


@saboteur("a-log-may-be-held-before-it-is-made")
class HoldsNeedALog(Full):
    """A log that is not there cannot be held."""

    @contextmanager
    def _hold(self, log: str) -> Iterator[None]:
        self._find(log)
        with super()._hold(log):
            yield


@saboteur("a-hold-alone-makes-no-log")
class HoldsLeaveALog(Full):
    """A hold of a log that was never made leaves an empty one."""

    @contextmanager
    def _hold(self, log: str) -> Iterator[None]:
        with super()._hold(log):
            yield
        if log not in self.space.logs:
            self.space.make(log, b"")


@saboteur("a-copy-onto-a-held-name-is-refused")
class CopiesOntoHeldNames(Full):
    """A copy does not look whether its target is held."""

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        self._check(source)
        self._check(target)
        with self.locked():
            held = self.space.holds.pop(target, None)
            try:
                return super().copy(source, target, stop=stop)
            finally:
                if held:
                    self.space.holds[target] = held


@saboteur("a-copy-onto-a-held-name-is-refused")
class CopyNeedsAFreeSource(Full):
    """A log that somebody holds cannot be copied."""

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        self._check(source)
        self._check_free(source)
        return super().copy(source, target, stop=stop)


@saboteur("the-holder-is-told")
class HeldByNobody(Full):
    """Whoever is refused is not told who holds the log."""

    @contextmanager
    def _hold(self, log: str) -> Iterator[None]:
        if self._holder(log):
            raise Held("the log is held", log=log)
        with super()._hold(log):
            yield


@saboteur("a-hold-begins-when-it-is-entered")
class HoldsAtOnce(Full):
    """A hold begins with the call and not with its context."""

    def hold(self, log: str) -> AbstractContextManager[None]:
        held = super().hold(log)
        held.__enter__()
        return _Entered(held)


class _Entered(AbstractContextManager[None]):
    def __init__(self, held: Any) -> None:
        self.held = held

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.held.__exit__(kind, error, trace)


@saboteur("a-store-without-holds-refuses-them")
class HoldsOfNothing(Bare):
    """A store that cannot hold lets everybody hold."""

    def hold(self, log: str) -> AbstractContextManager[None]:
        self._check(log)
        return nullcontext()
