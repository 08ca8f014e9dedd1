"""Stores that delete wrongly, or take a log that was made again for the one that was deleted."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from statestore.errors import Exists, NotFound
from statestore.store import NEW, Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Bare, Full, Log, Space


@saboteur("a-deleted-log-is-gone")
class DeleteLeavesTheTail(Full):
    """A deleted log has its tail still."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        tail = self.tail(log)
        super().delete(log, at=at)
        self.space.notes[log] = tail

    def tail(self, log: str) -> Tail:
        try:
            return super().tail(log)
        except NotFound:
            if log not in self.space.notes:
                raise
            left: Tail = self.space.notes[log]
            return left


@saboteur("a-deleted-log-is-gone")
class AppendsBringBack(Full):
    """An append where a deleted log ended begins it anew."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        tail = self.tail(log)
        super().delete(log, at=at)
        self.space.notes[log] = tail

    def place(self, log: str, data: bytes, at: Tail) -> Tail:
        if log not in self.space.logs and self.space.notes.get(log) == at:
            return self.create(log, data)
        return super().place(log, data, at)


@saboteur("a-listing-survives-deletions-meanwhile")
class DeletesTheFolder(Full):
    """A deletion takes every log in the folder of the same name."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        super().delete(log, at=at)
        for name in [name for name in self.space.logs if name.startswith(log + "/")]:
            super().delete(name)


@saboteur("a-deletion-takes-no-other-log")
class DeletesTheParent(Full):
    """A deletion takes the log that has the name of the folder."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        super().delete(log, at=at)
        above = log.rpartition("/")[0]
        if above in self.space.logs:
            super().delete(above)


@saboteur("a-deletion-of-a-missing-log-is-not-found")
class DeletesNothing(Full):
    """A deletion of a missing log succeeds."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        self._check(log)
        if log in self.space.logs:
            super().delete(log, at=at)


@saboteur("a-deletion-at-another-tail-is-refused")
class DeletesAnyway(Full):
    """A deletion ignores `at`."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        super().delete(log)


@saboteur("a-log-made-again-begins-at-nothing")
class DeletedBytesReturn(Full):
    """A log that is made again begins with what was deleted."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        found = self.space.logs.get(log)
        super().delete(log, at=at)
        self.space.notes[log] = bytes(found.data)

    def create(self, log: str, data: bytes) -> Tail:
        return super().create(log, self.space.notes.pop(log, b"") + data)


@saboteur("a-creation-repeated-after-a-deletion-creates-again")
class RemembersRequests(Full):
    """A creation that was answered once gets the same answer for ever."""

    def create(self, log: str, data: bytes) -> Tail:
        if (log, data) not in self.space.notes:
            self.space.notes[log, data] = super().create(log, data)
        tail: Tail = self.space.notes[log, data]
        return tail


@saboteur("a-copy-may-take-a-deleted-name")
class TombstonesStopCopies(Full):
    """A name that was deleted is taken for a copy."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        super().delete(log, at=at)
        self.space.notes[log] = "deleted"

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        if target in self.space.notes:
            raise Exists("there is such a log already", log=target)
        return super().copy(source, target, stop=stop)


@saboteur("a-deletion-shows-to-another-store-object")
class KeepsLogsOpen(Full):
    """A store object goes on reading a log that it has open when another one deletes it."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.known: dict[str, Log] = {}

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        self.known.pop(log, None)
        super().delete(log, at=at)
        self.known.pop(log, None)

    def _find(self, log: str) -> Any:
        if log in self.space.logs:
            self.known[log] = self.space.logs[log]
        return self.known[log] if log in self.known else super()._find(log)


@saboteur("a-log-made-again-is-another-run")
class OneRunForAName(Full):
    """The run of a log does not change when the log is made again."""

    def run(self, log: str) -> str:
        return f"run of {log}"


@saboteur("an-old-writer-is-refused-by-a-log-made-again")
class ComparesSizes(Full):
    """An append at the right size is taken, whatever its run."""

    def place(self, log: str, data: bytes, at: Tail) -> Tail:
        found = self.space.logs.get(log)
        return super().place(log, data, found.tail if found and at.size == len(found.data) else at)


@saboteur("a-repetition-does-not-reach-into-another-run")
class RepeatsIntoAnotherRun(Full):
    """A repeated append is known by its bytes, whatever its run."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        return super().again(log, found, data, Tail(at.size, found.run) if at.size else NEW)


@saboteur("an-old-tail-does-not-delete-a-log-made-again")
class DeletesBySize(Full):
    """A deletion compares sizes and no runs."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        super().delete(log, at=at and Tail(at.size, self.tail(log).run))


@saboteur("a-tail-without-its-run-is-refused")
class NoRunFitsAll(Full):
    """A tail without a run fits every run."""

    def place(self, log: str, data: bytes, at: Tail) -> Tail:
        found = self.space.logs.get(log)
        return super().place(log, data, Tail(at.size, found.run) if found and at.size and not at.run else at)


@saboteur("a-store-without-deletions-refuses-them")
class DeletionsUndeclared(Bare):
    """A store that says it cannot delete deletes."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        self._check(log)
        self.inner.delete(log)


@saboteur("a-store-without-deletions-refuses-them")
class DeletesAndRefuses(Bare):
    """A deletion is refused as not supported when it has been done."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        self._check(log)
        with suppress(NotFound):
            self.inner.delete(log)
        raise self._refusal("deletes")
