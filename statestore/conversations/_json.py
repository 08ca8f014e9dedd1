"""Values as JSON, without loss: what is read back equals what was given, or it is refused.

A value is made of dicts with string keys, lists, strings, booleans, None, ints of any size and finite floats. Tuples
count as lists. A string with a lone surrogate has no UTF-8, and is refused.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, Final

import msgspec

__all__ = ["MAX_DEPTH", "check_key", "encode", "is_json", "loads", "parse", "plain"]

MAX_DEPTH: Final = 100
"""How deep values may be nested."""

_LARGE: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def plain(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return a copy of a value that shares nothing with it, made of plain types alone.

    Raises:
        TypeError: a part of it is none that JSON has.
        ValueError: it holds NaN or an infinity, or is nested deeper than `depth`.
    """
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if isinstance(value, dict):
        if depth == 0:
            raise ValueError(f"values are nested at most {MAX_DEPTH} deep")
        depth -= 1
        return {check_key(key): plain(item, depth) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if depth == 0:
            raise ValueError(f"values are nested at most {MAX_DEPTH} deep")
        depth -= 1
        return [plain(item, depth) for item in value]
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError(f"JSON has no {value}: leave it out, or say it in words")
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"JSON has no {kind.__name__}: turn it into text or numbers first")


def check_key(key: Any) -> str:
    """Return a key as a plain string.

    Raises:
        TypeError: it is no string.
    """
    if isinstance(key, str):
        return str.__str__(key)
    raise TypeError(f"a key is a str, not {type(key).__name__}: {key!r:.60}")


def encode(value: Any) -> bytes:
    """Return the JSON of a value that `plain` has made, without blanks.

    Raises:
        ValueError: a string has a lone surrogate, or an int more digits than this interpreter writes.
    """
    try:
        return msgspec.json.encode(value)
    except OverflowError:  # an int of more than 64 bits
        return _LARGE.encode(value).encode()


def loads(data: bytes | str) -> Any:
    """Return the value that JSON spells, ints of any size as ints."""
    return json.loads(data)


def is_json(text: str) -> bool:
    """Say whether a text is one JSON value."""
    try:
        msgspec.json.decode(text.encode(), type=msgspec.Raw)
    except (ValueError, RecursionError, msgspec.DecodeError):
        return False
    return True


def parse(data: bytes) -> Any:
    """Return the value that JSON from outside spells, or refuse what could not be read by everybody.

    Raises:
        ValueError: it is not one JSON value in UTF-8, or holds what `plain` or `encode` refuses.
    """
    try:
        value = plain(loads(data.decode()))
    except RecursionError:
        raise ValueError(f"values are nested at most {MAX_DEPTH} deep") from None
    encode(value)
    return value
