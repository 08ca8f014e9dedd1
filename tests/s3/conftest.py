"""The server of every run, and options that reach it."""

from __future__ import annotations

import uuid

import pytest

from tests import servers
from tests.servers import moto, rclone, rgw, seaweedfs

__all__ = ["moto", "rclone", "rgw", "seaweedfs"]


@pytest.fixture(scope="session")
def bucket(rgw: servers.Rgw) -> str:
    """One bucket of the run; each test has a prefix of its own in it."""
    return rgw.new_bucket()


@pytest.fixture
def place(bucket: str) -> str:
    """An empty place for a store, as bucket and prefix."""
    return f"{bucket}/{uuid.uuid4().hex}"
