"""What this process has open below a directory: a test runner opens and closes other files meanwhile."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def opened(directory: Path) -> list[str]:
    """Return the path of each file below a directory that a descriptor of this process is open on."""
    paths = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the one that lists them is gone by now
            paths.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return [path for path in paths if Path(path).is_relative_to(directory)]
