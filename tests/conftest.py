"""How all tests use Hypothesis, with no deadline, since a busy machine is not a fault; and the servers of a run."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

from tests.servers import azure, gcs, moto, rclone, rgw, seaweedfs, sftp

__all__ = ["azure", "gcs", "moto", "rclone", "rgw", "seaweedfs", "sftp"]

settings.register_profile("no-deadline", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("no-deadline")

# A shell that begins tests in the background has them ignore interrupts, and all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have the collector of garbage leave alone what stays to the end: ten thousand tests and all that they import."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
