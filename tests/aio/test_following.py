"""Following a live log, awaited: as it grows, by thousands, with no thread for those that are idle."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from statestore import aio
from statestore.errors import NotFound
from statestore.records import RecordLog
from statestore_local import LocalStore
from statestore_memory import MemoryStore

from .conftest import Gate, go, ours


def test_records_come_as_they_are_appended(tmp_path: Path) -> None:
    sync = LocalStore(tmp_path, sync="never")
    writer = RecordLog(sync, "log")
    writer.append("note", b"1", expect=1)

    async def main() -> None:
        async with (
            aio.Store(LocalStore(tmp_path, sync="never")) as store,
            aclosing(aio.RecordLog(store, "log").follow()) as records,
        ):
            assert (await anext(records)).body == b"1"
            for n in range(2, 6):
                coming = asyncio.ensure_future(anext(records))
                await asyncio.sleep(0)
                await asyncio.to_thread(writer.append, "note", b"%d" % n)
                assert (await coming).n == n

    go(main())


def test_following_resumes_at_a_number_and_ends_after_its_time() -> None:
    sync = MemoryStore()
    for n in range(1, 6):
        RecordLog(sync, "log").append("note", expect=n)

    async def main() -> None:
        async with aio.Store(sync) as store:
            log = aio.RecordLog(store, "log")
            assert [record.n async for record in log.follow(4, timeout=0.01)] == [4, 5]
            with pytest.raises(NotFound):
                await anext(aio.RecordLog(store, "other").follow())
            with pytest.raises(ValueError, match="counted from 1"):
                log.follow(0)

    go(main())


def test_a_thousand_idle_followers_keep_no_more_threads_than_may_wait() -> None:
    gate = Gate(MemoryStore())
    RecordLog(gate, "log").append("note", expect=1)

    async def main() -> None:
        async with aio.Pool(4, waiters=3) as pool, aio.Store(gate, pool=pool) as store:
            seen = 0

            async def follow() -> None:
                nonlocal seen
                async for record in aio.RecordLog(store, "log").follow():
                    seen += 1
                    if record.n == 2:
                        return

            followers = [asyncio.create_task(follow()) for _ in range(1000)]
            while seen < 1000:
                await asyncio.sleep(0.01)
            assert len(ours()) <= 7
            await aio.RecordLog(store, "log").append("note")
            await asyncio.gather(*followers)
            assert seen == 2000

    go(main(), debug=False)


def test_a_follower_that_is_cancelled_ends_at_once_and_leaves_the_log_alone(tmp_path: Path) -> None:
    sync = LocalStore(tmp_path, sync="never")
    RecordLog(sync, "log").append("note", expect=1)

    async def main() -> None:
        async with aio.Store(sync) as store:
            came = asyncio.Event()

            async def follow() -> None:
                async for _ in aio.RecordLog(store, "log").follow():
                    came.set()

            task = asyncio.create_task(follow())
            await came.wait()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            assert await aio.RecordLog(store, "log").count() == 1

    go(main())
