"""What is taken and let go by threads: never kept by a task that is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import TypeVar

from statestore.aio._calls import Calls, outcome, tell

__all__ = ["holding", "taken"]

T = TypeVar("T")


@asynccontextmanager
async def holding(calls: Calls, hold: Callable[[], AbstractContextManager[None]]) -> AsyncIterator[None]:
    """Enter a context by a thread, and leave it by one, whatever is cancelled meanwhile."""

    def enter() -> AbstractContextManager[None]:
        context = hold()
        context.__enter__()
        return context

    def leave(context: AbstractContextManager[None]) -> None:
        context.__exit__(None, None, None)

    try:
        context = await taken(calls, enter, leave)
    except asyncio.CancelledError as cancelled:
        tell(cancelled, None)  # nothing came of it: it is not held
        raise
    try:
        yield
    finally:
        await calls.finish(leave, context)


async def taken(calls: Calls, take: Callable[[], T], let_go: Callable[[T], object]) -> T:
    """Return what a call takes; where this task is cancelled, that is let go again."""
    try:
        return await calls.run(take)
    except asyncio.CancelledError as cancelled:
        if (came := outcome(cancelled)) and came.error is None:
            await calls.finish(let_go, came.result)
        raise
