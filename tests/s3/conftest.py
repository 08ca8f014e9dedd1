"""A bucket of the run, and an empty place in it for each test."""

from __future__ import annotations

import uuid

import pytest

from tests.servers import Rgw


@pytest.fixture(scope="session")
def bucket(rgw: Rgw) -> str:
    """One bucket of the run; each test has a prefix of its own in it."""
    return rgw.new_bucket()


@pytest.fixture
def place(bucket: str) -> str:
    """An empty place for a store, as bucket and prefix."""
    return f"{bucket}/{uuid.uuid4().hex}"
