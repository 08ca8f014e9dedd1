"""The file systems of the table but S3, which has tests of its own; each test gets an empty place."""

from __future__ import annotations

import pytest

from tests.buckets.places import PLACES, Place


@pytest.fixture(params=sorted(PLACES))
def place(request: pytest.FixtureRequest) -> Place:
    """An empty place on each of the file systems."""
    made: Place = PLACES[request.param](request.getfixturevalue(request.param))
    return made
