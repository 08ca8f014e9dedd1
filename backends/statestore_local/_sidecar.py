"""What is derived from a log and kept beside its file: never needed, so what fails here is as if it were not there."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from statestore.errors import Unavailable
from statestore_local._copy import write_all
from statestore_local._files import Place, directory, exclusive, open_beside, unlink

__all__ = ["LocalSidecar"]

_KIND: Final = "index"


class LocalSidecar:
    """The file beside a log's for what is derived from it.

    Args:
        place: where the log lies.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._file = place.beside(_KIND)

    def read(self, size: int) -> bytes:
        """Return the last `size` bytes; all, where there are fewer, and none where there is nothing."""
        with suppress(OSError, Unavailable):
            fd, status = open_beside(self._place, self._file, os.O_RDONLY)
            try:
                return os.pread(fd, size, max(status.st_size - size, 0))
            finally:
                os.close(fd)
        return b""

    def append(self, data: bytes) -> None:
        """Add to the end, in one write."""
        with suppress(OSError, Unavailable):
            fd, status = open_beside(self._place, self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                if os.write(fd, data) != len(data):
                    os.ftruncate(fd, status.st_size)
            finally:
                os.close(fd)

    def replace(self, data: bytes) -> None:
        """Put `data` in the place of all that is there."""
        with suppress(OSError, Unavailable), directory(self._place) as above:
            new = self._place.beside(f"{_KIND}-new")
            fd = exclusive(new, above)
            try:
                write_all(fd, data)
                os.rename(new, self._file, src_dir_fd=above, dst_dir_fd=above)
            except OSError:
                unlink(new, above)
            finally:
                os.close(fd)

    def remove(self) -> None:
        """Remove all that is there."""
        with suppress(OSError, Unavailable), directory(self._place) as above:
            unlink(self._file, above)
