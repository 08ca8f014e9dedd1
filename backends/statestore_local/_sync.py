"""When bytes and names go to the disk: the three policies, and the only two calls that do it."""

from __future__ import annotations

import os
from typing import Final, Literal

from statestore_local._files import Place, directories

__all__ = ["POLICIES", "Sync", "fdatasync", "fsync", "sync_names"]

Sync = Literal["always", "on_flush", "never"]
"""``always``: before an append returns. ``on_flush``: when ``flush`` is called. ``never``: when the kernel likes."""

POLICIES: Final[tuple[Sync, ...]] = ("always", "on_flush", "never")

fsync = os.fsync
fdatasync = getattr(os, "fdatasync", os.fsync)


def sync_names(place: Place) -> None:
    """Make the log's name durable: its directory, each one above it, and the root's own entry.

    All of them every time, and not only those that this process made: another process may have made one a
    moment ago and have died before it was synced.

    Raises:
        OSError: one cannot be opened or synced.
    """
    for fd in directories(place):
        fsync(fd)
    above = os.open(os.path.dirname(place.root), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fsync(above)
    finally:
        os.close(above)
