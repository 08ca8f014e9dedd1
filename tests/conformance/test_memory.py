"""The memory store keeps the contract."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from statestore.conformance import LEVELS, Harness, conformance, run
from statestore_memory import MemoryStore
from statestore_memory._store import _lock, _Space, _spaces


def put(space: str, log: str, data: bytes) -> None:
    with _lock:
        _spaces.setdefault(space, _Space()).make(log, data)


def harness(place: Path) -> Harness:
    return Harness(
        open=lambda: MemoryStore(str(place)),
        reopen=lambda: MemoryStore(str(place)),
        spawn=partial(MemoryStore, str(place)),
        raw_read=lambda log: bytes(_spaces[str(place)].logs[log].data),
        raw_write=lambda log, data: put(str(place), log, data),
        crash=lambda store: None,
        requests=lambda: 0,  # there is nobody to ask
    )


test_the_memory_store = conformance(harness)


def test_the_memory_store_earns_the_highest_level() -> None:
    report = run(harness, sample=0.02)
    assert report.level == LEVELS[-1], report.to_text()
