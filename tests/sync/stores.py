"""Stores that count, that die, that do something in between; and what a store holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import TypeVar

from statestore.store import NEW, LogInfo, Snapshot, Store, Tail
from statestore.wrappers import Wrapper

T = TypeVar("T")


def fill(store: Store, logs: Mapping[str, bytes]) -> None:
    for log, data in logs.items():
        store.append(log, data, at=NEW)


def contents(store: Store) -> dict[str, bytes]:
    return {info.name: store.read(info.name) for info in store.list()}


class Watched(Wrapper):
    """Calls `before` and `after` each call that asks the storage, also what a snapshot is asked."""

    def __init__(self, store: Store, *, max_append: int | None = None) -> None:
        super().__init__(store)
        self.capabilities = replace(store.capabilities, max_append=max_append)

    def before(self, call: str, log: str) -> None:
        pass

    def after(self, call: str, log: str) -> None:
        pass

    def _run(self, call: str, log: str, act: Callable[[], T]) -> T:
        self.before(call, log)
        result = act()
        self.after(call, log)
        return result

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        self.before("list", prefix)
        return self.inner.list(prefix, after=after, tails=tails)

    def snapshot(self, log: str) -> Snapshot:
        return self._run("snapshot", log, lambda: Snapshot(self, log, self.inner.tail(log)))

    def stream(self, log: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        self.before("stream", log)
        for piece in self.inner.stream(log, start, stop):
            yield piece
            self.after("stream", log)


class Counting(Watched):
    """Counts calls; the bytes that are appended too."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.calls: Counter[str] = Counter()
        self.appended = 0

    def before(self, call: str, log: str) -> None:
        if call != "tail":  # a snapshot looks whether the log is still the same one
            self.calls[call] += 1

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self.appended += len(data)
        return super().append(log, data, at=at)


class Killed(BaseException):
    """What ends a process without asking it."""


class Mortal(Watched):
    """Dies at its n-th call, before its effect or behind it, and then does nothing any more."""

    def __init__(self, store: Store, calls: int, *, behind: bool, max_append: int | None = None) -> None:
        super().__init__(store, max_append=max_append)
        self.number = count(1)
        self.calls, self.behind, self.dead = calls, behind, False

    def before(self, call: str, log: str) -> None:
        if self.dead or (next(self.number) >= self.calls and not self.behind):
            self.die()

    def after(self, call: str, log: str) -> None:
        if self.behind and next(self.number) >= self.calls:
            self.die()

    def die(self) -> None:
        self.dead = True
        raise Killed
