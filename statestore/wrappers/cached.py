"""A store that keeps what it has read in a local directory, so that a log that is known costs no second fetch."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from typing import Final

from statestore.errors import NotSupported
from statestore.store import Snapshot, Store, Tail, check_range
from statestore.wrappers._keeping import Directory
from statestore.wrappers._kept import KeptLog
from statestore.wrappers._wrapper import Wrapper

__all__ = ["Cached"]

_NEEDED: Final = {
    "runs": "without them, another log that was made under the same name would be read as the one that was kept",
    "atomic_append": "without it, bytes that were read may yet vanish",
}
_PIECE: Final = 1 << 20  # bytes of what is kept that a stream yields at a time


class Cached(Wrapper):
    """A store that keeps the beginning of each log that was read in a directory, since what a log holds never changes.

    `read`, `stream` and `snapshot` first ask the inner store where the log ends, and so notice a deletion; then only
    what is not kept is fetched from it. All other calls are the inner store's. A log is kept from its first byte on,
    as far as it was read without a gap; logs that were not used for longest make way when there are more than `limit`
    bytes.

    Several threads and processes may share a directory, and so may stores of several origins. A file in it that is
    damaged, cut short, or another log's is noticed by its checksums, dropped, and fetched again. A directory that is
    full, read-only or missing fails no call: it is not used, and a warning of the logger
    ``statestore.wrappers.cached`` tells so, once for each kind of problem.

    Where the inner store is not `shared`, what is kept serves this object in this process alone.

    Args:
        store: the inner store.
        directory: where the bytes are kept, in files for this user alone.
        origin: what the inner store is, such as its URL: two stores that may hold different logs under the same names
            and runs need two origins. Only its digest is stored.
        limit: the most bytes that the directory takes.

    Raises:
        NotSupported: the inner store has not the capabilities ``runs`` and ``atomic_append``.
        ValueError: the limit is below 1.
    """

    def __init__(self, store: Store, directory: str | os.PathLike[str], *, origin: str, limit: int = 1 << 30) -> None:
        for capability, why in _NEEDED.items():
            if not getattr(store.capabilities, capability):
                raise NotSupported(
                    f"this store cannot be cached: {why}", capability=capability, store=type(store).__name__
                )
        if limit < 1:
            raise ValueError(f"a limit is a number of bytes from 1 on, not {limit}")
        super().__init__(store)
        self._directory = Directory(directory, limit)
        self._origin = origin
        # Names and runs of a store that nobody shares mean something else to every other object, and after a fork.
        self._own = "" if store.capabilities.shared else secrets.token_hex(16)

    def snapshot(self, log: str) -> Snapshot:
        """Return the log as it ends now, to be read from what is kept as far as that goes."""
        inner = super().snapshot(log)
        return _CachedSnapshot(self, inner, self._directory.log(self._place(), log, inner.tail.run))

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the log's end as slices are."""
        self._check(log)
        check_range(start, stop)
        return self.snapshot(log).read(start, stop)

    def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
        yield from self.snapshot(log).stream(start, stop)

    def stream(self, log: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, in bounded memory."""
        self._check(log)
        check_range(start, stop)
        return self._stream(log, start, stop)

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        """Remove the log, and what is kept of it here, at once and for all."""
        super().delete(log, at=at)
        self._directory.forget(self._place(), log)

    def _place(self) -> str:
        return f"{self._origin} {os.getpid()} {self._own}" if self._own else self._origin


class _CachedSnapshot(Snapshot):
    """A snapshot that fetches only what is not kept, and keeps it.

    The inner snapshot says what was acknowledged: nothing beyond its tail is ever fetched, and so none is kept.
    """

    def __init__(self, store: Cached, inner: Snapshot, kept: KeptLog) -> None:
        super().__init__(store, inner.log, inner.tail)
        self._inner = inner
        self._kept = kept

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the snapshot's end as slices are."""
        check_range(start, stop)
        self._check()
        stop = self._within(stop)
        if start >= stop:
            return b""
        kept = self._kept.read(start, stop)
        begin = start + len(kept)
        if begin == stop:
            return kept
        fetched = self._inner.read(begin, stop)
        self._kept.add(begin, fetched)
        return kept + fetched

    def stream(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, in bounded memory."""
        check_range(start, stop)
        self._check()
        return self._pieces(start, self._within(stop))

    def _pieces(self, start: int, stop: int) -> Iterator[bytes]:
        while kept := self._kept.read(start, min(start + _PIECE, stop)):
            yield kept
            start += len(kept)
        if start < stop:
            for piece in self._inner.stream(start, stop):
                self._kept.add(start, piece)
                yield piece
                start += len(piece)

    def boundary(self, before: int) -> int:
        """Return an offset, at most `before`, where an append began."""
        return self._inner.boundary(before)

    def copy(self, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to the snapshot's ``[0, stop)``."""
        return self._inner.copy(target, stop=stop)
