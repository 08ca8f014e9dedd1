"""One log's file as a whole: opened to read, looked at, kept aside in part, reached by its own directory."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain

from statestore.errors import NotFound, Unavailable
from statestore.store import LogInfo, Tail
from statestore_local import _copy, _sync
from statestore_local._errors import failing
from statestore_local._files import Place, directory, exclusive, locate, open_directory, open_log, run_of, unlink
from statestore_local._handles import Handle

__all__ = ["keep_aside", "make_whole", "own_directory", "reading", "rows_with_tails", "tail_of"]


def _open(place: Place) -> tuple[int, os.stat_result]:
    try:
        fd, status = open_log(place, os.O_RDONLY)
    except FileNotFoundError:
        raise NotFound("no such log", log=place.log) from None
    if status.st_size:
        return fd, status
    os.close(fd)
    raise NotFound("no such log: its file is empty", log=place.log)


@contextmanager
def reading(place: Place) -> Iterator[tuple[int, int]]:
    """Open the log to read, and yield its descriptor and its size: one file, whatever its name leads to later.

    Raises:
        NotFound: there is no log.
        Unavailable: it cannot be read.
    """
    fd, status = _open(place)
    try:
        with failing("cannot read the log", log=place.log, path=place.path):
            yield fd, status.st_size
    finally:
        os.close(fd)


def tail_of(place: Place) -> Tail:
    """Return the log's tail.

    Raises:
        NotFound: there is no log.
        Unavailable: it cannot be opened.
    """
    fd, status = _open(place)
    try:
        return Tail(status.st_size, run_of(fd, status.st_ino))
    finally:
        os.close(fd)


def rows_with_tails(root: str, runs: Iterator[list[str]]) -> Iterator[LogInfo]:
    """Yield a listing's rows with tails, each from its opened file.

    Raises:
        Unavailable: a log cannot be opened.
    """
    for log in chain.from_iterable(runs):
        with suppress(NotFound):  # it was deleted meanwhile, or is empty
            yield LogInfo(log, tail_of(locate(root, log)))


def make_whole(place: Place, fill: Callable[[int], None]) -> Tail | None:
    """Make a log in one step, and return its tail; None where that cannot be, and then nothing was made.

    The file gets its name when it is whole, and only if nothing else has that name. Not every file system can do
    so. Where it can, this is cheaper than a rename over an empty file, for which ext4 writes the new file out first.

    Args:
        place: where the log shall be.
        fill: writes the file, given its descriptor.

    Raises:
        OSError: a directory cannot be made, or `fill` raised this.
    """
    above = open_directory(place.root, place.parts, make=True)
    try:
        try:
            os.stat(place.file, dir_fd=above, follow_symlinks=False)
        except FileNotFoundError:
            pass
        else:
            return None
        try:
            # Not to append: the kernel copies into no file that is opened so.
            fd = os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600, dir_fd=above)
        except (AttributeError, OSError):
            return None
        try:
            fill(fd)
            try:
                os.link(f"/proc/self/fd/{fd}", place.file, dst_dir_fd=above)
            except OSError:
                return None
            status = os.fstat(fd)
            return Tail(status.st_size, run_of(fd, status.st_ino))
        finally:
            os.close(fd)
    finally:
        os.close(above)


@contextmanager
def own_directory(handle: Handle) -> Iterator[int]:
    """Open the directory in which the log's name is locked, and not one that was put in its place."""
    with directory(handle.place) as above:
        if not handle.is_at(os.stat(handle.place.file, dir_fd=above, follow_symlinks=False)):
            raise Unavailable("the directory was replaced meanwhile: try again", retry=True, log=handle.place.log)
        yield above


def keep_aside(place: Place, size: int, dropped: bytes, *, sync: bool) -> None:
    """Write what is to be cut from the log behind `size` to a file of its own beside it.

    Raises:
        OSError: it cannot be written; nothing is left of it then.
    """
    name = place.beside(f"cut-{size}-{secrets.token_hex(4)}")
    with directory(place) as above:
        fd = exclusive(name, above)
        try:
            _copy.write_all(fd, dropped)
            if sync:
                _sync.fsync(fd)
                _sync.fsync(above)
        except BaseException:
            unlink(name, above)
            raise
        finally:
            os.close(fd)
