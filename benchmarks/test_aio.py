"""A call from asyncio beside the call itself, and beside what the standard library would make of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from benchmarks.conftest import Compare
from statestore import aio
from statestore.records import RecordLog
from statestore_local import LocalStore

BODY = b"x" * 1024


def test_a_hundred_appends_beside_to_thread(local: Callable[[str], LocalStore], compare: Compare) -> None:
    store = local("never")
    logs = [RecordLog(store, f"theirs-{n}") for n in range(100)]
    for log in logs:
        log.append("note", BODY, expect=1)

    with asyncio.Runner() as runner:

        async def make() -> list[aio.RecordLog]:
            over = aio.Store(store, pool=aio.Pool(32))
            ours = [aio.RecordLog(over, f"ours-{n}") for n in range(100)]
            await asyncio.gather(*(log.append("note", BODY, expect=1) for log in ours))
            return ours

        async def append(logs: list[aio.RecordLog]) -> None:
            await asyncio.gather(*(log.append("note", BODY) for log in logs))

        async def append_by_library() -> None:
            await asyncio.gather(*(asyncio.to_thread(log.append, "note", BODY) for log in logs))

        ours = runner.run(make())
        compare(
            lambda: runner.run(append(ours)),
            lambda: runner.run(append_by_library()),
            against="asyncio.to_thread",
            times=5,
        )
        assert runner.run(ours[0].count()) > 1
        runner.run(ours[0].store.calls.pool.aclose())
