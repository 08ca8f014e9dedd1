"""Catalogs, awaited."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Generic, TypeVar

from statestore import catalog
from statestore.aio._closing import Closing
from statestore.aio._each import each
from statestore.aio._stores import Store
from statestore.catalog import Fold, Row

__all__ = ["Catalog"]

S = TypeVar("S")


class Catalog(Closing, Generic[S]):
    """Answers about many logs, awaited; each call is that of the same name of :class:`statestore.catalog.Catalog`.

    Args:
        store: whose logs.
        fold: what to make of each.
        path: the file; by default one in the user's directory of caches, or none. See
            :class:`statestore.catalog.Catalog`.
        origin: what the store is, such as its URL.
        workers: how many logs each iteration reads at once, by threads of its own beside those of the pool.

    Attributes:
        store: whose logs.
        fold: what is made of each.
        sync: the catalog itself.
    """

    def __init__(
        self,
        store: Store,
        fold: Fold[S],
        *,
        path: str | os.PathLike[str] | None = None,
        origin: str | None = None,
        workers: int = 8,
    ) -> None:
        self.store = store
        self.fold = fold
        self.sync = catalog.Catalog(store.sync, fold, path=path, origin=origin, workers=workers)
        self._calls = store.calls

    def __repr__(self) -> str:
        return f"aio.{self.sync!r}"

    @property
    def path(self) -> str | None:
        """The file; None where everything is kept in memory."""
        return self.sync.path

    async def aclose(self) -> None:
        """Let go of the file; every later call but this one raises ``Closed``."""
        await self._calls.finish(self.sync.close)

    def refresh(self, prefix: str = "", *, select: Callable[[str], bool] | None = None) -> AsyncGenerator[Row[S]]:
        """Yield a row for each log whose name begins with `prefix`, in the order of the names."""
        return each(self._calls, partial(self.sync.refresh, prefix, select=select))

    async def get(self, log: str) -> S:
        """Return the fold of one log, as it is now."""
        return await self._calls.run(self.sync.get, log)

    def rebuild(self, prefix: str = "", *, select: Callable[[str], bool] | None = None) -> AsyncGenerator[Row[S]]:
        """Yield a row for each log as `refresh` does, from its first record on: nothing that was kept is believed."""
        return each(self._calls, partial(self.sync.rebuild, prefix, select=select))

    async def clear(self) -> None:
        """Forget what is kept of this store's logs and this fold."""
        await self._calls.run(self.sync.clear)
