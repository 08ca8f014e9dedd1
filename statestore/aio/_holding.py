"""What is taken and let go by threads: never kept by a task that is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Protocol, TypeVar

from statestore.aio._pool import Cancelled, Pool

__all__ = ["holding", "opened"]


class _Closing(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=_Closing)


@asynccontextmanager
async def holding(pool: Pool, hold: Callable[[], AbstractContextManager[None]]) -> AsyncIterator[None]:
    """Enter a context by a thread, and leave it by one, whatever is cancelled meanwhile."""
    context = hold()
    try:
        await pool.run(context.__enter__)
    except Cancelled as cancelled:
        if cancelled.error is None:
            await pool.finish(context.__exit__, None, None, None)
        raise
    try:
        yield
    finally:
        await pool.finish(context.__exit__, None, None, None)


async def opened(pool: Pool, call: Callable[[], T]) -> T:
    """Return what a call opens; where this task is cancelled, it is closed again."""
    try:
        return await pool.run(call)
    except Cancelled as cancelled:
        if cancelled.error is None:
            await pool.finish(cancelled.result.close)
        raise
