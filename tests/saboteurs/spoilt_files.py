"""Stores that several processes share, and that go wrong between them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from statestore.store import Holder, Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.reference import LOCK, Log, Reference, Shared, shared_harness

spoilt = partial(saboteur, factory=shared_harness)


@spoilt("another-process-sees-the-same-logs")
class PrivatePlaces(Shared):
    """Each process has a place of its own."""

    def __init__(self, file: Path) -> None:
        super().__init__(file.with_name(f"of-{os.getpid()}"))


@spoilt("processes-win-each-position-once", "a-creation-has-one-winner-among-processes")
class LocksThreadsOnly(Shared):
    """The lock keeps out other threads and no other process."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        with LOCK:
            if not self.inside:
                self.load()
            self.inside += 1
            try:
                yield
            finally:
                self.inside -= 1
                if not self.inside:
                    self.save()


@spoilt("a-process-that-was-frozen-and-overtaken-is-refused")
class TrustsItsTail(Shared):
    """A writer that was the last believes that it still is."""

    mine: Tail | None = None

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        return self.add(log, found, data) if at == self.mine else super().again(log, found, data, at)

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        self.mine = super().add(log, found, data)
        return self.mine


@spoilt("a-process-that-was-frozen-through-a-deletion-is-refused")
class SameRunAgain(Shared):
    """A log that is made again has the same run."""

    def run(self, log: str) -> str:
        return "r-" + log.replace("/", "-")


@spoilt("a-hold-keeps-other-processes-out", "a-hold-by-another-process-is-told-and-ends")
class HoldsInOneProcess(Shared):
    """A hold is not seen by other processes."""

    def holder(self, log: str) -> Holder | None:
        holder = super().holder(log)
        return holder if holder and holder.pid == os.getpid() else None


@spoilt("a-hold-dies-with-its-process")
class HoldsForTheDead(Shared):
    """The hold of a process that has died stays."""

    def holder(self, log: str) -> Holder | None:
        return Reference.holder(self, log)


@spoilt("a-killed-writer-loses-nothing-acknowledged")
class BuffersAppends(Shared):
    """Appends are kept in memory, some at a time, before they are written."""

    waiting = 0

    def load(self) -> None:
        if not self.waiting:
            super().load()

    def save(self) -> None:
        many = len(self.place.logs.get("log", Log("")).pieces) > 2
        self.waiting = (self.waiting + 1) % 40 if many else 0
        if not self.waiting:
            super().save()


@spoilt("a-forked-child-goes-on-with-the-store")
class BelongsToItsProcess(Shared):
    """A store fails in a forked child."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.pid = os.getpid()

    def load(self) -> None:
        if os.getpid() != self.pid:
            raise ConnectionError("this connection belongs to another process")
        super().load()


@spoilt("a-fork-neither-takes-nor-ends-a-hold")
class ForksItsHolds(Shared):
    """A forked child holds what its parent holds, and lets go of it."""

    def key(self) -> str:
        return f"store:{id(self)}"
