"""Stores that are right in one process and wrong among several: the local store, and what a fork does to a private one.

What is shared by all store objects of one process is kept in a module's variable, so that only another process
finds the fault.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from statestore.conformance import Harness
from statestore.errors import Held, NotFound, Unavailable
from statestore.store import NEW, Holder, Tail
from statestore_local import LocalStore
from statestore_local._handles import Handle
from statestore_memory import MemoryStore
from tests.saboteurs.faults import saboteur
from tests.saboteurs.races import gap
from tests.saboteurs.stores import Full, Space

_here = threading.RLock()
_written: dict[tuple[str, str], Tail] = {}  # what this process remembers of what it has written


os.environ.setdefault("STATESTORE_SABOTEURS_PROCESS", str(os.getpid()))


def _is_other() -> bool:
    """Say whether this is a process that was started by the one that runs the clauses."""
    return os.environ["STATESTORE_SABOTEURS_PROCESS"] != str(os.getpid())


class Local(LocalStore):
    def __init__(self, root: Path) -> None:
        super().__init__(root, sync="never")

    @staticmethod
    def base(root: Path) -> Path:
        """Return where the logs of a store on `root` are."""
        return root

    def is_free(self, log: str) -> bool:
        return self.holder(log) is None


def local(kind: Any, place: Path) -> Harness:
    """Return a harness of a local store class."""
    root = place / "logs"
    opener = partial(kind, root)

    def raw_write(log: str, data: bytes) -> None:
        file = kind.base(root) / f"{log}.state"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def raw_aside(log: str) -> bytes:
        file = kind.base(root) / log
        kept = file.parent.glob(f".{file.name}*cut-*")
        return b"".join(each.read_bytes() for each in sorted(kept, key=lambda each: each.stat().st_ctime_ns))

    return Harness(
        open=opener,
        reopen=opener,
        spawn=opener,
        raw_read=lambda log: (kind.base(root) / f"{log}.state").read_bytes(),
        raw_write=raw_write,
        raw_aside=raw_aside,
        crash=lambda store: None,
    )


@saboteur("another-process-sees-the-same-logs", factory=local)
class OnePlaceAProcess(Local):
    """Each process that opens the store gets a directory of its own."""

    def __init__(self, root: Path) -> None:
        super().__init__(self.base(root))

    @staticmethod
    def base(root: Path) -> Path:
        return root / f"of-{os.getpid()}"


@saboteur("a-store-that-is-not-shared-is-seen-by-no-other-process", factory=local)
class SharedUndeclared(Local):
    """A store that says that it is private is seen by every process."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.capabilities = replace(self.capabilities, shared=False)


class _LocksThreads(Local):
    """Keeps out threads by one lock for the whole process."""

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        with _here:
            return super().copy(source, target, stop=stop)

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        with _here:
            super().delete(log, at=at)


@saboteur("processes-win-each-position-once", factory=local)
class LocksThreadsOnly(_LocksThreads):
    """The lock of an append keeps out threads, and no other process."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        with _here:
            try:
                good = isinstance(data, bytes) and data and isinstance(at, Tail) and at.size > 0
                fits = good and self.is_free(log) and self.tail(log) == at
            except NotFound:
                fits = False
            if not fits:
                return super().append(log, data, at=at)
            gap(always=_is_other())
            fd = os.open(self.location(log), os.O_WRONLY)
            try:
                os.pwrite(fd, data, at.size)
            finally:
                os.close(fd)
            return Tail(at.size + len(data), at.run)


@saboteur("a-creation-has-one-winner-among-processes", factory=local)
class CreatesThreadsOnly(_LocksThreads):
    """A creation looks whether there is a log, and then writes one: no thread can come between, but a process can."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        with _here:
            try:
                if at != NEW or not isinstance(data, bytes) or not data or not self.is_free(log):
                    return super().append(log, data, at=at)
                self.tail(log)
            except NotFound:
                gap(always=_is_other())
            else:
                return super().append(log, data, at=at)
            file = Path(self.location(log))
            if not file.exists():
                return super().append(log, data, at=at)
            file.write_bytes(data)
            return self.tail(log)


class _Remembers(Local):
    """Remembers, for the whole process, where the appends of this process to other processes' logs ended."""

    def key(self, log: str) -> tuple[str, str]:
        return self.location(log), log

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        with _here:
            key = self.key(log)
            known = self.known(log, at) if isinstance(at, Tail) and at.size > 0 else at
            tail = super().append(log, data, at=known)
            if at.size and os.path.getsize(key[0]) == tail.size:
                _written[key] = tail
            return tail

    def known(self, log: str, at: Tail) -> Tail:
        raise NotImplementedError

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        super().delete(log, at=at)
        _written.pop(self.key(log), None)

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        _written.pop(self.key(log), None)
        return super().cut(log, size, at=at)


@saboteur("a-process-that-was-frozen-and-overtaken-is-refused", factory=local)
class BelievesItsLastAppend(_Remembers):
    """A process believes that a log ends where its own last append to it ended."""

    def known(self, log: str, at: Tail) -> Tail:
        return self.tail(log) if _written.get(self.key(log)) == at else at


