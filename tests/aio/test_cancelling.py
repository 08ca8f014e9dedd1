"""Wherever a task is cancelled, it knows what was done, and leaves nothing held, open or half done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from statestore import aio
from statestore.conversations import Conversations
from statestore.errors import NotFound
from statestore.records import RecordLog
from statestore.store import NEW, Store
from statestore.wrappers import Wrapper
from statestore_local import LocalStore

from .conftest import T, go, stepping

LOG = "00000001"

# What a piece of work does, noting the number of each record that it knows to be there; and how many there are.
Work = Callable[[aio.Store, list[int]], Awaitable[None]]


@asynccontextmanager
async def told(known: list[int], number: int) -> AsyncIterator[None]:
    """Take note of a number where what is done here was done, whether that is returned or told by `outcome`."""
    try:
        yield
    except asyncio.CancelledError as cancelled:
        if came := aio.outcome(cancelled):
            assert came.error is None
            known.append(number)
        raise
    known.append(number)


async def append(store: aio.Store, known: list[int]) -> None:
    log = aio.RecordLog(store, LOG)
    for n in range(1, 4):
        async with told(known, n):
            assert (await log.append("note", b"x", expect=n)).n == n


async def append_while_held(store: aio.Store, known: list[int]) -> None:
    """The hold is let go by a task that is cancelled, and may be cancelled in that again."""
    log = aio.RecordLog(store, LOG)
    try:
        async with store.hold(LOG):
            while len(known) < 3:
                known.append((await log.append("note", b"x", expect=len(known) + 1)).n)
    except asyncio.CancelledError as cancelled:
        known += [came.result.n] if (came := aio.outcome(cancelled)) else []
        raise


async def converse(store: aio.Store, known: list[int]) -> None:
    talks = aio.Conversations(store)
    for n in range(1, 4):
        async with told(known, n):
            await talks.log_append("one", n - 1, [{"role": "user", "content": "hello"}])


async def start(store: aio.Store, known: list[int]) -> None:
    async with told(known, 1):
        session = await aio.Sessions(store).start(id=LOG)
    async with session:
        async with told(known, 2):
            await session.append("note")
        await session.transcript()


async def read(store: aio.Store, known: list[int]) -> None:
    await append(store, known)
    log = aio.RecordLog(store, LOG)
    async with aclosing(log.read()) as records:
        async for _ in records:
            await asyncio.sleep(0)
    assert len([record async for record in log]) == 3


async def follow(store: aio.Store, known: list[int]) -> None:
    await append(store, known)
    async with aclosing(aio.RecordLog(store, LOG).follow()) as records:
        async for record in records:
            if record.n == 3:
                return


def check(sync: Store, known: list[int]) -> None:
    """The storage holds exactly what is known, and nothing is held."""
    try:
        there = [record.n for record in RecordLog(sync, LOG)]
    except NotFound:
        there = [*range(1, Conversations(sync).log_len("one") + 1)]
    assert there == known
    assert sync.holder(LOG) is None


WORKS = pytest.mark.parametrize("work", [append, append_while_held, converse, start, read, follow])


@pytest.mark.parametrize("when", ["at once", "when it is over", "again and again"])
@WORKS
def test_a_task_may_be_cancelled_wherever_it_waits(tmp_path: Path, work: Work, when: str) -> None:
    """At each place: before what it waits for can have happened, when that has and the task was not told; and there
    and at each place behind."""

    async def try_at(place: int, root: Path) -> bool:
        known: list[int] = []
        sync = LocalStore(root, sync="never")
        waits = 0

        def waiting(for_: Any) -> None:
            nonlocal waits
            waits += 1
            task = asyncio.current_task()
            assert task
            if when == "when it is over" and waits == place and for_ is not None:
                for_.add_done_callback(lambda _: task.cancel())
            elif waits == place or (when == "again and again" and waits > place):
                task.cancel()

        async with aio.Store(sync) as store:
            task = asyncio.ensure_future(stepping(work(store, known), waiting))
            await asyncio.wait([task])
            assert task.cancelled() == (waits >= place)
            check(sync, known)
        return waits < place

    places = 1
    while not go(try_at(places, tmp_path / str(places))):
        places += 1
    assert places > 3


class Telling(Wrapper):
    """A store that tells of each call while it is under way."""

    def __init__(self, store: Store, tell: Callable[[], None]) -> None:
        super().__init__(store)
        self._tell = tell

    def _run(self, call: str, log: str, act: Callable[[], T]) -> T:
        self._tell()
        return act()


@pytest.mark.parametrize("times", [1, 3])
@WORKS
def test_a_task_may_be_cancelled_while_any_call_is_under_way(tmp_path: Path, work: Work, times: int) -> None:
    async def try_at(call: int, root: Path) -> bool:
        known: list[int] = []
        sync = LocalStore(root, sync="never")
        loop = asyncio.get_running_loop()
        calls, early = 0, False

        async def cancel() -> None:
            nonlocal early
            for _ in range(times):
                task.cancel()
                await asyncio.sleep(0)
                early = early or task.done()

        def tell() -> None:
            nonlocal calls
            calls += 1
            if calls == call:
                asyncio.run_coroutine_threadsafe(cancel(), loop).result()

        async with aio.Store(Telling(sync, tell)) as store:
            task = asyncio.ensure_future(work(store, known))
            await asyncio.wait([task])
            assert task.cancelled() == (calls >= call)
            assert not early
            check(sync, known)
        return calls < call

    calls = 1
    while not go(try_at(calls, tmp_path / str(calls))):
        calls += 1
    assert calls > 3


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
