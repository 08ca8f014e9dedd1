"""The protocol of buckets over fsspec's file system in memory: what it costs where the storage costs nearly nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from benchmarks.conftest import BODY, Compare, drafts
from statestore import NEW, RecordLog, Store, open_store
from statestore_fsspec import _layout as layout

RECORDS = 200
LOGS = 200


@pytest.fixture
def files() -> Iterator[Any]:
    """The file system itself, which all of this process share."""
    from fsspec.implementations.memory import MemoryFileSystem

    files = MemoryFileSystem()
    yield files
    files.rm("/bench", recursive=True)


@pytest.fixture
def store(files: Any) -> Iterator[Store]:
    with open_store("fsspec://memory://bench/root", single_writer=True) as store:
        store.append("warm", b"x", at=NEW)
        yield store


def test_append_one_record_to_fsspec_in_memory(store: Store, files: Any, compare: Compare) -> None:
    log = RecordLog(store, "log")
    data = layout.segment_object(log.append("message", BODY, expect=1).raw)
    raw, ours = count(), count(1)

    def floor() -> None:
        files.pipe_file(f"/bench/raw/{next(raw)}", data)

    def work() -> None:
        log.append("message", BODY)
        next(ours)

    compare(work, floor, against="pipe_file", times=5)
    assert log.count() == next(ours)


def test_load_records_from_fsspec_in_memory(store: Store, files: Any, compare: Compare) -> None:
    log = RecordLog(store, "log")
    log.append("start", expect=1)
    for _ in range(RECORDS):
        log.append("message", BODY)
    paths = [path for path in files.find("/bench/root/data") if "/log!" in path]

    def floor() -> None:
        assert len([files.cat_file(path) for path in paths]) == RECORDS + 1

    def work() -> None:
        assert sum(record.kind == "message" for record in RecordLog(store, "log")) == RECORDS

    compare(work, floor, against="cat_file of each object", rounds=10)


def test_load_records_that_were_compacted_from_fsspec_in_memory(store: Store, files: Any, compare: Compare) -> None:
    log = RecordLog(store, "log")
    log.append("start", expect=1)
    for draft in drafts(RECORDS):
        log.append_many([draft])
    assert store.maintenance.compact("log") > 0
    whole = store.read("log")
    files.pipe_file("/bench/raw/one", whole)

    def floor() -> None:
        assert len(files.cat_file("/bench/raw/one")) == len(whole)

    def work() -> None:
        assert store.read("log") == whole

    compare(work, floor, against="cat_file of one object of that size", rounds=10)


def test_list_logs_on_fsspec_in_memory(store: Store, files: Any, compare: Compare) -> None:
    for number in range(LOGS):
        store.append(f"logs/{number:04}", b"x", at=NEW)

    def floor() -> None:
        assert len(files.find("/bench/root/heads/logs", detail=True)) == LOGS

    def work() -> None:
        assert len(list(store.list("logs/"))) == LOGS

    compare(work, floor, against="find", rounds=10)