@saboteur("a-process-that-was-frozen-through-a-deletion-is-refused", factory=local)
class BelievesItsRun(_Remembers):
    """A process believes that a log that it has appended to is of the same run still."""

    def known(self, log: str, at: Tail) -> Tail:
        last = _written.get(self.key(log))
        if last and last.run == at.run:
            found = self.tail(log)
            return found if found.size == at.size else at
        return at


@saboteur("a-hold-keeps-other-processes-out", factory=local)
class HoldsInMemory(Local):
    """A hold is kept in the memory of the process."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.memory = MemoryStore(str(root))

    def check_free(self, log: str) -> None:
        self._check(log)
        self.memory._check_free(log)

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self.check_free(log)
        return super().append(log, data, at=at)

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        self._check(source)
        self.check_free(target)
        return super().copy(source, target, stop=stop)

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        self.check_free(log)
        super().delete(log, at=at)

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        self.check_free(log)
        return super().cut(log, size, at=at)

    def hold(self, log: str) -> AbstractContextManager[None]:
        self._check(log)
        return self.memory.hold(log)

    def holder(self, log: str) -> Holder | None:
        self._check(log)
        return self.memory.holder(log)

    def close(self) -> None:
        super().close()
        self.memory.close()


@saboteur("a-hold-by-another-process-is-told-and-ends", factory=local)
class HolderIsWhoAsks(Local):
    """The holder that is told is always the process that asks."""

    def holder(self, log: str) -> Holder | None:
        holder = super().holder(log)
        return holder and replace(holder, pid=os.getpid())


@saboteur("a-hold-dies-with-its-process", factory=local, limit=4)
class HoldIsAFile(Local):
    """A hold is a file that somebody has to remove."""

    def mark(self, log: str) -> Path:
        self._check(log)
        return Path(self.location(log) + ".held")

    def check_mark(self, log: str) -> None:
        if self.mark(log).exists() and self.holder(log) is None:
            raise Held("the log is held", log=log)

    @contextmanager
    def _holding(self, log: str) -> Iterator[None]:
        self.check_mark(log)
        mark = self.mark(log)
        with super()._holding(log):
            mark.write_bytes(b"")
            try:
                yield
            finally:
                mark.unlink(missing_ok=True)

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self.check_mark(log)
        return super().append(log, data, at=at)

    def close(self) -> None:
        held = [handle.place for handle in self._handles._table.values() if handle.holder]
        super().close()
        for place in held:
            Path(place.path + ".held").unlink(missing_ok=True)


@saboteur("a-killed-writer-loses-nothing-acknowledged", factory=local)
class MarksUnfinished(Local):
    """A log whose writer died amid an append is refused until somebody removes its mark."""

    def _add(self, handle: Handle, size: int, data: bytes, at: Tail) -> Tail:
        mark = Path(handle.place.path + ".unfinished")
        if mark.exists():
            raise Unavailable("the last append was not finished", log=handle.place.log)
        mark.write_bytes(b"")
        if _is_other():
            time.sleep(0.002)
        try:
            return super()._add(handle, size, data, at)
        finally:
            mark.unlink()


@saboteur("an-append-is-whole-or-not-there-when-its-writer-is-killed", factory=local)
class SaysThatNothingTears(Local):
    """A store says that its appends are whole or not there, and a killed writer leaves a part of one."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.capabilities = replace(self.capabilities, atomic_append=True)


@saboteur("a-forked-child-goes-on-with-the-store", factory=local)
class BelongsToItsProcess(Local):
    """A store refuses to work in a forked child."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.pid = os.getpid()

    def _check_open(self) -> None:
        super()._check_open()
        if os.getpid() != self.pid:
            raise Unavailable("this store was opened by another process")


def private(kind: Any, place: Path) -> Harness:
    """Return a harness of a local store class that gives another process an empty directory."""
    return replace(local(kind, place), spawn=partial(kind, place / "elsewhere"))


@saboteur("a-forked-child-does-not-reach-into-its-parent", factory=private)
class PrivateDirectory(SharedUndeclared):
    """A private store keeps its logs in a directory that a forked child writes to as well."""


@saboteur("a-fork-neither-takes-nor-ends-a-hold", factory=local)
class ChildLetsGo(Local):
    """A forked child that closes the store lets go of what its parent holds."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.locks: dict[int, int] = {}

    @contextmanager
    def _holding(self, log: str) -> Iterator[None]:
        with super()._holding(log):
            handle = self._known(log)
            self.locks = {os.dup(fd): os.getpid() for fd in (handle.fd, handle.note)} if handle else {}
            try:
                yield
            finally:
                self.let_go()

    def let_go(self) -> None:
        locks, self.locks = self.locks, {}
        for fd in locks:
            os.close(fd)

    def close(self) -> None:
        for fd, pid in self.locks.items():
            if pid != os.getpid():
                fcntl.flock(fd, fcntl.LOCK_UN)
        super().close()
        self.let_go()


@saboteur("a-fork-amid-work-leaves-no-lock-behind")
class ForgetsForks(Full):
    """A lock that another thread has at a fork is never free in the child, which waits for it for a second."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.lock = threading.Lock()

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        if not self.lock.acquire(timeout=1):
            raise Unavailable("the store is busy", log=log)
        try:
            gap()
            return super().append(log, data, at=at)
        finally:
            self.lock.release()
