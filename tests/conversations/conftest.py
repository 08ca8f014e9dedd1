"""The stores that every acceptance case is run on: memory, local files, and a bucket of a real server."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from statestore import Store, open_store
from statestore.conversations import Conversations
from statestore_local import LocalStore
from statestore_memory import MemoryStore
from tests.conversations.places import Place
from tests.s3.harness import options, prepared


@pytest.fixture(params=["memory", "local", "s3"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    if request.param == "memory":
        return partial(MemoryStore, uuid.uuid4().hex)
    if request.param == "local":
        return partial(LocalStore, tmp_path / "state", sync="never")
    server = request.getfixturevalue("rgw")
    return partial(open_store, prepared(server, request.getfixturevalue("bucket")), **options(server))


@pytest.fixture
def place(opener: Callable[[], Store], tmp_path: Path) -> Iterator[Place]:
    """An empty place."""
    place = Place(opener, tmp_path)
    yield place
    place.close()


@pytest.fixture
def talks(place: Place) -> Conversations:
    """Conversations in an empty place."""
    return place.open()


@pytest.fixture(scope="session")
def bucket(request: pytest.FixtureRequest) -> str:
    """One bucket of the run; each test has a prefix of its own in it."""
    return str(request.getfixturevalue("rgw").new_bucket())
