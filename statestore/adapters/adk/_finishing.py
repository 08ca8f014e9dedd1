"""Work in threads that is finished although who waits for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["finish"]

T = TypeVar("T")


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine gives. Where the caller is cancelled meanwhile, that counts once the work is done."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # nobody will ask for it
        raise cancelled
    return task.result()
