"""A snapshot of a log: one listing, and then nothing but the segments that hold what is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Final

from statestore.store import Snapshot, Tail, check_range, check_stop
from statestore_fsspec._finding import Found
from statestore_fsspec._reading import reread
from statestore_fsspec._root import Root
from statestore_fsspec._walk import Walk

if TYPE_CHECKING:
    from statestore_fsspec._store import FsspecStore

__all__ = ["BucketSnapshot"]

_PIECE: Final = 4 << 20  # bytes that a stream, and a read that goes on where the last one ended, asks for at a time
_KEPT: Final = 16 << 20  # the most bytes that are kept for reads near the last one
_FIRST: Final = 256 << 10  # bytes by which such reads begin to look ahead


class BucketSnapshot(Snapshot):
    """A log as one listing showed it.

    What was fetched last is kept, up to 16 MiB, so that several reads near each other are one request.
    """

    def __init__(self, store: FsspecStore, root: Root, log: str, found: Found) -> None:
        super().__init__(store, log, found.tail)
        self._store = store
        self._root = root
        self._found = found
        self._kept = (0, b"")
        self._ahead = 0

    @property
    def _walk(self) -> Walk:
        assert self._found.walk is not None
        return self._found.walk

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the snapshot's end as slices are."""
        check_range(start, stop)
        self._check()
        stop = self._within(stop)
        if start >= stop:
            return b""
        first, kept = self._kept
        if not first <= start <= stop <= first + len(kept):
            # Whoever reads on gets more than was asked for, and each time twice as much more.
            self._ahead = min(2 * self._ahead or _FIRST, _PIECE) if first < start <= first + len(kept) else 0
            ahead = max(stop, min(start + self._ahead, self.tail.size))
            if self.tail.size - ahead < (ahead - start) // 4:
                ahead = self.tail.size  # what is left is so little that it is no round trip of its own
            covering = self._walk.covering(start, ahead)
            # Segments are fetched whole, since then their checksums are compared.
            first = covering[0].start
            kept = self._fetch(first, covering[-1].stop)
            self._kept = (first, kept) if len(kept) <= _KEPT else (0, b"")
        return kept[start - first : stop - first]

    def stream(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces; the next one is fetched meanwhile."""
        check_range(start, stop)
        self._check()
        return self._pieces(start, self._within(stop))

    def _pieces(self, start: int, stop: int) -> Iterator[bytes]:
        under_way: Future[bytes] | None = None
        try:
            for first, last in self._parts(start, stop):
                ready = under_way.result() if under_way is not None else b""
                under_way = self._root.engine.begin(self._fetch, first, last)
                if ready:
                    yield ready
            if under_way is not None:
                yield under_way.result()
        except CancelledError:
            self._check()
            raise
        finally:
            if under_way is not None:
                under_way.cancel()

    def _parts(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges that a stream asks for: whole segments, so that each is fetched once and checked."""
        first = start
        covering = self._walk.covering(start, stop)
        for number, segment in enumerate(covering, start=1):
            if number == len(covering) or covering[number].stop - first > _PIECE:
                yield first, min(segment.stop, stop)
                first = segment.stop

    def boundary(self, before: int) -> int:
        """Return an offset, at most `before`, where an append began, or a merge of several."""
        check_range(before, None)
        return self._walk.boundary(min(before, self.tail.size))

    def copy(self, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to the snapshot's ``[0, stop)``."""
        check_stop(stop)
        return self._store.copy_found(self.log, target, self._within(stop), self._found, self._kept)

    def _fetch(self, start: int, stop: int) -> bytes:
        self._found, data = self._root.engine.run(reread(self._root.finder(), self.log, self._found, start, stop))
        return data
