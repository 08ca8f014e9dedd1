"""What the session tests share: the two stores, and logs made of a few words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from statestore.records import Header, encode
from statestore.store import NEW, Store
from statestore_local import LocalStore
from statestore_memory import MemoryStore


@pytest.fixture(params=["memory", "local"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Returns another store object over the same logs each time."""
    opened: list[Store] = []

    def another() -> Store:
        opened.append(MemoryStore(str(tmp_path)) if request.param == "memory" else LocalStore(tmp_path, sync="never"))
        return opened[-1]

    yield another
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    return open_store()


@pytest.fixture
def put() -> Callable[[Store, str, bytes], None]:
    """Puts bytes where a log is to be, whatever they are."""

    def put(store: Store, log: str, data: bytes) -> None:
        store.append(log, data, at=NEW)

    return put


@pytest.fixture
def spell() -> Callable[[Sequence[dict[str, Any]]], bytes]:
    """Returns the bytes of records from their headers' fields; `n` is the place where none is given."""

    def spell(fields: Sequence[dict[str, Any]]) -> bytes:
        return b"".join(encode(Header(**{"n": n, **header}), b"body") for n, header in enumerate(fields, 1))

    return spell
