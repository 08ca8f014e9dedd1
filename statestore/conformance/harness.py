"""What the author of a backend gives the kit: how to open the store, and how to reach under it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from statestore.store import Store

__all__ = ["Factory", "Harness", "PARTS", "enter"]

PARTS: Final[Mapping[str, str]] = {
    "reopen": "opens another store object on the same place",
    "raw_read": "returns a log's bytes as they lie under the store",
    "raw_write": "puts a log's bytes under the store",
    "raw_aside": "returns the bytes that cuts have kept aside for a log",
    "spawn": "opens the same place in another process",
    "crash": "drops a store as a crash would",
    "lose_power": "makes the storage forget what was never made durable",
    "fill": "leaves the storage no room for a while",
    "requests": "counts the requests sent to the storage so far",
}
"""The optional parts of a harness and what each one does. A clause that needs a missing part is not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """One empty place for logs, and the ways to reach it. The kit asks for a new one for every clause.

    Only `open` must be there. A part that is missing makes the clauses that need it *not run*: they show in the
    report and lower the level that the store may claim.

    Attributes:
        open: opens a store on the place. It is called once for each harness.
        reopen: opens another store object on the same place, as another process would.
        raw_read: returns all bytes of a log without going through the store.
        raw_write: makes a log of these bytes without going through the store.
        raw_aside: returns what ``cut`` has kept aside for a log, in the order of the cuts.
        spawn: like `reopen`, and can be pickled: it is called in a new process. ``functools.partial`` of a
            class or a function at the top of a module can.
        crash: drops a store object as a crash of its process would, without closing it.
        lose_power: makes the storage forget all that it was not told to make durable; open stores are dropped.
        fill: returns a context manager within which the storage has room for a few bytes and not for a megabyte, as
            a full disk or a quota; afterwards there is room again.
        requests: returns how many requests have been sent to the storage so far.
        secrets: strings that must never show in a repr or an error, such as the password that opened the store.
        divergences: names of clauses that this store is known to fail, each with the reason. A divergence is
            strict: when its clause passes, that is a failure, until the entry is removed.
    """

    open: Callable[[], Store]
    reopen: Callable[[], Store] | None = None
    raw_read: Callable[[str], bytes] | None = None
    raw_write: Callable[[str, bytes], None] | None = None
    raw_aside: Callable[[str], bytes] | None = None
    spawn: Callable[[], Store] | None = None
    crash: Callable[[Store], None] | None = None
    lose_power: Callable[[], None] | None = None
    fill: Callable[[], AbstractContextManager[None]] | None = None
    requests: Callable[[], int] | None = None
    secrets: tuple[str, ...] = ()
    divergences: Mapping[str, str] = field(default_factory=dict)

    def missing(self, parts: tuple[str, ...]) -> list[str]:
        """Return those of `parts` that this harness has not."""
        return [part for part in parts if getattr(self, part) is None]


Factory = Callable[[Path], Any]
"""Makes a harness for an empty directory that is removed afterwards: a function that returns a `Harness`, a
context manager of one, or a generator function that yields one and cleans up behind it."""


def enter(factory: Factory, place: Path) -> AbstractContextManager[Harness]:
    """Return a context manager of the harness that `factory` makes for `place`, however it makes it.

    Raises:
        TypeError: on entering, where the factory makes something else.
    """
    if inspect.isgeneratorfunction(factory):
        made: Any = contextmanager(factory)(place)
    else:
        made = factory(place)
    return made if isinstance(made, AbstractContextManager) else _given(made)


@contextmanager
def _given(made: object) -> Iterator[Harness]:
    if not isinstance(made, Harness):
        raise TypeError(f"a harness factory returns or yields a Harness, not {type(made).__name__}")
    yield made
