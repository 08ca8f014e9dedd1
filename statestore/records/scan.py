"""Reading records off a log's bytes: whole, in order, in bounded memory, and never with another meaning.

Where the bytes stop being records there are two cases, and everything above depends on telling them apart:

* **Torn**: the log ends inside its last record, or in zeros up to its end, and nothing behind the tear parses as
  the record that would follow. A crash in the middle of an append does that. The scan ends in front of it.
* **Corrupt**: anything else. The scan raises, with the number and the offset of the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from statestore.errors import Corrupt
from statestore.records.header import MAX_HEADER, Header, decode_header, match_plain
from statestore.records.record import Record

__all__ = ["CHUNK", "Fetch", "NEVER", "Scan", "scan"]

CHUNK: Final = 1 << 20
"""How many bytes are asked for at a time."""

_PEEK: Final = 4096  # bytes that are read behind a body that was skipped: most headers are shorter
_FIRST: Final = 4096  # bytes that are read first for each record, where few are asked for
_NEWLINE: Final = 10
_LONGEST_LINE: Final = MAX_HEADER + 1  # with its newline
_LONG_HEADER: Final = f"its header line has more than {MAX_HEADER} bytes"
NEVER: Final = 1 << 63
"""A number and a size that no log reaches."""

Fetch = Callable[[int, int], bytes]
"""Returns the bytes of ``[start, stop)``, fewer only at the log's end."""


