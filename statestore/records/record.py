"""A record: one header line, a body of exactly ``len`` bytes, and a newline."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from statestore.records.gojson import quote
from statestore.records.header import (
    MAX_HEADER,
    Header,
    decode_known,
    encode_header,
    plain_shapes,
    shapes,
    spell_shape,
)
from statestore.records.times import now, spell_time

__all__ = ["Draft", "Record", "draft", "encode", "new_id", "place"]

_PIECES: Final = 3  # of a record in a batch: what comes before its number's last two digits, these, and the rest
_BELOW_HUNDRED: Final = [piece for number in range(100) for piece in (b"", b"%d" % number, b"")]
_HUNDRED: Final = [piece for number in range(100) for piece in (b"", b"%02d" % number, b"")]
_LONGEST_REST: Final = MAX_HEADER - len('{"n":') - 19  # a number of 64 bits has 19 digits at most


class Record(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One record as a log holds it.

    Attributes:
        line: the header's exact bytes, without its newline: fields that we do not know are in it.
        body: the body's bytes.
        offset: the byte in its log at which the record begins.
    """

    line: bytes
    body: bytes
    offset: int
    _header: Header | None = None

    @property
    def header(self) -> Header:
        """The header's fields."""
        header = self._header
        if header is None:
            # Only a line that a scan has matched as plain, or that was spelled here, comes without its header.
            header = decode_known(self.line)
            force_setattr(self, "_header", header)
        return header

    @property
    def n(self) -> int:
        """The record's number, as its header says."""
        return self.header.n

    @property
    def kind(self) -> str:
        """The record's kind."""
        return self.header.kind

    @property
    def id(self) -> str:
        """The record's id."""
        return self.header.id

    @property
    def end(self) -> int:
        """The byte in its log just behind the record."""
        return self.offset + len(self.line) + self.header.len + 2

    @property
    def raw(self) -> bytes:
        """The record's exact bytes: header line, body, newline."""
        return b"\n".join((self.line, self.body, b""))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and (self.line, self.body, self.offset) == (
            other.line,
            other.body,
            other.offset,
        )

    def __hash__(self) -> int:
        return hash((self.line, self.body, self.offset))


class Draft(msgspec.Struct, frozen=True, gc=False):
    """A record that has no place in a log yet. Make one with :func:`draft`.

    Attributes:
        rest: all the record's bytes behind its number.
    """

    rest: bytes


def draft(kind: str, body: bytes = b"", *, id: str | None = None, time: str | None = None, **fields: Any) -> Draft:  # noqa: A002 - the field's name in the format
    """Return a record to append: a new id and the present time are filled in where none are given.

    Args:
        kind: what the record is; see `KINDS`.
        body: its bytes, whatever they are.
        id: its id; by default eight random hexadecimal digits.
        time: when it was made, in RFC 3339; by default now, in UTC, to the millisecond.
        fields: other fields of :class:`Header`, by name (``for_`` for ``for``). ``cache`` takes JSON as bytes.

    Raises:
        TypeError: there is no such field, a field has another type, or `body` is not bytes.
        ValueError: `time` is no time, ``cache`` is not one JSON value, a number does not fit into 64 bits, or the
            header line would be larger than 1 MiB.
    """
    return Draft(b"\n".join((unnumbered(spell(0, kind, body, id, time, fields)), body, b"")))


def spell(n: int, kind: str, body: bytes, id: str | None, time: str | None, fields: dict[str, Any]) -> bytes:  # noqa: A002
    """Return a header line, without its newline; but for the number, the arguments are those of :func:`draft`."""
    if type(body) is not bytes:
        raise TypeError(f"a body is bytes, not {type(body).__name__}: encode text first")
    try:
        before, behind = shapes[kind, *fields.items()] if fields else plain_shapes[kind]
    except (KeyError, TypeError):  # new, or with a value that has no hash, which gets its error there
        before, behind = spell_shape(kind, fields)
    id_ = new_id() if id is None else quote(id)[1:-1]
    time = now() if time is None else spell_time(time)
    line = f'{{"n":{n}{before}{id_}","time":"{time}","len":{len(body)}{behind}'.encode("utf-8", "surrogateescape")
    if len(line) > _LONGEST_REST and (size := len(unnumbered(line))) > _LONGEST_REST:
        raise ValueError(f"a header line has at most {MAX_HEADER} bytes and this one has {size} and its number")
    return line


def unnumbered(line: bytes) -> bytes:
    """Return what stands behind the number in a header line that was spelled here."""
    return line[line.index(b",") :]


def place(drafts: Sequence[Draft], n: int) -> bytes:
    """Return the bytes that drafts become as the records from number `n` on."""
    # To spell each number takes longer than to copy its record. So the numbers are put together of what a hundred of
    # them share and of two digits.
    pieces: list[bytes] = []
    stop = n + len(drafts)
    while n < stop:
        hundred, first = divmod(n, 100)
        count = min(100 - first, stop - n)
        some = (_HUNDRED if hundred else _BELOW_HUNDRED)[_PIECES * first : _PIECES * (first + count)]
        some[::_PIECES] = [b'{"n":%d' % hundred if hundred else b'{"n":'] * count
        pieces += some
        n += count
    pieces[2::_PIECES] = [draft.rest for draft in drafts]
    return b"".join(pieces)


def encode(header: Header, body: bytes) -> bytes:
    """Return the bytes of a record, exactly as the Go package writes them.

    Args:
        header: its fields; ``len`` is not looked at, the body has one.
        body: its body.

    Raises:
        ValueError: ``time`` is no time that RFC 3339 can spell, ``cache`` is not one JSON value, a number does not
            fit into 64 bits, or the header line would be larger than 1 MiB.
        TypeError: a field has another type than its own.
    """
    line = encode_header(msgspec.structs.replace(header, len=len(body)))
    if len(line) > MAX_HEADER:
        raise ValueError(f"a header line has at most {MAX_HEADER} bytes and this one has {len(line)}")
    return b"\n".join((line, body, b""))


_ids: list[str] = []
os.register_at_fork(after_in_child=_ids.clear)


def new_id() -> str:
    """Return eight random hexadecimal digits, lower case: a new record's or session's id."""
    while True:
        try:
            return _ids.pop()
        except IndexError:
            _ids.extend(os.urandom(4 * 256).hex(" ", 4).split())
