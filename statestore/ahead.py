"""Results in the order of the work, of which some is done ahead by threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Queue
from threading import Event
from typing import Generic, TypeVar

__all__ = ["Stream", "in_order", "read_ahead"]

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


class Stream(Generic[T]):
    """What a thread has read ahead of something that is given piece by piece."""

    def __init__(self, source: Iterable[T], limit: int) -> None:
        self._source = source
        self._pieces: Queue[tuple[T, ...] | BaseException] = Queue(limit)
        self._unwanted = Event()

    def __iter__(self) -> Iterator[T]:
        """Yield the pieces, and raise what reading them has raised."""
        while not self._unwanted.is_set():
            piece = self._pieces.get()
            if isinstance(piece, BaseException):
                raise piece
            if not piece:
                return
            yield from piece

    def fill(self) -> None:
        """Read ahead as far as there is room; a thread does that."""
        try:
            for piece in self._source:
                self._put((piece,))
                if self._unwanted.is_set():
                    return
            self._put(())
        except BaseException as error:
            self._put(error)

    def _put(self, piece: tuple[T, ...] | BaseException) -> None:
        if not self._unwanted.is_set():
            self._pieces.put(piece)

    def close(self) -> None:
        """Let the thread end that reads ahead."""
        self._unwanted.set()
        # It waits for room at most once more: then it sees that nobody wants the rest.
        while not self._pieces.empty():
            self._pieces.get()


def read_ahead(sources: Iterable[Iterable[T]], *, workers: int, limit: int) -> Generator[Stream[T]]:
    """Yield streams of what the sources give, in order, of which some are read ahead by threads.

    A stream is over when the next one is asked for, read to its end or not.

    Args:
        sources: what is to be read.
        workers: how many of them are read at once.
        limit: how many pieces of each may be waiting.
    """
    streams: deque[Stream[T]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for source in sources:
                streams.append(Stream(source, limit))
                pool.submit(streams[-1].fill)
                if len(streams) == workers:
                    yield streams[0]
                    streams.popleft().close()
            while streams:
                yield streams[0]
                streams.popleft().close()
        finally:
            for stream in streams:
                stream.close()
