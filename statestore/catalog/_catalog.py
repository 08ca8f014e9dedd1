"""The catalog: a listing with tails, joined with what is kept, and the logs that have grown read by several threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from threading import Event
from typing import Final, Generic, Self, TypeVar

from statestore import names
from statestore.ahead import in_order
from statestore.caches import cache_directory
from statestore.catalog._file import States
from statestore.catalog._folding import Fold, Folded, fold_log
from statestore.errors import Closed, NotFound, StateStoreError
from statestore.store import LogInfo, Store, Tail

__all__ = ["Catalog", "Row"]

S = TypeVar("S")

_AHEAD: Final = 8  # logs for each worker that may be done, or waiting, before the first of them is given
_BATCH: Final = 256  # logs whose states are written to the file at once
_BATCH_SIZE: Final = 1 << 20  # bytes of them


@dataclass(frozen=True, slots=True)
class Row(Generic[S]):
    """What a catalog says of one log.

    Attributes:
        log: its name.
        value: the fold of all its records; None where there is an error.
        tail: where the log ends of which this is said; None where it could not be read.
        error: why there is no value: the log is damaged, or its storage failed.
    """

    log: str
    value: S | None
    tail: Tail | None
    error: StateStoreError | None = None


class Catalog(Generic[S]):
    """Answers about many logs, each the fold of one log, always as the logs are now.

    What was folded is kept in a local file with the tail that it reflects. Where a listing shows the same tail, the log
    is not read; where it has grown, only what is new is. Nothing is written where the logs are.

    The file may be removed at any time. One that is damaged, or of another version, is made again; one that is locked,
    full or read-only is not used, and a warning of the logger ``statestore.catalog`` tells so, once for each kind of
    problem. Answers do not depend on it. Several threads and processes may share it, and so may several stores and
    folds.

    A store without ``runs`` cannot tell a log from another one of the same size that was made under its name; there the
    last record of each log is read each time, and where it is the same, the log is.

    Args:
        store: whose logs; closing the catalog does not close it.
        fold: what to make of each.
        path: the file. By default one for this store and fold in the user's directory of caches. There is none, and all
            is kept in memory, where the store is not `shared`, or has no origin.
        origin: what the store is, such as its URL: two stores that may hold different logs under the same names and
            runs need two. By default where its logs are; a store that does not say has none.
        workers: how many logs are read at once.

    Raises:
        ValueError: there are no workers.
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
        if workers < 1:
            raise ValueError(f"at least one worker is needed: workers={workers}")
        self.store = store
        self.fold = fold
        self._workers = workers
        origin = origin or _origin(store)
        place = repr((origin, fold.name))
        self._states = States(_file(store, origin, path, place), place, fold.version, own=path is None)
        self._closed = False

    def __repr__(self) -> str:
        return f"Catalog({self.store!r}, {self.fold.name!r})"

    @property
    def path(self) -> str | None:
        """The file; None where everything is kept in memory."""
        return self._states.path

    def refresh(self, prefix: str = "", *, select: Callable[[str], bool] | None = None) -> Iterator[Row[S]]:
        """Yield a row for each log whose name begins with `prefix`, in the order of the names.

        The work is done as the rows are taken. A log that was made or deleted meanwhile shows or not, as in a listing.
        What is wrong with one log is told in its row, and does not stop the others.

        Args:
            prefix: text, not a folder.
            select: which of these logs, by their names; the others are not read, and have no row.

        Raises:
            InvalidName: no name begins with `prefix`; raised at once.
            Closed: the catalog or its store was closed.
            Unavailable: the store cannot be listed; raised when the rows are taken.
        """
        return self._refresh(prefix, select, anew=False)

    def get(self, log: str) -> S:
        """Return the fold of one log, as it is now.

        Raises:
            NotFound: there is no such log.
            StateStoreError: it cannot be read, or is damaged.
        """
        names.check(log)
        self._check_open()
        kept = self._states.get(log)
        try:
            result = fold_log(self.store, self.fold, log, kept, lambda: None)
        except NotFound:
            if kept:
                self._states.change({}, [log])
            raise
        if result.folded != kept:
            self._states.change({log: result.folded})
        if result.error:
            raise result.error
        return result.state

    def rebuild(self, prefix: str = "", *, select: Callable[[str], bool] | None = None) -> Iterator[Row[S]]:
        """Yield a row for each log as `refresh` does, from its first record on: nothing that was kept is believed."""
        return self._refresh(prefix, select, anew=True)

    def clear(self) -> None:
        """Forget what is kept of this store's logs and this fold."""
        self._check_open()
        self._states.clear()

    def close(self) -> None:
        """Let go of the file; every later call but this one raises ``Closed``."""
        self._closed = True
        self._states.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("this catalog was closed: make another one", fold=self.fold.name)

    def _refresh(self, prefix: str, select: Callable[[str], bool] | None, *, anew: bool) -> Iterator[Row[S]]:
        names.check_prefix(prefix)
        self._check_open()
        return self._rows(prefix, select, anew)

    def _rows(self, prefix: str, select: Callable[[str], bool] | None, anew: bool) -> Iterator[Row[S]]:
        changes = _Changes(self._states)
        stop = Event()

        def check_going() -> None:
            if stop.is_set():
                raise CancelledError

        def bring(log: str, kept: Folded | None) -> _Done[S] | None:
            return self._bring(log, kept, check_going)

        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="catalog")
        try:
            work = (
                self._fresh(info, kept) or pool.submit(bring, info.name, kept)
                for info, kept in self._joined(prefix, select, anew, changes)
            )
            for done in in_order(work, _AHEAD * self._workers):
                if done.folded is not None:
                    changes.put(done.row.log, done.folded)
                yield done.row
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
            changes.write()

    def _joined(
        self, prefix: str, select: Callable[[str], bool] | None, anew: bool, changes: _Changes
    ) -> Iterator[tuple[LogInfo, Folded | None]]:
        """Yield the logs of a listing with what is kept of each; what is kept of logs that are gone goes."""
        rows = self._states.walk(prefix)
        row = next(rows, None)
        for info in self.store.list(prefix, tails=True):
            while row and row[0] < info.name:
                changes.drop(row[0])
                row = next(rows, None)
            kept = None
            if row and row[0] == info.name:
                kept = row[1]
                row = next(rows, None)
            if select is None or select(info.name):
                yield info, None if anew else kept
        while row:
            changes.drop(row[0])
            row = next(rows, None)

    def _fresh(self, info: LogInfo, kept: Folded | None) -> _Done[S] | None:
        """Return what is kept of a log if its tail proves that it is all; None where the log has to be read."""
        if kept is None or info.tail is None or not kept.is_all(info.tail):
            return None
        try:
            return _Done(Row(info.name, self.fold.load(kept.state), info.tail))
        except Exception:
            return None  # and is folded anew

    def _bring(self, log: str, kept: Folded | None, check_going: Callable[[], None]) -> _Done[S] | None:
        """Return what a log comes to by now; None where there is none any more."""
        try:
            result = fold_log(self.store, self.fold, log, kept, check_going)
        except NotFound:
            return None
        except Closed:
            raise
        except StateStoreError as error:
            return _Done(Row(log, None, None, error))
        new = result.folded if result.folded != kept else None
        value = None if result.error else result.state
        return _Done(Row(log, value, result.folded.tail, result.error), new)


