"""The memory store keeps the contract."""

from __future__ import annotations

from pathlib import Path

from statestore.conformance import Harness, conformance
from statestore_memory import MemoryStore


def harness(place: Path) -> Harness:
    return Harness(
        open=lambda: MemoryStore(str(place)),
        reopen=lambda: MemoryStore(str(place)),
        crash=lambda store: None,
    )


test_the_memory_store = conformance(harness)
