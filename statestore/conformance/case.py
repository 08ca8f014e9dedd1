"""What a clause is given: an empty store, other handles on it, and ways to reach under it and to break it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, cast

from statestore.conformance.check import Failure, equal, show
from statestore.conformance.harness import Harness
from statestore.store import NEW, LogInfo, Store, Tail

__all__ = ["Case", "NotRun", "TRACE"]

TRACE = 60
"""How many calls are kept of a clause: the last ones, as its reproduction."""


class NotRun(Exception):
    """A clause could not be tried at all, for this reason."""


class Case:
    """One clause's view of one harness.

    Args:
        harness: the place and the ways to reach it.
        sample: how much of the full size of the heavy clauses to run, from above 0 to 1.
        seed: what random operations are drawn from; None: from what is the same in every run.
    """

    def __init__(self, harness: Harness, sample: float = 1.0, seed: int | None = None) -> None:
        self.harness = harness
        self.sample = sample
        self.seed = seed
        self.trace: deque[str] = deque(maxlen=TRACE)
        self.calls = 0
        self.closed: set[int] = set()
        self._opened: list[Store] = []
        self._store: Store | None = None

    @property
    def store(self) -> Store:
        """The store under test, opened at first use."""
        if self._store is None:
            self._store = self._watch(self.harness.open())
        return self._store

    def other(self) -> Store:
        """Open another store object on the same place."""
        _ = self.store
        return self._watch(self._part("reopen")())

    def crash(self, store: Store) -> None:
        """Drop a store as a crash of its process would."""
        self.note("crash")
        self._part("crash")(bare(store))

    def lose_power(self) -> None:
        """Make the storage forget what it was not told to make durable."""
        self.note("lose power")
        self._part("lose_power")()

    def full(self) -> AbstractContextManager[None]:
        """Return a context within which the storage has no room for more than a few bytes."""
        self.note("fill the storage")
        return cast("AbstractContextManager[None]", self._part("fill")())

    def raw_read(self, log: str) -> bytes:
        """Return a log's bytes as they lie under the store."""
        return cast(bytes, self._part("raw_read")(log))

    def raw_write(self, log: str, data: bytes) -> None:
        """Put a log's bytes under the store."""
        self.note(f"raw_write({log!r}, {show(data, 60)})")
        self._part("raw_write")(log, data)

    def _part(self, name: str) -> Callable[..., Any]:
        part = getattr(self.harness, name)
        if part is None:
            raise NotRun(f"the harness has no {name}")
        return cast("Callable[..., Any]", part)

    def sized(self, full: int, least: int = 1) -> int:
        """Return `full` scaled down by the sample that was asked for, but not below `least`."""
        return max(least, round(full * self.sample))

    def large(self, full: int, least: int) -> int:
        """Return so many bytes, scaled as by `sized`, or as many as one append takes."""
        size = self.sized(full, least)
        return min(size, self.store.capabilities.max_append or size)

    # What nearly every clause does.

    def put(self, log: str, *pieces: bytes, store: Store | None = None) -> Tail:
        """Make a log of these appends and return its tail."""
        tail = NEW
        for piece in pieces:
            tail = (store or self.store).append(log, piece, at=tail)
        return tail

    def holds(self, log: str, expected: bytes, store: Store | None = None) -> None:
        """Fail unless the log is exactly these bytes, by every way to ask."""
        store = store or self.store
        equal(store.read(log), expected, f"read({log!r})")
        equal(store.tail(log).size, len(expected), f"tail({log!r}).size")

    def lacks(self, log: str, store: Store | None = None) -> None:
        """Fail if the log exists, by any way to ask."""
        store = store or self.store
        for ask in (store.read, store.tail):
            try:
                found = ask(log)
            except LookupError:
                continue
            raise Failure(f"there should be no log {log!r}, but {show(found)} was found")
        equal([name for name in self.names(store=store) if name == log], [], f"a listing's rows for {log!r}")

    def names(self, prefix: str = "", *, after: str = "", store: Store | None = None) -> list[str]:
        """Return the names of a listing."""
        return names_of((store or self.store).list(prefix, after=after))

    def note(self, line: str) -> None:
        """Add a line to the reproduction."""
        self.calls += 1
        self.trace.append(line)

    def close(self) -> None:
        """Close every store that the clause has opened and not closed."""
        for store in self._opened:
            if id(store) not in self.closed:
                store.close()

    def _watch(self, store: Store) -> Store:
        self._opened.append(store)
        # A stand-in that a type checker takes for a store: clauses use nothing but a store's calls.
        return cast(Store, _Watched(store, f"s{len(self._opened)}", self))


def names_of(rows: Iterable[LogInfo]) -> list[str]:
    """Return the names of a listing's rows."""
    return [row.name for row in rows]


def bare(store: Store) -> Store:
    """Return the store itself behind the stand-in that notes its calls."""
    return store._bare if isinstance(store, _Watched) else store


class _Watched:
    """Passes every call on to a store and notes it, so that a failure can be shown as the calls that led to it."""

    def __init__(self, store: Store, name: str, case: Case) -> None:
        self._bare = store
        self._name = name
        self._case = case

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._bare, name)
        if name.startswith("_") or not callable(value):
            return value

        def call(*args: Any, **more: Any) -> Any:
            shown = [*(show(arg, 60) for arg in args), *(f"{key}={_spell(arg)}" for key, arg in more.items())]
            line = f"{self._name}.{name}({', '.join(shown)})"
            if name == "close":
                self._case.closed.add(id(self._bare))
            try:
                result = value(*args, **more)
            except BaseException as error:
                self._case.note(f"{line}  # {type(error).__name__}: {show(str(error), 100)}")
                raise
            self._case.note(line if result is None else f"{line}  # {_spell(result)}")
            return result

        call.__name__ = name
        return call

    def __enter__(self) -> Any:
        self._bare.__enter__()
        return self

    def __exit__(self, *error: object) -> Any:
        return self._bare.__exit__(*error)


def _spell(value: object) -> str:
    return "NEW" if value == NEW and isinstance(value, Tail) else show(value, 60)