@dataclass(frozen=True, slots=True)
class _Done(Generic[S]):
    """A row, and what is to be kept for it where that has changed."""

    row: Row[S]
    folded: Folded | None = None


class _Changes:
    """What is to be written to the file, some of it at a time."""

    def __init__(self, states: States) -> None:
        self._states = states
        self._put: dict[str, Folded] = {}
        self._drop: list[str] = []
        self._size = 0

    def put(self, log: str, folded: Folded) -> None:
        self._put[log] = folded
        self._size += len(folded.state)
        self._write_many()

    def drop(self, log: str) -> None:
        self._drop.append(log)
        self._write_many()

    def _write_many(self) -> None:
        if len(self._put) + len(self._drop) >= _BATCH or self._size >= _BATCH_SIZE:
            self.write()

    def write(self) -> None:
        """Write what there is."""
        self._states.change(self._put, self._drop)
        self._put, self._drop, self._size = {}, [], 0


def _origin(store: Store) -> str:
    """Return where a store's logs are; nothing where it does not say."""
    where = store.location("0")
    return "" if where == "0" else where


def _file(store: Store, origin: str, path: str | os.PathLike[str] | None, place: str) -> str | None:
    if not store.capabilities.shared or not origin:
        return None
    if path is not None:
        return os.path.abspath(path)
    digest = blake2b(place.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return str(cache_directory("catalog") / f"{digest}.sqlite3")
