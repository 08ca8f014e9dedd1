"""Small disks: file systems in memory that can be full or read-only. To mount one takes root."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["ROOT_ONLY", "read_only", "small_disk"]

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk or change owners")


@contextmanager
def small_disk(size: str) -> Iterator[Path]:
    """Have a file system of so many bytes, as ``64k`` or ``1m``; the test is skipped where none can be mounted."""
    with tempfile.TemporaryDirectory() as place:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "statestore-test", place]
        done = subprocess.run(mount, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"a tmpfs cannot be mounted here: {done.stderr.strip()}")
        try:
            yield Path(place)
        finally:
            subprocess.run(["umount", "-l", place], check=True)


def read_only(disk: Path) -> None:
    """Let nothing more be written to a small disk."""
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
