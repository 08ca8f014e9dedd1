"""The memory store keeps the contract."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from statestore.conformance import Harness, conformance
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
    )


test_the_memory_store = conformance(harness)
