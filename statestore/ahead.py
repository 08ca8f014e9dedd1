"""Results in the order of the work, of which some is done ahead by threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import TypeVar

__all__ = ["in_order"]

T = TypeVar("T")


def in_order(work: Iterable[T | Future[T | None]], limit: int) -> Iterator[T]:
    """Yield what comes of each piece of work, in order; nothing for a future that brings None.

    Args:
        work: results, or futures of them; it is asked for further ones while the first is not done.
        limit: how many pieces may be done, or waiting, before the first of them is given.
    """
    waiting: deque[T | Future[T | None]] = deque()
    for piece in work:
        waiting.append(piece)
        while waiting and (len(waiting) > limit or _is_ready(waiting[0])):
            yield from _take(waiting)
    while waiting:
        yield from _take(waiting)


def _is_ready(piece: T | Future[T | None]) -> bool:
    return not isinstance(piece, Future) or piece.done()


def _take(waiting: deque[T | Future[T | None]]) -> Iterator[T]:
    piece = waiting.popleft()
    result = piece.result() if isinstance(piece, Future) else piece
    if result is not None:
        yield result
