"""One append and a batch of them: each sync policy, held and not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks.conftest import BODY, Compare, drafts
from statestore.records import RecordLog
from statestore.store import NEW
from statestore_local import LocalStore

SYNCS = ["never", "on_flush", "always"]
BARS = {
    ("never", True): 2.5,
    ("never", False): 5.0,
    ("on_flush", True): 2.5,
    ("on_flush", False): 5.0,
    ("always", True): 1.1,
    ("always", False): None,
}


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "bare", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    yield fd
    os.close(fd)


def floor_of(bare: int, data: bytes, sync: str) -> tuple[Callable[[], object], str]:
    if sync != "always":
        return lambda: os.write(bare, data), "os.write"

    def write_and_sync() -> None:
        os.write(bare, data)
        os.fdatasync(bare)

    return write_and_sync, "os.write, os.fdatasync"


@pytest.mark.parametrize("held", [True, False], ids=["held", "free"])
@pytest.mark.parametrize("sync", SYNCS)
def test_append_one(local: Callable[[str], LocalStore], bare: int, compare: Compare, sync: str, held: bool) -> None:
    log = RecordLog(local(sync), "log")
    log.append("start", expect=1)
    with log.hold() if held else nullcontext():
        data = log.append("message", BODY).raw
        floor, against = floor_of(bare, data, sync)
        always = sync == "always"
        compare(
            lambda: log.append("message", BODY),
            floor,
            against=against,
            times=10 if always else 300,
            rounds=30 if always else 60,
            bar=BARS[sync, held],
        )
        assert [record.n for record in log.last(2)] == [log.count() - 1, log.count()]
        assert log.last(1)[0].body == BODY


@pytest.mark.parametrize("held", [True, False], ids=["held", "free"])
def test_append_bytes(local: Callable[[str], LocalStore], bare: int, compare: Compare, held: bool) -> None:
    """The store alone: what of an append's cost the records are."""
    store = local("never")
    data = RecordLog(store, "other").append("message", BODY, expect=1).raw
    tail = store.append("log", data, at=NEW)

    def work() -> None:
        nonlocal tail
        tail = store.append("log", data, at=tail)

    with store.hold("log") if held else nullcontext():
        compare(work, lambda: os.write(bare, data), against="os.write", times=300, bar=BARS["never", held])
    assert store.read("log", tail.size - len(data)) == data
    assert store.tail("log") == tail


@pytest.mark.parametrize("sync", ["never", "always"])
def test_append_batch_of_100(local: Callable[[str], LocalStore], bare: int, compare: Compare, sync: str) -> None:
    log = RecordLog(local(sync), "log")
    log.append("start", expect=1)
    batch = drafts(100)
    with log.hold():
        numbers = log.append_many(batch)
        data = b"".join(record.raw for record in log.read(numbers[0], numbers[-1] + 1))
        floor, against = floor_of(bare, data, sync)
        bar = 1.3 if sync == "never" else 1.1
        compare(lambda: log.append_many(batch), floor, against=against, times=10, bar=bar)
    assert log.count() % 100 == 1
    assert all(record.body == BODY for record in log.last(100))


def test_append_batch_of_100_as_bytes(local: Callable[[str], LocalStore], bare: int, compare: Compare) -> None:
    """The store alone, with bytes that are made already."""
    store = local("never")
    log = RecordLog(store, "other")
    log.append("start", expect=1)
    log.append_many(drafts(100))
    data = store.read("other")
    tail = store.append("log", data, at=NEW)

    def work() -> None:
        nonlocal tail
        tail = store.append("log", data, at=tail)

    with store.hold("log"):
        compare(work, lambda: os.write(bare, data), against="os.write", times=10, bar=1.3)
    assert store.tail("log") == tail
