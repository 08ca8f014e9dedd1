"""A sealed log as the plain one that it stands for: where each offset lies, and what is read there.

A sealed record is longer than the plain one by a number of bytes that is always the same. So an offset of one log is an
offset of the other, once it is known how many records stand before it. All headers are read once for that; marks, one
in about 64 KiB, and the end are remembered, since what a log holds never changes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from statestore.errors import Corrupt
from statestore.records.header import MAX_HEADER
from statestore.records.scan import CHUNK, Fetch, Scan, scan
from statestore.store import Snapshot, Tail
from statestore.wrappers._sealing import GROWTH, MOST, Keyring, unseal_line

__all__ = ["Known", "Mark", "View", "whole_records"]

_APART: Final = 64 << 10  # bytes between two marks, at least
_SLACK: Final = 4096


class Mark(NamedTuple):
    """Where a record begins, or the last one ends: in the plain log, and in the sealed one."""

    plain: int
    sealed: int

    @property
    def number(self) -> int:
        """The number of the record that begins there."""
        return (self.sealed - self.plain) // GROWTH + 1


class Known(msgspec.Struct, frozen=True):
    """What is known of one run of a log, from its beginning up to the end of its whole records.

    Attributes:
        run: the run.
        end: behind the last whole record.
        marks: where records begin, in order.
        origin: the seal of the first record; empty where there is none.
        key: the id of the key that has sealed the last record.
        damage: why nothing behind `end` can be read, where that is no torn end.
    """

    run: str
    end: Mark = Mark(0, 0)
    marks: tuple[Mark, ...] = (Mark(0, 0),)
    origin: bytes = b""
    key: str = ""
    damage: Corrupt | None = None

    def grown(self, run: str, ends: Iterable[Mark], origin: bytes, key: str) -> Known:
        """Return what is known once whole records were appended that end there."""
        end, marks = self.end, list(self.marks)
        for end in ends:
            if end.sealed - marks[-1].sealed >= _APART:
                marks.append(end)
        return Known(run, end, tuple(marks), origin, key)

    def read_on(self, fetch: Fetch, log: str) -> Known:
        """Return what is known once the headers behind `end` have been read, up to the log's end or to damage."""
        end, ends, origin, key = self.end, list[Mark](), self.origin, self.key
        damage = None
        records = Scan(fetch, start=end.sealed, number=end.number, bodies=False, log=log)
        try:
            for record in records:
                sealed = unseal_line(record.line)
                if sealed is None:
                    damage = Corrupt(
                        "this record is not sealed: read the log without Encrypted, and reseal it into a new one",
                        log=log,
                        record=end.number,
                        offset=end.plain,
                    )
                    break
                origin, key = origin or sealed.seal, sealed.key
                end = Mark(end.plain + records.end - end.sealed - GROWTH, records.end)
                ends.append(end)
        except Corrupt as error:
            damage = Corrupt(error.message, log=log, record=end.number, offset=end.plain)
        return msgspec.structs.replace(self.grown(self.run, ends, origin, key), damage=damage)


