"""The threads that calls run on, and what becomes of a call whose task is cancelled."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Lock, Thread
from typing import Any, Final, ParamSpec, Self, TypeVar

from statestore.errors import Closed

__all__ = ["Cancelled", "Pool", "SIZE", "WAITERS"]

SIZE: Final = 64
"""How many threads a pool has at most by default. ``docs/performance.md`` has the measurement."""

WAITERS: Final = 16
"""How many more may wait for a log to change."""

P = ParamSpec("P")
T = TypeVar("T")


class Cancelled(asyncio.CancelledError):
    """The task was cancelled while its call was under way; the call has come to its end, and this is what came of it.

    A plain ``asyncio.CancelledError`` says that the call was not begun, and never will be. Under
    ``asyncio.timeout`` it is the ``__cause__`` of the ``TimeoutError``.

    Attributes:
        result: what the call returned; None where it failed.
        error: what it raised, which is also the ``__cause__``; None where it returned.
    """

    def __init__(self, result: Any = None, error: BaseException | None = None) -> None:
        super().__init__("the call had begun, and was waited for")
        self.result = result
        self.error = error


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
        self._resting = ThreadPoolExecutor(max(self.waiters, 1), "statestore-aio-wait")
        self._rests = 0

    def __repr__(self) -> str:
        return f"Pool({self.size}, waiters={self.waiters})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a call returns, made by a thread in a copy of this context.

        Raises:
            asyncio.CancelledError: this task was cancelled before the call began; it will not begin.
            Cancelled: this task was cancelled later; the call is over.
            Closed: the pool was closed.
        """
        future = self._submit(self._threads, partial(call, *args, **kwargs))
        done = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            if future.cancel():
                raise
            raise await _outlast(done) from done.exception()

    async def finish(self, call: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Make a call that lets something go: it is made even where this task is cancelled meanwhile.

        Raises:
            Cancelled: this task was cancelled; the call is over.
        """
        done = asyncio.wrap_future(self._submit(self._threads, partial(call, *args, **kwargs)))
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:
            raise await _outlast(done) from done.exception()

    async def rest(self, wait: Callable[[float], bool] | None, seconds: float) -> bool:
        """Rest so many seconds, or until `wait`, called in a thread of its own where one is free, returns True.

        Where this task is cancelled nobody waits for the thread: `wait` changes nothing.
        """
        with self._lock:
            free = wait is not None and self._rests < self.waiters
            self._rests += free
        if not free:
            await asyncio.sleep(seconds)
            return False
        assert wait is not None
        try:
            future = self._submit(self._resting, partial(wait, seconds))
        except BaseException:
            self._rested()
            raise
        future.add_done_callback(self._rested)
        return await asyncio.wrap_future(future)

    def _rested(self, _: object = None) -> None:
        with self._lock:
            self._rests -= 1

    def _submit(self, threads: ThreadPoolExecutor, call: Callable[[], T]) -> Future[T]:
        if os.getpid() != self._pid:
            resting = threads is self._resting
            self._begin()
            threads = self._resting if resting else self._threads
        if self._closed:
            raise Closed("this pool was closed: make another one")
        return threads.submit(copy_context().run, call)

    async def aclose(self) -> None:
        """Refuse further calls, and return when those that were asked for are over; closing twice is nothing."""
        self._closed = True
        if os.getpid() != self._pid:
            return
        over: Future[None] = Future()

        def shut_down() -> None:
            self._threads.shutdown()
            self._resting.shutdown()
            over.set_result(None)

        Thread(target=shut_down, name="statestore-aio-close").start()
        await asyncio.shield(asyncio.wrap_future(over))


async def _outlast(done: asyncio.Future[Any]) -> Cancelled:
    """Return how a call ended that is waited for however often this task is cancelled."""
    while not done.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([done])
    error = done.exception()
    return Cancelled(error=error) if error else Cancelled(done.result())
