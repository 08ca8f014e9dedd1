"""Waiting for a change of one file, of which Linux tells by inotify."""

from __future__ import annotations

import ctypes
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["watching"]

_MODIFY: Final = 0x2
_ATTRIBUTES: Final = 0x4  # the number of names among them: so an open file tells that it was deleted or replaced
_MOVED: Final = 0x800
_LONGEST: Final = 86400.0  # seconds that `poll` is asked for: more would not fit


class Watch:
    """A file that is watched from now on."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def wait(self, timeout: float) -> bool:
        """Say whether the file has changed since it is watched; wait for so many seconds."""
        ready = select.poll()
        ready.register(self._fd, select.POLLIN)
        return bool(ready.poll(min(timeout, _LONGEST) * 1000))


@contextmanager
def watching(file: int) -> Iterator[Watch | None]:
    """Watch an open file for as long as the context lasts; yield None where the system cannot.

    It tells of what happens on this machine: what others write to a network file system it may not see.

    Args:
        file: a descriptor of it.
    """
    fd = _watch(file)
    try:
        yield None if fd < 0 else Watch(fd)
    finally:
        if fd >= 0:
            os.close(fd)


def _watch(file: int) -> int:
    """Return a descriptor that can be read once the file has changed, or -1."""
    try:
        system = ctypes.CDLL(None)
        fd: int = system.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, AttributeError):  # another system
        return -1
    # By its descriptor, since its path may lead elsewhere by now.
    path = f"/proc/self/fd/{file}".encode()
    if fd >= 0 and system.inotify_add_watch(fd, path, _MODIFY | _ATTRIBUTES | _MOVED) < 0:
        os.close(fd)
        return -1
    return fd
