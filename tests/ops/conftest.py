"""The systems that every case of the operator is tried on. Add one by its name and what opens an empty place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.ops.places import ConversationsPlace, Place, SessionsPlace


def adk(name: str) -> Callable[[Path], Place]:
    """A place for google-adk's sessions, which takes seconds to import."""

    def open_place(directory: Path) -> Place:
        from tests.ops.adkplaces import AdkPlace

        return getattr(AdkPlace, name)(directory)

    return open_place


PLACES: dict[str, Callable[[Path], Place]] = {
    "sessions-memory": SessionsPlace.memory,
    "sessions-local": SessionsPlace.local,
    "conversations-memory": ConversationsPlace,
    "adk-memory": adk("memory"),
    "adk-sqlite": adk("sqlite"),
    "adk-ours-memory": adk("ours_on_memory"),
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """An empty place for sessions of one system."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = PLACES[request.param](tmp_path)
    yield place
    place.close()
