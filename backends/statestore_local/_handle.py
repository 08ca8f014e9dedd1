"""One log file that a store keeps open to write."""

from __future__ import annotations

import os
import threading
from itertools import repeat

from statestore.store import Holder, Tail
from statestore_local import _forks, _locks
from statestore_local._files import Place, run_of

__all__ = ["Handle"]


class Handle:
    """One log's open file. All but `mutex`, `ending` and `dead` may be touched only by who has the mutex.

    Attributes:
        mutex: belongs to the thread that has entered the handle; all others wait for a bounded time.
        entering: tries to take the mutex each time that it is asked for an element, as `_taking` does once.
        entered: whether a call is in the middle of the handle. Who has the mutex and finds this set meets itself.
        ending: the hold is to end, or the handle to be let go of with its store, as soon as nobody is in the middle.
        fd: the open file, or -1.
        holder: this process, while the store holds the log.
        note: the descriptor of the hold's note, or -1.
        settled: whether the file's name is known to be durable.
        broken: why the log may not be written through this store any more.
        trusted: until when the name is known to lead here, of ``time.monotonic``.
        used: when it was taken last, counted in takings.
        dead: it is no longer in the table: get another one.
    """

    __slots__ = (
        "broken", "dead", "dev", "ending", "entered", "entering", "fd", "holder", "ino", "mutex", "note", "place",
        "run", "settled", "trusted", "used",
    )  # fmt: skip

    def __init__(self, place: Place) -> None:
        self.place = place
        self.broken = ""
        self.dead = self.ending = False
        self.used = 0
        self.renew()
        self.forget()

    def renew(self) -> None:
        """Have nobody in the middle."""
        self.mutex = threading.RLock()
        self.entering = map(self.mutex.acquire, repeat(False))
        self.entered = False

    def forget(self) -> None:
        """Be as new: no file, no hold."""
        self.fd = self.note = -1
        self.dev = self.ino = 0
        self.run = ""
        self.holder: Holder | None = None
        self.settled = False
        self.trusted = 0.0

    def bind(self, fd: int) -> None:
        """Stand for this open file from now on, and close the one before."""
        status = os.fstat(fd)
        old = self.fd
        self.fd, self.dev, self.ino, self.run = fd, status.st_dev, status.st_ino, run_of(fd, status.st_ino)
        self.settled = False
        self.trusted = 0.0
        if old >= 0:
            try:
                _locks.unlock(old)
            finally:
                _forks.let_go(old)

    def take_down(self) -> None:
        """Remove the hold's note, if there is one. Where that is interrupted it can be done again."""
        if self.note >= 0:
            _locks.take_down(self.place, self.note)
            note, self.note = self.note, -1
            try:
                _locks.unlock(note)
            finally:
                _forks.let_go(note)

    def drop(self) -> None:
        """Let go of the file, and of the hold if there is one. Where that is interrupted it can be done again."""
        self.take_down()
        fd = self.fd
        self.forget()
        if fd >= 0:
            try:
                _locks.unlock(fd)
            finally:
                _forks.let_go(fd)

    def is_at(self, status: os.stat_result) -> bool:
        """Say whether this is the status of the open file."""
        return status.st_ino == self.ino and status.st_dev == self.dev

    def tail(self, size: int) -> Tail:
        """Return the tail of this run at `size`."""
        return Tail(size, self.run)
