"""A bucket of the run, and an empty place in it for each test."""

from __future__ import annotations

import uuid

import pytest

from tests.s3.harness import options
from tests.servers import Rgw


@pytest.fixture(scope="session")
def bucket(rgw: Rgw) -> str:
    """One bucket of the run; each test has a prefix of its own in it."""
    return rgw.new_bucket()


@pytest.fixture
def place(bucket: str) -> str:
    """An empty place for a store, as bucket and prefix."""
    return f"{bucket}/{uuid.uuid4().hex}"


@pytest.fixture
def url(rgw: Rgw, place: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty place for a store, as a URL, and the environment that reaches it."""
    for name, value in options(rgw).items():
        monkeypatch.setenv(f"STATESTORE_S3_{name.upper()}", str(value))
    return f"s3://{place}"
