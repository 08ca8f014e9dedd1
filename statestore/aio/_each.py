"""Asynchronous iteration over what is iterated in threads, some items at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Future, wait
from time import monotonic
from typing import Any, Final, TypeVar

from statestore.aio._calls import Calls
from statestore.records import Record

__all__ = ["each"]

_ITEMS: Final = 256  # what is taken at once: so many items,
_BYTES: Final = 1 << 20  # or so many bytes of records and pieces,
_SECONDS: Final = 0.02  # or what comes in so many seconds

T = TypeVar("T")


async def each(calls: Calls, start: Callable[[], Iterator[T]], *, most: int = _ITEMS) -> AsyncGenerator[T]:
    """Yield what an iterator yields that is started, used and closed by threads of a pool.

    An error comes behind all items that were yielded before it. A thread is taken for some items at a time, so long
    iterations and short calls take turns; while those are used, the next ones are taken.

    Args:
        calls: what makes the calls.
        start: what returns the iterator.
        most: how many items are taken at once; 1 where taking one has an effect.
    """
    items: Iterator[T] | None = None
    end: Exception | None = None
    ahead: Future[tuple[list[T], Exception | None]] | None = None
    goes_on = False

    def take() -> tuple[list[T], Exception | None]:
        nonlocal items
        if items is None:
            items = start()
        return _take(items, most)

    def close() -> None:
        if ahead is not None and not ahead.cancel():
            wait([ahead])
        if let_go := getattr(items, "close", None):
            let_go()

    try:
        while end is None:
            some, end = await (calls.result(ahead) if ahead else calls.run(take))
            # Who has come back for more will do so again, and finds it there; who leaves early has cost nothing.
            ahead = calls.begin(take) if goes_on and end is None else None
            goes_on = most > 1
            for item in some:
                yield item
        if not isinstance(end, StopIteration):
            raise end
    finally:
        if not isinstance(end, StopIteration):
            await calls.finish(close)


def _take(items: Iterator[T], most: int) -> tuple[list[T], Exception | None]:
    """Return the next items, and what came behind them where that was no item."""
    some: list[T] = []
    size, until = 0, monotonic() + _SECONDS
    while len(some) < most and size < _BYTES:
        try:
            item = next(items)
        except Exception as end:
            return some, end
        some.append(item)
        size += _size(item)
        if monotonic() >= until:
            break
    return some, None


def _size(item: Any) -> int:
    if isinstance(item, bytes):
        return len(item)
    return len(item.body) if isinstance(item, Record) else 0
