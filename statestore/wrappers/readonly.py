"""A store that can only be read: for those who look at logs that are others' to change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NoReturn

from statestore import names
from statestore.errors import NotSupported
from statestore.store import Finding, Garbage, Holder, Maintenance, Problem, Sidecar, Snapshot, Store, Tail
from statestore.wrappers._wrapper import WrappedSnapshot, Wrapper

__all__ = ["ReadOnly"]


class ReadOnly(Wrapper):
    """A store whose logs are read and never changed: every call that changes something is refused.

    `append`, `copy`, `delete`, `hold`, `cut`, and what changes the storage in `maintenance`, raise ``NotSupported``
    before the inner store is asked. `flush` asks where the inner log ends, where every append is durable already, and
    is refused too where it would have work to do. The names of a refused call are checked first, as ever.

    Args:
        store: the inner store.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.capabilities = replace(store.capabilities, flushes=False, holds=False, deletes=False, cuts=False)

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        """Refuse: nothing is added to a log here."""
        self._refuse("append", log)

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        """Refuse: no log is made here."""
        names.check(source)
        self._refuse("copy", target)

    def snapshot(self, log: str) -> Snapshot:
        """Return the log as it ends now, to be read in several calls that all mean the same log."""
        return _ReadOnlySnapshot(self, log, super().snapshot(log))

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        """Refuse: no log is removed here."""
        self._refuse("delete", log, "deletes")

    def hold(self, log: str) -> AbstractContextManager[None]:
        """Refuse: who only reads keeps nobody from writing."""
        self._refuse("hold", log, "holds")

    def holder(self, log: str) -> Holder | None:
        """Refuse: the capability is ``holds``, and this store has it not."""
        self._refuse("holder", log, "holds")

    def flush(self, log: str) -> None:
        """Look that the log is there, where every append is durable; refuse where something would have to be done."""
        if not self.capabilities.durable:
            self._refuse("flush", log, "flushes")
        self.tail(log)

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        """Refuse: nothing is dropped here."""
        self._refuse("cut", log, "cuts")

    def sidecar(self, log: str) -> Sidecar | None:
        """Return what is beside the log, to be read."""
        inner = self.inner.sidecar(log)
        return _Unwritten(inner) if inner is not None else None

    @property
    def maintenance(self) -> Maintenance | None:
        """What the inner store offers its operator, as far as that only looks."""
        inner = self.inner.maintenance
        return _Looking(self, inner) if inner is not None else None

    def _refuse(self, call: str, log: str, capability: str | None = None) -> NoReturn:
        self._check(log)
        self._refuse_change(call, log=log, capability=capability)

    def _refuse_change(self, call: str, **facts: str | None) -> NoReturn:
        raise NotSupported(
            "this store is only read: open it without ReadOnly to change something",
            call=call,
            **facts,
            store="ReadOnly",
        )


class _ReadOnlySnapshot(WrappedSnapshot):
    """A snapshot that is read and not copied."""

    store: ReadOnly

    def copy(self, target: str, *, stop: int | None = None) -> Tail:
        """Refuse: no log is made here."""
        return self.store.copy(self.log, target, stop=stop)


class _Unwritten:
    """A place beside a log where nothing is kept."""

    def __init__(self, inner: Sidecar) -> None:
        self.read = inner.read

    def append(self, data: bytes) -> None:
        """Keep nothing."""

    def replace(self, data: bytes) -> None:
        """Keep nothing."""


class _Looking:
    """What there is of a store's maintenance that changes nothing in the storage."""

    def __init__(self, store: ReadOnly, inner: Maintenance) -> None:
        self._store = store
        self._inner = inner

    def compact(self, log: str) -> int:
        """Refuse: it writes."""
        self._store._refuse("compact", log)

    def collect(self, prefix: str = "", *, dry_run: bool = True) -> Iterator[Garbage]:
        """Yield what no log needs any more; refuse to remove it."""
        if not dry_run:
            names.check_prefix(prefix)
            self._store._refuse_change("collect")
        return self._inner.collect(prefix)

    def check(self, prefix: str = "") -> Iterator[Problem]:
        """Yield all that is wrong under the logs whose names begin with `prefix`."""
        return self._inner.check(prefix)

    def examine(self) -> Iterator[Finding]:
        """Refuse: it tries the storage by writing."""
        self._store._refuse_change("examine")

    def probe(self) -> None:
        """Refuse: it tries the storage by writing."""
        self._store._refuse_change("probe")
