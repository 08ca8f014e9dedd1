"""The contract of a store: logs that are runs of bytes and only grow at their end.

A store promises three things:

1. Bytes are read as they were appended, or not at all.
2. One append wins each position; an acknowledged append is never lost, moved or doubled.
3. A listing shows every log whose creation was acknowledged, each once.

Four calls are abstract: ``append``, ``read``, ``copy`` and ``list``. All others are made of these, or belong to
a capability and are refused with :class:`~statestore.errors.NotSupported`, before anything happens, by a store
that has it not. Records are none of a store's business: it sees bytes.

Offsets and sizes are in bytes. Every call checks the log's name first and raises
:class:`~statestore.errors.InvalidName` before it touches the storage; a closed store raises
:class:`~statestore.errors.Closed`; a storage that fails raises :class:`~statestore.errors.Unavailable`. A store
may be used from many threads, and in a process that was forked after it was opened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from time import sleep
from typing import Final, NamedTuple, Protocol, Self

import msgspec

from statestore import names
from statestore.errors import Closed, NotFound, NotSupported
from statestore.snapshot import Snapshot

__all__ = [
    "Capabilities",
    "Finding",
    "Garbage",
    "Holder",
    "LogInfo",
    "Maintenance",
    "NEW",
    "Problem",
    "Sidecar",
    "Snapshot",
    "Store",
    "Tail",
    "check_data",
    "check_range",
    "check_stop",
]

_PIECE: Final = 1 << 20  # bytes that a default `stream` asks for at a time


class Tail(msgspec.Struct, frozen=True, gc=False):
    """Where a log ends, and which incarnation of its name that is.

    Attributes:
        size: the log's size in bytes.
        run: a word that another log under the same name, made after a deletion, does not share. It is ``""``
            where the storage cannot tell (capability ``runs`` is off).
    """

    size: int
    run: str

    def __str__(self) -> str:
        return f"{self.size}@{self.run}" if self.run else str(self.size)


NEW: Final = Tail(0, "")
"""The tail of a log that does not exist: an append there creates the log."""


class LogInfo(NamedTuple):
    """One row of a listing: the log's name, and its tail where that was asked for."""

    name: str
    tail: Tail | None = None


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a log, as far as the storage can tell.

    Attributes:
        pid: the process id on `host`.
        host: the name of the machine.
        since: when the hold began, in UTC as ``2026-09-28T12:00:00Z``.
    """

    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store can do beyond the four calls. Each flag, on or off, has clauses in the conformance kit.

    Attributes:
        durable: an acknowledged append survives the loss of power.
        flushes: ``flush`` makes a log durable on demand.
        shared: other processes that open the same place see the same logs.
        atomic_append: an append is there whole or not at all, whatever crashes. Without it, bytes after the
            last acknowledged append may be partial and may yet vanish.
        runs: a log that was deleted and made again has another ``Tail.run``.
        holds: ``hold`` keeps everybody else from appending; ``holder`` names who does.
        deletes: ``delete`` removes a log.
        cuts: ``cut`` drops what a crash left at the end.
        boundaries: ``boundary`` finds a place near the end where an append began.
        server_copy: ``copy`` moves no bytes through this process.
        cheap_tails: a listing with tails asks the storage nothing more for each log.
        sidecars: ``sidecar`` has a place beside each log for what is derived from it.
        max_append: the largest number of bytes that one append takes; None where there is no such limit.
    """

    durable: bool = False
    flushes: bool = False
    shared: bool = False
    atomic_append: bool = False
    runs: bool = False
    holds: bool = False
    deletes: bool = False
    cuts: bool = False
    boundaries: bool = False
    server_copy: bool = False
    cheap_tails: bool = False
    sidecars: bool = False
    max_append: int | None = None


class Garbage(NamedTuple):
    """An object in the storage that no log needs any more: its address, its size in bytes, and why that is so."""

    object: str
    size: int
    reason: str


class Problem(NamedTuple):
    """What is wrong in the storage: with which log, or ``""``, with which object, and in words."""

    log: str
    object: str
    message: str


class Finding(NamedTuple):
    """What an examination of a storage found: what was tried, whether it is as it should be, and in words."""

    check: str
    ok: bool
    message: str


class Maintenance(Protocol):
    """What a store offers its operator. Nothing here changes what a log holds."""

    def compact(self, log: str) -> int:
        """Merge a log's pieces in the storage; return how many fewer pieces a reader needs now.

        Raises:
            NotFound: there is no such log.
        """

    def collect(self, prefix: str = "", *, dry_run: bool = True) -> Iterator[Garbage]:
        """Yield what no log whose name begins with `prefix` needs any more, and remove it unless it is a dry run."""

    def check(self, prefix: str = "") -> Iterator[Problem]:
        """Yield all that is wrong under the logs whose names begin with `prefix`; every byte is read."""

    def examine(self) -> Iterator[Finding]:
        """Yield what the storage really does, tried one by one in a scratch place that is emptied afterwards."""

    def probe(self) -> None:
        """Try whether the storage keeps its promises; raise ``Unavailable`` where it does not."""


