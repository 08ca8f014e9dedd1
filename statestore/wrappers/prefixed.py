"""A store whose logs lie below a prefix of another store's names: a part of a store that is a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final, TypeVar

from statestore import names
from statestore.errors import InvalidName, StateStoreError
from statestore.store import Finding, Garbage, Holder, LogInfo, Maintenance, Problem, Sidecar, Snapshot, Store, Tail
from statestore.wrappers._wrapper import WrappedSnapshot, Wrapper

__all__ = ["Prefixed"]

T = TypeVar("T")

_NAMES: Final = ("log", "name", "source", "target", "prefix")  # the facts of an error that may name a log


class Prefixed(Wrapper):
    """A store whose log ``a`` is the log ``<prefix>/a`` of the inner store; it sees, lists and changes no other.

    Names are those without the prefix everywhere: in calls, listings, snapshots, errors and maintenance. `location` and
    what maintenance says of objects tell where things lie in the storage, and so show it. A name that the prefix makes
    longer than 700 characters is refused with ``InvalidName`` before the storage is touched.

    Args:
        store: the inner store. Closing this one closes it.
        prefix: one or more segments, such as ``"tenants/acme"``.

    Raises:
        InvalidName: the prefix cannot be the beginning of a log's name.
    """

    def __init__(self, store: Store, prefix: str) -> None:
        super().__init__(store)
        self.prefix = names.check(prefix)
        self._below = names.check_prefix(f"{prefix}/")

    def __repr__(self) -> str:
        return f"Prefixed({self.inner!r}, {self.prefix!r})"

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        """Add `data` to the end of `log`, if the log ends exactly at `at`; return the new tail."""
        inside = self._inside(log)
        return self._ask(lambda: self.inner.append(inside, data, at=at))

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the log's end as slices are."""
        inside = self._inside(log)
        return self._ask(lambda: self.inner.read(inside, start, stop))

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to ``source[:stop]``, whole or not at all; return its tail."""
        inside, made = self._inside(source), self._inside(target)
        return self._ask(lambda: self.inner.copy(inside, made, stop=stop))

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        """Yield the logs whose names begin with `prefix` and come after `after`, in code-point order."""
        inside, behind = self._inside_prefix(prefix), self._below + after if after else ""
        rows = self._ask(lambda: self.inner.list(inside, after=behind, tails=tails))
        return (LogInfo(self._outside(row.name), row.tail) for row in self._each(rows))

    def tail(self, log: str) -> Tail:
        """Return the log's tail as it is now."""
        inside = self._inside(log)
        return self._ask(lambda: self.inner.tail(inside))

    def snapshot(self, log: str) -> Snapshot:
        """Return the log as it ends now, to be read in several calls that all mean the same log."""
        inside = self._inside(log)
        return _PrefixedSnapshot(self, log, self._ask(lambda: self.inner.snapshot(inside)))

    def stream(self, log: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, in bounded memory."""
        inside = self._inside(log)
        return self._each(self._ask(lambda: self.inner.stream(inside, start, stop)))

    def boundary(self, log: str, before: int) -> int:
        """Return an offset, at most `before`, where an append began."""
        inside = self._inside(log)
        return self._ask(lambda: self.inner.boundary(inside, before))

    def wait(self, log: str, at: Tail, timeout: float) -> bool:
        """Return True as soon as the log may end elsewhere than at `at`; False after `timeout` seconds."""
        inside = self._inside(log)
        return self._ask(lambda: self.inner.wait(inside, at, timeout))

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        """Remove the log at once and for all; where `at` is given, only if the log ends there."""
        inside = self._inside(log)
        self._ask(lambda: self.inner.delete(inside, at=at))

    def hold(self, log: str) -> AbstractContextManager[None]:
        """Keep everybody else from appending to, deleting or holding the log, until the context ends."""
        inside = self._inside(log)
        return self._hold(self._ask(lambda: self.inner.hold(inside)))

    @contextmanager
    def _hold(self, inner: AbstractContextManager[None]) -> Iterator[None]:
        with ExitStack() as held:
            self._ask(lambda: held.enter_context(inner))
            yield

    def holder(self, log: str) -> Holder | None:
        """Say who holds the log now; None where nobody does."""
        inside = self._inside(log)
        return self._ask(lambda: self.inner.holder(inside))

    def location(self, log: str) -> str:
        """Say where a person finds the log: where it lies in the inner store."""
        inside = self._inside(log)
        return self._ask(lambda: self.inner.location(inside))

    def flush(self, log: str) -> None:
        """Make all of the log durable."""
        inside = self._inside(log)
        self._ask(lambda: self.inner.flush(inside))

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        """Drop what a crash left behind `size`, if the log still ends exactly at `at`; return the bytes dropped."""
        inside = self._inside(log)
        return self._ask(lambda: self.inner.cut(inside, size, at=at))

    def sidecar(self, log: str) -> Sidecar | None:
        """Return a place beside the log for what is derived from it."""
        inside = self._inside(log)
        return self._ask(lambda: self.inner.sidecar(inside))

    @property
    def maintenance(self) -> Maintenance | None:
        """What the inner store offers its operator, for the logs below the prefix."""
        inner = self.inner.maintenance
        return _Below(self, inner) if inner is not None else None

    def _inside(self, log: str) -> str:
        """Return the name that a log has in the inner store."""
        inside = self._below + names.check(log)
        if len(inside) > names.MAX_NAME:
            raise self._too_long(log)
        return inside

    def _inside_prefix(self, prefix: str) -> str:
        inside = self._below + names.check_prefix(prefix)
        if len(inside) > names.MAX_NAME:
            raise self._too_long(prefix)
        return inside

    def _too_long(self, name: str) -> InvalidName:
        room = names.MAX_NAME - len(self._below)
        shown = name if len(name) <= 80 else name[:77] + "..."
        return InvalidName(f"too long below this store's prefix: {room} characters are allowed", name=shown)

    def _outside(self, inside: str) -> str:
        """Return the name here of what has this name in the inner store."""
        return inside.removeprefix(self._below)

    def _ask(self, act: Callable[[], T]) -> T:
        """Ask the inner store, and let its errors name logs as they are named here."""
        try:
            return act()
        except StateStoreError as error:
            self._rename(error)
            raise

    def _each(self, items: Iterable[T]) -> Iterator[T]:
        iterator = iter(items)
        try:
            while True:
                try:
                    item = self._ask(lambda: next(iterator))
                except StopIteration:
                    return
                yield item
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()

    def _rename(self, error: BaseException | None) -> None:
        while isinstance(error, StateStoreError):
            for fact in _NAMES:
                value = error.facts.get(fact)
                if isinstance(value, str):
                    error.facts[fact] = self._outside(value)
            error = error.__cause__


class _PrefixedSnapshot(WrappedSnapshot):
    """A snapshot that has the log's name here."""

    store: Prefixed

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the snapshot's end as slices are."""
        return self.store._ask(lambda: self.inner.read(start, stop))

    def stream(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, in bounded memory."""
        return self.store._each(self.store._ask(lambda: self.inner.stream(start, stop)))

    def boundary(self, before: int) -> int:
        """Return an offset, at most `before`, where an append began."""
        return self.store._ask(lambda: self.inner.boundary(before))

    def copy(self, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to the snapshot's ``[0, stop)``."""
        made = self.store._inside(target)
        return self.store._ask(lambda: self.inner.copy(made, stop=stop))


class _Below:
    """The maintenance of the logs below a prefix. Looking at the storage itself looks at all of it."""

    def __init__(self, store: Prefixed, inner: Maintenance) -> None:
        self._store = store
        self._inner = inner

    def compact(self, log: str) -> int:
        """Merge a log's pieces in the storage; return how many fewer pieces a reader needs now."""
        inside = self._store._inside(log)
        return self._store._ask(lambda: self._inner.compact(inside))

    def collect(self, prefix: str = "", *, dry_run: bool = True) -> Iterator[Garbage]:
        """Yield what no log here needs any more, and remove it unless it is a dry run."""
        inside = self._store._inside_prefix(prefix)
        return self._store._each(self._store._ask(lambda: self._inner.collect(inside, dry_run=dry_run)))

    def check(self, prefix: str = "") -> Iterator[Problem]:
        """Yield all that is wrong under the logs here whose names begin with `prefix`."""
        inside = self._store._inside_prefix(prefix)
        for problem in self._store._each(self._store._ask(lambda: self._inner.check(inside))):
            yield problem._replace(log=self._store._outside(problem.log))

    def examine(self) -> Iterator[Finding]:
        """Yield what the whole storage really does, tried in a scratch place that is not below the prefix."""
        return self._inner.examine()

    def probe(self) -> None:
        """Try whether the storage keeps its promises."""
        self._inner.probe()
