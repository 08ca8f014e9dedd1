"""Wherever a task is cancelled, it knows what was done, and leaves nothing held, open or half done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from statestore import aio
from statestore.records import RecordLog
from statestore.store import NEW
from statestore_local import LocalStore

from .conftest import go

Work = Callable[[aio.Store, list[int]], Awaitable[None]]


async def append(store: aio.Store, known: list[int]) -> None:
    log = aio.RecordLog(store, "log")
    for n in range(1, 4):
        try:
            known.append((await log.append("note", b"x", expect=n)).n)
        except asyncio.CancelledError as cancelled:
            if came := aio.outcome(cancelled):
                known.append(came.result.n)
            raise


async def hold(store: aio.Store, known: list[int]) -> None:
    async with store.hold("log"):
        await append(store, known)


async def read(store: aio.Store, known: list[int]) -> None:
    await append(store, known)
    log = aio.RecordLog(store, "log")
    async with aclosing(log.read()) as records:
        async for _ in records:
            await asyncio.sleep(0)
    assert len([record async for record in log]) == 3


async def follow(store: aio.Store, known: list[int]) -> None:
    await append(store, known)
    async with aclosing(aio.RecordLog(store, "log").follow()) as records:
        async for record in records:
            if record.n == 3:
                return


@pytest.mark.parametrize("work", [append, hold, read, follow])
def test_the_log_holds_exactly_what_a_cancelled_task_was_told(tmp_path: Path, work: Work) -> None:
    """Once at each step of the loop, until the task is over before it can be cancelled."""

    async def try_at(step: int, place: Path) -> bool:
        known: list[int] = []
        sync = LocalStore(place, sync="never")
        async with aio.Store(sync) as store:
            task = asyncio.ensure_future(work(store, known))
            for _ in range(step):
                await asyncio.sleep(0)
            over = task.done()
            task.cancel()
            await asyncio.wait([task])
            assert over or task.cancelled() or task.exception() is None
            there = [record.n for record in RecordLog(sync, "log")] if known else []
            assert there == known
            assert known or not [*sync.list()]
            assert sync.holder("log") is None
        return over

    step = 0
    while not go(try_at(step, tmp_path / str(step))):
        step += 1 + step // 12
    assert step > 5


def test_a_session_that_nobody_gets_is_not_held(tmp_path: Path) -> None:
    async def try_at(step: int) -> bool:
        sync = LocalStore(tmp_path, sync="never")
        id_ = f"{step:08x}"
        async with aio.Store(sync) as store:
            task = asyncio.create_task(aio.Sessions(store).start(id=id_))
            for _ in range(step):
                await asyncio.sleep(0)
            over = task.done()
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                session = task.result()
                assert sync.holder(id_) is not None
                await session.aclose()
            assert sync.holder(id_) is None
        return over

    step = 0
    while not go(try_at(step)):
        step += 1 + step // 12
    assert step > 3


def test_a_hold_ends_with_a_task_that_is_cancelled_inside(tmp_path: Path) -> None:
    sync = LocalStore(tmp_path, sync="never")

    async def main() -> None:
        async with aio.Store(sync) as store:
            inside = asyncio.Event()

            async def hold() -> None:
                async with store.hold("log"):
                    inside.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(hold())
            await inside.wait()
            assert sync.holder("log") is not None
            task.cancel()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            assert sync.holder("log") is None

    go(main())


def test_a_group_of_tasks_is_cancelled_as_one(tmp_path: Path) -> None:
    sync = LocalStore(tmp_path, sync="never")

    async def main() -> None:
        async with aio.Store(sync) as store:

            async def fail() -> None:
                await store.append("log", b"x", at=NEW)
                raise ValueError("mine")

            with pytest.raises(ExceptionGroup) as raised:  # noqa: PT012 - a group is a block
                async with asyncio.TaskGroup() as group:
                    group.create_task(fail())
                    for n in range(100):
                        group.create_task(store.append(f"log-{n}", b"x" * 1000, at=NEW))
            assert [str(error) for error in raised.value.exceptions] == ["mine"]
            assert all(info.tail and info.tail.size in (1, 1000) for info in sync.list(tails=True))

    go(main())
