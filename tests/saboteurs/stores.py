"""Correct stores to be spoilt: the memory store in small steps, with all that it cannot do otherwise, or with nothing.

A saboteur overrides one step. `Full` has every capability that a store without files can have; `OnFlush` is durable
only on demand; `Bare` can do the four calls and nothing else.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from statestore.conformance import Harness
from statestore.errors import Conflict, Exists, NotFound, NotSupported, Unavailable
from statestore.store import NEW, Capabilities, LogInfo, Sidecar, Store, Tail, check_data, check_range, check_stop
from statestore_memory import MemoryStore
from statestore_memory._store import _lock, _Log, _Space

PAGE = 100
ROOM = 1000  # bytes that go onto a full storage


@dataclass(slots=True)
class Log(_Log):
    starts: list[int] = field(default_factory=lambda: [0])  # where its appends began
    foreign: bool = False  # it was put under the store
    torn: bytes = b""  # what lies behind it in the storage and is never shown


@dataclass(slots=True)
class Space(_Space):
    safe: dict[str, tuple[Log, int]] = field(default_factory=dict)  # what the loss of power leaves
    aside: dict[str, bytes] = field(default_factory=dict)
    requests: int = 0
    full: bool = False
    beside: dict[str, bytearray] = field(default_factory=dict)
    notes: dict[Any, Any] = field(default_factory=dict)  # what a saboteur keeps beside the logs

    def make(self, log: str, data: bytes, run: str = "") -> Tail:
        self.runs += 1
        if log not in self.logs:
            insort(self.order, log)
        self.logs[log] = Log(run or f"r{self.runs}", bytearray(data))
        return self.logs[log].tail

    def lose_power(self) -> None:
        self.logs = {}
        for name, (log, size) in self.safe.items():
            starts = [start for start in log.starts if start < size]
            self.logs[name] = Log(log.run, log.data[:size], starts, log.foreign)
        self.order = sorted(self.logs)
        self.safe = {name: (log, len(log.data)) for name, log in self.logs.items()}
        self.holds.clear()


@dataclass
class Beside:
    space: Space
    log: str

    def read(self, size: int) -> bytes:
        data = self.space.beside.get(self.log, b"")
        return bytes(data[max(len(data) - size, 0) :])

    def append(self, data: bytes) -> None:
        self.space.beside.setdefault(self.log, bytearray()).extend(data)

    def replace(self, data: bytes) -> None:
        self.space.beside[self.log] = bytearray(data)


class Full(MemoryStore):
    capabilities = replace(
        MemoryStore.capabilities,
        durable=True,
        flushes=True,
        cuts=True,
        boundaries=True,
        sidecars=True,
        max_append=4 << 20,
    )

    def __init__(self, space: Space) -> None:
        super().__init__()
        self.space: Any = space
        self._space = space

    def locked(self) -> AbstractContextManager[Any]:
        return _lock

    # Appending.

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self._check(log)
        check_data(data, at)
        self.check_size(data)
        with self.locked():
            self._check_free(log)
            return self.place(log, data, at)

    def check_size(self, data: bytes) -> None:
        if len(data) > (self.capabilities.max_append or len(data)):
            raise NotSupported("too large for one append: split it", capability="max_append", size=len(data))

    def place(self, log: str, data: bytes, at: Tail) -> Tail:
        found = self.space.logs.get(log)
        if found is None:
            if at != NEW:
                raise NotFound("no such log", log=log, expected=at)
            return self.create(log, data)
        if at == found.tail:
            return self.add(log, found, data)
        return self.again(log, found, data, at)

    def create(self, log: str, data: bytes) -> Tail:
        self.space.make(log, self.kept(self.stored(data)), self.run(log))
        self.sync(log)
        return self.space.logs[log].tail

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        kept = self.kept(self.stored(data))
        found.starts.append(len(found.data))
        found.data += kept
        self.sync(log)
        return found.tail

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        if (at.size and at.run != found.run) or not self.same(found, data, at.size):
            raise Conflict("the log does not end there", log=log, expected=at, found=found.tail)
        self.sync(log)
        return Tail(at.size + len(data), found.run)

    def same(self, found: Log, data: bytes, start: int) -> bool:
        return found.data[start : start + len(data)] == data

    def stored(self, data: bytes) -> bytes:
        if self.space.full and len(data) > ROOM:
            raise Unavailable("there is no room: free some", retry=False, size=len(data))
        return data

    def kept(self, data: bytes) -> bytes:
        return data

    def run(self, log: str) -> str:
        return f"r{self.space.runs + 1}"

    def sync(self, log: str) -> None:
        found = self.space.logs.get(log)
        if found is None:
            self.space.safe.pop(log, None)
        else:
            self.space.safe[log] = (found, len(found.data))

    # Everything else.

    def _find(self, log: str) -> Any:
        return super()._find(log)

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        self._check(source)
        self._check(target)
        check_stop(stop)
        with self.locked():
            found = self._find(source)
            self._check_free(target)
            if target in self.space.logs:
                raise Exists("there is such a log already", log=target)
            return self.put_copy(target, found, len(found.data) if stop is None else min(stop, len(found.data)))

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        self.space.make(target, self.copied(bytes(found.data), size), self.run(target))
        self.space.logs[target].starts = [start for start in found.starts if start < size]
        self.sync(target)
        return self.space.logs[target].tail

    def copied(self, data: bytes, size: int) -> bytes:
        return data[:size]

    def _rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        while True:
            with self.locked():
                self._check_open()
                self.space.requests += 1
                rows = [self.row(name, tails) for name in self.page(prefix, after)]
            if not rows:
                return
            yield from rows
            after = rows[-1].name

    def page(self, prefix: str, after: str) -> list[str]:
        order = self.space.order
        behind = (order[place] for place in range(bisect_right(order, after), len(order)))
        return list(islice((name for name in behind if self.matches(name, prefix)), PAGE))

    def matches(self, name: str, prefix: str) -> bool:
        return name.startswith(prefix)

    def row(self, name: str, tails: bool) -> LogInfo:
        return LogInfo(name, self.space.logs[name].tail if tails else None)

    def tail(self, log: str) -> Tail:
        self._check(log)
        with self.locked():
            tail: Tail = self._find(log).tail
            return tail

    def boundary(self, log: str, before: int) -> int:
        self._check(log)
        check_range(before, None)
        with self.locked():
            starts = self._find(log).starts
            return int(starts[bisect_right(starts, before) - 1])

    def sidecar(self, log: str) -> Sidecar | None:
        self._check(log)
        return Beside(self.space, log)

    def drop_sidecar(self, log: str) -> None:
        self.space.beside.pop(log, None)

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        with self.locked():
            super().delete(log, at=at)
            self.drop_sidecar(log)
            self.sync(log)

    def flush(self, log: str) -> None:
        self._check(log)
        with self.locked():
            self._find(log)
            self.sync(log)

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        self._check(log)
        if not 0 <= size <= at.size:
            raise ValueError(f"a log that ends at {at} cannot be cut to {size}")
        with self.locked():
            self._check_free(log)
            found = self._find(log)
            if at != found.tail:
                raise Conflict("the log does not end there", log=log, expected=at, found=found.tail)
            return self.shorten(log, found, size)

    def shorten(self, log: str, found: Log, size: int) -> bytes:
        self.drop_sidecar(log)
        dropped = bytes(found.data[size:])
        self.space.aside[log] = self.space.aside.get(log, b"") + dropped
        del found.data[size:]
        found.starts = [start for start in found.starts if start < size]
        if not size:
            self.space.order.remove(log)
            del self.space.logs[log]
        self.sync(log)
        return dropped

    def crashed(self) -> None:
        """What the crash of its process does to this store object."""


class OnFlush(Full):
    """Durable only on demand."""

    capabilities = replace(Full.capabilities, durable=False)

    def sync(self, log: str) -> None:
        if log not in self.space.logs:
            super().sync(log)

    def flush(self, log: str) -> None:
        super().flush(log)
        super().sync(log)


class Unlimited(Full):
    """Takes appends of any size."""

    capabilities = replace(Full.capabilities, max_append=None)


class Bare(MemoryStore):
    """The four calls and nothing else."""

    capabilities = Capabilities()

    def __init__(self, space: Space) -> None:
        super().__init__()
        self.inner = Unlimited(space)

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self._check(log)
        check_data(data, at)
        with _lock:
            found = self.inner.space.logs.get(log)
            inner = Tail(at.size, found.run) if found and at.size else at
            try:
                return self.plain(self.inner.append(log, data, at=inner))
            except Conflict as conflict:
                raise Conflict(conflict.message, log=log, expected=at, found=self.plain(conflict.found)) from conflict

    def plain(self, tail: Tail) -> Tail:
        return Tail(tail.size, "")

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        self._check(log)
        return self.inner.read(log, start, stop)

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        self._check(source)
        return self.plain(self.inner.copy(source, target, stop=stop))

    def _rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        for row in self.inner.list(prefix, after=after, tails=tails):
            yield LogInfo(row.name, row.tail and self.plain(row.tail))

    delete = Store.delete
    hold = Store.hold
    holder = Store.holder


def full(kind: Any, place: Path) -> Harness:
    """Return a harness of a store class over a space of its own; another process gets an empty one."""
    del place
    space = Space()

    def raw_write(log: str, data: bytes) -> None:
        with _lock:
            space.make(log, data, f"raw-{space.runs}")
            space.logs[log].foreign = True  # type: ignore[attr-defined]

    def raw_read(log: str) -> bytes:
        found: Any = space.logs[log]
        return bytes(found.data) + found.torn

    def crash(store: Any) -> None:
        store.crashed()

    @contextmanager
    def fill() -> Iterator[None]:
        space.full = True
        yield
        space.full = False

    return Harness(
        open=lambda: kind(space),
        reopen=lambda: kind(space),
        raw_read=raw_read,
        raw_write=raw_write,
        raw_aside=lambda log: space.aside[log],
        spawn=partial(elsewhere, kind),
        crash=crash if issubclass(kind, Full) else lambda store: None,
        lose_power=space.lose_power,
        fill=fill,
        requests=lambda: space.requests,
        secrets=("hunter2",),
    )


def elsewhere(kind: Any) -> Store:
    """Open a store of this class in another process, where the memory of this one is not."""
    store: Store = kind(Space())
    return store
