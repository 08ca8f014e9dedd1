"""What is taken and let go by threads: never kept by a task that is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from typing import Protocol, TypeVar

from statestore.aio._calls import Calls, outcome

__all__ = ["holding", "opened"]


class _Closing(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=_Closing)


@asynccontextmanager
async def holding(calls: Calls, hold: Callable[[], AbstractContextManager[None]]) -> AsyncIterator[None]:
    """Enter a context by a thread, and leave it by one, whatever is cancelled meanwhile."""
    context = hold()
    leave = partial(context.__exit__, None, None, None)
    try:
        await calls.run(context.__enter__)
    except asyncio.CancelledError as cancelled:
        if (came := outcome(cancelled)) and came.error is None:
            await calls.finish(leave)
        raise
    try:
        yield
    finally:
        await calls.finish(leave)


async def opened(calls: Calls, call: Callable[[], T]) -> T:
    """Return what a call opens; where this task is cancelled, it is closed again."""
    try:
        return await calls.run(call)
    except asyncio.CancelledError as cancelled:
        if (came := outcome(cancelled)) and came.error is None:
            await calls.finish(came.result.close)
        raise