class Sidecar(Protocol):
    """A place beside a log for a few bytes that are derived from it, such as an index.

    Whoever reads them checks them against the log before they are believed: they may be damaged, old, or another
    log's that had the name before. They are never needed: what cannot be kept is not there, and no call says so.
    """

    def read(self, size: int) -> bytes:
        """Return the last `size` bytes; all, where there are fewer, and none where there is nothing."""

    def append(self, data: bytes) -> None:
        """Add to the end, in one write."""

    def replace(self, data: bytes) -> None:
        """Put `data` in the place of all that is there."""


class Store(ABC):
    """A place that holds logs. Subclass it to write a backend: four methods, and what the storage can do more."""

    capabilities: Capabilities
    """What this store can do, as it found its storage when it was opened."""

    _closed = False

    @abstractmethod
    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        """Add `data` to the end of `log`, if the log ends exactly at `at`; return the new tail.

        The call is idempotent by content: if that same run holds exactly `data` at ``at.size`` already, that is
        success, whatever has been appended since, and the tail returned is the one just behind `data`. So a
        caller who does not know whether an append took effect calls again with the same arguments. Success says
        that the bytes are there and as durable as any append, not that this caller put them.

        Args:
            log: the log's name.
            data: the bytes, at least one.
            at: the tail that the caller has seen. ``NEW`` creates the log; repeating a creation after somebody
                has deleted the log creates it again.

        Raises:
            Conflict: the log ends elsewhere, is of another run, or is there although `at` is ``NEW``;
                ``error.found`` is its tail. Nothing was added.
            NotFound: there is no such log, and `at` is not ``NEW``.
            Held: somebody else holds the log.
            Unavailable: the storage failed; ``error.effect_unknown`` says whether the bytes may be there.
            ValueError: `data` is empty, or `at` has a size below zero, or a run but no size.
        """

    @abstractmethod
    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the log's end as slices are.

        Raises:
            NotFound: there is no such log.
            ValueError: an offset is below zero.
        """

    @abstractmethod
    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to ``source[:stop]``, whole or not at all; return its tail.

        The source is not touched, and what happens to either later never shows in the other.

        Raises:
            NotFound: there is no `source`.
            Exists: there is a `target` (`source` itself counts), which was not touched.
            Held: somebody else holds `target`.
            ValueError: `stop` is 0 or below: a log exists from its first byte.
        """

    @abstractmethod
    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        """Yield the logs whose names begin with `prefix` and come after `after`, in code-point order.

        Each log is shown once. The listing is lazy, page by page: logs made or deleted meanwhile may show or
        not. Arguments are checked, and a closed store refuses, when it is called and not at the first row.

        Args:
            prefix: text, not a folder: ``"a"`` matches ``a``, ``ab`` and ``a/b``.
            after: only names greater than this; the last name of a page continues behind it.
            tails: fill ``LogInfo.tail``, at a cost that the backend's documentation states.
        """

    def tail(self, log: str) -> Tail:
        """Return the log's tail as it is now.

        Raises:
            NotFound: there is no such log.
        """
        self._check(log)
        # A name sorts before every other name that begins with it.
        info = next(iter(self.list(log, tails=True)), None)
        if info is None or info.name != log or info.tail is None:
            raise NotFound("no such log", log=log)
        return info.tail

    def snapshot(self, log: str) -> Snapshot:
        """Return the log as it ends now, to be read in several calls that all mean the same log.

        Raises:
            NotFound: there is no such log.
        """
        return Snapshot(self, log, self.tail(log))

    def stream(self, log: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, in bounded memory.

        The end is where the log ended when the first piece was asked for; later appends are not followed.

        Raises:
            NotFound: there is no such log.
            ValueError: an offset is below zero.
        """
        self._check(log)
        check_range(start, stop)
        return self._stream(log, start, stop)

    def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
        size = self.tail(log).size
        end = size if stop is None else min(stop, size)
        while start < end:
            piece = self.read(log, start, min(start + _PIECE, end))
            if not piece:
                return
            yield piece
            start += len(piece)

    def wait(self, log: str, at: Tail, timeout: float) -> bool:
        """Return True as soon as the log may end elsewhere than at `at`; False after `timeout` seconds.

        Whoever follows a log waits so between two looks at its tail, which alone says what has happened. A store
        that nobody tells of changes waits all the time, and asks the storage nothing.

        Args:
            log: the log's name; it need not exist.
            at: the tail that the caller has seen.
            timeout: the longest time to wait, in seconds.
        """
        self._check(log)
        sleep(timeout)
        return False

    def boundary(self, log: str, before: int) -> int:
        """Return an offset, at most `before`, where an append began: a reader may start there.

        A record is never found by searching backwards, since a body can hold anything. A store that knows no
        boundaries returns 0, where the first append began.

        Raises:
            NotFound: there is no such log.
            ValueError: `before` is below zero.
        """
        self._check(log)
        check_range(before, None)
        self.tail(log)
        return 0

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        """Remove the log at once and for all; where `at` is given, only if the log ends there.

        Raises:
            NotSupported: the store has not the capability ``deletes``.
            NotFound: there is no such log.
            Conflict: the log does not end at `at`.
            Held: somebody else holds the log.
        """
        self._check(log)
        raise self._refusal("deletes")

    def hold(self, log: str) -> AbstractContextManager[None]:
        """Keep everybody else from appending to, deleting or holding the log, until the context ends.

        The hold belongs to this store object, which may append from any thread; a second hold is refused to
        it as to all others. When the process dies, the storage lets go. The log need not exist yet.

        Raises:
            NotSupported: the store has not the capability ``holds``; raised by the call, not by the context.
            Held: somebody holds the log, on entering; ``error.holder`` says who.
        """
        self._check(log)
        raise self._refusal("holds")

    def holder(self, log: str) -> Holder | None:
        """Say who holds the log now, without disturbing them; None where nobody does.

        Raises:
            NotSupported: the store has not the capability ``holds``.
        """
        self._check(log)
        raise self._refusal("holds")

    def location(self, log: str) -> str:
        """Say where a person finds the log: a file's path, an address, or its name where there is nothing else.

        The log need not exist. No credential is in it.
        """
        self._check(log)
        return log

    def flush(self, log: str) -> None:
        """Make all of the log durable. Where every append is so already, this only looks that the log is there.

        Raises:
            NotSupported: the store can make nothing durable (neither ``durable`` nor ``flushes``).
            NotFound: there is no such log.
        """
        self._check(log)
        if not self.capabilities.durable:
            raise self._refusal("flushes")
        self.tail(log)

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        """Drop what a crash left behind `size`, if the log still ends exactly at `at`; return the bytes dropped.

        Only a storage where an append can tear has this, and only what was never acknowledged may be cut. The
        dropped bytes are also kept aside in the storage. `at` is what makes it safe: a tail that another
        writer has moved meanwhile is never cut. A cut to 0 leaves no log.

        Raises:
            NotSupported: the store has not the capability ``cuts``.
            NotFound: there is no such log.
            Conflict: the log does not end at `at`.
            Held: somebody else holds the log.
            ValueError: `size` is below zero or beyond ``at.size``.
        """
        self._check(log)
        raise self._refusal("cuts")

    def sidecar(self, log: str) -> Sidecar | None:
        """Return a place beside the log for what is derived from it; None without the capability ``sidecars``.

        It is no part of the log: no other call shows it, a copy does not take it along, and it goes when the log is
        deleted or cut. Making one touches nothing, and the log need not exist.
        """
        self._check(log)
        return None

    @property
    def maintenance(self) -> Maintenance | None:
        """What the store offers its operator; None where there is nothing to maintain."""
        return None

    def close(self) -> None:
        """Let go of everything; every later call but this one raises ``Closed``. Closing twice is nothing."""
        self._closed = True

    def _check(self, log: str) -> None:
        """Refuse a bad name, then a closed store: the first line of every call that names a log."""
        names.check(log)
        self._check_open()

    def _check_open(self) -> None:
        """Refuse a closed store."""
        if self._closed:
            raise Closed("this store was closed: open another one", store=type(self).__name__)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refusal(self, capability: str) -> NotSupported:
        """Return the error for a call that needs a capability this store has not."""
        return NotSupported(
            "this store cannot do that: see its capabilities",
            capability=capability,
            store=type(self).__name__,
        )


def check_data(data: bytes, at: Tail) -> None:
    """Refuse what no store appends: data that are no bytes or empty, a tail that no log has.

    Raises:
        TypeError: `data` is not bytes, or `at` is not a Tail.
        ValueError: `data` is empty, or `at` has a size below zero, or a run but no size.
    """
    if not isinstance(data, bytes):
        raise TypeError(f"data to append are bytes, not {type(data).__name__}")
    if not data:
        raise ValueError("there is nothing to append: a log exists from its first byte")
    if not isinstance(at, Tail):
        raise TypeError(f"at is a Tail, as the store returned it, not {type(at).__name__}")
    if at.size < 0 or (at.size == 0 and at.run):
        raise ValueError(f"no log ends at {at!r}; NEW stands for a log that does not exist yet")


def check_range(start: int, stop: int | None) -> None:
    """Refuse offsets below zero.

    Raises:
        ValueError: `start` or `stop` is below zero.
    """
    if start < 0 or (stop is not None and stop < 0):
        raise ValueError(f"an offset is counted from the log's first byte: [{start}, {stop}) is below zero")


def check_stop(stop: int | None) -> None:
    """Refuse a copy of nothing.

    Raises:
        ValueError: `stop` is 0 or below.
    """
    if stop is not None and stop <= 0:
        raise ValueError(f"a copy has at least one byte: stop={stop}")
