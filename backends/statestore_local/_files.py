"""From a log's name to its file: where it lies, how it is opened, and what is never followed or waited for.

::

    <root>/a.state            the log  a
    <root>/a.state!/b.state   the log  a.state/b    (a directory never ends in ".state")
    <root>/a/b.state          the log  a/b
    <root>/.a.hold            who holds a
    <root>/.a.index           what was derived from a
    <root>/.a.cut-120-9f…     what was cut from a behind byte 120
    <root>/.a.new             a file that is about to take the place of a.state

Names hold neither ``!`` nor a leading dot, so no two of these meet.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from statestore.errors import Unavailable
from statestore_local._errors import unavailable

__all__ = [
    "Place",
    "SUFFIX",
    "directories",
    "directory",
    "directory_name",
    "exclusive",
    "locate",
    "open_beside",
    "open_directory",
    "open_log",
    "open_root",
    "run_of",
    "unlink",
]

SUFFIX: Final = ".state"
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO would wait for its other end.
_PLAIN: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FS_IOC_GETVERSION: Final = 0x80007601 | struct.calcsize("l") << 16
_KINDS: Final = (
    (stat.S_ISLNK, "a symbolic link, which is not followed,"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISREG, "a file"),
)


class Place(NamedTuple):
    """Where a log lies.

    Attributes:
        log: its name.
        root: the store's root directory.
        parts: the directories between the root and the file.
        segment: the last segment of its name.
        path: the whole path of its file.
    """

    log: str
    root: str
    parts: tuple[str, ...]
    segment: str
    path: str

    @property
    def file(self) -> str:
        """The file's name in its directory."""
        return self.segment + SUFFIX

    def beside(self, kind: str) -> str:
        """Return the name of a helper file beside the log's."""
        return f".{self.segment}.{kind}"


def directory_name(segment: str) -> str:
    """Return the name of the directory that stands for `segment`."""
    return segment + "!" if segment.endswith(SUFFIX) else segment


def locate(root: str, log: str) -> Place:
    """Return where the log of that name lies; nothing is touched."""
    *above, segment = log.split("/")
    parts = tuple(map(directory_name, above))
    return Place(log, root, parts, segment, "/".join((root, *parts, segment + SUFFIX)))


def open_root(root: str, *, make: bool) -> int:
    """Return a descriptor of the root directory.

    Args:
        root: its path.
        make: make it and those above it, where they are missing, for this user alone.

    Raises:
        Unavailable: it is missing or no directory, or the operating system refuses.
    """
    try:
        if make:
            _make_root(root)
        return open_directory(root, ())
    except FileNotFoundError as error:
        raise Unavailable("there is no such directory: look how it is spelled, or make it", root=root) from error
    except NotADirectoryError as error:
        raise Unavailable("the logs are in a directory, and this is none: name the directory", root=root) from error
    except OSError as error:
        raise unavailable(error, "cannot open the directory that holds the logs", root=root) from error


def _make_root(root: str) -> None:
    try:
        os.mkdir(root, 0o700)
    except FileNotFoundError:
        _make_root(os.path.dirname(root))
        _make_root(root)
    except FileExistsError:
        pass


def open_directory(root: str, parts: tuple[str, ...], *, make: bool = False) -> int:
    """Return a descriptor of the directory `parts` below the root; no symbolic link below the root is followed.

    Raises:
        FileNotFoundError: a directory is missing, and `make` is off.
        Unavailable: something else is in a directory's place.
        OSError: any other refusal.
    """
    fd = os.open(root, _DIRECTORY)
    try:
        for part in parts:
            below = _step(fd, part, make=make)
            os.close(fd)
            fd = below
    except BaseException:
        os.close(fd)
        raise
    return fd


