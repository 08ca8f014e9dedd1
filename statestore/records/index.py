"""The position index: where some of a log's records begin, kept beside the log where the store has a place for it.

A record is never found by searching backwards, since a body can hold anything. An index says where records begin, so
that a reader need not come from the log's first byte. It is derived and disposable: with it absent, old or damaged
everything works, only slower, and whoever then opens the log to append makes it anew.

It is entries of 32 bytes: the offset and the number of a record, each 8 bytes, most significant first, and 16 bytes
of BLAKE2b over these two, the log's run, and the record's header line. An entry is believed only where the log has
that very line at that offset, behind a newline. So an entry that was damaged, or written for another log, or for
what was cut from this one, is none: header lines hold random ids.
"""

from __future__ import annotations

from heapq import nlargest
from struct import Struct
from typing import Final, NamedTuple

from statestore.records.scan import NEVER, Scan
from statestore.store import Sidecar, Snapshot

__all__ = ["BEGINNING", "Index", "Position", "RECORDS", "STRIDE", "note"]

RECORDS: Final = 1000
"""How many records lie between two positions at most, if they were appended one by one."""

STRIDE: Final = 1 << 20
"""How many bytes lie between two positions at most, unless a record is larger. To enter one takes as long as two or
three appends."""

_ENTRY: Final = Struct(">QQ16s")
_FIRST: Final = 128 * _ENTRY.size  # how much of an index is read first
_CHUNK: Final = 256 << 10  # bytes that are read at a time, and between two positions that are found by reading
_TRIES: Final = 16  # entries that are tried before an index is given up
_LINE: Final = 4096  # no record with a longer header line is entered
_KEPT: Final = 1024  # positions that are kept in memory before they are written


class Position(NamedTuple):
    """Where a record begins: its offset, and its number."""

    offset: int
    number: int


BEGINNING: Final = Position(0, 1)
"""Where a log's first record begins."""


def note(sidecar: Sidecar, run: str, position: Position, line: bytes, last: int) -> None:
    """Enter the record with this header line into an index, unless that has a position near enough.

    The caller knows of one at the offset `last`; where that is 0, what others have entered is looked for.
    """
    if not last and len(data := sidecar.read(_ENTRY.size)) == _ENTRY.size:
        offset, number, _ = _ENTRY.unpack(data)
        if 0 <= position.offset - offset < STRIDE and 0 <= position.number - number < RECORDS:
            return
    if entry := _entry(run, position, line):
        sidecar.append(entry)


class Index:
    """The positions that are known of a log as a snapshot shows it.

    Args:
        sidecar: where they are kept.
        snapshot: the log.
    """

    def __init__(self, sidecar: Sidecar, snapshot: Snapshot) -> None:
        self._sidecar = sidecar
        self._snapshot = snapshot
        self._useless = False
        self._new: list[bytes] = []
        self._passed = BEGINNING

    def nearest(self, before: int = NEVER) -> Position:
        """Return the last position known, and proven, of a record with a number below `before`, else the beginning."""
        size, want = self._snapshot.tail.size, _FIRST
        if size < _CHUNK // 2:  # too short to have an entry
            return BEGINNING
        while True:
            data = self._sidecar.read(want)
            entries = _ENTRY.iter_unpack(data[len(data) % _ENTRY.size :])
            fitting = [found for found in entries if found[0] < size and found[1] < before]
            for offset, number, digest in nlargest(_TRIES, fitting):
                if self._proves(position := Position(offset, number), digest):
                    return position
            if fitting or len(data) < want:
                self._useless = bool(data) and before == NEVER
                return BEGINNING
            want *= 8

    def _proves(self, position: Position, digest: bytes) -> bool:
        """Say whether the record that an entry speaks of begins there."""
        if position.offset == 0:
            return False
        before, line, _ = (self._snapshot.read(position.offset - 1, position.offset + _LINE) + b"\n\n").split(b"\n", 2)
        return not before and _digest(self._snapshot.tail.run, position, line) == digest

    def scan(self, start: Position, last: Position) -> Scan:
        """Return a scan that goes to the log's end, and notes positions on its way for `keep`.

        Args:
            start: where it begins.
            last: the last position that is known already.
        """
        self._passed = last
        self._records = Scan(self._fetch, start=start.offset, number=start.number, log=self._snapshot.log, chunk=_CHUNK)
        return self._records

    def _fetch(self, start: int, stop: int) -> bytes:
        data = self._snapshot.read(start, stop)
        if data and start == self._records.end >= self._passed.offset + _CHUNK // 2:  # the fetch before was not used up
            self._passed = Position(start, self._records.number)
            line = data[:_LINE].partition(b"\n")[0]
            self._new.append(_entry(self._snapshot.tail.run, self._passed, line))
            if len(self._new) == _KEPT:
                self.keep()
        return data

    def keep(self) -> Position:
        """Keep what the scan has passed, and return the last position that is known."""
        if new := b"".join(self._new):
            (self._sidecar.replace if self._useless else self._sidecar.append)(new)
            self._useless = False
        self._new.clear()
        return self._passed


def _entry(run: str, position: Position, line: bytes) -> bytes:
    """Return what stands in an index for a record with this header line; nothing, where the line is too long."""
    return _ENTRY.pack(*position, _digest(run, position, line)) if len(line) < _LINE else b""


def _digest(run: str, position: Position, line: bytes) -> bytes:
    from hashlib import blake2b  # not loaded by whoever has only short logs

    return blake2b(b"%d %d %s\n%s" % (*position, run.encode(), line), digest_size=16).digest()
