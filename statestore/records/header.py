"""A record's header: its fields, its exact spelling, and how it is read.

One decoder in C reads nearly every header. What it refuses (unknown fields, odd spellings, bytes that are not
UTF-8) goes to a slower reader that follows Go's rules to the letter; both read a header alike or not at all.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec

from statestore.records import gojson
from statestore.records.gojson import quote
from statestore.records.times import spell_time, time_is_valid

__all__ = ["MAX_BODY", "MAX_HEADER", "Header", "Usage", "decode_header", "encode_header"]

MAX_HEADER: Final = 1 << 20
"""The largest number of bytes in a header line, without its newline."""

MAX_BODY: Final = 1 << 48
"""The largest ``len`` that is believed: no storage holds more, and Go's own reader fails above it."""

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
    len: Int64 = 0
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
    cache: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


_decode = msgspec.json.Decoder(Header).decode
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
        header = _decode_slowly(line)
    else:
        if not time_is_valid(header.time):
            raise ValueError(f"time is not as RFC 3339 spells it: {header.time[:60]!a}")
        # A second `usage` is merged into the first, and deep values have a limit: the slow reader knows both.
        if (header.usage is not None and (line.count(b'"usage"') > 1 or b"\\" in line)) or (
            len(_OPENINGS.findall(line)) >= gojson.MAX_DEPTH
        ):
            header = _decode_slowly(line)
    if not 0 <= header.len <= MAX_BODY:
        raise ValueError(f"len is no body's size: {header.len}")
    return header


def encode_header(header: Header) -> bytes:
    """Return the header line, without its newline, byte for byte as the Go package writes it.

    Raises:
        ValueError: ``time`` is no time that RFC 3339 can spell, or ``cache`` is not one JSON value.
        OverflowError: a number does not fit into 64 bits.
    """
    h = header
    text = f'{{"n":{h.n},"kind":{quote(h.kind)},"id":{quote(h.id)},"time":"{spell_time(h.time)}","len":{h.len}'
    return _with_options(text, h)


def _with_options(text: str, h: Header) -> bytes:
    """Finish a header line that has its five obligatory fields."""
    if h.type:
        text += f',"type":{quote(h.type)}'
    if h.step:
        text += f',"step":{quote(h.step)}'
    if h.provider:
        text += f',"provider":{quote(h.provider)}'
    if h.for_:
        text += f',"for":{quote(h.for_)}'
    if h.exit is not None:
        text += f',"exit":{h.exit}'
    if h.truncated:
        text += ',"truncated":true'
    if h.full_output:
        text += f',"full_output":{quote(h.full_output)}'
    if h.via:
        text += f',"via":{quote(h.via)}'
    if h.source:
        text += f',"source":{quote(h.source)}'
    if h.upto:
        text += f',"upto":{h.upto}'
    if h.model:
        text += f',"model":{quote(h.model)}'
    if h.harness:
        text += f',"harness":{quote(h.harness)}'
    if h.request:
        text += f',"request":{quote(h.request)}'
    if h.usage is not None:
        u = h.usage
        text += f',"usage":{{"input":{u.input},"output":{u.output}'
        text += (f',"cache_read":{u.cache_read}' if u.cache_read else "") + (
            f',"cache_write":{u.cache_write}' if u.cache_write else ""
        )
        text += "}"
    line = text.encode()
    cache = bytes(h.cache)
    return line + b',"cache":' + gojson.compact(cache) + b"}" if cache else line + b"}"


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
    return Header(**values)


def _usage(value: bytes, before: Usage | None) -> Usage | None:
    if value == b"null":
        return None
    if value[:1] != b"{":
        raise ValueError("usage must be an object")
    known = gojson.fields(value, _USAGE_FIELDS, depth=2)
    counts = {name: gojson.integer(f"usage.{name}", number) for name, number in known if number != b"null"}
    return msgspec.structs.replace(before or Usage(), **counts)
