"""Records, sessions, conversations and catalogs, awaited: in order, in bounded memory, many at a time."""

from __future__ import annotations

import asyncio
import os
import resource
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from statestore import aio
from statestore.conversations import Conversations
from statestore.errors import Closed, Conflict, Corrupt, Held, NotFound
from statestore.records import RecordLog, draft
from statestore.sessions import Status
from statestore.store import NEW, Store
from statestore_local import LocalStore, _sync
from statestore_memory import MemoryStore
from tests.catalog.parts import Chain
from tests.faultproxy import Fault, FaultProxy
from tests.s3.harness import options, prepared
from tests.servers import Rgw

from .conftest import GIVE_UP, Gate, go, ours

MANY = int(os.environ.get("STATESTORE_TASKS", "20"))


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalStore]:
    with LocalStore(tmp_path / "logs", sync="never") as store:
        yield store


def test_appends_of_many_tasks_are_made_in_the_order_in_which_they_were_asked_for(local: LocalStore) -> None:
    async def main() -> None:
        log = aio.RecordLog(aio.Store(local), "log")
        await log.append("note", b"0", expect=1)
        made = await asyncio.gather(*(log.append("note", b"%d" % n) for n in range(1, 100)))
        assert [record.n for record in made] == [*range(2, 101)]
        assert [record.body async for record in log] == [b"%d" % n for n in range(100)]
        assert await log.count() == 100
        assert [record.n for record in await log.last(3)] == [98, 99, 100]
        assert await log.append_many((draft("note") for _ in range(3)), expect=101) == range(101, 104)
        copy = await log.copy("copy", before=50)
        assert await copy.count() == 49
        with pytest.raises(Conflict):
            await log.append("note", expect=5)
        await log.store.aclose()

    go(main())


def test_what_stands_before_damage_is_given_first(local: LocalStore) -> None:
    log = RecordLog(local, "log")
    log.append("note", expect=1)
    log.append_many([draft("note") for _ in range(600)])
    local.append("log", b"no record\n", at=local.tail("log"))
    given = 0

    async def main() -> None:
        nonlocal given
        async with aio.Store(local) as store:
            with pytest.raises(Corrupt):  # noqa: PT012 - an iteration is a block
                async for _ in aio.RecordLog(store, "log"):
                    given += 1

    go(main())
    assert given == 601


