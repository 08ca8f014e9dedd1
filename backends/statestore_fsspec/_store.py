"""The store: the contract's calls, each run by the engine over the protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from statestore import names
from statestore.errors import NotFound, NotSupported
from statestore.store import (
    LogInfo,
    Maintenance,
    Snapshot,
    Store,
    Tail,
    check_data,
    check_range,
    check_stop,
)
from statestore_fsspec import _layout as layout
from statestore_fsspec._copying import copy
from statestore_fsspec._drive import Drive
from statestore_fsspec._engine import Engine
from statestore_fsspec._finding import Found
from statestore_fsspec._listing import Listed, listed
from statestore_fsspec._maintenance import BucketMaintenance
from statestore_fsspec._reading import read
from statestore_fsspec._root import Root
from statestore_fsspec._settings import CAPABILITIES, DEFAULT, MAX_APPEND, Settings
from statestore_fsspec._snapshot import BucketSnapshot
from statestore_fsspec._walk import walk

__all__ = ["FsspecStore"]


class FsspecStore(Store):
    """A store on an object storage: each append is one immutable object.

    Nothing is asked of the storage before the first call. The first call that writes tries whether the storage
    keeps the promise of exclusive creation.

    Args:
        connect: makes a drive, one for each process.
        url: where the store is, as people write it.
        settings: what a root is made with, where this store is the first that writes there.
        insist: names of settings that the root must have as they are given here.
        probe: whether the storage is tried.
        parallel: how many requests one call may have under way at once.
        tries: how often a request that failed is sent.
        backoff: seconds before the second try; twice as long before each one after.
    """

    capabilities = CAPABILITIES

    def __init__(
        self,
        connect: Callable[[], Drive],
        url: str,
        *,
        settings: Settings = DEFAULT,
        insist: tuple[str, ...] = (),
        probe: bool = True,
        parallel: int = 16,
        tries: int = 6,
        backoff: float = 0.1,
    ) -> None:
        self.url = url
        self._engine = Engine(connect, parallel=parallel, tries=tries, backoff=backoff)
        self._root = Root(self._engine, settings, insist, probe)

    def __repr__(self) -> str:
        return f"FsspecStore({self.url!r})"

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        """Add `data` to the end of `log`, if the log ends exactly at `at`; return the new tail.

        One request, where this store has seen the log's tail; else two more before it.

        Raises:
            NotSupported: `data` is longer than ``capabilities.max_append``.
        """
        self._check(log)
        check_data(data, at)
        if len(data) > MAX_APPEND:
            raise NotSupported(
                "too large for one append: split it",
                capability="max_append",
                log=log,
                size=len(data),
                limit=MAX_APPEND,
            )
        return self._engine.run(self._root.writer().append(log, data, at))

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the log's end as slices are.

        Two listings, and one request for each segment, several at once.
        """
        self._check(log)
        check_range(start, stop)
        return self._engine.run(read(self._root.finder(), log, start, stop))

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to ``source[:stop]``, whole or not at all; return its tail.

        Segments that are copied whole are copied by the storage.
        """
        return self.copy_found(source, target, stop, None)

    def copy_found(
        self, source: str, target: str, stop: int | None, found: Found | None, kept: tuple[int, bytes] = (0, b"")
    ) -> Tail:
        """Make `target` a copy of what the source was found to be, or of what it is now.

        Args:
            source: the log that is read.
            target: the log that is made.
            stop: how many bytes are copied.
            found: what the source was found to be.
            kept: an offset in what was found, and bytes of it that are at hand.
        """
        self._check(source)
        self._check(target)
        check_stop(stop)
        return self._engine.run(copy(self._root.writer(), source, target, stop, found, kept))

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        """Yield the logs whose names begin with `prefix` and come after `after`, in code-point order.

        One request for each 1,000 heads; tails cost one more for each 1,000 segments.
        """
        names.check_prefix(prefix)
        self._check_open()
        return self._rows(prefix, after, tails)

    def _rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        finder = self._root.finder()
        ordered = self._root.settings.sorted
        begun = self._engine.now()
        for found in listed(self._engine, prefix, after, ordered=ordered, data=tails):
            self._check_open()
            if len(found.heads) % 2 == 0:
                continue
            if not tails:
                yield LogInfo(found.log)
                continue
            if not finder.is_fresh(begun, self._engine.now()):
                # Whoever reads so slowly goes on with a new listing.
                yield from self._rows(prefix, after, tails)
                return
            tail = self._tail_of(found)
            after = found.log
            if tail is not None:
                yield LogInfo(found.log, tail)

    def _tail_of(self, listed: Listed) -> Tail | None:
        """Return the tail of a log that was listed; None where it is no longer there."""
        assert listed.runs is not None
        runs = [run for run in listed.runs if layout.run_generation(run) == len(listed.heads)]
        walked = walk(listed.runs[runs[0]]) if len(runs) == 1 else None
        if walked is not None and walked.segments and walked.beyond is None:
            return Tail(walked.size, runs[0])
        found = self._engine.run(self._root.finder().find(listed.log))
        return None if found.run is None else found.tail

    def tail(self, log: str) -> Tail:
        """Return the log's tail as it is now."""
        self._check(log)
        return self._find(log).tail

    def boundary(self, log: str, before: int) -> int:
        """Return an offset, at most `before`, where an append began."""
        self._check(log)
        check_range(before, None)
        walked = self._find(log).walk
        assert walked is not None
        return walked.boundary(before)

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        """Remove the log at once and for all; where `at` is given, only if the log ends there."""
        self._check(log)
        self._engine.run(self._root.writer().delete(log, at))

    def location(self, log: str) -> str:
        """Return the address that the keys of the log's objects begin with."""
        self._check(log)
        return f"{self.url}/data/{log}!"

    @property
    def maintenance(self) -> Maintenance:
        """Merging, collecting, checking and probing."""
        self._check_open()
        return BucketMaintenance(self._root)

    def close(self) -> None:
        """Let go of connections; every later call but this one raises ``Closed``."""
        if not self._closed:
            super().close()
            self._engine.close()

    def snapshot(self, log: str) -> Snapshot:
        """Return the log as it ends now: two listings, and then only what is read."""
        self._check(log)
        return BucketSnapshot(self, self._root, log, self._find(log))

    def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
        yield from self.snapshot(log).stream(start, stop)

    def _find(self, log: str) -> Found:
        found = self._engine.run(self._root.finder().find(log))
        if found.run is None:
            raise NotFound("no such log", log=log)
        self._root.writing.note(log, found)
        return found
