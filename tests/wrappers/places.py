"""An inner store for tests of caches: in this process's memory, and counted, as if it were far away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from statestore.store import NEW, Snapshot, Store
from statestore.wrappers import Cached
from statestore_memory import MemoryStore


class Far(MemoryStore):
    """A memory store that says it is shared, and notes each range of bytes that it is asked for.

    Two processes that do the same to one see the same logs and runs, and so stand for two readers of one bucket.
    """

    capabilities = replace(MemoryStore.capabilities, shared=True)

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self.looks = 0
        self.fetched: list[tuple[int, int | None]] = []

    def snapshot(self, log: str) -> Snapshot:
        self.looks += 1
        return super().snapshot(log)

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        self.fetched.append((start, stop))
        return super().read(log, start, stop)

    def stream(self, log: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        self._check(log)
        for place in range(start, self.tail(log).size if stop is None else stop, 10_000):
            yield self.read(log, place, min(place + 10_000, stop or place + 10_000))

    def asked(self) -> list[tuple[int, int | None]]:
        """Return the ranges that were fetched since the last call."""
        fetched, self.fetched = self.fetched, []
        return fetched


def inner(store: Store) -> Far:
    """Return the store that a cache is around."""
    assert isinstance(store, Cached)
    assert isinstance(store.inner, Far)
    return store.inner


def fill(store: Store, log: str, *parts: bytes) -> None:
    """Append to a log, which need not be there."""
    tail = next((row.tail for row in store.list(log, tails=True) if row.name == log), None) or NEW
    for part in parts:
        tail = store.append(log, part, at=tail)
