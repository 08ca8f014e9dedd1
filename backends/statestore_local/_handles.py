"""The log files that a store keeps open to write: one handle a log, a bounded number of them.

A handle is entered by one thread at a time. Entering it *takes* the log: the file is locked, and its name still
leads to it. A name can come to lead elsewhere while the file is open (the log was deleted, or another program put
another file there); what is then at the name is opened, and its size and run decide what happens.

A signal handler may raise, as Ctrl-C does, and the exception then comes behind whichever call is returning. So no
call stands between the taking of a mutex and the `try` whose `finally` releases it, nor in front of that release.

A handler may also make calls of its own, and the garbage collector may end a hold that somebody abandoned, both
while their thread is in the middle of a handle. So the mutex is reentrant, and `entered` tells a thread that it
has met itself; it is refused, and does not wait. Ending a hold and closing are not refused: where they cannot be
done at once they are only noted, as `ending`, and whoever leaves the handle next does them.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from statestore.errors import Closed, NotFound, Unavailable
from statestore.store import Holder
from statestore_local import _forks, _locks
from statestore_local._errors import unavailable
from statestore_local._files import Place, directory, exclusive, locate, open_log, unlink
from statestore_local._handle import Handle

__all__ = ["Handle", "Handles"]

_LIMIT: Final = 64  # open files, those of held logs and those in use this moment not counted


class Handles:
    """The handles of one store.

    Args:
        root: the store's root directory.
        wait: how long to wait for others' appends, in seconds.
        trust: how long a held log's name is trusted to lead where it did, in seconds.
    """

    def __init__(self, root: str, *, wait: float, trust: float) -> None:
        self.root = root
        self.wait = wait
        self.trust = trust
        self.closed = False
        self.epoch = object()  # another one in a forked child
        self._takings = 0
        self._table: dict[str, Handle] = {}  # changed in single steps only, which need no lock
        self.get = self._table.get  # whatever is in the table has a valid name

    def enter(self, log: str) -> Handle:
        """Return the log's handle, entered. The name was checked by the caller.

        Whoever has entered a handle must `leave` it, then unset `entered`, release the mutex, and `settle`.

        Raises:
            Closed: the handles were closed.
            Unavailable: other threads did not leave it in time, or this very thread is in the middle of it.
        """
        while True:
            self._check_open()
            handle = self.get(log) or self._admit(log)
            for taken in _taking(handle.mutex, self.wait):
                if not taken:
                    raise _locks.busy(handle.place)
                if not (handle.entered or handle.ending or handle.dead or self.closed):
                    handle.entered = True
                    return handle
                itself, handle.ending = handle.entered, handle.ending or handle.dead or self.closed
                handle.mutex.release()
                if itself:
                    raise _locks.amid(handle.place)
                self.settle(handle)

    def leave(self, handle: Handle) -> None:
        """Unlock the log, unless it is held."""
        if handle.fd >= 0:
            if handle.holder is None:
                _locks.unlock(handle.fd)
        elif not handle.broken:
            self._discard(handle)

    def take(self, handle: Handle, *, make: bool) -> os.stat_result:
        """Lock the log's file, opened anew where the name leads elsewhere by now, and return its status.

        Args:
            handle: an entered handle.
            make: make an empty file where there is none.

        Raises:
            NotFound: there is no file.
            Held: somebody else holds the log.
            Unavailable: the file cannot be opened or locked.
        """
        self._takings += 1
        handle.used = self._takings
        deadline = time.monotonic() + self.wait
        while True:
            if handle.fd < 0:
                self._open(handle, make=make)
            if handle.holder is None:
                _locks.lock(handle.fd, handle.place, deadline)
            now = time.monotonic()
            status = self._look(handle)
            if status is not None:
                handle.trusted = now + self.trust
                return status
            if handle.holder is None:
                handle.drop()
            else:
                self._hold_again(handle, make=make)
            if now >= deadline:
                raise _locks.busy(handle.place)

    def find(self, handle: Handle) -> os.stat_result:
        """Open the log's file as `take` does, but lock nothing; return its status.

        Raises:
            NotFound: there is no file.
            Unavailable: the file cannot be opened.
        """
        if handle.fd >= 0 and handle.holder is None and self._look(handle) is None:
            handle.drop()
        if handle.fd < 0:
            self._open(handle, make=False)
        return os.fstat(handle.fd)

    def _look(self, handle: Handle) -> os.stat_result | None:
        """Return the status of what is at the log's name, if that is the open file."""
        place = handle.place
        try:
            status = os.lstat(place.path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise unavailable(error, "cannot look at the log", log=place.log, path=place.path) from error
        return status if handle.is_at(status) else None

    def _open(self, handle: Handle, *, make: bool) -> None:
        handle.bind(self._descriptor(handle.place, make=make))

    def _descriptor(self, place: Place, *, make: bool) -> int:
        try:
            return _forks.adopt(lambda: open_log(place, os.O_RDWR | os.O_APPEND, make=make)[0])
        except FileNotFoundError:
            raise NotFound("no such log", log=place.log) from None

    def _hold_again(self, handle: Handle, *, make: bool) -> None:
        """Another program replaced or removed the file of a log that we hold: hold what is there now."""
        place = handle.place
        fd = self._descriptor(place, make=make)
        try:
            _locks.lock(fd, place, 0.0)
            handle.take_down()
            handle.note = _locks.post(place, handle.holder or _locks.myself())
            handle.bind(fd)
        except BaseException as error:
            if handle.fd != fd:
                _forks.let_go(fd)
            if isinstance(error, OSError):
                raise unavailable(error, "cannot note the hold", log=place.log, path=place.path) from error
            raise

    def hold(self, handle: Handle, holder: Holder) -> None:
        """Hold the log of an entered handle from now on; a log that is not there is an empty file meanwhile.

        Raises:
            Held: somebody holds it.
            Unavailable: the log cannot be locked, or the hold cannot be noted.
        """
        if handle.holder is not None:
            raise _locks.held(handle.place, handle.holder)
        self.take(handle, make=True)
        place = handle.place
        try:
            handle.note = _locks.post(place, holder)
        except OSError as error:
            self.tidy(handle)
            raise unavailable(error, "cannot note the hold", log=place.log, path=place.path) from error
        except BaseException:
            self.tidy(handle)
            raise
        handle.holder = holder

    def end(self, handle: Handle, holder: Holder, wait: float) -> None:
        """End the hold that `hold` began, if it did, and if it has not ended with the store.

        Where others are in the middle of the handle, wait for so many seconds, then leave it to them.
        """
        if handle.holder is holder:
            handle.ending = True
            self.settle(handle, wait)

    def settle(self, handle: Handle, wait: float = 0.0) -> None:
        """Do what is noted as `ending`, unless somebody is in the middle of the handle, who will do it."""
        while handle.ending:
            for taken in _taking(handle.mutex, wait):
                if not taken:
                    return
                if handle.entered:
                    handle.mutex.release()
                    return
                handle.entered = True
                try:
                    self._finish(handle)
                finally:
                    handle.entered = False
                    handle.mutex.release()

    def _finish(self, handle: Handle) -> None:
        ending, handle.ending = handle.ending, False
        try:
            if handle.holder is not None and ending:
                self._release(handle)
            if handle.dead or self.closed:
                handle.drop()
                self._discard(handle)
        except BaseException:
            handle.ending = ending
            raise
        finally:
            if handle.holder is None and handle.fd >= 0:
                _locks.unlock(handle.fd)

    def _release(self, handle: Handle) -> None:
        handle.take_down()
        handle.holder = None
        self.tidy(handle)

    def tidy(self, handle: Handle) -> None:
        """Remove the file of an entered, locked handle, if it is empty still: no log was made of it."""
        if handle.fd < 0 or handle.holder is not None or os.fstat(handle.fd).st_size:
            return
        try:
            with directory(handle.place) as above:
                if handle.is_at(os.stat(handle.place.file, dir_fd=above, follow_symlinks=False)):
                    os.unlink(handle.place.file, dir_fd=above)
                    handle.drop()
        except (OSError, Unavailable):
            pass  # an empty file is no log, whether it stays or goes

    def swap(self, handle: Handle, above: int, fill: Callable[[int], None]) -> None:
        """Put a new file in the place of the file of a taken handle: whole, in one step, and the name stays locked.

        Args:
            handle: an entered handle whose log is taken.
            above: the log's directory.
            fill: writes the new file, given its descriptor.

        Raises:
            OSError: the file cannot be made, or `fill` raised this.
        """
        place = handle.place
        new = place.beside("new")
        fd = _forks.adopt(lambda: exclusive(new, above))
        try:
            _locks.lock(fd, place, 0.0)
            fill(fd)
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)  # not before: the kernel copies into no file that is open so
            handle.trusted = 0.0
            os.rename(new, place.file, src_dir_fd=above, dst_dir_fd=above)
            handle.bind(fd)
        except BaseException:
            if handle.fd != fd:
                _forks.let_go(fd)
                unlink(new, above)
            raise

    def _check_open(self) -> None:
        if self.closed:
            raise Closed("this store was closed: open another one")

    def _admit(self, log: str) -> Handle:
        if len(self._table) >= _LIMIT:
            self._make_room()
        handle = self._table.setdefault(log, Handle(locate(self.root, log)))
        if self.closed:  # it may have been too early to see this handle
            handle.ending = True
            self.settle(handle)
        return handle

    def _make_room(self) -> None:
        for handle in sorted(self._table.values(), key=lambda handle: handle.used):
            if handle.holder is None and not handle.broken:
                for taken in _taking(handle.mutex, 0):
                    if taken and handle.entered:
                        handle.mutex.release()
                    elif taken:
                        handle.entered = True
                        try:
                            if handle.holder is None:
                                handle.drop()
                                self._discard(handle)
                        finally:
                            handle.entered = False
                            handle.mutex.release()
                            self.settle(handle)
            if len(self._table) < _LIMIT:
                return

    def _discard(self, handle: Handle) -> None:
        """Take an entered handle that has no file off the table, where only who has entered it may do so."""
        handle.dead = True
        if self._table.get(handle.place.log) is handle:
            self._table.pop(handle.place.log, None)

    def forget(self) -> None:
        """In a forked child: the files and holds are the parent's, and their descriptors are closed already."""
        self.epoch = object()
        for handle in self._table.values():
            handle.forget()
            handle.dead = True
            if handle.mutex.acquire(False):
                handle.mutex.release()  # nobody is in the middle, or this thread, which goes on in the child
            else:
                handle.renew()
        self._table.clear()

    def close(self, wait: float) -> None:
        """Let go of all files and holds; entering is refused from now on.

        Wait for so many seconds for those who are in the middle of a handle: later, they let go of it themselves.
        """
        deadline = time.monotonic() + wait
        self.closed = True
        handles = list(self._table.values())
        for handle in handles:
            handle.ending = True
        for handle in handles:
            self.settle(handle, max(0.0, deadline - time.monotonic()))


def _taking(mutex: threading.RLock, wait: float) -> Iterator[bool]:
    """Take a mutex when the one element is asked for, which says whether it was taken; wait for so many seconds.

    To loop over it is no call: an exception that a signal raises comes before the mutex is taken, or in the loop.
    """
    return map(mutex.acquire, (True,), (wait,))