def _step(fd: int, part: str, *, make: bool) -> int:
    flags = _DIRECTORY | os.O_NOFOLLOW
    try:
        return os.open(part, flags, dir_fd=fd)
    except FileNotFoundError:
        if not make:
            raise
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        raise _in_the_way(part, fd, "directory") from error
    with suppress(FileExistsError):  # another process made it just now
        os.mkdir(part, 0o700, dir_fd=fd)
    return os.open(part, flags, dir_fd=fd)


@contextmanager
def directory(place: Place) -> Iterator[int]:
    """Open the log's directory for as long as the context lasts."""
    fd = open_directory(place.root, place.parts)
    try:
        yield fd
    finally:
        os.close(fd)


def directories(place: Place) -> Iterator[int]:
    """Yield a descriptor of the log's directory and of each one above it, up to the root."""
    for depth in range(len(place.parts), -1, -1):
        fd = open_directory(place.root, place.parts[:depth])
        try:
            yield fd
        finally:
            os.close(fd)


def open_log(place: Place, flags: int, *, make: bool = False) -> tuple[int, os.stat_result]:
    """Return a descriptor of the log's file, which is a plain file, and the file's status.

    Args:
        place: where the log lies.
        flags: ``os.O_RDONLY``, or ``os.O_RDWR | os.O_APPEND``.
        make: make the file, and the directories above it, where they are missing.

    Raises:
        FileNotFoundError: there is no file.
        Unavailable: something else is in its place, or the operating system refuses.
    """
    try:
        return open_beside(place, place.file, flags | (os.O_CREAT if make else 0), make=make)
    except FileNotFoundError:
        if make or not os.path.isdir(place.root):
            raise _root_gone(place) from None
        raise
    except OSError as error:
        raise unavailable(error, "cannot open the log", log=place.log, path=place.path) from error
    except Unavailable as error:
        error.facts.setdefault("log", place.log)
        raise


def open_beside(place: Place, name: str, flags: int, *, make: bool = False) -> tuple[int, os.stat_result]:
    """Return a descriptor of a plain file in the log's directory, and its status; no symbolic link is followed.

    Args:
        place: where the log lies.
        name: the file's name.
        flags: those of ``os.open``.
        make: make the directories above it, where they are missing.

    Raises:
        Unavailable: something else is in its place.
        OSError: any other refusal.
    """
    if not place.parts:
        return _open_plain(f"{place.root}/{name}", flags, None)
    above = open_directory(place.root, place.parts, make=make)
    try:
        return _open_plain(name, flags, above)
    finally:
        os.close(above)


def _open_plain(name: str, flags: int, above: int | None) -> tuple[int, os.stat_result]:
    try:
        fd = os.open(name, flags | _PLAIN, 0o600, dir_fd=above)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV):
            raise
        raise _in_the_way(name, above, "log's file") from error
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise _in_the_way(name, above, "log's file")
    return fd, status


def _in_the_way(name: str, above: int | None, wanted: str) -> Unavailable:
    try:
        mode = os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
        kind = next((text for test, text in _KINDS if test(mode)), "something else")
    except OSError:
        kind = "something else"
    return Unavailable(f"{kind} is in the place of a {wanted}: move it away", path=name)


def _root_gone(place: Place) -> Unavailable:
    return Unavailable(
        "the directory that holds the logs is gone: put it back, or open the store anew",
        retry=True,
        log=place.log,
        root=place.root,
    )


def exclusive(name: str, above: int) -> int:
    """Return a descriptor of a new, empty helper file, where a leftover of that name is removed first."""
    unlink(name, above)
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _PLAIN, 0o600, dir_fd=above)


def unlink(name: str, above: int) -> None:
    """Remove a name, if it is there."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=above)


def run_of(fd: int, inode: int) -> str:
    """Return the run of an open file: its inode and the inode's generation; "" where there is no generation.

    The inode alone would not do: file systems give the number of a deleted file to the next one made.
    """
    try:
        answer = fcntl.ioctl(fd, _FS_IOC_GETVERSION, bytes(struct.calcsize("l")))
    except OSError:
        return ""
    return f"{inode:x}.{struct.unpack_from('I', answer)[0]:x}"
