"""Who may change a log: the lock on its file, and the note beside it that names a holder.

The lock on the log's own file (``flock``) decides everything. It is taken for one append, or for a whole hold.
A hold also writes a note, ``.<segment>.hold``, and keeps that locked too: so whoever is refused can tell a hold,
which is an answer, from an append that is over in a moment, and can say who it is. A note that nobody has locked
was left by a process that died, and means nothing.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from enum import Enum
from typing import Final

from statestore.errors import Held, Unavailable
from statestore.store import Holder
from statestore_local._errors import unavailable
from statestore_local._files import Place, directory, exclusive, unlink
from statestore_local._forks import adopt, let_go

__all__ = ["amid", "busy", "held", "lock", "look", "myself", "post", "take_down", "unlock"]

_FIRST_PAUSE: Final = 0.00005
_LONGEST_PAUSE: Final = 0.01
_NOTE: Final = "hold"


class Sign(Enum):
    """What the note beside a log says when it names nobody."""

    NOBODY = "nobody holds the log"
    UNREADABLE = "somebody has locked the note, and it cannot be read, or not yet"


def myself() -> Holder:
    """Return this process as a holder, from now on."""
    return Holder(os.getpid(), os.uname().nodename, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


def held(place: Place, holder: Holder | None) -> Held:
    """Return the error for whoever is refused by a hold."""
    if holder is None:
        return Held("somebody holds this log: wait until they let go", log=place.log)
    mine = holder.pid == os.getpid() and holder.host == os.uname().nodename
    whose = "this process holds" if mine else "another process holds"
    return Held(f"{whose} this log: wait until it lets go, or end it", log=place.log, holder=holder)


def lock(fd: int, place: Place, deadline: float) -> None:
    """Lock an open log, waiting for appends that are under way, but not for a hold.

    Raises:
        Held: somebody holds the log.
        Unavailable: the lock could not be had before `deadline` (of ``time.monotonic``).
    """
    pause = _FIRST_PAUSE
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            pass
        except OSError as error:
            raise unavailable(error, "cannot lock the log", log=place.log, path=place.path) from error
        sign = look(place)
        if isinstance(sign, Holder):
            raise held(place, sign)
        if time.monotonic() >= deadline:
            if sign is Sign.UNREADABLE:
                raise held(place, None)
            raise busy(place)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def busy(place: Place) -> Unavailable:
    """Return the error for whoever has waited too long for others' appends."""
    return Unavailable(
        "others are changing this log all the time, or one has stopped half way: try again later, "
        "or open the store with a longer lock_timeout",
        retry=True,
        log=place.log,
    )


def amid(place: Place) -> Unavailable:
    """Return the error for a call that a signal handler makes in the middle of another one by the same thread."""
    return Unavailable(
        "this very thread is in the middle of a call on this log, which a signal handler has interrupted: "
        "try again when the handler is over",
        retry=True,
        log=place.log,
    )


def unlock(fd: int) -> None:
    """Let go of the lock; nothing happens where there is none."""
    fcntl.flock(fd, fcntl.LOCK_UN)


def look(place: Place) -> Holder | Sign:
    """Say who holds the log, from the note beside it; a hold is not disturbed.

    Raises:
        Unavailable: something that is no directory is on the way to the note.
    """
    name = place.beside(_NOTE)
    try:
        with directory(place) as above:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=above)
    except FileNotFoundError:
        return Sign.NOBODY
    except OSError as error:
        if error.errno in (errno.EACCES, errno.ELOOP, errno.ENXIO):
            return Sign.UNREADABLE
        raise unavailable(error, "cannot see who holds the log", log=place.log, path=place.path) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return Sign.NOBODY
    except OSError:
        return _parse(fd)
    finally:
        os.close(fd)


def _parse(fd: int) -> Holder | Sign:
    try:
        note = json.loads(os.pread(fd, 4096, 0))
        return Holder(int(note["pid"]), str(note["host"]), str(note["since"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return Sign.UNREADABLE


def post(place: Place, holder: Holder) -> int:
    """Write the note that names the holder, and return its descriptor, locked. Only who has the log's lock may.

    Raises:
        OSError: the note cannot be written.
    """
    text = json.dumps({"pid": holder.pid, "host": holder.host, "since": holder.since}).encode() + b"\n"
    name = place.beside(_NOTE)
    fd = -1
    try:
        with directory(place) as above:
            while True:
                fd = adopt(lambda: exclusive(name, above))
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.write(fd, text)
                    return fd
                except BlockingIOError:
                    let_go(fd)  # somebody looks at the new note this very moment: they shall see another one
                    fd = -1
                except BaseException:
                    unlink(name, above)
                    raise
    except BaseException:
        if fd >= 0:
            let_go(fd)
        raise


def take_down(place: Place, fd: int) -> None:
    """Remove the note, if it is still the one that this descriptor is open on."""
    name = place.beside(_NOTE)
    try:
        with directory(place) as above:
            there, ours = os.stat(name, dir_fd=above, follow_symlinks=False), os.fstat(fd)
            if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                os.unlink(name, dir_fd=above)
    except (OSError, Unavailable):
        pass  # a note that nobody has locked means nothing
