"""Repairing a log: what stands before the damage is kept, the rest is put aside, and nothing is lost.

Nothing behind damage is ever taken for a record: a body can hold anything. So a repair ends the log in front of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass

from statestore.errors import Conflict, Corrupt, NotFound, NotSupported, StateStoreError, Unavailable
from statestore.records.scan import Scan
from statestore.records.verify import Verdict, examine
from statestore.store import Snapshot, Store, Tail

__all__ = ["Plan", "cut", "plan", "save"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a repair would do to a log.

    Attributes:
        verdict: what is whole, and what is wrong behind it.
        tail: where the log ended when it was looked at.
    """

    verdict: Verdict
    tail: Tail

    @property
    def log(self) -> str:
        """The log's name."""
        return self.verdict.log

    @property
    def size(self) -> int:
        """How many bytes are whole, and stay."""
        return self.verdict.size

    @property
    def surplus(self) -> int:
        """How many bytes stand behind them; 0 where there is nothing to repair."""
        return self.tail.size - self.size


def plan(store: Store, log: str) -> Plan:
    """Return what a repair of the log would do, reading all of it and changing nothing.

    Raises:
        NotFound: there is no such log.
    """
    snapshot = store.snapshot(log)
    return Plan(examine(log, snapshot.read), snapshot.tail)


def cut(store: Store, plan: Plan, keep: str | os.PathLike[str]) -> None:
    """Cut the log behind its whole records, once what is cut is safe in a new file.

    Whatever ends this, even the loss of power, the bytes are in the log or in the file, which is made durable before
    anything is cut. The log is held meanwhile, where the store can. A cut to 0 leaves no log.

    Args:
        store: the store that holds the log.
        plan: what `plan` has found; the log must not have changed since.
        keep: the path of the new file; only this user can read it.

    Raises:
        NotSupported: the store cannot cut: `save` what is whole.
        NotFound: the log was deleted.
        Conflict: the log has changed; nothing was cut, and no file is left.
        Held: somebody else holds the log; nothing was done.
        Unavailable: the file cannot be written, or is there already, and nothing was cut; or the storage failed.
    """
    if not store.capabilities.cuts:
        raise NotSupported("this store cannot cut a log: copy what is whole to another one", log=plan.log)
    if not plan.surplus:
        return
    held: AbstractContextManager[None] = store.hold(plan.log) if store.capabilities.holds else nullcontext()
    with held:
        snapshot = _unchanged(store, plan)
        _keep(snapshot.stream(plan.size), keep, plan.log)
        try:
            store.cut(plan.log, plan.size, at=plan.tail)
        except StateStoreError as error:
            if not getattr(error, "effect_unknown", False):
                os.unlink(keep)
            raise


def save(store: Store, plan: Plan, to: str) -> Tail:
    """Copy the whole records to a new log, and return its tail; the damaged one is not touched.

    Raises:
        NotFound: no record is whole, or the log was deleted.
        Conflict: the log was made again, or cut.
        Exists: there is a log named `to`.
    """
    if not plan.size:
        raise NotFound("no record is whole, so there is nothing to copy", log=plan.log)
    snapshot = store.snapshot(plan.log)
    if snapshot.tail.run != plan.tail.run or snapshot.tail.size < plan.size:
        raise _changed(plan, snapshot)
    return snapshot.copy(to, stop=plan.size)


def _unchanged(store: Store, plan: Plan) -> Snapshot:
    """Return the log as it is now, if it is as it was when it was planned on."""
    snapshot = store.snapshot(plan.log)
    # Somebody may have cut the torn end and appended just as many bytes: then a record begins there now.
    records = Scan(snapshot.read, start=plan.size, bodies=False, log=plan.log)
    with suppress(Corrupt):
        records.skip()
    if snapshot.tail != plan.tail or records.end > plan.size:
        raise _changed(plan, snapshot)
    return snapshot


def _changed(plan: Plan, snapshot: Snapshot) -> Conflict:
    return Conflict(
        "the log has changed since it was looked at: look again, then decide again",
        log=plan.log,
        expected=plan.tail,
        found=snapshot.tail,
    )


def _keep(pieces: Iterable[bytes], path: str | os.PathLike[str], log: str) -> None:
    """Write a new file and make it durable, together with its name; nothing is left where that fails."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(fd, "wb") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(fd)
            _sync_directory(os.path.dirname(os.path.abspath(path)))
        except BaseException:
            os.unlink(path)
            raise
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise Unavailable(
            f"cannot keep what is to be cut, so nothing was cut: {why}", log=log, path=os.fspath(path)
        ) from error


def _sync_directory(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
