"""Following a live log without keeping a thread for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Final

from statestore.aio._calls import Calls
from statestore.aio._each import each
from statestore.records import Following, Record
from statestore.records.follow import Pace

__all__ = ["follow"]

_SLICE: Final = 0.5  # seconds for which a thread waits at most, and for which closing the pool may have to wait


async def follow(calls: Calls, place: Following, *, timeout: float | None = None) -> AsyncGenerator[Record]:
    """Yield the records of a live log as they come."""
    pace = Pace(timeout)
    while True:
        seen = place.seen
        async with aclosing(each(calls, place.news)) as news:
            async for record in news:
                yield record
                pace.given()
        rest = pace.rest(moved=place.seen != seen)
        if not rest:
            return
        told = False
        while rest > 0 and not told:
            some = min(rest, _SLICE)
            told = await calls.rest(partial(place.store.wait, place.log, place.seen) if pace.ask else None, some)
            rest -= some
        pace.rested(told=told)
