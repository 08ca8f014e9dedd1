"""What calls allocate: nothing that stays, and of a long log a few pieces at a time."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from statestore import NEW, RecordLog, Sessions, Store, draft
from statestore.errors import Conflict
from statestore.records import Scan, verify
from statestore.records.jsonl import encode_line
from statestore.sync import sync
from statestore.wrappers import Cached, Encrypted, Instrumented, Prefixed, ReadOnly
from statestore_local import LocalStore
from statestore_memory import MemoryStore
from tests.costs.shapes import MIB, large_log

BODY = b"b" * 1024
TIMES = 256  # so many ids are drawn at once
SIZE = 1024 * MIB if os.environ.get("STATESTORE_SCALE") == "full" else 96 * MIB


def exhaust(rows: Iterable[Any]) -> None:
    deque(rows, maxlen=0)


@contextmanager
def measured() -> Iterator[Callable[[], tuple[int, int]]]:
    """Give a call that says how many bytes are allocated since the beginning, and how many were at most."""
    tracemalloc.start()
    try:
        yield tracemalloc.get_traced_memory
    finally:
        tracemalloc.stop()


# Nothing stays.


def appending(store: LocalStore) -> Callable[[], object]:
    log = RecordLog(store, "log")
    log.append("start", expect=1)
    return lambda: log.append("message", BODY)


def appending_a_batch(store: LocalStore) -> Callable[[], object]:
    log, batch = RecordLog(store, "log"), [draft("message", BODY)] * 10
    log.append("start", expect=1)
    return lambda: log.append_many(batch)


def appending_bytes(store: LocalStore) -> Callable[[], object]:
    tail = store.append("log", b"x", at=NEW)

    def append() -> None:
        nonlocal tail
        tail = store.append("log", BODY, at=tail)

    return append


def being_refused(store: LocalStore) -> Callable[[], object]:
    store.append("log", b"x", at=NEW)

    def append() -> None:
        with suppress(Conflict):
            store.append("log", BODY, at=NEW)

    return append


def appending_to_a_session(store: LocalStore) -> Callable[[], object]:
    session = Sessions(store).start()
    return lambda: session.append("message", BODY)


def reading(store: LocalStore) -> Callable[[], object]:
    log = RecordLog(store, "log")
    log.append("start", BODY, expect=1)
    return lambda: exhaust(log)


def looking_at_the_end(store: LocalStore) -> Callable[[], object]:
    log = RecordLog(store, "log")
    log.append("start", BODY, expect=1)
    return lambda: log.last(1)


def listing(store: LocalStore) -> Callable[[], object]:
    store.append("log", b"x", at=NEW)
    return lambda: exhaust(store.list(tails=True))


def holding(store: LocalStore) -> Callable[[], object]:
    def hold() -> None:
        with store.hold("log"):
            pass

    return hold


@pytest.mark.parametrize(
    "what",
    [
        appending,
        appending_a_batch,
        appending_bytes,
        appending_to_a_session,
        being_refused,
        holding,
        listing,
        looking_at_the_end,
        reading,
    ],
)
def test_a_call_that_is_repeated_keeps_nothing_and_leaves_nothing_to_the_collector(what, tmp_path) -> None:
    with LocalStore(tmp_path, sync="never") as store:
        call = what(store)
        gc.collect()
        gc.disable()
        try:
            for _ in range(TIMES):  # Python keeps a few objects to use them again
                call()
            blocks = sys.getallocatedblocks()
            with measured() as memory:
                for _ in range(TIMES):
                    call()
                kept = memory()[0]
            blocks = sys.getallocatedblocks() - blocks
        finally:
            gc.enable()
    assert blocks < TIMES // 8
    assert kept < TIMES * len(BODY) // 10


def test_a_scan_without_bodies_makes_no_body() -> None:

    log = RecordLog(MemoryStore(), "log")
    log.append("start", expect=1)
    log.append_many([draft("message", BODY)] * 500)
    data = log.store.read("log")

    def kept(**how: bool) -> int:
        with measured() as memory:
            records = list(Scan(lambda start, stop: data[start:stop], **how))
            assert len(records) == 501
            return memory()[0]

    assert kept() > 500 * len(BODY)
    assert kept(bodies=False) < kept() - 500 * len(BODY)


# A few pieces at a time.

LARGE = 8 * MIB
PIECES = 5 * MIB


def sealed(plain: LocalStore, root: Path) -> Store:
    pytest.importorskip("cryptography", reason="sealing needs cryptography")
    store = Encrypted(LocalStore(root / "sealed", sync="never"), [bytes(32)])
    log = RecordLog(store, "in/log")
    log.append("start", expect=1)
    for _ in range(LARGE // MIB):
        log.append_many([draft("message", bytes(64 << 10))] * 16)
    return store


def in_memory(plain: LocalStore, root: Path) -> Store:
    store = MemoryStore()
    store.append("in/log", plain.read("in/log"), at=NEW)
    return store


STORES: dict[str, Callable[[LocalStore, Path], Store]] = {
    "local": lambda plain, root: plain,
    "memory": in_memory,
    "cached": lambda plain, root: Cached(in_memory(plain, root), root / "cache", origin="memory"),
    "encrypted": sealed,
    "wrapped": lambda plain, root: Instrumented(ReadOnly(Prefixed(plain, "above"))),
}
WORK: dict[str, Callable[[Store, str], object]] = {
    "stream": lambda store, log: exhaust(store.stream(log)),
    "stream a snapshot": lambda store, log: exhaust(store.snapshot(log).stream()),
    "read records": lambda store, log: exhaust(RecordLog(store, log)),
    "last": lambda store, log: RecordLog(store, log).last(3),
    "verify": lambda store, log: verify(store, log),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Store]]:
    """Give a store of each kind, with one large log."""
    root = tmp_path_factory.mktemp("memory")
    for place in (root / "plain" / "in", root / "plain" / "above" / "in"):
        place.mkdir(parents=True)
        large_log(place / "log.state", LARGE, 64 << 10)
    with LocalStore(root / "plain", sync="never") as plain:
        yield cache(lambda kind: STORES[kind](plain, root))


def most_of(call: Callable[[], object]) -> int:
    with measured() as memory:
        call()
        return memory()[1]


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("kind", STORES)
def test_of_a_long_log_a_few_pieces_are_held_at_a_time(kind, work, places) -> None:
    store = places(kind)
    assert most_of(lambda: WORK[work](store, "in/log")) < PIECES


def test_json_lines_are_made_one_at_a_time(places) -> None:
    assert most_of(lambda: exhaust(map(encode_line, RecordLog(places("local"), "in/log").read(1, 65)))) < PIECES


def test_stores_are_brought_to_agree_a_few_pieces_at_a_time(tmp_path) -> None:
    with LocalStore(tmp_path / "from") as source, LocalStore(tmp_path / "to", sync="never") as target:
        large_log(tmp_path / "from" / "log.state", 4 * LARGE)
        assert most_of(lambda: exhaust(sync(source, target))) < 2 * LARGE
        assert most_of(lambda: exhaust(sync(source, target))) < 2 * LARGE  # all is compared
        assert target.tail("log").size == source.tail("log").size


# All of a process, as the system sees it.


def most(*arguments: object) -> int:
    """Return the most memory, in bytes, that a process had which was given these arguments."""
    program = [sys.executable, "-m", "tests.costs.reading_program", *map(str, arguments)]
    ran = subprocess.run(program, cwd=Path(__file__).parents[2], check=True, stdout=subprocess.PIPE)
    return int(ran.stdout.split()[-1]) << 10


WAYS = ["stream", "command: verify"]
if SIZE >= 1 << 30:
    WAYS += ["records", "lines", "verify", "sync"]


@pytest.mark.parametrize("way", WAYS)
def test_a_log_that_is_read_takes_less_than_64_mib_above_the_interpreter(way, tmp_path) -> None:
    (tmp_path / "root").mkdir()
    large_log(tmp_path / "root" / "log.state", SIZE, 64 << 10)
    assert most(way, tmp_path / "root", "log") - most() < 64 * MIB < SIZE
