"""A record's header: its fields, its exact spelling, and how it is read.

One decoder in C reads nearly every header. What it refuses (unknown fields, odd spellings, bytes that are not
UTF-8) goes to a slower reader that follows Go's rules to the letter; both read a header alike or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec

from statestore.records import gojson
from statestore.records.gojson import quote
from statestore.records.times import COMMON as COMMON_TIME
from statestore.records.times import spell_time, time_is_valid

__all__ = [
    "MAX_BODY",
    "MAX_HEADER",
    "Header",
    "Usage",
    "decode_header",
    "decode_known",
    "encode_header",
    "match_plain",
    "plain_shapes",
    "shapes",
    "spell_shape",
]

MAX_HEADER: Final = 1 << 20
"""The largest number of bytes in a header line, without its newline."""

MAX_BODY: Final = 1 << 48
"""The largest ``len`` that is believed: no storage holds more, and Go's own reader fails above it."""

_MOST_SHAPES: Final = 1024
_LONGEST_SHAPE: Final = 256
shapes: dict[tuple[Any, ...], tuple[str, str]] = {}
"""What `spell_shape` has returned, by the kind and the fields: looked up first, it saves the call."""

plain_shapes: dict[str, tuple[str, str]] = {}
"""The same of headers without other fields, by the kind alone."""

ZERO_TIME: Final = "0001-01-01T00:00:00Z"

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Usage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """How many tokens a step took.

    Attributes:
        input: tokens of the prompt that no cache had.
        output: tokens of the answer.
        cache_read: tokens of the prompt that came from a cache.
        cache_write: tokens of the prompt that were put into a cache.
    """

    input: Int64 = 0
    output: Int64 = 0
    cache_read: Int64 = 0
    cache_write: Int64 = 0


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False, kw_only=True):
    """The fields of a header, in the order in which they are written; a field at its default is left out.

    Attributes:
        n: the record's 1-based number in its log.
        kind: what the record is: one of `KINDS`, or anything else.
        id: the record's own id.
        time: when it was made, as it is spelled in the header (RFC 3339). It orders nothing.
        len: the body's size in bytes.
        type: the body's media type.
        step: the step that a block belongs to.
        provider: who served the model.
        for_: what a result or an error answers: the id of a call or a message. In JSON it is ``for``.
        exit: the exit status of a tool; None where there is none.
        truncated: whether the body was cut short by whoever made it.
        full_output: where all of it is.
        via: how a message came in.
        source: where instructions came from.
        upto: on a step, the number of the last record that the model had seen.
        model: the model that answered.
        harness: the version of the program that ran the step.
        request: a digest of the request.
        usage: the tokens that a step took; None where that is not known.
        cache: any JSON value, kept as it is; empty where there is none.
    """

    n: Int64 = 0
    kind: str = ""
    id: str = ""
    time: str = ZERO_TIME
    len: Annotated[int, msgspec.Meta(ge=0, le=MAX_BODY)] = 0
    type: str = ""
    step: str = ""
    provider: str = ""
    for_: str = msgspec.field(name="for", default="")
    exit: Int64 | None = None
    truncated: bool = False
    full_output: str = ""
    via: str = ""
    source: str = ""
    upto: Int64 = 0
    model: str = ""
    harness: str = ""
    request: str = ""
    usage: Usage | None = None
    cache: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(Header).decode

_PLAIN = r'"[ !#-\[\]-~]*"'
_NUMBER = r"(?:0|[1-9][0-9]{0,17})"
_TEXTS = "type|step|provider|for|full_output|via|source|model|harness|request"
_SEALED = "key|seal"  # members of sealed records: a scan need not know what they mean to see that they are plain
match_plain = re.compile(
    (
        rf'\{{"n":{_NUMBER},"kind":{_PLAIN},"id":{_PLAIN},"time":"{COMMON_TIME}","len":(0|[1-9][0-9]{{0,13}})'
        rf'(?:,"(?:{_TEXTS}|{_SEALED})":{_PLAIN}|,"(?:exit|upto)":-?{_NUMBER}|,"truncated":true)*\}}\n'
    ).encode()
).match
"""Matches a header line, newline included, that is spelled as nearly all are; its group is ``len``.

`decode_header` takes every line that this takes, with the same ``len``, and costs twice as much: a scan that is not
asked for headers need not read them.
"""

