"""A process that does what it is told to a store of logs and to a catalog of them, until its input ends.

Each line of standard input is a JSON list: a root, the name of a method of `Worker`, and its arguments. Each line of
standard output is what came of it.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from statestore import open_store
from statestore.catalog import Catalog
from statestore.errors import Corrupt, NotFound
from tests.catalog.parts import Chain, add, scanned, shown


class Worker:
    """One root: its store, and a catalog of it in a file beside it."""

    def __init__(self, root: Path) -> None:
        self.store = open_store(root / "logs", sync="never")
        self.catalog = Catalog(self.store, Chain(), path=root / "catalog", workers=2)

    def append(self, log: str, *bodies: str) -> None:
        with suppress(Corrupt):
            add(self.store, log, *map(str.encode, bodies))

    def delete(self, log: str) -> None:
        with suppress(NotFound):
            self.store.delete(log)

    def refresh(self, prefix: str) -> list[Any]:
        """Return what the catalog says, and what a scan does."""
        return [shown(self.catalog, prefix), scanned(self.store, prefix=prefix)]


if __name__ == "__main__":
    worker, place = None, ""
    for line in sys.stdin:
        root, what, *given = json.loads(line)
        if worker is None or root != place:
            worker, place = Worker(Path(root)), root
        print(json.dumps(getattr(worker, what)(*given)), flush=True)
