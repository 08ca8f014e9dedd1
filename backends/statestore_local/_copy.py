"""Bytes from one file to another, and out of one, whole."""

from __future__ import annotations

import errno
import os
from typing import Final

__all__ = ["PIECE", "clone", "read_at", "write_all"]

PIECE: Final = 1 << 20
_NOT_HERE: Final = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF, errno.EPERM)


def read_at(fd: int, start: int, length: int) -> bytes:
    """Return `length` bytes from `start`, or what there is of them."""
    piece = os.pread(fd, length, start)
    if len(piece) == length or not piece:
        return piece
    pieces = [piece]
    have = len(piece)
    while have < length and (piece := os.pread(fd, length - have, start + have)):
        pieces.append(piece)
        have += len(piece)
    return b"".join(pieces)


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data` to where the file stands, or to its end if it is open to append."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def clone(source: int, target: int, length: int) -> int:
    """Copy the first `length` bytes to an empty file, by the kernel where it can; return how many there were."""
    done = _by_kernel(source, target, length)
    while done < length and (piece := os.pread(source, min(PIECE, length - done), done)):
        write_all(target, piece)
        done += len(piece)
    return done


def _by_kernel(source: int, target: int, length: int) -> int:
    done = 0
    copy = getattr(os, "copy_file_range", None)
    while copy is not None and done < length:
        try:
            count = copy(source, target, length - done, done)  # to where the target stands, as a write does
        except OSError as error:
            if error.errno in _NOT_HERE:
                break  # what is missing is read and written
            raise
        if count == 0:
            break
        done += count
    return done
