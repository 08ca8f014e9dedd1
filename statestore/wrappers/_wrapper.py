"""The base of stores made of a store: it passes on every call of the contract, and is the one place to keep in step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeVar

from statestore.store import Holder, LogInfo, Maintenance, Sidecar, Snapshot, Store, Tail

__all__ = ["WrappedSnapshot", "Wrapper"]

T = TypeVar("T")


class Wrapper(Store):
    """A store that is another store: every call, and every capability, is the inner one's.

    A subclass overrides the calls that it changes, or :meth:`_run`, through which all of them go that ask the
    storage and answer at once. ``list``, ``stream`` and ``hold`` do their work later, when their result is used,
    and so do not go through it, nor does what a snapshot or a sidecar is asked; ``wait``, ``location``,
    ``maintenance`` and ``close`` ask the storage nothing.

    Args:
        store: the inner store. Closing the wrapper closes it.
    """

    def __init__(self, store: Store) -> None:
        self.inner = store
        self.capabilities = store.capabilities

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    def _run(self, call: str, log: str, act: Callable[[], T]) -> T:
        """Do one call of the inner store: `act` does it, `call` is its name and `log` what it is about."""
        return act()

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        """Add `data` to the end of `log`, if the log ends exactly at `at`; return the new tail."""
        return self._run("append", log, lambda: self.inner.append(log, data, at=at))

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the log's end as slices are."""
        return self._run("read", log, lambda: self.inner.read(log, start, stop))

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to ``source[:stop]``, whole or not at all; return its tail."""
        return self._run("copy", target, lambda: self.inner.copy(source, target, stop=stop))

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        """Yield the logs whose names begin with `prefix` and come after `after`, in code-point order."""
        return self.inner.list(prefix, after=after, tails=tails)

    def tail(self, log: str) -> Tail:
        """Return the log's tail as it is now."""
        return self._run("tail", log, lambda: self.inner.tail(log))

    def snapshot(self, log: str) -> Snapshot:
        """Return the log as it ends now, to be read in several calls that all mean the same log."""
        return self._run("snapshot", log, lambda: self.inner.snapshot(log))

    def stream(self, log: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, in bounded memory."""
        return self.inner.stream(log, start, stop)

    def wait(self, log: str, at: Tail, timeout: float) -> bool:
        """Return True as soon as the log may end elsewhere than at `at`; False after `timeout` seconds."""
        return self.inner.wait(log, at, timeout)

    def boundary(self, log: str, before: int) -> int:
        """Return an offset, at most `before`, where an append began."""
        return self._run("boundary", log, lambda: self.inner.boundary(log, before))

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        """Remove the log at once and for all; where `at` is given, only if the log ends there."""
        return self._run("delete", log, lambda: self.inner.delete(log, at=at))

    def hold(self, log: str) -> AbstractContextManager[None]:
        """Keep everybody else from appending to, deleting or holding the log, until the context ends."""
        return self.inner.hold(log)

    def holder(self, log: str) -> Holder | None:
        """Say who holds the log now; None where nobody does."""
        return self._run("holder", log, lambda: self.inner.holder(log))

    def location(self, log: str) -> str:
        """Say where a person finds the log."""
        return self.inner.location(log)

    def flush(self, log: str) -> None:
        """Make all of the log durable."""
        return self._run("flush", log, lambda: self.inner.flush(log))

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        """Drop what a crash left behind `size`, if the log still ends exactly at `at`; return the bytes dropped."""
        return self._run("cut", log, lambda: self.inner.cut(log, size, at=at))

    def sidecar(self, log: str) -> Sidecar | None:
        """Return a place beside the log for what is derived from it."""
        return self.inner.sidecar(log)

    @property
    def maintenance(self) -> Maintenance | None:
        """What the inner store offers its operator."""
        return self.inner.maintenance

    def close(self) -> None:
        """Close the inner store; every later call but this one raises ``Closed``."""
        super().close()
        self.inner.close()


class WrappedSnapshot(Snapshot):
    """A snapshot of a wrapper's log that asks the inner store's snapshot; a wrapper overrides what it changes.

    Args:
        store: the wrapper.
        log: the log's name in the wrapper.
        inner: the inner store's snapshot.
    """

    def __init__(self, store: Store, log: str, inner: Snapshot) -> None:
        super().__init__(store, log, inner.tail)
        self.inner = inner

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the snapshot's end as slices are."""
        return self.inner.read(start, stop)

    def stream(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, in bounded memory."""
        return self.inner.stream(start, stop)

    def boundary(self, before: int) -> int:
        """Return an offset, at most `before`, where an append began."""
        return self.inner.boundary(before)

    def copy(self, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to the snapshot's ``[0, stop)``."""
        return self.inner.copy(target, stop=stop)