class View:
    """The plain log that a snapshot of a sealed one stands for.

    Behind the last whole record, a torn end shows as it lies in the storage: readers of records leave it out.

    Args:
        keys: what opens the records.
        inner: the snapshot of the sealed log.
        known: what is known of it, up to its end.

    Attributes:
        tail: where the plain log ends.
    """

    def __init__(self, keys: Keyring, inner: Snapshot, known: Known) -> None:
        self.inner = inner
        self.known = known
        self.tail = Tail(inner.tail.size - self._behind, inner.tail.run)
        self._keys = keys
        self._large = (0, b"")  # the last large record that was opened, and where it begins

    @property
    def _behind(self) -> int:
        """How far the plain offset of a place behind the whole records is behind the sealed one."""
        return self.known.end.sealed - self.known.end.plain

    def _fetch(self, start: int, stop: int) -> bytes:
        return self.inner.read(start, min(stop, self.known.end.sealed))

    def floor(self, offset: int, *, sealed: bool = False) -> Mark:
        """Return the last place at or before an offset where a record begins, or where the whole records end."""
        side = int(sealed)
        if offset >= self.known.end[side]:
            return self.known.end
        mark = self._mark(offset, side)
        records = Scan(self._fetch, start=mark.sealed, number=mark.number, bodies=False, log=self.inner.log)
        for _ in records:
            behind = Mark(mark.plain + records.end - mark.sealed - GROWTH, records.end)
            if behind[side] > offset:
                break
            mark = behind
        return mark

    def sealed(self, offset: int) -> int | None:
        """Return the sealed offset for a plain one; None where that is within a whole record."""
        if offset > self.known.end.plain:
            return offset + self._behind
        place = self.floor(offset)
        return place.sealed if place.plain == offset else None

    def boundary(self, before: int) -> int:
        """Return an offset, at most `before`, where an append began."""
        start = self.floor(before)
        return self.floor(self.inner.boundary(start.sealed), sealed=True).plain

    def stream(self, start: int, stop: int | None) -> Iterator[bytes]:
        """Yield the plain bytes of ``[start, stop)``, record by record.

        Raises:
            Unavailable: a record there is sealed with a key that is not here.
            Corrupt: a record there was changed, or what stands there is no sealed record.
        """
        stop = self.tail.size if stop is None else min(stop, self.tail.size)
        end = self.known.end.plain
        if start < min(stop, end):
            yield from self._open(start, min(stop, end))
        start = max(start, end)
        if start < stop:
            if self.known.damage is not None:
                raise Corrupt(self.known.damage.message, **self.known.damage.facts)
            yield from self.inner.stream(start + self._behind, stop + self._behind)

    def _open(self, start: int, stop: int) -> Iterator[bytes]:
        at, data = self._large
        if at <= start and stop <= at + len(data):
            yield data[start - at : stop - at]
            return
        mark = self._mark(start, 0)
        chunk = min(CHUNK, 2 * (stop - mark.plain) + _SLACK)
        records = Scan(self._fetch, start=mark.sealed, number=mark.number, log=self.inner.log, chunk=chunk)
        for record in records:
            behind = Mark(mark.plain + records.end - mark.sealed - GROWTH, records.end)
            if behind.plain > start:
                data = self._open_record(record.line, record.body, mark)
                if len(data) > CHUNK:
                    self._large = (mark.plain, data)
                yield data[max(start - mark.plain, 0) : stop - mark.plain]
            mark = behind
            if mark.plain >= stop:
                return
        raise self._gone(mark)

    def _open_record(self, line: bytes, body: bytes, mark: Mark) -> bytes:
        sealed = unseal_line(line)
        if sealed is None:
            raise self._gone(mark)
        origin = self.known.origin if mark.plain else b""
        return self._keys.open(sealed, body, offset=mark.plain, origin=origin, log=self.inner.log, record=mark.number)

    def _mark(self, offset: int, side: int) -> Mark:
        marks = self.known.marks
        return marks[bisect_right(marks, offset, key=lambda mark: mark[side]) - 1]

    def _gone(self, mark: Mark) -> Corrupt:
        return Corrupt(
            "the storage shows other bytes than before: read the log again",
            log=self.inner.log,
            record=mark.number,
            offset=mark.plain,
        )


def whole_records(data: bytes) -> list[tuple[bytes, bytes]]:
    """Return the lines and bodies of the records that `data` is.

    Raises:
        ValueError: it is anything else, or a header is no object of members or too long to be sealed.
    """
    found, end = [], 0
    try:
        for record in scan(data):
            found.append((record.line, record.body))
            end += len(record.line) + len(record.body) + 2
    except Corrupt as error:
        raise ValueError("only whole records are appended to a sealed log, and this is none") from error
    if end != len(data):
        raise ValueError(f"only whole records are appended to a sealed log: {len(data) - end} bytes are left over")
    for line, body in found:
        if not line.endswith(b"}") or line[:-1].strip(b" \t\r") == b"{":
            raise ValueError("a header of a sealed record begins with { and at least one member, and ends with }")
        if len(line) + GROWTH > MAX_HEADER:
            raise ValueError(f"a header that is to be sealed has at most {MAX_HEADER - GROWTH} bytes: {len(line)}")
        if len(body) > MOST:
            raise ValueError(f"a body that is to be sealed has at most {MOST} bytes: {len(body)}")
    return found
