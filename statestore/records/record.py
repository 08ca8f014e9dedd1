"""A record: one header line, a body of exactly ``len`` bytes, and a newline."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import msgspec

from statestore.records.gojson import compact
from statestore.records.header import MAX_HEADER, Header, Usage, encode_header
from statestore.records.times import now, spell_time

__all__ = ["Draft", "Record", "draft", "encode", "new_id"]


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record as a log holds it.

    Attributes:
        header: the fields of the header.
        body: the body's bytes.
        line: the header's exact bytes, without its newline: fields that we do not know are in it.
        offset: the byte in its log at which the record begins.
    """

    header: Header
    body: bytes
    line: bytes
    offset: int

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
        return b"%b\n%b\n" % (self.line, self.body)


class Draft(NamedTuple):
    """A record that has no place in a log yet: its header lacks ``n`` and ``len``."""

    header: Header
    body: bytes


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
        ValueError: `time` is no time, ``cache`` is not one JSON value, or a number does not fit into 64 bits.
    """
    if not isinstance(body, bytes):
        raise TypeError(f"a body is bytes, not {type(body).__name__}: encode text first")
    fields |= {"kind": kind, "id": new_id() if id is None else id}
    for name, value in fields.items():
        _check(name, value)
    if "cache" in fields:
        fields["cache"] = msgspec.Raw(compact(bytes(fields["cache"])))
    return Draft(Header(time=now() if time is None else spell_time(time), **fields), body)


_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("kind", "id", "type", "step", "provider", "for_", "full_output", "via", "source"), (str,)),
    **dict.fromkeys(("model", "harness", "request"), (str,)),
    "upto": (int,),
    "exit": (int, type(None)),
    "truncated": (bool,),
    "usage": (Usage, type(None)),
    "cache": (bytes, msgspec.Raw),
}


def _check(name: str, value: object) -> None:
    """Refuse a field that a header has not, or a value that would be written as another thing than it is."""
    if name not in _TYPES:
        raise TypeError(f"a draft has no field {name!r}; it has time, {', '.join(sorted(_TYPES))}")
    if type(value) not in _TYPES[name]:
        raise TypeError(f"{name} is {_TYPES[name][0].__name__}, not {type(value).__name__}")
    numbers = msgspec.structs.astuple(value) if isinstance(value, Usage) else (value,)
    for number in numbers:
        if isinstance(value, Usage) and type(number) is not int:
            raise TypeError(f"usage holds whole numbers, not {type(number).__name__}")
        if isinstance(number, int) and not -(2**63) <= number < 2**63:
            raise ValueError(f"{name} does not fit into 64 bits: {number}")


def encode(header: Header, body: bytes) -> bytes:
    """Return the bytes of a record, exactly as the Go package writes them.

    Args:
        header: its fields; ``len`` is not looked at, the body has one.
        body: its body.

    Raises:
        ValueError: ``time`` is no time that RFC 3339 can spell, ``cache`` is not one JSON value, or the header
            line would be larger than 1 MiB.
    """
    line = encode_header(msgspec.structs.replace(header, len=len(body)))
    if len(line) > MAX_HEADER:
        raise ValueError(f"a header line has at most {MAX_HEADER} bytes and this one has {len(line)}")
    return b"%b\n%b\n" % (line, body)


_ids: list[str] = []
os.register_at_fork(after_in_child=_ids.clear)


def new_id() -> str:
    """Return eight random hexadecimal digits, lower case: a new record's or session's id."""
    try:
        return _ids.pop()
    except IndexError:
        pool = os.urandom(4 * 256).hex()
        _ids.extend(pool[i : i + 8] for i in range(0, len(pool), 8))
        return _ids.pop()
