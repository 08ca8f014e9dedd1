"""The local store: one file a log, appended to under a kernel lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from time import monotonic
from typing import Final

from statestore import names
from statestore.errors import Conflict, Exists, NotFound, Unavailable
from statestore.store import Capabilities, Holder, LogInfo, Sidecar, Store, Tail, check_data, check_range, check_stop
from statestore_local import _copy, _forks, _locks, _sync
from statestore_local._errors import failing, unavailable
from statestore_local._files import locate, open_root, run_of
from statestore_local._handles import Handle, Handles
from statestore_local._list import list_runs, rows
from statestore_local._sidecar import LocalSidecar
from statestore_local._whole import keep_aside, make_whole, own_directory, reading, rows_with_tails, tail_of

__all__ = ["LocalStore"]

# While a log is held, only a program that ignores locks can put another file in its place. For so long, in seconds,
# appends that are not synced trust that none has: a look at the name would cost more than the write.
_TRUST: Final = 0.0005


class LocalStore(Store):
    """Logs in a directory of this machine, one file a log: ``<root>/<name>.state``.

    Files are for this user alone (0600, directories 0700). No symbolic link below the root is followed. An empty
    file is no log: a creation died there, or has only begun. A listing without tails does not look into files, so
    it may show one of these; a log that is held before it is made it does not show.

    A listing with tails opens each log's file. Names that differ only in case are different logs, if the file
    system keeps them apart.

    Args:
        root: the directory that holds the logs.
        sync: when appends go to the disk: ``"always"`` before each returns, so that it survives the loss of
            power; ``"on_flush"`` when ``flush`` is called; ``"never"``, when the kernel likes. Without
            ``"always"``, deletions and copies wait for the kernel too.
        create: make the directory where it is missing.
        lock_timeout: how long to wait for others' appends to the same log, in seconds. A hold is not waited for.

    Raises:
        Unavailable: the directory is missing and not to be made, or cannot be opened.
        ValueError: there is no such `sync`, or `lock_timeout` is below zero.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        sync: _sync.Sync = "always",
        create: bool = True,
        lock_timeout: float = 10.0,
    ) -> None:
        if sync not in _sync.POLICIES:
            raise ValueError(f"sync is one of {', '.join(_sync.POLICIES)}, not {sync!r}")
        if not lock_timeout >= 0:
            raise ValueError(f"lock_timeout is a number of seconds, not {lock_timeout!r}")
        self._root = os.path.abspath(os.fspath(root))
        self._always = sync == "always"
        fd = open_root(self._root, make=create)
        try:
            runs = run_of(fd, 0) != ""
        finally:
            os.close(fd)
        self.capabilities = Capabilities(
            durable=self._always,
            flushes=sync != "never",
            shared=True,
            runs=runs,
            holds=True,
            deletes=True,
            cuts=True,
            server_copy=hasattr(os, "copy_file_range"),
            sidecars=True,
        )
        self._handles = Handles(self._root, wait=min(lock_timeout, 86400.0), trust=0.0 if self._always else _TRUST)
        self._known = self._handles.get
        _forks.watch(self)

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r})"

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        handle = self._known(log)
        if handle is None:
            self._check(log)
        if type(data) is not bytes or not data or type(at) is not Tail or at.size <= 0:  # else the call can be spared
            check_data(data, at)
        if handle is not None:
            for taken in handle.entering:
                if not taken:
                    break
                if handle.entered or handle.ending or handle.dead:
                    handle.mutex.release()
                    break
                handle.entered = True
                try:
                    if handle.holder is None:
                        return self._add_free(handle, data, at)
                    if monotonic() < handle.trusted:  # much cheaper than a look at the name
                        size = os.lseek(handle.fd, 0, os.SEEK_END)
                    else:
                        size = self._handles.take(handle, make=at.size == 0).st_size
                    return self._add(handle, size, data, at)
                finally:
                    handle.entered = False
                    handle.mutex.release()
                    if handle.ending:
                        self._handles.settle(handle)
        handle = self._handles.enter(log)
        try:
            return self._add_free(handle, data, at)
        finally:
            handle.entered = False
            handle.mutex.release()
            self._handles.settle(handle)

    def _add_free(self, handle: Handle, data: bytes, at: Tail) -> Tail:
        """Append to the log of an entered handle, which is locked for as long as this takes."""
        try:
            return self._add(handle, self._handles.take(handle, make=at.size == 0).st_size, data, at)
        finally:
            self._handles.leave(handle)

    def _add(self, handle: Handle, size: int, data: bytes, at: Tail) -> Tail:
        """Append to a log that is locked and has this size."""
        if size != at.size or (size and at.run != handle.run) or handle.broken:
            return self._settle(handle, size, data, at)
        try:
            written = os.write(handle.fd, data)
            if written != len(data):
                _copy.write_all(handle.fd, data[written:])
                written = len(data)
        except OSError as error:
            raise self._take_back(handle, size, error) from error
        if self._always:
            self._sync_all(handle, size)
        return Tail(size + written, handle.run)

    def _settle(self, handle: Handle, size: int, data: bytes, at: Tail) -> Tail:
        """Answer an append whose place is not the end: was it there already, or is it refused?"""
        self._check_sound(handle)
        log = handle.place.log
        if size == 0:
            raise NotFound("no such log: it is empty", log=log)
        found = handle.tail(size)
        end = at.size + len(data)
        if (at.size == 0 or at.run == handle.run) and end <= size:
            with failing("cannot compare with what is there", log=log, path=handle.place.path):
                same = _copy.read_at(handle.fd, at.size, len(data)) == data
            if same:
                if self._always:
                    self._sync_all(handle, None)
                return handle.tail(end)
        raise Conflict("the log ends elsewhere: read what is new, then append there", log=log, expected=at, found=found)

    def _take_back(self, handle: Handle, size: int, error: OSError) -> Unavailable:
        """Undo a write that failed part way, and return the error to raise."""
        place = handle.place
        try:
            os.ftruncate(handle.fd, size)
        except OSError:
            handle.broken = "a write failed, and could not be taken back"
            return unavailable(
                error,
                f"cannot append, and a part may be left behind byte {size}, so this store object writes the log no "
                "more: open another one, which looks at the log's end anew",
                effect_unknown=True,
                log=place.log,
                path=place.path,
            )
        if size == 0:
            self._handles.tidy(handle)
        return unavailable(error, "cannot append, and nothing was added", log=place.log, path=place.path)

    def _sync_all(self, handle: Handle, size: int | None) -> None:
        """Make the log durable; where that fails, write it no more, and cut it back to `size` if that is given."""
        try:
            _sync.fdatasync(handle.fd)
            self._settle_name(handle)
        except (OSError, Unavailable) as error:
            # The kernel reports a failed sync once, and may have dropped the pages: a second sync would lie.
            raise self._broken(handle, error, size) from error

    def _settle_name(self, handle: Handle) -> None:
        if not handle.settled:
            _sync.sync_names(handle.place)
            handle.settled = True

    def _broken(self, handle: Handle, error: OSError | Unavailable, size: int | None) -> Unavailable:
        handle.broken = "a sync failed"
        after = "the log was left as it is"
        if size is not None:
            try:
                os.ftruncate(handle.fd, size)
                after = f"the log was cut back to {size} bytes"
                if size == 0:
                    self._handles.tidy(handle)
            except OSError:
                after = f"the log could not be cut back to {size} bytes"
        doing = (
            f"cannot make the log durable; {after}, and this store object writes it no more, since what the "
            "kernel holds may differ from the disk: look at the disk, then open another one"
        )
        if isinstance(error, Unavailable):
            return Unavailable(f"{doing}: {error.message}", effect_unknown=True, log=handle.place.log)
        return unavailable(error, doing, effect_unknown=True, log=handle.place.log, path=handle.place.path)

    def _check_sound(self, handle: Handle) -> None:
        if handle.broken:
            raise Unavailable(
                f"this store object writes the log no more, since {handle.broken}: open another one",
                log=handle.place.log,
            )

    # Reading takes no lock and keeps no file open.

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        self._check(log)
        check_range(start, stop)
        with reading(locate(self._root, log)) as (fd, size):
            end = size if stop is None else min(stop, size)
            return _copy.read_at(fd, start, end - start) if start < end else b""

    def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
        self._check_open()
        with reading(locate(self._root, log)) as (fd, size):
            end = size if stop is None else min(stop, size)
            while start < end and (piece := os.pread(fd, min(_copy.PIECE, end - start), start)):
                yield piece
                self._check_open()
                start += len(piece)

    def tail(self, log: str) -> Tail:
        self._check(log)
        return tail_of(locate(self._root, log))

    def wait(self, log: str, at: Tail, timeout: float) -> bool:
        self._check(log)
        from statestore_local._watch import watching  # few programs need it, and it takes a while to load

        place = locate(self._root, log)
        with suppress(NotFound), reading(place) as (fd, _), watching(fd) as watch:
            # What came before the watch is found by looking.
            return tail_of(place) != at or (watch.wait(timeout) if watch else super().wait(log, at, timeout))
        return at.size > 0 or super().wait(log, at, timeout)

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        names.check_prefix(prefix)
        self._check_open()
        runs = list_runs(self._root, prefix, after)
        return rows_with_tails(self._root, runs) if tails else rows(runs)

    # Changing a whole log.

    @contextmanager
    def _changing(self, log: str, *, make: bool = False) -> Iterator[tuple[Handle, int]]:
        """Have the log locked, and yield its handle and size; without `make`, there is such a log."""
        handle = self._handles.enter(log)
        try:
            try:
                size = self._handles.take(handle, make=make).st_size
                if not size and not make:
                    raise NotFound("no such log: it is empty", log=log)
                yield handle, size
            finally:
                self._handles.leave(handle)
        finally:
            handle.entered = False
            handle.mutex.release()
            self._handles.settle(handle)

    def _check_at(self, handle: Handle, size: int, at: Tail | None) -> None:
        found = handle.tail(size)
        if at is not None and at != found:
            raise Conflict(
                "the log ends elsewhere: look at what is new, then decide again",
                log=handle.place.log,
                expected=at,
                found=found,
            )

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        self._check(source)
        self._check(target)
        check_stop(stop)
        with reading(locate(self._root, source)) as (fd, size):
            if source == target:
                raise Exists("a log cannot be copied to itself", log=target)
            length = size if stop is None else min(stop, size)

            def fill(new: int) -> None:
                if _copy.clone(fd, new, length) != length:
                    raise Unavailable("the source was cut while it was copied: try again", retry=True, log=target)
                if self._always:
                    _sync.fdatasync(new)

            place = locate(self._root, target)
            with failing("cannot copy, and nothing was made", log=target, path=place.path):
                tail = make_whole(place, fill) or self._copy_in(target, fill)
            if self._always:
                doing = "the copy is there, but may not survive the loss of power"
                with failing(doing, effect_unknown=True, log=target, path=place.path):
                    _sync.sync_names(place)
            return tail

    def _copy_in(self, log: str, fill: Callable[[int], None]) -> Tail:
        """Make a log where there is a file already: it must be empty, and not held by others."""
        with self._changing(log, make=True) as (handle, size):
            if size:
                raise Exists("there is such a log already: copy to another name", log=log)
            try:
                with own_directory(handle) as above:
                    self._handles.swap(handle, above, fill)
            except BaseException:
                self._handles.tidy(handle)
                raise
            return handle.tail(os.fstat(handle.fd).st_size)

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        self._check(log)
        with self._changing(log) as (handle, size):
            self._check_at(handle, size, at)
            place = handle.place
            LocalSidecar(place).remove()
            with failing("cannot delete the log", log=log, path=place.path), own_directory(handle) as above:
                if handle.holder is None:
                    os.unlink(place.file, dir_fd=above)
                else:  # the name stays locked: an empty file takes the log's place
                    self._handles.swap(handle, above, lambda fd: None)
                if self._always:
                    with failing("the log is gone, but may come back", effect_unknown=True, log=log):
                        _sync.fsync(above)

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        self._check(log)
        if not 0 <= size <= at.size:
            raise ValueError(f"a log that ends at {at} cannot be cut to {size}")
        with self._changing(log) as (handle, there):
            self._check_sound(handle)
            self._check_at(handle, there, at)
            if size == there:
                return b""
            place = handle.place
            with failing("cannot keep aside what is to be cut, so nothing was cut", log=log, path=place.path):
                dropped = _copy.read_at(handle.fd, size, there - size)
                keep_aside(place, size, dropped, sync=self.capabilities.flushes)
            LocalSidecar(place).remove()
            with failing("cannot cut the log", log=log, path=place.path):
                os.ftruncate(handle.fd, size)
            if self.capabilities.flushes:
                try:
                    _sync.fdatasync(handle.fd)
                except OSError as error:
                    raise self._broken(handle, error, None) from error
            if size == 0:
                self._handles.tidy(handle)
            return dropped

    def flush(self, log: str) -> None:
        self._check(log)
        if not self.capabilities.flushes:
            raise self._refusal("flushes")
        if self._always:
            self.tail(log)
            return
        handle = self._handles.enter(log)
        try:
            try:
                self._check_sound(handle)
                if not self._handles.find(handle).st_size:
                    raise NotFound("no such log: it is empty", log=log)
                self._sync_all(handle, None)
            finally:
                self._handles.leave(handle)
        finally:
            handle.entered = False
            handle.mutex.release()
            self._handles.settle(handle)

    # Holds.

    def hold(self, log: str) -> AbstractContextManager[None]:
        self._check(log)
        return self._holding(log)

    @contextmanager
    def _holding(self, log: str) -> Iterator[None]:
        self._check(log)
        handles, mine = self._handles, _locks.myself()
        epoch, wait = handles.epoch, handles.wait
        handle = handles.enter(log)
        try:
            try:
                try:
                    handles.hold(handle, mine)
                finally:
                    handles.leave(handle)
            finally:
                handle.entered = False
                handle.mutex.release()
                self._handles.settle(handle)
            yield
        except GeneratorExit:
            wait = 0.0  # it was abandoned, and the garbage collector may be here in the middle of anything
            raise
        finally:
            if handles.epoch is epoch:  # in a forked child the hold is the parent's
                handles.end(handle, mine, wait)

    def holder(self, log: str) -> Holder | None:
        self._check(log)
        sign = _locks.look(locate(self._root, log))
        return sign if isinstance(sign, Holder) else None

    def location(self, log: str) -> str:
        self._check(log)
        return locate(self._root, log).path

    def sidecar(self, log: str) -> Sidecar:
        self._check(log)
        return LocalSidecar(locate(self._root, log))

    def close(self) -> None:
        super().close()
        self._handles.close(self._handles.wait)

    def forget(self) -> None:
        """Called in a forked child: what was open and held is the parent's, and the child begins anew."""
        self._handles.forget()

    def __del__(self) -> None:
        if hasattr(self, "_handles"):
            self._handles.close(0.0)
