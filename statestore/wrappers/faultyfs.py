"""An fsspec file system that fails on purpose, for tests of what is written over one. It needs fsspec."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from threading import Lock
from typing import Any, Final, Self, TypeVar, cast

from fsspec import AbstractFileSystem
from fsspec.exceptions import FSTimeoutError

from statestore.wrappers._faults import MOST_SLOW, MOST_STALE, Past, Plan, Schedule, Step

__all__ = ["FAULTS", "FaultyFileSystem"]

T = TypeVar("T")

FAULTS: Final = ("delayed", "doubled", "lost", "slow", "stale", "throttled", "timeout", "truncated")
"""The faults that a plan or rates may have."""

_ANY: Final = {"slow": (1, MOST_SLOW), "throttled": (1, 1), "timeout": (0, 0)}
_CHANGE: Final = {"lost": (0, 0), "timeout": (0, 1)}
_PUT: Final = {**_CHANGE, "delayed": (1, 8), "doubled": (0, 8)}


class FaultyFileSystem(AbstractFileSystem):  # type: ignore[misc] # fsspec is not typed
    """A file system whose calls meet faults, from the same kind of seed, rates and plan as `Faulty` has.

    ============= ======================= =======================================================================
    fault         calls                   what happens
    ============= ======================= =======================================================================
    ``throttled`` all                     nothing, and an ``OSError`` as of a 503, for up to 3 calls in a row
    ``timeout``   all                     ``FSTimeoutError``; of a change, the effect (amount 1) or none (0)
    ``lost``      all changes             the effect, and ``ConnectionResetError``
    ``delayed``   pipe_file               ``FSTimeoutError``; the file is put 1 to 8 calls later, whatever is there
    ``doubled``   pipe_file               the file is put, and put again: at once (amount 0), so that the answer is
                                          the second one's, or 1 to 8 calls later
    ``truncated`` cat_file                the beginning of what was asked for (amount: thousandths), and no error
    ``stale``     ls, find                files put, copied and removed here, one at a time, in the last 1 to 8
                                          calls do not show so yet
    ``slow``      all                     `sleep` is called with 0.001 to 1 seconds, then the call runs
    ============= ======================= =======================================================================

    ``walk``, ``glob``, ``cat``, ``pipe``, ``cat_ranges`` and the like are made of these calls. An opened file meets
    faults at ``open`` only. What comes late has its arguments, such as ``mode="create"``, and its own error is told
    to nobody; `settle` lets all of it arrive now.

    Args:
        fs: the inner file system, used synchronously.
        seed: what the faults are drawn from.
        rates: for each fault, how likely a call that can meet it does.
        plan: the faults by number of call, or the steps of a trace.
        sleep: called with seconds by ``slow``; by default nobody sleeps.

    Raises:
        ValueError: a fault is unknown, the rates are no probabilities, or `fs` is asynchronous.
    """

    cachable = False  # each has its own count of calls

    def __init__(
        self,
        fs: Any,
        *,
        seed: int = 0,
        rates: Mapping[str, float] | None = None,
        plan: Plan | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        super().__init__()
        if getattr(fs, "asynchronous", False):
            raise ValueError("open the file system without asynchronous=True: faults come to synchronous calls")
        self.fs = fs
        self.protocol, self.root_marker, self.sep = fs.protocol, fs.root_marker, fs.sep
        self._strip_protocol, self._parent = fs._strip_protocol, fs._parent
        self._schedule = Schedule(FAULTS, FAULTS, seed=seed, rates=rates, plan=plan)
        self._past = Past() if "stale" in self._schedule.faults else None
        self._sleep = sleep
        self._late: list[tuple[int, Callable[[int], object]]] = []
        self._lock = Lock()

    @classmethod
    def replay(cls, fs: Any, trace: Iterable[Step], *, seed: int = 0, **more: Any) -> Self:
        """Return a file system that meets the faults of a trace again, at the same calls."""
        return cls(fs, seed=seed, plan=trace, **more)

    @property
    def trace(self) -> tuple[Step, ...]:
        """The faults so far, one step each. Given as a plan, they come again."""
        return tuple(self._schedule.trace)

    def settle(self) -> None:
        """Let all that is delayed arrive now."""
        self._arrive(None)

    # Calls that look.

    def info(self, path: str, **more: Any) -> Any:
        """Return what is known of a file."""
        return self._look("info", path, lambda: self.fs.info(path, **more))

    def exists(self, path: str, **more: Any) -> Any:
        """Say whether there is such a path."""
        return self._look("exists", path, lambda: self.fs.exists(path, **more))

    def isfile(self, path: str) -> Any:
        """Say whether the path is a file."""
        return self._look("isfile", path, lambda: self.fs.isfile(path))

    def isdir(self, path: str) -> Any:
        """Say whether the path is a directory."""
        return self._look("isdir", path, lambda: self.fs.isdir(path))

    def created(self, path: str) -> Any:
        """Return when the file was made."""
        return self._look("created", path, lambda: self.fs.created(path))

    def modified(self, path: str) -> Any:
        """Return when the file was changed."""
        return self._look("modified", path, lambda: self.fs.modified(path))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **more: Any) -> Any:
        """Return the bytes of a file."""
        step = self._meet("cat_file", path, {**_ANY, "truncated": (0, 999)})
        data = self.fs.cat_file(path, start=start, end=end, **more)
        return data[: len(data) * (step.amount or 0) // 1000] if step.fault == "truncated" else data

    def ls(self, path: str, detail: bool = True, **more: Any) -> Any:
        """Return what is in a directory."""
        place = self._strip_protocol(path).rstrip("/")
        before = self._before("ls", path)
        back = [row for name, row in before.items() if row is not None and self._parent(name).rstrip("/") == place]
        try:
            rows = [row for row in self.fs.ls(path, detail=True, **more) if row["name"] not in before]
        except FileNotFoundError:
            if not back:
                raise
            rows = []
        rows += back
        return rows if detail else sorted(row["name"] for row in rows)

    def find(self, path: str, maxdepth: int | None = None, detail: bool = False, **more: Any) -> Any:
        """Return the files below a directory."""
        place = self._strip_protocol(path).rstrip("/") + "/"
        before = self._before("find", path)
        found = self.fs.find(path, maxdepth=maxdepth, detail=True, **more)
        found = {name: row for name, row in found.items() if name not in before}
        if maxdepth is None:
            found |= {name: row for name, row in before.items() if row is not None and name.startswith(place)}
        return dict(sorted(found.items())) if detail else sorted(found)

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        return self._look("open", path, lambda: self.fs._open(path, mode=mode, **more))

    def invalidate_cache(self, path: str | None = None) -> None:
        """Forget the inner file system's listings; no fault comes to this."""
        self.fs.invalidate_cache(path)

    # Calls that change.

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **more: Any) -> Any:
        """Put the bytes of a file."""
        step = self._meet("pipe_file", path, {**_ANY, **_PUT})

        def put(number: int) -> object:
            return self._effect(number, path, lambda: self.fs.pipe_file(path, value, mode=mode, **more))

        if step.fault == "delayed":
            self._come_later(step, put)
            raise self._error(FSTimeoutError, "no answer in time", step, path)
        if step.fault == "doubled" and step.amount:
            self._come_later(step, put)
        elif step.fault == "doubled":
            put(step.number)
        return self._finish(step, path, lambda: put(step.number))

    def put_file(self, lpath: str, rpath: str, **more: Any) -> Any:
        """Put a local file."""
        return self._change("put_file", rpath, lambda: self.fs.put_file(lpath, rpath, **more))

    def cp_file(self, path1: str, path2: str, **more: Any) -> Any:
        """Copy a file."""
        return self._change("cp_file", path2, lambda: self.fs.cp_file(path1, path2, **more))

    def mv(self, path1: str, path2: str, **more: Any) -> Any:
        """Rename a file."""
        return self._change("mv", path2, lambda: self.fs.mv(path1, path2, **more))

    def rm_file(self, path: str) -> Any:
        """Remove a file."""
        return self._change("rm_file", path, lambda: self.fs.rm_file(path))

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> Any:
        """Remove files and directories."""
        act = lambda: self.fs.rm(path, recursive=recursive, maxdepth=maxdepth)  # noqa: E731
        return self._finish(self._meet("rm", path, {**_ANY, **_CHANGE}), path, act)

    def mkdir(self, path: str, create_parents: bool = True, **more: Any) -> Any:
        """Make a directory."""
        return self._change("mkdir", path, lambda: self.fs.mkdir(path, create_parents=create_parents, **more))

    def makedirs(self, path: str, exist_ok: bool = False) -> Any:
        """Make a directory and those above it."""
        return self._change("makedirs", path, lambda: self.fs.makedirs(path, exist_ok=exist_ok))

    def rmdir(self, path: str) -> Any:
        """Remove an empty directory."""
        return self._change("rmdir", path, lambda: self.fs.rmdir(path))

    # How faults come to them.

    def _look(self, call: str, path: str, act: Callable[[], T]) -> T:
        self._meet(call, path, _ANY)
        return act()

    def _change(self, call: str, path: str, act: Callable[[], T]) -> T:
        step = self._meet(call, path, {**_ANY, **_CHANGE})
        return self._finish(step, path, lambda: self._effect(step.number, path, act))

    def _finish(self, step: Step, path: Any, act: Callable[[], T]) -> T:
        """Do a change, and lose the answer where that is the fault."""
        result = act()
        if step.fault == "lost":
            raise self._error(ConnectionResetError, "the answer was lost", step, path)
        if step.fault == "timeout":
            raise self._error(FSTimeoutError, "no answer in time", step, path)
        return result

    def _effect(self, number: int, path: str, act: Callable[[], T]) -> T:
        """Do a change, and remember what was there before."""
        if self._past is None:
            return act()
        name = self._strip_protocol(path)
        before = None
        with suppress(FileNotFoundError):
            before = self.fs.info(name)
        result = act()
        self._past.note(number, name, before)
        return result

    def _before(self, call: str, path: str) -> dict[str, Any]:
        """Return what a listing shows otherwise than it is; nothing where it is not stale."""
        step = self._meet(call, path, {**_ANY, **({"stale": (1, MOST_STALE)} if self._past else {})})
        if step.fault != "stale" or self._past is None:
            return {}
        return cast("dict[str, Any]", self._past.before(step.number - (step.amount or 0)))

    def _meet(self, call: str, path: Any, fits: Mapping[str, tuple[int, int]]) -> Step:
        """Count a call and let what comes before its effect happen to it; return what it meets."""
        step = self._schedule.next(call, fits)
        self._arrive(step.number)
        if step.fault == "slow" and self._sleep is not None:
            self._sleep((step.amount or 0) / 1000)
        if step.fault == "throttled":
            raise self._error(OSError, "503 slow down: nothing was done", step, path)
        if step.fault == "timeout" and not step.amount:
            raise self._error(FSTimeoutError, "no answer in time", step, path)
        return step

    def _come_later(self, step: Step, put: Callable[[int], object]) -> None:
        with self._lock:
            self._late.append((step.number + (step.amount or 0), put))

    def _arrive(self, number: int | None) -> None:
        """Let the late puts arrive that are due before call `number`."""
        with self._lock:
            due = [each for each in self._late if number is None or each[0] <= number]
            self._late = [each for each in self._late if each not in due]
        for when, put in due:
            with suppress(OSError):  # whoever sent it has gone
                put(when)

    def _error(self, kind: type[T], message: str, step: Step, path: Any) -> T:
        text = f"{message} (injected) path={path} fault={step.fault} seed={self._schedule.seed} call={step.number}"
        return kind(errno.EBUSY, text) if kind is OSError else kind(text)  # type: ignore[call-arg]