_OPENINGS = re.compile(rb"[\[{]")
_INTEGERS = frozenset({"n", "len", "exit", "upto"})
_FIELDS = {field.encode_name: field.name for field in msgspec.structs.fields(Header)}
_USAGE_FIELDS = {name: name for name in Usage.__struct_fields__}


def decode_header(line: bytes) -> Header:
    """Return the header that a line holds, read as the Go package reads it.

    Args:
        line: the bytes before the newline.

    Raises:
        ValueError: Go refuses the line, or its ``len`` is below zero or beyond what any storage holds.
    """
    try:
        header = _decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return _decode_slowly(line)
    # Where members may be doubled, each must be valid and a second `usage` is merged into the first; deep values have
    # a limit. The slow reader knows all that.
    if b"\\" in line or line.count(b'"time"') > 1 or (header.usage is not None and line.count(b'"usage"') > 1):
        return _decode_slowly(line)
    if len(line) > gojson.MAX_DEPTH and len(_OPENINGS.findall(line)) >= gojson.MAX_DEPTH:
        return _decode_slowly(line)
    if not time_is_valid(header.time):
        raise ValueError(f"time is not as RFC 3339 spells it: {header.time[:60]!a}")
    return header


def decode_known(line: bytes) -> Header:
    """Return the header of a line that is known to be one, and to name no member twice but strings and numbers."""
    try:
        return _decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return _decode_slowly(line)


def encode_header(header: Header) -> bytes:
    """Return the header line, without its newline, byte for byte as the Go package writes it.

    Raises:
        ValueError: ``time`` is no time that RFC 3339 can spell, ``cache`` is not one JSON value, or a number does
            not fit into 64 bits.
        TypeError: a field has another type than its own.
    """
    n, size = (whole_number(name, getattr(header, name)) for name in ("n", "len"))
    options = {name: getattr(header, name) for name in _OPTIONS}
    before, behind = spell_shape(header.kind, options)
    text = f'{{"n":{n}{before}{quote(header.id)[1:]},"time":"{spell_time(header.time)}","len":{size}{behind}'
    return text.encode("utf-8", "surrogateescape")


def spell_shape(kind: str, fields: dict[str, Any]) -> tuple[str, str]:
    """Return what stands around the id, the time and the size in a header: it is the same in many records.

    Args:
        kind: the record's kind.
        fields: optional fields, by name.

    Returns:
        What stands from ``kind`` up to the value of ``id``, its quote included, and the members behind ``len`` with the
        closing brace.

    Raises:
        TypeError: there is no such field, or a value has another type.
        ValueError: a value cannot be written.
    """
    if type(kind) is not str:
        raise TypeError(f"kind is str, not {type(kind).__name__}")
    shape = f',"kind":{quote(kind)},"id":"', _spell_options(fields) + "}"
    # Only strings are remembered: no other value equals one. The memory is small and forgets all at once.
    if len(shape[0]) + len(shape[1]) <= _LONGEST_SHAPE and all(type(value) is str for value in fields.values()):
        if len(shapes) + len(plain_shapes) >= _MOST_SHAPES:
            shapes.clear()
            plain_shapes.clear()
        if fields:
            shapes[kind, *fields.items()] = shape
        else:
            plain_shapes[kind] = shape
    return shape


def _spell_options(fields: dict[str, Any]) -> str:
    """Return the optional members, each behind its comma, in the order of the format; defaults are left out.

    Raises:
        TypeError: there is no such field, or its value has another type.
        ValueError: a value cannot be written.
    """
    try:
        if len(fields) < 2:
            for name, value in fields.items():
                return _OPTIONS[name](name, value)
            return ""
        return "".join([_OPTIONS[name](name, fields[name]) for name in sorted(fields, key=_ORDER.__getitem__)])
    except KeyError as error:
        raise TypeError(f"a header has no field {error}; it has id, time, {', '.join(_OPTIONS)}") from None


