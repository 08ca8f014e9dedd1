"""A store of records whose bodies are sealed before they reach the storage, and opened when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from statestore import names
from statestore.errors import Conflict, Corrupt, NotFound, NotSupported
from statestore.store import NEW, LogInfo, Sidecar, Snapshot, Store, Tail, check_data, check_range, check_stop
from statestore.wrappers._sealedlog import Known, Mark, View, whole_records
from statestore.wrappers._sealing import GROWTH, Keyring
from statestore.wrappers._wrapper import Wrapper

__all__ = ["Encrypted"]

_MOST_KNOWN: Final = 1024  # logs of which it is remembered where their records lie
_LEAST_SHARE: Final = 3  # a sealed record has at most so many times the bytes of the plain one


class Encrypted(Wrapper):
    """A store whose logs are plain records, while those of the inner store are the same records with sealed bodies.

    Headers stay readable in the storage. What is appended must be whole records, as everything above a store writes
    them; offsets and tails are those of the plain log. To know them, all headers of a log are read when it is first
    used, and those that are new from then on. A large record is opened as a whole, in memory.

    A record that was changed, moved or put there without the key raises ``Corrupt``, and one that is sealed with a key
    that is not here ``Unavailable``: such a log is not appended to, cut, copied or deleted. See ``docs/encryption.md``.

    Args:
        store: the inner store; a new wrapper seals nothing that is there already.
        keys: 32 random bytes each. The first one seals; all of them open.

    Raises:
        NotSupported: the inner store has not the capability ``runs``.
        TypeError: a key is not bytes.
        ValueError: there is no key, or one has not 32 bytes.
    """

    def __init__(self, store: Store, keys: Sequence[bytes]) -> None:
        if not store.capabilities.runs:
            raise NotSupported(
                "this store cannot be encrypted: a log made again under a name would be taken for the one before",
                capability="runs",
                store=type(store).__name__,
            )
        super().__init__(store)
        self._keys = Keyring(keys)
        most = store.capabilities.max_append
        self.capabilities = replace(
            store.capabilities,
            cheap_tails=False,
            sidecars=False,
            max_append=None if most is None else most // _LEAST_SHARE,
        )
        # Replaced as a whole by whoever learns more, so that threads need no lock.
        self._known: dict[str, Known] = {}

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        """Seal whole records and add them to the end of `log`, if the log ends exactly at `at`; return the new tail.

        The same records at the same place are the same sealed bytes: the call is idempotent as ever, as long as the
        first key is the same.

        Raises:
            ValueError: `data` is not whole records.
            Unavailable: the log's last record is sealed with a key that is not here.
        """
        self._check(log)
        check_data(data, at)
        plain = whole_records(data)
        known, start = self._place(log, at)
        self._check_key(log, known)
        end, origin = Mark(at.size, start), known.origin
        pieces, ends = [], []
        for line, body in plain:
            sealed, seal = self._keys.seal(line, body, offset=end.plain, origin=origin)
            origin = origin or seal
            end = Mark(end.plain + len(sealed) - GROWTH, end.sealed + len(sealed))
            pieces.append(sealed)
            ends.append(end)
        try:
            tail = self.inner.append(log, b"".join(pieces), at=Tail(start, at.run))
        except Conflict as error:
            raise self._conflict(error.message, log, at) from error
        latest = self._known.get(log)
        repeated = latest is not None and latest.run == tail.run and latest.end.sealed >= tail.size
        if start == known.end.sealed and not repeated:
            self._remember(log, known.grown(tail.run, ends, origin, self._keys.current))
        return Tail(end.plain, tail.run)

    def _place(self, log: str, at: Tail) -> tuple[Known, int]:
        """Return what is known of a log, and the sealed offset of a tail that somebody has seen of it."""
        if at == NEW:
            return Known(""), 0
        known = self._known.get(log)
        if known is not None and (known.run, known.end.plain) == (at.run, at.size):
            return known, known.end.sealed
        view = self._view(log)
        end = view.known.end
        if at == view.tail and at.size > end.plain:
            raise view.known.damage or Corrupt(
                "the log ends inside a record: cut it before appending", log=log, record=end.number, offset=end.plain
            )
        start = view.sealed(at.size) if at.run == view.tail.run and at.size <= end.plain else None
        if start is None:
            raise self._conflict("the log does not end there: read on from there", log, at, view.tail)
        return view.known, start

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the log's end as slices are."""
        return b"".join(self.stream(log, start, stop))

    def stream(self, log: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, record by record."""
        self._check(log)
        check_range(start, stop)
        return self._stream(log, start, stop)

    def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
        yield from self._view(log).stream(start, stop)

    def snapshot(self, log: str) -> Snapshot:
        """Return the log as it ends now, to be read in several calls that all mean the same log."""
        self._check(log)
        return _OpenedSnapshot(self, log, self._view(log))

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log of the same sealed bytes as ``source[:stop]``; nothing is opened or sealed for that.

        Raises:
            ValueError: `stop` is within a record.
        """
        self._check(source)
        self._check(target)
        check_stop(stop)
        return self._copy(source, self._view(source), target, stop)

    def _copy(self, log: str, view: View, target: str, stop: int | None) -> Tail:
        self._check_key(log, view.known)
        size = view.tail.size if stop is None else min(stop, view.tail.size)
        sealed = view.sealed(size)
        if sealed is None:
            raise ValueError(f"a sealed log is copied up to the end of a record, and {stop} is within one")
        return Tail(size, view.inner.copy(target, stop=sealed).run)

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        """Yield the logs whose names begin with `prefix` and come after `after`, in code-point order.

        For a tail all headers of the log are read, unless they have been.
        """
        rows = self.inner.list(prefix, after=after, tails=tails)
        return self._rows(rows) if tails else rows

    def _rows(self, rows: Iterator[LogInfo]) -> Iterator[LogInfo]:
        for row in rows:
            try:
                yield LogInfo(row.name, self._tail(row.name, row.tail))
            except NotFound:  # it was deleted meanwhile
                continue

    def tail(self, log: str) -> Tail:
        """Return the log's tail as it is now."""
        return self._tail(log, super().tail(log))

    def _tail(self, log: str, inner: Tail | None) -> Tail:
        known = self._known.get(log)
        if known is not None and inner == Tail(known.end.sealed, known.run):
            return Tail(known.end.plain, known.run)
        return self._view(log).tail

    def wait(self, log: str, at: Tail, timeout: float) -> bool:
        """Return True as soon as the log may end elsewhere than at `at`; False after `timeout` seconds."""
        self._check(log)
        inner = NEW
        if at != NEW:
            try:
                view = self._view(log)
            except NotFound:
                return True
            if view.tail != at:
                return True
            inner = view.inner.tail
        return super().wait(log, inner, timeout)

    def boundary(self, log: str, before: int) -> int:
        """Return an offset, at most `before`, where an append began."""
        self._check(log)
        check_range(before, None)
        return self._view(log).boundary(before)

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        """Remove the log at once and for all; where `at` is given, only if the log ends there."""
        self._check(log)
        if not self.capabilities.deletes:
            raise self._refusal("deletes")
        view = self._view_with_key(log)
        if at not in (None, view.tail):
            raise self._conflict("the log does not end there: not deleted", log, at, view.tail)
        try:
            super().delete(log, at=None if at is None else view.inner.tail)
        except Conflict as error:
            raise self._conflict(error.message, log, at) from error
        self._known.pop(log, None)

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        """Drop what a crash left behind `size`; return the bytes dropped.

        Raises:
            ValueError: `size` is below zero or beyond ``at.size``, or within a record.
        """
        self._check(log)
        if not self.capabilities.cuts:
            raise self._refusal("cuts")
        if not 0 <= size <= at.size:
            raise ValueError(f"a log that ends at {at.size} cannot be cut to {size}")
        view = self._view_with_key(log)
        if at != view.tail:
            raise self._conflict("the log does not end there: not cut", log, at, view.tail)
        sealed = view.sealed(size)
        if sealed is None:
            raise ValueError(f"a sealed log is cut to the end of a record, and {size} is within one")
        dropped = b"".join(view.stream(size, None))
        try:
            super().cut(log, sealed, at=view.inner.tail)
            return dropped
        except Conflict as error:
            raise self._conflict(error.message, log, at) from error
        finally:
            self._known.pop(log, None)

    def sidecar(self, log: str) -> Sidecar | None:
        """Return None: what is derived from a log is not sealed."""
        self._check(log)
        return None

    def _view(self, log: str) -> View:
        """Look at a log as it ends now, having read the headers that are new."""
        inner = super().snapshot(log)
        size, run = inner.tail.size, inner.tail.run
        known = self._known.get(log)
        if known is None or known.run != run or known.end.sealed > size:
            known = Known(run)
        if known.end.sealed < size:
            known, before = known.read_on(inner.read, log), known
            if known.damage is not None and before.end.sealed:
                # What was not acknowledged may have made way for other bytes: only the storage knows.
                known = Known(run).read_on(inner.read, log)
            self._remember(log, known)
        return View(self._keys, inner, known)

    def _view_with_key(self, log: str) -> View:
        view = self._view(log)
        self._check_key(log, view.known)
        return view

    def _check_key(self, log: str, known: Known) -> None:
        """Refuse to change, remove or multiply what was sealed with a key that is not here."""
        if known.key and known.key not in self._keys:
            raise self._keys.missing(log=log, record=known.end.number - 1, key=known.key)

    def _remember(self, log: str, known: Known) -> None:
        if len(self._known) >= _MOST_KNOWN and log not in self._known:
            self._known.clear()
        self._known[log] = known

    def _conflict(self, message: str, log: str, at: Tail | None, found: Tail | None = None) -> Conflict:
        return Conflict(message, log=log, expected=at, found=self._view(log).tail if found is None else found)


class _OpenedSnapshot(Snapshot):
    """A snapshot of a sealed log that shows the plain one."""

    store: Encrypted

    def __init__(self, store: Encrypted, log: str, view: View) -> None:
        super().__init__(store, log, view.tail)
        self._view = view

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the snapshot's end as slices are."""
        return b"".join(self.stream(start, stop))

    def stream(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, record by record."""
        check_range(start, stop)
        self._check()
        return self._view.stream(start, stop)

    def boundary(self, before: int) -> int:
        """Return an offset, at most `before`, where an append began."""
        check_range(before, None)
        self._check()
        return self._view.boundary(before)

    def copy(self, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log of the same sealed bytes as the snapshot's ``[0, stop)``."""
        names.check(target)
        check_stop(stop)
        self._check()
        return self.store._copy(self.log, self._view, target, stop)
