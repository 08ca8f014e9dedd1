"""Scanning, loading, the last ten, copying and listing."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import BODY, Compare, fill
from statestore.records import RecordLog, Scan, draft, scan
from statestore.store import NEW
from statestore_local import LocalStore

RECORDS = 10_000


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    store = LocalStore(tmp_path / "made", sync="never")
    fill(RecordLog(store, "log"), RECORDS)
    return store.read("log")


def hops(data: bytes) -> Callable[[], int]:
    """The least that finds records: hop from newline to newline by sizes that are known beforehand."""
    sizes = [record.header.len + 2 for record in scan(data)]

    def floor() -> int:
        at, find = 0, data.find
        for size in sizes:
            at = find(b"\n", at) + size
        return at

    assert floor() == len(data)
    return floor


def test_scan(data: bytes, compare: Compare) -> None:
    def work() -> int:
        records = Scan(lambda start, stop: data[start:stop], chunk=len(data) + 1)
        records.skip()
        return records.number - 1

    assert work() == RECORDS
    compare(work, hops(data), against="bytes.find and known sizes", rounds=20, bar=5.0)


def test_load(data: bytes, local: Callable[[str], LocalStore], compare: Compare) -> None:
    store = local("never")
    store.append("log", data, at=NEW)
    log = RecordLog(store, "log")
    assert b"".join(record.raw for record in log) == data

    def work() -> int:
        return sum(record.header.n for record in list(log))

    def scanning() -> None:
        Scan(lambda start, stop: data[start:stop], chunk=len(data) + 1).skip()

    assert work() == RECORDS * (RECORDS + 1) // 2
    compare(work, scanning, against="a scan of its bytes", rounds=20, bar=2.5)


@pytest.fixture
def long(local: Callable[[str], LocalStore], benchmark: Any) -> RecordLog:
    """A log of a million records, or of fewer where nothing is measured."""
    log = RecordLog(local("never"), "log")
    log.append("start", expect=1)
    for _ in range(20 if benchmark.disabled else 1000):
        log.append_many([draft("message", b"b" * 100) for _ in range(1000)])
    return log


def test_open_to_append_a_long_log(long: RecordLog, compare: Compare) -> None:
    end = long.end
    assert end is not None

    def work() -> int:
        return RecordLog(long.store, "log").recover()

    assert work() == end[1]
    compare(work, lambda: deque(long, maxlen=0), against="reading it", rounds=3, bar=0.02)
    assert RecordLog(long.store, "log").append("message").n == end[1]


def test_last_ten_of_a_long_log(long: RecordLog, compare: Compare) -> None:
    end = long.end
    assert end is not None
    assert [record.n for record in long.last(10)] == list(range(end[1] - 10, end[1]))
    compare(lambda: long.last(10), lambda: deque(long, maxlen=0), against="reading it", rounds=3, bar=0.02)


def test_copy(data: bytes, local: Callable[[str], LocalStore], tmp_path: Path, compare: Compare) -> None:
    store = local("never")
    store.append("log", data * 2, at=NEW)
    size = len(data) * 2
    names = (f"copy-{number}" for number in count())
    source = os.open(tmp_path / "state" / "log.state", os.O_RDONLY)

    def floor() -> None:
        target = os.open(tmp_path / next(names), os.O_CREAT | os.O_WRONLY, 0o600)
        done = 0
        while done < size:
            done += os.copy_file_range(source, target, size - done, done)
        os.close(target)

    compare(lambda: store.copy("log", next(names)), floor, against="copy_file_range", rounds=30, bar=1.2)
    os.close(source)
    copies = [info for info in store.list("copy-", tails=True) if info.tail]
    assert copies
    assert all(info.tail and info.tail.size == size for info in copies)
    assert store.read(copies[0].name) == data * 2


def test_list_10000(local: Callable[[str], LocalStore], tmp_path: Path, compare: Compare) -> None:
    store = local("never")
    names = [f"{number:08x}" for number in range(10_000)]
    for name in names:
        (tmp_path / "state" / f"{name}.state").write_bytes(BODY[:1])

    def floor() -> int:
        found = 0
        with os.scandir(tmp_path / "state") as entries:
            for entry in entries:
                found += bool(entry.name) and entry.is_file(follow_symlinks=False)
        return found

    assert [info.name for info in store.list()] == names
    assert floor() == len(names)
    compare(lambda: list(store.list()), floor, against="os.scandir: name and type", rounds=20, bar=2.0)