class Scan:
    """The records of one log, read off by iterating.

    Args:
        fetch: gives the bytes of a range of offsets, fewer only at the log's end.
        start: the offset of the first record to read.
        number: that record's number.
        first: records with lower numbers are checked, but not given; large bodies of theirs are not fetched.
        before: the number to stop in front of; None reads to the end.
        bodies: whether records are given their bodies; without, large ones are not fetched.
        log: the log's name, for errors.
        chunk: how many bytes to ask for at a time.

    Attributes:
        end: the offset just behind the last whole record so far.
        number: the number that the next record has.
        torn: how many bytes lie behind `end` at a torn end; 0 before the scan has come to its end.
    """

    def __init__(
        self,
        fetch: Fetch,
        *,
        start: int = 0,
        number: int = 1,
        first: int = 1,
        before: int | None = None,
        bodies: bool = True,
        log: str | None = None,
        chunk: int = CHUNK,
    ) -> None:
        self.end = start
        self.number = number
        self.torn = 0
        self._fetch = fetch
        self._first = first
        self._before = NEVER if before is None else before
        self._bodies = bodies
        self._log = log
        self._chunk = chunk

    def __iter__(self) -> Iterator[Record]:
        """Yield the whole records in order; `end` and `number` move on with each.

        Raises:
            Corrupt: the next record does not parse and is not torn. All records before it have been given.
        """
        first, before, bodies = self._first, self._before, self._bodies
        # Whoever wants one record does not fetch a thousand. Where this is too little, it costs one fetch more.
        want, ahead = min(self._chunk, max(before - self.number, 1) * _FIRST), b""
        while self.number < before:
            begin, at, number = self.end, 0, self.number
            damage = None
            try:
                buffer = ahead or self._fetch(begin, begin + want)
            except Corrupt as error:
                # A store that knows of damage says where: what stands before it is read.
                if error.offset is None or error.offset <= begin:
                    raise
                buffer, damage = self._fetch(begin, error.offset), error
            ahead = b""
            size = len(buffer)
            find = buffer.find
            header: Header | None = None
            while number < before:
                plain = match_plain(buffer, at)
                if plain is not None:
                    body = plain.end()
                    stop = body + int(plain[1])
                else:
                    body = find(b"\n", at) + 1
                    if body == 0 or body - at > _LONGEST_LINE:
                        break
                    header = self._decode(buffer[at : body - 1], begin + at, number)
                    stop = body + header.len
                if stop >= size or buffer[stop] != _NEWLINE or body - at > _LONGEST_LINE:
                    break
                number += 1
                if number > first:
                    self.end, self.number = begin + stop + 1, number
                    yield Record(buffer[at : body - 1], buffer[body:stop] if bodies else b"", begin + at, header)
                at, header = stop + 1, None
            self.end, self.number = begin + at, number
            if number == before:
                return
            if damage is not None:
                if at == 0:
                    raise damage
                continue
            if body == 0:
                if size < want or size - at > MAX_HEADER:
                    self._end_without_newline(buffer[at:])
                    return
                want = self._chunk + (0 if at else MAX_HEADER)
                continue
            if body - at > _LONGEST_LINE:
                raise self._corrupt(_LONG_HEADER)
            line = buffer[at : body - 1]
            if stop < size:
                self._end_at_wrong_byte(begin + stop)
                return
            header = header or decode_header(line)
            # The record's body ends beyond the buffer. It is read again from its beginning in one piece, so that
            # no record is ever put together from two reads, between which its bytes could have been replaced.
            if size < want:
                self._end_inside(header, begin + body)
                return
            want = self._chunk
            wanted = bodies and number >= first
            if stop - at < (want if wanted else want // 4):
                continue
            # First look whether the body ends where it should: a damaged `len` is never asked for.
            peek = self._fetch(begin + stop, begin + stop + _PEEK)
            if not peek:
                self._end_inside(header, begin + body)
                return
            if peek[0] != _NEWLINE:
                self._end_at_wrong_byte(begin + stop)
                return
            data = self._body(line, begin + at, begin + stop + 1) if wanted else b""
            if data is None:
                continue
            self.end, self.number = begin + stop + 1, number + 1
            if number >= first:
                yield Record(line, data, begin + at, header)
            if not wanted:
                want, ahead = _PEEK - 1, peek[1:]

    def _decode(self, line: bytes, start: int, number: int) -> Header:
        try:
            return decode_header(line)
        except ValueError as error:
            self.end, self.number = start, number
            raise self._corrupt(str(error)) from error

    def skip(self) -> None:
        """Go on to `before`, or to the end, and give nothing.

        Raises:
            Corrupt: as iterating does.
        """
        self._first = NEVER
        for _ in self:
            raise AssertionError("a scan that skips gives nothing")

    def _body(self, line: bytes, start: int, stop: int) -> bytes | None:
        """Return the body of the record that lies in ``[start, stop)``; None where another one lies there by now.

        What was not acknowledged may be replaced while it is read: then it is judged anew.
        """
        raw = self._fetch(start, stop)
        whole = len(raw) == stop - start and raw.startswith(line + b"\n") and raw[-1] == _NEWLINE
        return raw[len(line) + 1 : -1] if whole else None

    def _corrupt(self, why: str, **facts: int) -> Corrupt:
        return Corrupt(
            f"this is no record and no crash explains it: {why}; what stands before it can be read",
            log=self._log,
            record=self.number,
            offset=self.end,
            **facts,
        )

    def _end_without_newline(self, rest: bytes) -> None:
        """Judge the bytes behind the last record where no newline ends a header."""
        if len(rest) <= MAX_HEADER:
            self.torn = len(rest)
            return
        zeros = self.end + len(rest.rstrip(b"\0"))
        log_end = self._end_of_zeros(zeros) if zeros - self.end <= MAX_HEADER else None
        if log_end is None:
            raise self._corrupt(_LONG_HEADER)
        self.torn = log_end - self.end

    def _end_at_wrong_byte(self, offset: int) -> None:
        """Judge a record whose body is followed by something else than a newline."""
        log_end = self._end_of_zeros(offset)
        if log_end is None:
            raise self._corrupt("another byte stands where the newline behind its body belongs", at=offset)
        self.torn = log_end - self.end

    def _end_inside(self, header: Header, body: int) -> None:
        """Judge a record whose body would end beyond the log: torn, unless the log goes on behind it.

        A record that would follow can only be there if this one's ``len`` is damaged: cutting here would lose it.
        What lies behind the place where the body should end was appended since the log was found to end before it.
        """
        mark = b'\n{"n":%d,' % (header.n + 1)
        at, stop = body - 1, body + header.len
        while piece := self._fetch(at, min(at + CHUNK, stop)):
            found = -1
            while (found := piece.find(mark, found + 1)) >= 0:
                if self._is_record(piece, found + 1, at):
                    raise self._corrupt("its len reaches beyond the log, and whole records follow", next=at + found + 1)
            at += len(piece)
            if len(piece) < CHUNK:
                break
            at -= len(mark) - 1
        self.torn = at - self.end

    def _is_record(self, piece: bytes, start: int, offset: int) -> bool:
        """Say whether a whole record begins at a place in a piece of the log, which begins at an offset."""
        newline = piece.find(b"\n", start)
        if newline < 0:
            offset, start = offset + start, 0
            piece = self._fetch(offset, offset + MAX_HEADER + 1)
            newline = piece.find(b"\n")
        if newline < 0:
            return False
        try:
            stop = offset + newline + 1 + decode_header(piece[start:newline]).len
        except ValueError:
            return False
        return self._fetch(stop, stop + 1) == b"\n"

    def _end_of_zeros(self, offset: int) -> int | None:
        """Return where the log ends if all its bytes from an offset on are zero, else None."""
        while piece := self._fetch(offset, offset + CHUNK):
            if piece.strip(b"\0"):
                return None
            offset += len(piece)
        return offset


def scan(data: bytes) -> Iterator[Record]:
    """Yield the records that `data` holds; a torn end is left out.

    Raises:
        Corrupt: a record does not parse and is not torn. All records before it have been given.
    """
    return iter(Scan(lambda start, stop: data[start:stop], chunk=len(data) + 1))
