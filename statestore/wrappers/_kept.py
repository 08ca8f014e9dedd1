"""What a cache keeps of a log: a file of pieces with checksums, believed only where these agree.

A file holds the log's bytes from the first one on, in pieces one behind the other::

    start (8 bytes)  length (4)  digest of start, length and the bytes (16)  digest of those 28 bytes (8)  the bytes

Both digests are keyed with origin, log and run. So whatever is found in a file, put there by whom or what ever, is
either a piece of this very log, at this very place, or it is dropped. A file that ends inside a piece was left by a
process that died, or is being written: what is before that counts, and who adds next cuts the rest off.

Readers take no lock: a piece never changes once it is whole, and a file that is dropped is unlinked, not emptied. Who
adds holds the kernel's lock on the file, and where somebody else holds it, does not add.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from statestore.wrappers._keeping import Directory

__all__ = ["KeptLog"]

T = TypeVar("T")

_HEAD: Final = struct.Struct(">QI16s8s")
_PLACE: Final = struct.Struct(">QI")
_CHECKED: Final = _HEAD.size - 8  # bytes of a head that its own digest is of
_PIECE: Final = 256 << 10  # the most bytes of a piece: all of it is read to check it
_WINDOW: Final = 4096  # bytes that are read to find heads: many, where pieces are small


class _Damaged(Exception):
    """A file does not hold what it should."""


class _Piece(NamedTuple):
    """Where a piece begins in the log and in the file, and how many bytes of the log it holds."""

    start: int
    offset: int
    length: int


class KeptLog:
    """What is kept of one log, for one thread at a time.

    Args:
        directory: where.
        name: the file's.
        key: what the digests are keyed with.
    """

    def __init__(self, directory: Directory, name: str, key: bytes) -> None:
        self._directory = directory
        self._name = name
        self._path = os.path.join(directory.path, name)
        self._key = key
        self._forget()

    def _forget(self) -> None:
        self._identity = (0, 0)
        self._pieces: list[_Piece] = []
        self._end = 0  # of the log, as far as pieces are known
        self._size = 0  # of the file, up to there

    def read(self, start: int, stop: int) -> bytes:
        """Return what is kept of ``[start, stop)`` without a gap from `start` on; nothing where nothing is."""
        with self._guarded(), suppress(FileNotFoundError):
            return self._anew(lambda: self._read(start, stop))
        self._forget()
        return b""

    def _read(self, start: int, stop: int) -> bytes:
        with self._opened(os.O_RDONLY) as fd:
            self._walk(fd, self._look(fd), stop)
            found = []
            place = max(bisect_right(self._pieces, start, key=lambda piece: piece.start) - 1, 0)
            while start < stop and start < self._end:
                piece = self._pieces[place]
                found.append(self._fetch(fd, piece)[start - piece.start : stop - piece.start])
                start = piece.start + piece.length
                place += 1
            self._touch(fd)
            return b"".join(found)

    def add(self, start: int, data: bytes) -> None:
        """Keep what the log holds at `start`, as far as it goes on behind what is kept."""
        if start <= self._end and min(len(data), _PIECE) + _HEAD.size <= self._directory.limit:
            with self._guarded():
                self._anew(lambda: self._add(start, data))

    def _add(self, start: int, data: bytes) -> None:
        with self._opened(os.O_RDWR | os.O_APPEND | os.O_CREAT) as fd:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            size = self._look(fd)
            self._walk(fd, size, sys.maxsize)
            if not start <= self._end < start + len(data):
                return
            if self._pieces:
                self._check_piece(os.pread(fd, _HEAD.size, self._pieces[-1].offset), self._pieces[-1])
            if self._size < size:
                os.ftruncate(fd, self._size)
            for begin in range(self._end - start, len(data), _PIECE):
                if not self._append(fd, data[begin : begin + _PIECE]):
                    break
            self._touch(fd)

    def _anew(self, act: Callable[[], T]) -> T:
        """Do something, and again where what is known may be of a file before this one, whose inode it was given."""
        known = bool(self._pieces)
        try:
            return act()
        except _Damaged:
            if not known:
                raise
        self._forget()
        return act()

    def _append(self, fd: int, data: bytes) -> bool:
        place = _PLACE.pack(self._end, len(data))
        checked = place + self._digest(place, data, size=16)
        whole = checked + self._digest(checked, size=8) + data
        if self._size + len(whole) > self._directory.limit or not self._directory.make_room(len(whole), self._name):
            return False
        if os.write(fd, whole) < len(whole):
            os.ftruncate(fd, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._know(len(data))
        return True

    def _know(self, length: int) -> None:
        """Take in a piece of so many bytes behind those that are known."""
        self._pieces.append(_Piece(self._end, self._size, length))
        self._end += length
        self._size += _HEAD.size + length

    def _walk(self, fd: int, size: int, stop: int) -> None:
        """Find the pieces up to `stop`, in a file of `size` bytes."""
        window, at = b"", 0
        while self._end < stop and self._size + _HEAD.size <= size:
            if self._size + _HEAD.size > at + len(window):
                window, at = os.pread(fd, _WINDOW, self._size), self._size
            length = self._check_head(window[self._size - at :][: _HEAD.size], self._end)
            if self._size + _HEAD.size + length > size:
                return
            self._know(length)

    def _fetch(self, fd: int, piece: _Piece) -> bytes:
        """Return the bytes of a piece."""
        whole = os.pread(fd, _HEAD.size + piece.length, piece.offset)
        head, data = whole[: _HEAD.size], whole[_HEAD.size :]
        self._check_piece(head, piece)
        if head[_PLACE.size : _CHECKED] != self._digest(head[: _PLACE.size], data, size=16):
            raise _Damaged
        return data

    def _check_piece(self, head: bytes, piece: _Piece) -> None:
        """Refuse a head that is another piece's."""
        if self._check_head(head, piece.start) != piece.length:
            raise _Damaged

    def _check_head(self, head: bytes, start: int) -> int:
        """Return how long the piece is that has this head, if it is one and begins at `start`."""
        if len(head) != _HEAD.size or head[_CHECKED:] != self._digest(head[:_CHECKED], size=8):
            raise _Damaged
        found, length, _, _ = _HEAD.unpack(head)
        if found != start or not length:
            raise _Damaged
        return int(length)

    def _digest(self, *parts: bytes, size: int) -> bytes:
        digest = blake2b(key=self._key, digest_size=size)
        for part in parts:
            digest.update(part)
        return digest.digest()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Let nothing that is wrong with the file get out; what is damaged goes."""
        try:
            yield
        except _Damaged:
            self._forget()
            self._directory.tell("a kept log was damaged, and is fetched again")
            self._directory.remove(self._name)
        except OSError as error:
            self._forget()
            self._directory.tell("the cache cannot be used", error)

    @contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        try:
            fd = self._open(flags)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            self._directory.make()
            fd = self._open(flags)
        try:
            yield fd
        finally:
            os.close(fd)

    def _open(self, flags: int) -> int:
        # What somebody else has put there must not make us wait, nor lead elsewhere.
        return os.open(self._path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)

    def _look(self, fd: int) -> int:
        """Return the file's size, and forget what is known of another file."""
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise _Damaged
        identity = (status.st_dev, status.st_ino)
        if identity != self._identity or status.st_size < self._size:
            self._forget()
            self._identity = identity
        return status.st_size

    def _touch(self, fd: int) -> None:
        """Note that the log was used now."""
        # The kernel's own time of a change is too coarse to tell which log was used first.
        now = time.time_ns()
        with suppress(OSError):
            os.utime(fd, ns=(now, now))
