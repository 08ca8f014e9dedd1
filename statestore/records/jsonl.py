"""A log as JSON lines, and back, byte for byte.

Each line is one record: ``{"header": …, "body": …}``. Both are the exact bytes: a string where they are UTF-8, else
``{"base64": "…"}``. The header is a string and not an object, since its spelling counts: blanks, the order of its
members and fields that nobody here knows all come back. A line is ASCII, holds no control character, and survives
every program that reads and writes JSON.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any

from statestore.errors import Corrupt
from statestore.records.header import MAX_HEADER, decode_header
from statestore.records.making import NewLog
from statestore.records.record import Record

__all__ = ["add_lines", "decode_line", "encode_line"]


def encode_line(record: Record) -> bytes:
    """Return the line, with its newline, that holds all of a record's bytes."""
    return json.dumps({"header": _encode(record.line), "body": _encode(record.body)}).encode("ascii") + b"\n"


def decode_line(line: bytes) -> bytes:
    """Return the exact bytes of the record that a line holds, with or without the line's newline.

    Raises:
        ValueError: it is no such line, or what it holds is no record; the message says why.
    """
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not JSON") from error
    if not isinstance(row, dict) or row.keys() != {"header", "body"}:
        raise ValueError('it is not an object with "header" and "body" and nothing else')
    header, body = (_decode(name, row[name]) for name in ("header", "body"))
    if b"\n" in header or len(header) > MAX_HEADER:
        raise ValueError(f"a header is one line of at most {MAX_HEADER} bytes")
    size = decode_header(header).len
    if size != len(body):
        raise ValueError(f"the header's len is {size} and the body has {len(body)} bytes")
    return b"\n".join((header, body, b""))


def add_lines(lines: Iterable[bytes], log: NewLog) -> None:
    """Put the records of many lines into a log that is to be made.

    Raises:
        Corrupt: a line is no record; ``error.facts["line"]`` is its number, counted from 1.
    """
    for number, line in enumerate(lines, 1):
        try:
            log.add(decode_line(line))
        except ValueError as error:
            raise Corrupt(f"this line is no record of a log: {error}", line=number) from error


def _encode(data: bytes) -> str | dict[str, str]:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode("ascii")}


def _decode(name: str, value: Any) -> bytes:
    try:
        if isinstance(value, str):
            return value.encode("utf-8")
        if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
            return b64decode(value["base64"], validate=True)
    except ValueError as error:
        raise ValueError(f'"{name}" holds no bytes: {error}') from error
    raise ValueError(f'"{name}" is a string, or an object with "base64" and nothing else')
