"""Calls run on threads of a bounded pool; one that has begun is over before its task is cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from statestore import aio
from statestore.errors import Closed, Conflict, NotFound, PluginError
from statestore.records import RecordLog
from statestore.store import NEW, Tail
from statestore_local import LocalStore
from statestore_memory import MemoryStore

from .conftest import Gate, go, ours


def test_no_call_is_made_by_the_thread_of_the_loop() -> None:
    gate = Gate(MemoryStore())

    async def main() -> None:
        async with aio.Store(gate) as store:
            tail = await store.append("log", b"one", at=NEW)
            assert await store.read("log") == b"one"
            assert [info async for info in store.list(tails=True)] == [("log", tail)]
            assert b"".join([piece async for piece in store.stream("log")]) == b"one"
            snapshot = await store.snapshot("log")
            assert (snapshot.tail, await snapshot.read(1)) == (tail, b"ne")
            await store.delete("log", at=tail)

    go(main())
    assert gate.threads
    assert all(name.startswith("statestore-aio") for name in gate.threads)


def test_errors_come_as_they_are() -> None:
    async def main() -> None:
        async with aio.Store(MemoryStore()) as store:
            with pytest.raises(NotFound) as missing:
                await store.read("log")
            assert missing.value.facts["log"] == "log"
            await store.append("log", b"one", at=NEW)
            with pytest.raises(Conflict) as refused:
                await store.append("log", b"two", at=Tail(1, ""))
            assert refused.value.found is not None

    go(main())


def test_a_call_sees_the_context_of_its_task() -> None:
    name = contextvars.ContextVar("name", default="nobody")

    async def main() -> None:
        async with aio.Store(MemoryStore()) as store:
            name.set("ann")
            assert await store.calls.run(name.get) == "ann"
            await store.calls.run(name.set, "bob")
            assert name.get() == "ann"

    go(main())


@pytest.mark.parametrize("size", [1, 3])
def test_no_more_calls_are_under_way_than_the_pool_has_threads(size: int) -> None:
    gate = Gate(MemoryStore())

    async def main() -> None:
        async with aio.Pool(size) as pool, aio.Store(gate, pool=pool) as store:
            await asyncio.gather(*(store.append(f"log-{n}", b"x", at=NEW) for n in range(50)))
            assert len(ours()) <= size

    go(main())
    assert gate.most <= size
    assert len(gate.calls) == 50


@pytest.mark.parametrize("arguments", [{"size": 0}, {"size": 1, "waiters": -1}])
def test_a_pool_without_threads_is_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least one thread"):
        aio.Pool(**arguments)


# Cancellation


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_task_that_is_cancelled_waits_for_its_call_and_learns_what_came_of_it(times: int) -> None:
    inner = MemoryStore()
    gate = Gate(inner)

    async def main() -> None:
        async with aio.Store(gate) as store:
            gate.shut()
            task = asyncio.create_task(store.append("log", b"one", at=NEW))
            await gate.arrived()
            for _ in range(times):
                task.cancel()
                await asyncio.sleep(0)
                assert not task.done()
            gate.open()
            with pytest.raises(asyncio.CancelledError) as cancelled:
                await task
            assert task.cancelled()
            assert aio.outcome(cancelled.value) == aio.Outcome(inner.tail("log"))

    go(main())


def test_what_a_call_raised_is_not_lost_with_its_task() -> None:
    gate = Gate(MemoryStore())

    async def main() -> None:
        async with aio.Store(gate) as store:
            gate.shut()
            task = asyncio.create_task(store.read("log"))
            await gate.arrived()
            task.cancel()
            await asyncio.sleep(0)
            gate.open()
            with pytest.raises(asyncio.CancelledError) as cancelled:
                await task
            came = aio.outcome(cancelled.value)
            assert came is not None
            assert isinstance(came.error, NotFound)

    go(main())


def test_a_call_that_waits_for_a_thread_is_never_made_once_its_task_is_cancelled() -> None:
    gate = Gate(MemoryStore())

    async def main() -> None:
        async with aio.Pool(1) as pool, aio.Store(gate, pool=pool) as store:
            gate.shut()
            first = asyncio.create_task(store.append("a", b"x", at=NEW))
            await gate.arrived()
            second = asyncio.create_task(store.append("b", b"x", at=NEW))
            await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(asyncio.CancelledError) as cancelled:
                await second
            assert aio.outcome(cancelled.value) is None
            gate.open()
            await first
            assert [info.name async for info in store.list()] == ["a"]

    go(main())
    assert gate.calls == ["append"]


def test_a_timeout_comes_when_the_call_is_over_and_says_what_came_of_it() -> None:
    gate = Gate(MemoryStore())

    async def main() -> None:
        async with aio.Store(gate) as store:
            gate.shut()
            asyncio.get_running_loop().call_later(0.05, gate.open)
            with pytest.raises(TimeoutError) as late:
                async with asyncio.timeout(0.01):
                    await store.append("log", b"one", at=NEW)
            assert aio.outcome(late.value) == aio.Outcome(await store.tail("log"))

    go(main())


def test_waiting_for_a_call_with_a_time_limit_says_what_came_of_it() -> None:
    gate = Gate(MemoryStore())

    async def main() -> None:
        async with aio.Store(gate) as store:
            gate.shut()
            asyncio.get_running_loop().call_later(0.05, gate.open)
            with pytest.raises(TimeoutError) as late:
                await asyncio.wait_for(store.append("log", b"one", at=NEW), 0.01)
            assert aio.outcome(late.value) == aio.Outcome(await store.tail("log"))

    go(main())


def test_an_interrupt_from_the_keyboard_waits_for_the_append(tmp_path: Path) -> None:
    script = """
