"""The threads that calls run on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock, Thread
from typing import Final, Self, TypeVar

from statestore.errors import Closed

__all__ = ["Pool", "SIZE", "WAITERS"]

SIZE: Final = 64
"""How many threads a pool has at most by default. ``docs/performance.md`` has the measurement."""

WAITERS: Final = 16
"""How many more may wait for a log to change."""

T = TypeVar("T")


class Pool:
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Have a thread make a call, in a copy of this context, as soon as one is free.

        Raises:
            Closed: the pool was closed.
        """
        self._check()
        return self._threads.submit(copy_context().run, call)

    def wait(self, call: Callable[[], T]) -> Future[T] | None:
        """Have a thread make a call that waits for a log to change; None where as many wait as may.

        Raises:
            Closed: the pool was closed.
        """
        self._check()
        with self._lock:
            if self._waits == self.waiters:
                return None
            self._waits += 1
        future = self._waiting.submit(copy_context().run, call)
        future.add_done_callback(self._waited)
        return future

    def _waited(self, _: object) -> None:
        with self._lock:
            self._waits -= 1

    def _check(self) -> None:
        if os.getpid() != self._pid:
            self._begin()
        if self._closed:
            raise Closed("this pool was closed: make another one")

    async def aclose(self) -> None:
        """Refuse further calls, and return when those that were asked for are over; closing twice is nothing."""
        self._closed = True
        if os.getpid() != self._pid:
            return
        over: Future[None] = Future()

        def shut_down() -> None:
            self._threads.shutdown()
            self._waiting.shutdown()
            over.set_result(None)

        Thread(target=shut_down, name="statestore-aio-close").start()
        await asyncio.shield(asyncio.wrap_future(over))
