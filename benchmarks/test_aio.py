"""Calls from asyncio beside the calls themselves, and beside what the standard library would make of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from time import sleep
from typing import Any, TypeVar

import pytest

from benchmarks.conftest import Compare
from statestore import aio
from statestore.records import RecordLog
from statestore.store import NEW
from statestore.wrappers import Wrapper
from statestore_local import LocalStore
from statestore_memory import MemoryStore

T = TypeVar("T")

BODY = b"x" * 1024
LOGS = 100
DELAY = 0.03  # seconds

Run = Callable[[Coroutine[Any, Any, object]], object]


@pytest.fixture
def run() -> Iterator[Run]:
    with asyncio.Runner() as runner:
        yield runner.run


class Logs:
    """A hundred logs, to which one record each is appended in three ways."""

    def __init__(self, store: LocalStore) -> None:
        self.store = aio.Store(store)
        self.ours = [aio.RecordLog(self.store, f"ours-{n}") for n in range(LOGS)]
        self.theirs = [RecordLog(store, f"theirs-{n}") for n in range(LOGS)]
        for log in (*self.theirs, *(log.sync for log in self.ours)):
            log.append("note", BODY, expect=1)

    async def append(self) -> None:
        await asyncio.gather(*(log.append("note", BODY) for log in self.ours))

    async def append_one(self) -> None:
        await self.ours[0].append("note", BODY)

    async def append_by_library(self) -> None:
        await asyncio.gather(*(asyncio.to_thread(log.append, "note", BODY) for log in self.theirs))

    async def append_one_by_library(self) -> None:
        await asyncio.to_thread(self.theirs[0].append, "note", BODY)

    def append_one_after_another(self) -> None:
        for log in self.theirs:
            log.append("note", BODY)

    async def close(self) -> None:
        assert {await log.count() for log in self.ours[1:]} == {await self.ours[1].count()}
        await self.store.aclose()


def test_append_to_a_hundred_logs(local: Callable[[str], LocalStore], run: Run, compare: Compare) -> None:
    logs = Logs(local("never"))
    compare(lambda: run(logs.append()), lambda: run(logs.append_by_library()), against="asyncio.to_thread", times=5)
    run(logs.close())


def test_append_to_one_log(local: Callable[[str], LocalStore], run: Run, compare: Compare) -> None:
    logs = Logs(local("never"))
    floor = logs.append_one_by_library
    compare(lambda: run(logs.append_one()), lambda: run(floor()), against="asyncio.to_thread", times=100)
    run(logs.close())


@pytest.mark.parametrize("sync", ["never", "always"])
def test_append_to_a_hundred_logs_at_once(
    local: Callable[[str], LocalStore], run: Run, compare: Compare, sync: str
) -> None:
    logs = Logs(local(sync))
    floor = logs.append_one_after_another
    compare(lambda: run(logs.append()), floor, against="one after another, no asyncio", rounds=20)
    run(logs.close())


class Remote(Wrapper):
    """A storage that answers each call after 30 ms."""

    def _run(self, call: str, log: str, act: Callable[[], T]) -> T:
        sleep(DELAY)
        return act()


@pytest.mark.parametrize("size", [16, 32, 64, 128, 256])
def test_a_thousand_tasks_by_threads(run: Run, compare: Compare, size: int, benchmark: Any) -> None:
    """Beside the least that so many calls by so many threads can take: how well they are used, and what more bring."""
    calls = 1000 if benchmark.enabled else size

    async def make() -> aio.Store:
        return aio.Store(Remote(MemoryStore()), pool=aio.Pool(size), own=True)

    store = run(make())
    assert isinstance(store, aio.Store)
    run(store.append("log", BODY, at=NEW))

    async def work() -> None:
        assert await asyncio.gather(*(store.read("log", 0, 1) for _ in range(calls))) == [b"x"] * calls

    compare(lambda: run(work()), lambda: sleep(DELAY * calls / size), against="the storage's own time", rounds=5)
    run(store.aclose())
