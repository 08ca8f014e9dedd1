"""The threads that calls run on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock, Thread
from typing import Any, Final, TypeVar

from statestore.aio._closing import Closing
from statestore.errors import Closed

__all__ = ["Pool", "SIZE", "WAITERS", "aside", "settled"]

SIZE: Final = 64
"""How many threads a pool has at most by default. ``docs/performance.md`` has the measurement."""

WAITERS: Final = 16
"""How many more may wait for a log to change."""

T = TypeVar("T")


class Pool(Closing):
    """Threads for calls, no more than `size` at a time; further calls wait for their turn, the first come first.

    Threads are made when they are needed. A process that was forked begins with none. One pool may serve several
    stores and several event loops.

    Args:
        size: how many calls may be under way at a time.
        waiters: how many logs may be waited for by threads of their own; to followers beyond that number, a log's end
            is looked at now and then.

    Raises:
        ValueError: `size` is below 1, or `waiters` below 0.
    """

    def __init__(self, size: int = SIZE, *, waiters: int = WAITERS) -> None:
        if size < 1 or waiters < 0:
            raise ValueError(f"a pool has at least one thread, and no fewer than 0 wait: {size=} {waiters=}")
        self.size = size
        self.waiters = waiters
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(self.size, "statestore-aio")
        self._waiting = ThreadPoolExecutor(max(self.waiters, 1), "statestore-aio-wait")
        self._waits = 0

    def __repr__(self) -> str:
        return f"Pool({self.size}, waiters={self.waiters})"

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Have a thread make a call, in a copy of this context, as soon as one is free.

        Raises:
            Closed: the pool was closed.
        """
        self._notice_fork()
        return self._submit(self._threads, call)

    def wait(self, call: Callable[[], T]) -> Future[T] | None:
        """Have a thread make a call that waits for a log to change; None where as many wait as may.

        Raises:
            Closed: the pool was closed.
        """
        self._notice_fork()
        with self._lock:
            if self._waits == self.waiters:
                return None
            self._waits += 1
        try:
            future = self._submit(self._waiting, call)
        except Closed:
            self._waited()
            raise
        future.add_done_callback(self._waited)
        return future

    def _waited(self, _: object = None) -> None:
        with self._lock:
            self._waits -= 1

    def _submit(self, threads: ThreadPoolExecutor, call: Callable[[], T]) -> Future[T]:
        if not self._closed:
            future, make = _promise(call)
            try:
                threads.submit(copy_context().run, make)
            except RuntimeError:  # another thread has just closed it; or no thread can be started, and it stays in line
                if future.cancel() and not self._closed:
                    raise
            if not future.cancelled():
                return future
        raise Closed("this pool was closed: make another one")

    def _notice_fork(self) -> None:
        if os.getpid() != self._pid:
            self._begin()

    async def aclose(self) -> None:
        """Refuse further calls, and return when those that were asked for are over; closing twice is nothing."""
        self._closed = True
        self._notice_fork()
        await settled(aside(self._shut_down))

    def _shut_down(self) -> None:
        self._threads.shutdown()
        self._waiting.shutdown()


def _promise(call: Callable[[], T]) -> tuple[Future[T], Callable[[], None]]:
    """Return a future, and what makes the call for it unless it was cancelled before."""
    future: Future[T] = Future()

    def make() -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)

    return future, make


def aside(call: Callable[[], T]) -> Future[T]:
    """Have a thread of its own make a call: for what has to be done although there is no pool any more."""
    future, make = _promise(call)
    Thread(target=make, name="statestore-aio-close").start()
    return future


async def settled(*futures: Future[Any]) -> None:
    """Return when all of these are over; a task that is cancelled meanwhile, once or often, learns of it then."""
    ends = [asyncio.wrap_future(future) for future in futures]
    cancelled: asyncio.CancelledError | None = None
    while not all(end.done() for end in ends):
        try:
            await asyncio.wait(ends)
        except asyncio.CancelledError as error:
            cancelled = error
    for end in ends:
        if not end.cancelled():
            end.exception()  # whoever made the call is told: nobody is to be warned that it was not looked at here
    if cancelled:
        raise cancelled
