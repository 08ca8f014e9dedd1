"""A snapshot: a log as it ended at one moment, to be read in several calls that all mean the same log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from statestore.errors import NotFound

if TYPE_CHECKING:
    from statestore.store import Store, Tail

__all__ = ["Snapshot"]


class Snapshot:
    """A log as it ended at one moment; :meth:`Store.snapshot` makes one.

    What was acknowledged by then is read unchanged, and later appends are not followed. Once the log has been
    deleted its bytes may still come or `NotFound` be raised; those of another log that was made under its name never
    come, where the store can tell them apart (capability ``runs``).

    A snapshot belongs to its store, and is used from one thread at a time.

    Args:
        store: whose log it is.
        log: the log's name.
        tail: where it ended.
    """

    def __init__(self, store: Store, log: str, tail: Tail) -> None:
        self.store = store
        self.log = log
        self.tail = tail

    def __repr__(self) -> str:
        return f"Snapshot({self.log!r}, {self.tail})"

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the snapshot's end as slices are.

        Raises:
            NotFound: the log was deleted meanwhile.
            ValueError: an offset is below zero.
        """
        data = self.store.read(self.log, start, self._within(stop))
        self._check_run()
        return data

    def stream(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, in bounded memory; see `read`."""
        for piece in self.store.stream(self.log, start, self._within(stop)):
            self._check_run()
            yield piece

    def boundary(self, before: int) -> int:
        """Return an offset, at most `before`, where an append began; see `Store.boundary`."""
        return self.store.boundary(self.log, min(before, self.tail.size))

    def copy(self, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to the snapshot's ``[0, stop)``; see `Store.copy`."""
        self._check_run()
        return self.store.copy(self.log, target, stop=self._within(stop))

    def _check(self) -> None:
        """Refuse a store that was closed."""
        self.store._check(self.log)

    def _within(self, stop: int | None) -> int:
        return self.tail.size if stop is None else min(stop, self.tail.size)

    def _check_run(self) -> None:
        """Refuse to go on with another log of the same name. Looked for after a read, which it may have reached."""
        if self.store.capabilities.runs and self.store.tail(self.log).run != self.tail.run:
            raise NotFound("the log was deleted and made again: take a new snapshot", log=self.log, found=self.tail)