def test_an_iteration_that_is_left_early_reads_no_further_and_is_closed(local: LocalStore) -> None:
    closed = threading.Event()

    class Watched(LocalStore):
        def stream(self, log: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
            try:
                for _ in range(1000):
                    pieces.append(1)
                    yield b"x" * (1 << 20)
            finally:
                closed.set()

    pieces: list[int] = []

    async def main() -> None:
        async with aio.Store(Watched(local._root)) as store, aclosing(store.stream("log")) as stream:
            async for _ in stream:
                break

    go(main())
    assert closed.is_set()
    assert len(pieces) == 1


def test_a_stream_without_end_lets_short_calls_have_its_thread() -> None:
    pieces: list[None] = []

    class Endless(MemoryStore):
        def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
            while True:
                pieces.append(None)
                yield b"x" * (1 << 20)

    async def main() -> None:
        async with aio.Pool(1) as pool, aio.Store(Endless(), pool=pool) as store:
            await store.append("log", b"x", at=NEW)

            async def use_all() -> None:
                async for _ in store.stream("log"):
                    pass

            stream = asyncio.create_task(use_all())
            for _ in range(10):
                before = len(pieces)
                assert (await store.tail("log")).size == 1
                assert len(pieces) - before <= 4  # one is being fetched, and one is in line, before it and behind it
            assert pieces
            stream.cancel()
            await asyncio.wait([stream])

    go(main())


@pytest.mark.parametrize("left", ["early", "by an error"])
def test_the_next_pieces_are_fetched_while_those_before_are_used(left: str) -> None:
    asked_for, use = threading.Semaphore(0), threading.Lock()
    closed = threading.Event()

    class Watched(MemoryStore):
        def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
            try:
                for n in range(9):
                    with use:
                        asked_for.release()
                        if (n, left) == (4, "by an error"):
                            raise Corrupt("here")
                    yield bytes([n]) * (1 << 20)
            finally:
                closed.set()

    async def use_all(stream: AsyncIterator[bytes]) -> None:
        seen = 0
        async for piece in stream:
            given.append(piece[0])
            while given[-1] > 0 and seen < given[-1] + 2:  # the first one may be all that is wanted
                assert await asyncio.to_thread(asked_for.acquire, timeout=60)
                seen += 1
            if (piece[0], left) == (3, "early"):
                use.acquire()  # the fetching of the next but one, which is under way when this is closed
                threading.Timer(0.05, use.release).start()
                await anext(stream)
                return

    async def main() -> None:
        async with aio.Pool(2) as pool, aio.Store(Watched(), pool=pool) as store:
            async with aclosing(store.stream("log")) as stream:
                if left == "early":
                    await use_all(stream)
                else:
                    with pytest.raises(Corrupt):
                        await use_all(stream)
            assert given == [0, 1, 2, 3]
            assert closed.is_set()

    given: list[int] = []
    go(main())


@pytest.mark.parametrize("way", ["dropped", "store closed"])
def test_an_iteration_that_nobody_closes_is_closed_by_a_thread(way: str) -> None:
    closed_by: list[str] = []

    class Watched(MemoryStore):
        def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
            try:
                while True:
                    yield b"x" * (1 << 20)
            finally:
                closed_by.append(threading.current_thread().name)

    async def main() -> None:
        async with aio.Store(Watched()) as store:
            stream = store.stream("log")
            await anext(stream)
            if way == "store closed":
                await store.aclose()
                with pytest.raises(Closed):
                    await anext(stream)
        # A loop closes what was dropped before it ends, by a thread of its own where the pool is gone.

    go(main())
    assert [name.startswith("statestore-aio") for name in closed_by] == [True]


def test_nothing_is_swept_before_it_is_asked_for() -> None:
    sync = MemoryStore()
    for n in range(9):
        Conversations(sync).append_messages(str(n), [{"role": "user"}])

    async def main() -> None:
        async with aio.Store(sync) as store:
            talks = aio.Conversations(store)
            later = datetime.now(UTC) + timedelta(days=1)
            assert len([id_ async for id_, _ in talks.sweep(1, now=later)]) == 9
            async with aclosing(talks.sweep(1, dry_run=False, now=later)) as swept:
                gone = [(await anext(swept))[0] for _ in range(2)]
            assert sorted([*gone, *await talks.list()]) == [str(n) for n in range(9)]

    go(main())


def test_a_session_is_started_held_told_and_let_go(local: LocalStore) -> None:
    async def main() -> None:
        async with aio.Store(local) as store:
            sessions = aio.Sessions(store)
            async with await sessions.start() as session:
                await session.append("message", b"hello", type="text/plain")
                with pytest.raises(Held):
                    await sessions.open(session.id)
                assert await sessions.status(session.id) is Status.STEPPING
                assert len(await session.transcript()) == 2
            fork = await sessions.fork(session.id, before=2)
            assert sorted([id_ async for id_ in sessions.list()]) == sorted([session.id, fork])
            assert len(await sessions.load(fork)) == 1

    go(main())


def test_calls_about_one_conversation_take_one_thread_and_leave_the_others_to_the_rest() -> None:
    gate = Gate(MemoryStore())

    async def main() -> None:
        async with aio.Pool(2) as pool, aio.Store(gate, pool=pool) as store:
            talks = aio.Conversations(store)
            gate.shut()
            crowd = [asyncio.create_task(talks.append_messages("one", [{"role": "user"}])) for _ in range(50)]
            await gate.arrived()
            other = asyncio.create_task(talks.append_messages("other", [{"role": "user"}]))
            await gate.arrived()  # while all of the crowd wait
            gate.open()
            await other
            await asyncio.gather(*crowd)
            assert await talks.message_count("one") == 50
            await talks.merge_metadata("one", {"a": 1})
            assert sorted(await talks.list()) == ["one", "other"]
            assert [id_ async for id_, _ in talks.sweep(1e9)] == []
            await talks.aclose()

    go(main())


def test_appends_to_one_log_take_one_thread_whichever_objects_they_are_made_by() -> None:
    gate = Gate(MemoryStore())

    async def main() -> None:
        async with aio.Pool(2) as pool, aio.Store(gate, pool=pool) as store:
            gate.shut()
            crowd = [
                asyncio.create_task(aio.RecordLog(store, "log").append("note", b"%d" % n, expect=n + 1))
                for n in range(50)
            ]
            await gate.arrived()
            other = asyncio.create_task(aio.RecordLog(store, "other").append("note", expect=1))
            await gate.arrived()  # while all of the crowd wait
            gate.open()
            await other
            await asyncio.gather(*crowd)
            assert [record.body async for record in aio.RecordLog(store, "log")] == [b"%d" % n for n in range(50)]

    go(main())


@pytest.mark.parametrize(("count", "debug"), [(1000, False), (50, True)])
@pytest.mark.parametrize("kind", ["memory", "local"])
def test_many_sessions_at_once_need_no_more_threads(kind: str, count: int, debug: bool, local: LocalStore) -> None:
    inner: Store = local if kind == "local" else MemoryStore()
    gate = Gate(inner)
    count = min(count, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)  # a session that is held keeps a file open

    async def one(sessions: aio.Sessions) -> int:
        async with await sessions.start() as session:
            for n in range(3):
                await session.append("message", b"%d" % n)
            return len(await session.transcript())

    async def main() -> None:
        async with aio.Pool(8) as pool, aio.Store(gate, pool=pool) as store:
            sessions = aio.Sessions(store)
            assert await asyncio.gather(*(one(sessions) for _ in range(count))) == [4] * count
            assert len(ours()) <= 8
            assert len([id_ async for id_ in sessions.list()]) == count

    go(main(), debug=debug)


def test_many_sessions_at_once_in_a_bucket(rgw: Rgw) -> None:
    async def one(sessions: aio.Sessions, n: int) -> int:
        async with await sessions.start() as session:
            await session.append("message", b"%d" % n)
            return len(await session.transcript())

    async def main() -> None:
        async with await aio.open_store(prepared(rgw, rgw.new_bucket()), **options(rgw)) as store:
            sessions = aio.Sessions(store)
            assert await asyncio.gather(*(one(sessions, n) for n in range(MANY))) == [2] * MANY
            assert len([id_ async for id_ in sessions.list()]) == MANY
            assert len(ours()) <= aio.SIZE

    go(main(), debug=MANY < 100, within=60 + MANY)


def test_as_many_requests_are_under_way_at_once_as_the_pool_has_threads(rgw: Rgw) -> None:
    """A bucket that answers nobody before all of them have asked."""

    async def main(proxy: FaultProxy) -> None:
        where = prepared(rgw, rgw.new_bucket())
        async with await aio.open_store(where, **options(rgw.through(proxy))) as store:
            await store.append("log", b"x", at=NEW)
            proxy.inject(Fault.STALLED, times=aio.SIZE)
            reads = [asyncio.create_task(store.read("log")) for _ in range(aio.SIZE)]
            try:
                await asyncio.to_thread(proxy.wait_held, aio.SIZE)
            finally:
                proxy.heal()
                await asyncio.to_thread(proxy.release)
            assert await asyncio.gather(*reads) == [b"x"] * aio.SIZE

    with FaultProxy(rgw.endpoint) as proxy:
        go(main(proxy))


@pytest.mark.parametrize("threads", [8, aio.SIZE])
def test_as_many_syncs_are_under_way_at_once_as_the_pool_has_threads(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is done with no sync before all of them have begun."""
    real = _sync.fdatasync
    lock, all_of_them = threading.Lock(), threading.Event()
    begun: list[int] = []

    def fdatasync(fd: int) -> None:
        with lock:
            begun.append(fd)
            if len(begun) == threads:
                all_of_them.set()
        overlapped = all_of_them.wait(GIVE_UP / 2)
        all_of_them.set()  # the others need not wait as long
        assert overlapped, f"no more than {len(begun)} of {threads} were under way at once"
        real(fd)

    async def main() -> None:
        async with aio.Pool(threads) as pool, aio.Store(LocalStore(tmp_path, sync="always"), pool=pool) as store:
            logs = [aio.RecordLog(store, f"log-{n}") for n in range(100)]
            await asyncio.gather(*(log.append("note", expect=1) for log in logs))
            monkeypatch.setattr(_sync, "fdatasync", fdatasync)
            made = await asyncio.gather(*(log.append("note") for log in logs))
            assert [record.n for record in made] == [2] * 100

    go(main())
    assert len(begun) == 100


def test_a_catalog_is_awaited(local: LocalStore, tmp_path: Path) -> None:
    RecordLog(local, "log").append("note", expect=1)

    async def main() -> None:
        async with aio.Store(local) as store, aio.Catalog(store, Chain(), path=tmp_path / "file") as catalog:
            assert [row.log async for row in catalog.refresh()] == ["log"]
            assert (await catalog.get("log"))[0] == 1
            with pytest.raises(NotFound):
                await catalog.get("other")
            await catalog.clear()

    go(main())
