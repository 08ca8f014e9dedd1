"""Stores whose snapshots are not what they should be."""

from __future__ import annotations

from statestore.errors import NotFound
from statestore.store import Snapshot, Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Full


class _Live(Snapshot):
    """Shows the log as it is now."""

    def _within(self, stop: int | None) -> int:
        return self.store.tail(self.log).size if stop is None else stop


@saboteur("a-snapshot-is-the-same-slice")
class OffByOne(Full):
    """A snapshot that is read from within begins one byte late."""

    def snapshot(self, log: str) -> Snapshot:
        class Late(Snapshot):
            def read(self, start: int = 0, stop: int | None = None) -> bytes:
                return super().read(start + (start > 3), stop)

        return Late(self, log, self.tail(log))


@saboteur("a-snapshot-does-not-follow-the-log")
class Follows(Full):
    """A snapshot is a name for the log."""

    def snapshot(self, log: str) -> Snapshot:
        return _Live(self, log, self.tail(log))


@saboteur("a-snapshot-of-a-missing-log-is-not-found")
class OfNothing(Full):
    """A snapshot of a missing log is one of an empty log."""

    def snapshot(self, log: str) -> Snapshot:
        self._check(log)
        try:
            return super().snapshot(log)
        except NotFound:
            return Snapshot(self, log, Tail(0, ""))


@saboteur("a-snapshot-copies-what-it-shows")
class CopiesTheLog(Full):
    """A snapshot's copy is one of the log as it is now."""

    def snapshot(self, log: str) -> Snapshot:
        class Copies(Snapshot):
            def copy(self, target: str, *, stop: int | None = None) -> Tail:
                return self.store.copy(self.log, target, stop=stop)

        return Copies(self, log, self.tail(log))


@saboteur("a-snapshot-never-shows-another-log")
class ByName(Full):
    """A snapshot reads whatever has its log's name."""

    def snapshot(self, log: str) -> Snapshot:
        class Named(Snapshot):
            def _check_run(self) -> None:
                pass

        return Named(self, log, self.tail(log))