def _text(name: str, value: str) -> str:
    if type(value) is not str:
        raise TypeError(f"{name} is str, not {type(value).__name__}")
    return f',"{_ENCODED[name]}":{quote(value)}' if value else ""


def _upto(name: str, value: int) -> str:
    return f',"{name}":{value}' if whole_number(name, value) else ""


def _exit(name: str, value: int | None) -> str:
    return f',"{name}":{whole_number(name, value)}' if value is not None else ""


def _flag(name: str, value: bool) -> str:
    if type(value) is not bool:
        raise TypeError(f"{name} is bool, not {type(value).__name__}")
    return f',"{name}":true' if value else ""


def _usage_option(name: str, value: Usage | None) -> str:
    if value is None:
        return ""
    if type(value) is not Usage:
        raise TypeError(f"{name} is Usage, not {type(value).__name__}")
    counts = [(field, whole_number(f"{name}.{field}", getattr(value, field))) for field in _USAGE_FIELDS]
    members = ",".join(f'"{field}":{count}' for field, count in counts if count or not field.startswith("cache"))
    return f',"{name}":{{{members}}}'


def _cache_option(name: str, value: bytes | msgspec.Raw) -> str:
    if not isinstance(value, bytes | msgspec.Raw):
        raise TypeError(f"{name} is JSON as bytes, not {type(value).__name__}")
    # Bytes that are no UTF-8 are kept as they are, as Go keeps them: the line is encoded accordingly.
    text = bytes(value)
    return f',"{name}":{gojson.compact(text).decode("utf-8", "surrogateescape")}' if text else ""


def whole_number(name: str, value: object) -> int:
    """Return a number that a header can hold, or refuse it.

    Raises:
        TypeError: it is no int; True and False are none.
        ValueError: it does not fit into 64 bits.
    """
    if type(value) is not int:
        raise TypeError(f"{name} is int, not {type(value).__name__}")
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{name} does not fit into 64 bits: {value}")
    return value


_ENCODED = {field.name: field.encode_name for field in msgspec.structs.fields(Header)}
_SPECIAL: dict[str, Callable[[str, Any], str]] = {
    "exit": _exit,
    "truncated": _flag,
    "upto": _upto,
    "usage": _usage_option,
    "cache": _cache_option,
}
_OPTIONS: dict[str, Callable[[str, Any], str]] = {
    name: _SPECIAL.get(name, _text)
    for name in Header.__struct_fields__
    if name not in ("n", "kind", "id", "time", "len")
}
_ORDER = {name: place for place, name in enumerate(_OPTIONS)}


def _decode_slowly(line: bytes) -> Header:
    """Read a header member by member, as Go does: later members win, ``null`` changes nothing."""
    values: dict[str, Any] = {}
    for name, value in gojson.fields(line, _FIELDS):
        if name == "cache":
            values[name] = msgspec.Raw(value)
        elif name == "usage":
            values[name] = _usage(value, values.get(name))
        elif value == b"null":
            if name == "exit":
                values[name] = None
        elif name in _INTEGERS:
            values[name] = gojson.integer(name, value)
        elif name == "truncated":
            if value not in (b"true", b"false"):
                raise ValueError("truncated must be true or false")
            values[name] = value == b"true"
        else:
            values[name] = gojson.string(name, value)
            if name == "time" and not time_is_valid(values[name]):
                raise ValueError(f"time is not as RFC 3339 spells it: {values[name][:60]!a}")
    size = values.get("len", 0)
    if not 0 <= size <= MAX_BODY:
        raise ValueError(f"len is no body's size: {size}")
    return Header(**values)


def _usage(value: bytes, before: Usage | None) -> Usage | None:
    if value == b"null":
        return None
    if value[:1] != b"{":
        raise ValueError("usage must be an object")
    known = gojson.fields(value, _USAGE_FIELDS, depth=2)
    counts = {name: gojson.integer(f"usage.{name}", number) for name, number in known if number != b"null"}
    return msgspec.structs.replace(before or Usage(), **counts)
