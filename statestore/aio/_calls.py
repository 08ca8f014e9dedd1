"""The calls of one store: awaited, counted, and over before their task is cancelled."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, ParamSpec, TypeVar

from statestore.aio._pool import Pool, aside, settled
from statestore.aio._turns import Turns
from statestore.errors import Closed

__all__ = ["Calls", "Outcome", "outcome", "tell"]

P = ParamSpec("P")
T = TypeVar("T")

_OUTCOME = "statestore_outcome"  # the attribute of a CancelledError that says what came of the call


class Outcome(NamedTuple):
    """What came of a call that was under way when its task was cancelled.

    Attributes:
        result: what it returned; None where it failed.
        error: what it raised; None where it returned.
    """

    result: Any = None
    error: BaseException | None = None


def outcome(error: BaseException | None) -> Outcome | None:
    """Return what came of the call that a task was cancelled in; None where none was begun, nor ever will be.

    What was only taken for the task, as a hold is, has been let go.

    Args:
        error: the ``asyncio.CancelledError`` that the call raised, or what has it as its cause, such as the
            ``TimeoutError`` of ``asyncio.timeout``.
    """
    while error is not None:
        found = getattr(error, _OUTCOME, None)
        if isinstance(found, Outcome):
            return found
        error = error.__cause__
    return None


class Calls:
    """The calls of one store, made by threads of a pool.

    Args:
        pool: the threads.

    Attributes:
        turns: the lines of those who wait for their turn.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.turns = Turns()
        self._closed = False
        self._pid = os.getpid()
        self._under_way: set[Future[Any]] = set()

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a call returns.

        Raises:
            asyncio.CancelledError: this task was cancelled. Had the call begun, it is over, and `outcome` tells what
                came of it; otherwise it will not begin.
            Closed: the store or the pool was closed.
        """
        return await self.result(self.begin(partial(call, *args, **kwargs)))

    def begin(self, call: Callable[[], T]) -> Future[T]:
        """Have a call made; whoever begins one awaits its `result`, or cancels it."""
        self._check()
        return self._begin(call)

    async def result(self, future: Future[T]) -> T:
        """Return what a call returns that was begun; see `run`."""
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError as cancelled:
            if not future.cancel():
                with suppress(asyncio.CancelledError):
                    await settled(future)
                error = future.exception()
                tell(cancelled, Outcome(error=error) if error else Outcome(future.result()))
            raise

    async def in_turn(self, name: str, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a call returns that is made when all those of that name that came before are over."""
        async with self.turns.of(name):
            return await self.run(call, *args, **kwargs)

    async def finish(self, call: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Make a call that lets something go: it is made even where this task is cancelled, or the store closed."""
        during = sys.exception()
        let_go = partial(call, *args, **kwargs)
        try:
            future = self._begin(let_go)
        except Closed:  # the pool was
            future = aside(let_go)
        try:
            await settled(future)
        except asyncio.CancelledError as cancelled:
            # The task was cancelled before, in another call: it is that one which it has to be told of.
            tell(cancelled, outcome(during))
            raise
        future.result()

    async def rest(self, wait: Callable[[float], bool] | None, seconds: float) -> bool:
        """Rest so many seconds, or until `wait`, called in a thread of its own where one is free, returns True.

        Where this task is cancelled nobody waits for the thread: `wait` changes nothing.
        """
        self._check()
        future = self.pool.wait(partial(wait, seconds)) if wait is not None else None
        if future is None:
            await asyncio.sleep(seconds)
            return False
        return await asyncio.wrap_future(self._count(future))

    async def aclose(self) -> None:
        """Refuse further calls, and return when those that were asked for are over."""
        self._closed = True
        self._notice_fork()
        await settled(*self._under_way.copy())

    def _check(self) -> None:
        if self._closed:
            raise Closed("this store was closed: open another one")

    def _begin(self, call: Callable[[], T]) -> Future[T]:
        return self._count(self.pool.submit(call))

    def _notice_fork(self) -> None:
        """Forget the calls of another process: here they never end."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._under_way = set()

    def _count(self, future: Future[T]) -> Future[T]:
        self._notice_fork()
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return future


def tell(cancelled: asyncio.CancelledError, came: Outcome | None) -> None:
    """Have `outcome` say so."""
    setattr(cancelled, _OUTCOME, came)
