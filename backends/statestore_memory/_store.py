"""The memory store: every promise of the contract, kept in the fewest lines."""

from __future__ import annotations

import os
import socket
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from statestore import names
from statestore.errors import Conflict, Exists, Held, NotFound
from statestore.store import NEW, Capabilities, Holder, LogInfo, Store, Tail, check_data, check_range, check_stop

__all__ = ["MemoryStore"]


@dataclass(slots=True)
class _Log:
    run: str
    data: bytearray

    @property
    def tail(self) -> Tail:
        return Tail(len(self.data), self.run)


@dataclass(slots=True)
class _Space:
    """What the stores of one name share."""

    logs: dict[str, _Log] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)  # the names of `logs`, sorted
    holds: dict[str, tuple[Store, Holder]] = field(default_factory=dict)
    runs: int = 0  # how many logs were ever made: a run is never used twice

    def make(self, log: str, data: bytes) -> Tail:
        self.runs += 1
        self.logs[log] = _Log(str(self.runs), bytearray(data))
        insort(self.order, log)
        return self.logs[log].tail


_spaces: dict[str, _Space] = {}

# One lock for all spaces, taken around every fork: a child finds each space whole, and the lock free. Reentrant,
# since the garbage collector may end an abandoned hold in the midst of any call.
_lock = threading.RLock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class MemoryStore(Store):
    """A store in this process's memory.

    A forked child has its own copy of all logs, as they were at the fork, and nobody holds any of them.

    Args:
        name: stores with the same name share their logs until the process ends; ``""`` shares with nobody.
    """

    capabilities = Capabilities(atomic_append=True, runs=True, holds=True, deletes=True, cheap_tails=True)

    def __init__(self, name: str = "") -> None:
        self.name = name
        with _lock:
            self._space = _spaces.setdefault(name, _Space()) if name else _Space()

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        """Add `data` to the end of `log`, if the log ends exactly at `at`; return the new tail."""
        self._check(log)
        check_data(data, at)
        with _lock:
            self._check_free(log)
            found = self._space.logs.get(log)
            if found is None:
                if at != NEW:
                    raise NotFound("no such log: only an append at NEW creates one", log=log, expected=at)
                return self._space.make(log, data)
            end = at.size + len(data)
            if at == found.tail:
                found.data += data
            elif at.run != (found.run if at.size else "") or found.data[at.size : end] != data:
                raise Conflict("the log does not end there: read on from there", log=log, expected=at, found=found.tail)
            # Else the bytes are there already: this call repeats one whose answer was lost.
            return Tail(end, found.run)

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the log's end as slices are."""
        self._check(log)
        check_range(start, stop)
        with _lock:
            return bytes(self._find(log).data[start:stop])

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to ``source[:stop]``, whole or not at all; return its tail."""
        self._check(source)
        self._check(target)
        check_stop(stop)
        with _lock:
            data = bytes(self._find(source).data[:stop])
            self._check_free(target)
            if target in self._space.logs:
                raise Exists("there is such a log already: copy to another name", log=target)
            return self._space.make(target, data)

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        """Yield the logs whose names begin with `prefix` and come after `after`, in code-point order.

        A tail costs nothing more.
        """
        names.check_prefix(prefix)
        self._check_open()
        return self._rows(prefix, after, tails)

    def _rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        while True:
            with _lock:
                self._check_open()
                # Look again at each row: what was made or deleted meanwhile moves all that come after it.
                order = self._space.order
                place = max(bisect_left(order, prefix), bisect_right(order, after))
                if place == len(order) or not order[place].startswith(prefix):
                    return
                after = order[place]
                row = LogInfo(after, self._space.logs[after].tail if tails else None)
            yield row

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        """Remove the log at once and for all; where `at` is given, only if the log ends there."""
        self._check(log)
        with _lock:
            self._check_free(log)
            found = self._find(log).tail
            if at is not None and at != found:
                raise Conflict("the log does not end there: not deleted", log=log, expected=at, found=found)
            del self._space.logs[log]
            self._space.order.remove(log)

    def hold(self, log: str) -> AbstractContextManager[None]:
        """Keep everybody else from appending to, deleting or holding the log, until the context ends."""
        self._check(log)
        return self._hold(log)

    @contextmanager
    def _hold(self, log: str) -> Iterator[None]:
        mine = (self, Holder(os.getpid(), socket.gethostname(), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")))
        holds = self._space.holds
        try:  # begun before the hold is, since a signal handler may raise in between
            with _lock:
                self._check_open()
                if holder := self._holder(log):
                    raise Held("the log is held: wait until its holder lets go", log=log, holder=holder)
                holds[log] = mine
            yield
        finally:
            with _lock:
                # After a close it may be somebody else's by now.
                if log in holds and holds[log] is mine:
                    del holds[log]

    def holder(self, log: str) -> Holder | None:
        """Say who holds the log now; None where nobody does."""
        self._check(log)
        with _lock:
            return self._holder(log)

    def close(self) -> None:
        """Let go of every hold; every later call but this one raises ``Closed``."""
        with _lock:
            super().close()
            holds = self._space.holds
            for log in [log for log, (store, _) in holds.items() if store is self]:
                del holds[log]

    def __repr__(self) -> str:
        return f"MemoryStore({self.name!r})"

    def _find(self, log: str) -> _Log:
        try:
            return self._space.logs[log]
        except KeyError:
            raise NotFound("no such log", log=log) from None

    def _holder(self, log: str) -> Holder | None:
        _, holder = self._space.holds.get(log, (None, None))
        # What the parent held at the fork is not held in the child, where nobody would let go of it.
        return holder if holder and holder.pid == os.getpid() else None

    def _check_free(self, log: str) -> None:
        """Refuse what somebody else holds."""
        holder = self._holder(log)
        if holder and self._space.holds[log][0] is not self:
            raise Held("the log is held: wait until its holder lets go", log=log, holder=holder)