import asyncio, os, signal, sys, threading
from statestore import aio
from statestore.store import NEW
from statestore.wrappers import Wrapper
from statestore_local import LocalStore

class Slow(Wrapper):
    def _run(self, call, log, act):
        if call == "append":
            os.kill(os.getpid(), signal.SIGINT)
            go_on.wait(30)
        return act()

go_on = threading.Event()

async def main():
    async with aio.Store(Slow(LocalStore(sys.argv[1]))) as store:
        try:
            await store.append("log", b"one", at=NEW)
        except asyncio.CancelledError as cancelled:
            print("there", aio.outcome(cancelled).result.size)
            raise

async def outer():
    asyncio.get_running_loop().call_later(0.2, go_on.set)
    await main()

asyncio.run(outer())
"""
    ran = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
    assert ran.stdout == "there 3\n"
    assert ran.returncode == -signal.SIGINT
    with LocalStore(tmp_path) as store:
        assert store.read("log") == b"one"


# Closing


def test_closing_waits_for_what_is_under_way_and_leaves_no_thread() -> None:
    gate = Gate(MemoryStore())

    async def main() -> None:
        store = aio.Store(gate)
        gate.shut()
        appends = [asyncio.create_task(store.append(f"log-{n}", b"x", at=NEW)) for n in range(5)]
        for _ in appends:
            await gate.arrived()
        closing = asyncio.create_task(store.aclose())
        await asyncio.sleep(0.01)
        assert not closing.done()
        gate.open()
        await closing
        assert [(await append).size for append in appends] == [1] * 5
        with pytest.raises(Closed):
            await store.tail("log-0")
        await store.aclose()

    go(main())
    assert not ours()


@pytest.mark.parametrize("times", [1, 3])
def test_closing_goes_on_to_its_end_when_it_is_cancelled(times: int) -> None:
    inner = MemoryStore()
    gate = Gate(inner)

    async def main() -> None:
        store = aio.Store(gate)
        gate.shut()
        append = asyncio.create_task(store.append("log", b"x", at=NEW))
        await gate.arrived()
        closing = asyncio.create_task(store.aclose())
        for _ in range(times):
            await asyncio.sleep(0)
            closing.cancel()
        await asyncio.sleep(0.01)
        assert not closing.done()
        gate.open()
        await asyncio.wait([closing])
        assert closing.cancelled()
        assert (await append).size == 1
        with pytest.raises(Closed):
            gate.list()

    go(main())
    assert not ours()


def test_what_is_held_is_let_go_by_a_thread_even_when_the_pool_is_closed(tmp_path: Path) -> None:
    class Noting(LocalStore):
        def hold(self, log: str) -> AbstractContextManager[None]:
            return self._noting(super().hold(log))

        @contextmanager
        def _noting(self, hold: AbstractContextManager[None]) -> Iterator[None]:
            with hold:
                threads.append(threading.current_thread())
                yield
            threads.append(threading.current_thread())

    threads: list[threading.Thread] = []
    sync = Noting(tmp_path, sync="never")

    async def main() -> None:
        pool = aio.Pool(1)
        store = aio.Store(sync, pool=pool)
        async with store.hold("log"):
            await pool.aclose()
            assert sync.holder("log") is not None
        assert sync.holder("log") is None
        await store.aclose()

    go(main())
    assert len(threads) == 2
    assert threading.current_thread() not in threads


def test_a_pool_that_another_thread_is_closing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = aio.Pool(1)
    for begin, threads in ((pool.submit, pool._threads), (pool.wait, pool._waiting)):

        def submit(*_: object) -> None:
            pool._closed = True
            raise RuntimeError("cannot schedule new futures after shutdown")

        monkeypatch.setattr(threads, "submit", submit)
        pool._closed = False
        for _ in range(2):
            with pytest.raises(Closed):
                begin(lambda: None)


def test_a_call_for_which_no_thread_can_be_started_is_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(MemoryStore())

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        async with aio.Store(gate) as store:
            gate.shut()
            first = asyncio.create_task(store.append("a", b"x", at=NEW))
            await gate.arrived()
            with monkeypatch.context() as patched:
                patched.setattr(threading.Thread, "start", start)
                with pytest.raises(RuntimeError, match="can't start"):
                    await store.append("b", b"x", at=NEW)
            gate.open()
            await first
            assert [info.name async for info in store.list()] == ["a"]

    go(main())
    assert gate.calls == ["append"]


def test_a_pool_of_several_stores_outlives_each(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.Pool(4) as pool:
            async with await aio.open_store(tmp_path, pool=pool, sync="never") as local:
                await local.append("log", b"x", at=NEW)
            async with await aio.open_store("memory://", pool=pool) as memory:
                await memory.append("log", b"x", at=NEW)
            with pytest.raises(Closed):
                await local.read("log")
        with pytest.raises(Closed):
            await memory.read("log")

    go(main())


def test_a_store_that_cannot_be_opened_leaves_no_thread() -> None:
    async def main() -> None:
        with pytest.raises(PluginError):
            await aio.open_store("nobody://here")

    go(main())
    assert not ours()


def test_two_loops_in_two_threads_share_a_store_and_a_log() -> None:
    inner = MemoryStore()
    pool = aio.Pool(8)
    log = aio.RecordLog(aio.Store(inner, pool=pool), "log")
    errors: list[BaseException] = []

    async def main(name: bytes) -> None:
        for _ in range(50):
            await log.append("note", name)

    def thread(name: bytes) -> None:
        try:
            go(main(name))
        except BaseException as error:
            errors.append(error)

    go(log.append("note", b"first", expect=1))
    threads = [threading.Thread(target=thread, args=(name,)) for name in (b"a", b"b")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
    go(pool.aclose())
    records = [*RecordLog(inner, "log")]
    assert [record.n for record in records] == [*range(1, 102)]
    assert sorted(record.body for record in records[1:]) == [b"a"] * 50 + [b"b"] * 50


def test_a_process_that_was_forked_has_threads_of_its_own(tmp_path: Path) -> None:
    script = """
import asyncio, os, sys
from statestore import aio
from statestore_local import LocalStore

store = aio.Store(LocalStore(sys.argv[1], sync="never"))
log = aio.RecordLog(store, "log")
asyncio.run(log.append("note", b"parent", expect=1))
if (child := os.fork()) == 0:
    asyncio.run(log.append("note", b"child"))
    asyncio.run(store.aclose())
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
asyncio.run(log.append("note", b"parent again"))
asyncio.run(store.aclose())
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script, str(tmp_path)], check=True, timeout=60)
    with LocalStore(tmp_path) as store:
        assert [record.body for record in RecordLog(store, "log")] == [b"parent", b"child", b"parent again"]
