"""Reading many logs at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Final, TypeVar

from statestore.ahead import in_order
from statestore.errors import NotFound, StateStoreError

if TYPE_CHECKING:
    from statestore.records.scan import Fetch
    from statestore.store import Store

__all__ = ["JOBS", "count_logs", "each_log"]

T = TypeVar("T")

JOBS: Final = 8
_AHEAD: Final = 4  # results for each job that may wait for the first one


def each_log(
    store: Store, logs: Iterable[str], look: Callable[[str, Fetch], T], jobs: int
) -> Generator[tuple[str, T | StateStoreError]]:
    """Yield each log's name and what was found in it, or the error that it cannot be read for, in order.

    A log that is not there, or no more, is left out. Whatever ends this, the threads end before the next read.

    Args:
        store: whose logs they are.
        logs: their names, asked for as the work goes on.
        look: looks through one log, given its name and what fetches its bytes.
        jobs: how many logs are read at once.
    """
    ended = Event()

    def work(log: str) -> tuple[str, T | StateStoreError] | None:
        def fetch(start: int, stop: int) -> bytes:
            if ended.is_set():
                raise CancelledError
            return read(start, stop)

        try:
            read = store.snapshot(log).read
            return log, look(log, fetch)
        except NotFound:
            return None
        except StateStoreError as error:
            return log, error

    def submit(log: str) -> tuple[str, T | StateStoreError] | Future[tuple[str, T | StateStoreError] | None]:
        return pool.submit(work, log)

    pool = ThreadPoolExecutor(jobs, thread_name_prefix="look")
    try:
        yield from in_order(map(submit, logs), _AHEAD * jobs)
    finally:
        ended.set()
        pool.shutdown(cancel_futures=True)


def count_logs(store: Store, prefix: str = "") -> int | None:
    """Return how many logs a bar has to show; None where there is no terminal for one, since a listing is not free."""
    return sum(1 for _ in store.list(prefix)) if sys.stderr.isatty() else None
