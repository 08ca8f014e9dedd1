"""A run: the operations that were asked for, one after another, in a place that is gone afterwards."""

from __future__ import annotations

import platform
from collections.abc import Collection, Generator
from dataclasses import asdict
from typing import Any, Self

from statestore.bench._measure import Meter, Row
from statestore.bench._place import Place, Sizes
from statestore.bench._traffic import Watch
from statestore.bench._work import OPERATIONS, Operation
from statestore.store import Store

__all__ = ["Bench"]


class Bench:
    """Measures what a store can do, below a fresh prefix of it, which is emptied when the context ends.

    Each operation is checked: what was written is what is read. No log elsewhere is touched.

    Args:
        store: the store. Where a watch counts, it must not have been called before.
        sizes: how much is done.
        only: the names of the operations to do; by default all of `OPERATIONS`.
        watch: counts what goes over the wire; by default nobody does.

    Attributes:
        store: the store.
        sizes: how much is done.
        prefix: what the names of all logs begin with that a run makes.
        rows: what has been measured so far.
        left: once the context has ended, what could not be removed, in words.

    Raises:
        ValueError: there is no such operation.
    """

    def __init__(
        self, store: Store, sizes: Sizes | None = None, *, only: Collection[str] = (), watch: Watch | None = None
    ) -> None:
        unknown = sorted(set(only) - {operation.name for operation in OPERATIONS})
        if unknown:
            raise ValueError(f"no such operation: {', '.join(unknown)}")
        self.sizes = sizes or Sizes()
        self.rows: list[Row] = []
        self.store = store
        self._place = Place(store, self.sizes)
        self._watch = watch or Watch()
        self._operations = [operation for operation in OPERATIONS if not only or operation.name in only]
        self._running: Generator[Row | None] | None = None
        self.prefix = self._place.prefix
        self.left = self._place.left

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._running is not None:
                self._running.close()
        finally:
            self._place.clean()

    @property
    def total(self) -> int:
        """How many times `run` will yield."""
        return sum(1 + (0 if self._lacks(each) else each.times(self.sizes)) for each in self._operations)

    def run(self) -> Generator[Row | None]:
        """Do the operations, once; yield None whenever one was done once, and a row when it was measured.

        Raises:
            StateStoreError: the store failed, or what was read is not what was written.
        """
        self._running = self._run()
        return self._running

    def _run(self) -> Generator[Row | None]:
        for operation in self._operations:
            lacks = self._lacks(operation)
            if lacks:
                row = Row(operation=operation.name, item=operation.item, skipped=f"the store lacks {lacks}")
            else:
                meter = Meter(self._watch)
                yield from operation.work(self._place, meter)
                row = meter.row(operation.name, operation.item)
            self.rows.append(row)
            yield row

    def _lacks(self, operation: Operation) -> str:
        """Return the capability that an operation needs and the store has not, or ``""``."""
        can = self.store.capabilities
        return operation.needs if operation.needs and not getattr(can, operation.needs) else ""

    def describe(self) -> dict[str, Any]:
        """Return all that was found, for JSON: by what, where, on which store, and the rows. No credential is in it."""
        from statestore import __version__

        return {
            "statestore": __version__,
            "python": platform.python_version(),
            "implementation": platform.python_implementation(),
            "platform": platform.platform(),
            "store": repr(self.store),
            "capabilities": asdict(self.store.capabilities),
            "sizes": asdict(self.sizes) | {"batch": self._place.batch},
            "counted": self._watch.sessions > 0,
            "rows": [row.describe() for row in self.rows],
            "left": list(self.left),
        }
