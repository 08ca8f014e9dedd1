"""A log made of records that come one by one: kept aside until all are there, then written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from tempfile import SpooledTemporaryFile
from typing import Final, Self

from statestore import names
from statestore.errors import Conflict, Exists, NotFound, StateStoreError, Unavailable
from statestore.store import NEW, Store, Tail

__all__ = ["NewLog"]

_PIECE: Final = 8 << 20  # bytes that are written at once, and kept in memory before they go to a temporary file
_REPEATS: Final = 3


class NewLog:
    """The records of a log that is to be made. Nothing touches the store before :meth:`create`.

    Many of them take little memory: what is larger than 8 MiB goes to a temporary file.

    Attributes:
        count: how many records there are.
        size: how many bytes they take.
    """

    def __init__(self) -> None:
        self.count = 0
        self.size = 0
        self._file = SpooledTemporaryFile(max_size=_PIECE)  # noqa: SIM115 - `close` closes it
        self._ends = [0]  # where each piece ends: behind a record, so that what a crash leaves ends behind one

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget the records."""
        self._file.close()

    def add(self, raw: bytes) -> int:
        """Take one record's exact bytes, and return its number."""
        if self.size > self._ends[-1] and self.size + len(raw) - self._ends[-1] > _PIECE:
            self._ends.append(self.size)
        self._file.write(raw)
        self.count += 1
        self.size += len(raw)
        return self.count

    def create(self, store: Store, name: str) -> Tail:
        """Make the log `name` of the records, and return its tail.

        One write makes it, where they are at most 8 MiB and the store takes as much at once. Otherwise it grows piece
        by piece; where one fails, the log is removed again if the store can, and ``error.facts["left"]`` says what
        is there if it cannot.

        Raises:
            Exists: there is such a log already, the same bytes or not; it was left alone.
            Held: somebody else holds the log.
            Unavailable: the storage failed.
            InvalidName: `name` cannot be a log's name.
            ValueError: there is no record: a log has at least one.
        """
        names.check(name)
        if not self.count:
            raise ValueError("there is no record, and a log has at least one")
        # An append of the same bytes succeeds wherever they are already: so it cannot say that it made the log.
        with suppress(NotFound):
            raise _there(name, store.tail(name))
        at = NEW
        try:
            for piece in self._pieces(store.capabilities.max_append or self.size):
                at = _append(store, name, piece, at)
        except BaseException as error:
            if at == NEW and isinstance(error, Conflict):
                raise _there(name, error.found) from error
            left = None if at == NEW else _take_away(store, name, at)
            if left is not None and isinstance(error, StateStoreError):
                error.facts["left"] = left
            raise
        return at

    def _pieces(self, limit: int) -> Iterator[bytes]:
        self._file.seek(0)
        for start, end in pairwise([*self._ends, self.size]):
            for at in range(start, end, limit):
                yield self._file.read(min(limit, end - at))


def _there(name: str, found: object) -> Exists:
    return Exists("there is such a log already: it was left alone", log=name, found=found)


def _append(store: Store, name: str, piece: bytes, at: Tail) -> Tail:
    """Append a piece, and again at the same place where the storage fails in a way that may pass."""
    unknown = False
    for failures in range(1, _REPEATS + 1):
        try:
            return store.append(name, piece, at=at)
        except Unavailable as error:
            unknown = error.effect_unknown = unknown or error.effect_unknown
            if not error.retry or failures == _REPEATS:
                raise
    raise AssertionError


def _take_away(store: Store, name: str, at: Tail) -> str | None:
    """Remove the log if it still ends where we left it; else say what is there."""
    try:
        store.delete(name, at=at)
    except StateStoreError:
        return f"the log's first {at.size} bytes"
    return None
