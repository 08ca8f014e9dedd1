"""How all tests use Hypothesis, with no deadline, since a busy machine is not a fault; and the S3 servers of a run."""

from __future__ import annotations

from hypothesis import settings

from tests.servers import moto, rclone, rgw, seaweedfs

__all__ = ["moto", "rclone", "rgw", "seaweedfs"]

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
