"""JSON as Go's ``encoding/json`` reads and writes it, where that differs from what Python's readers do.

Values are tokenised here without recursion, so that nesting is bounded by a rule and not by a stack, and each
member keeps its exact bytes. Strings are written with HTML escaping on. The vectors in
``tests/vectors/statefile`` are the evidence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache

__all__ = ["MAX_DEPTH", "compact", "elements", "fields", "integer", "members", "quote", "string", "unquote"]

MAX_DEPTH = 10_000
"""How deep values may be nested in a header, the header itself counted: Go's own limit."""

_PLAIN = re.compile(r"[ !#-%'-;=?-\[\]-~]*")
_SURROGATES = re.compile("[\ud800-\udfff]")
_ESCAPES = {code: f"\\u{code:04x}" for code in [*range(0x20), ord("<"), ord(">"), ord("&"), 0x2028, 0x2029]} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\b"): "\\b",
    ord("\f"): "\\f",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}
_TOKEN = re.compile(
    rb"[ \t\r\n]*(?:"
    rb'(?P<string>"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*")'
    rb"|(?P<scalar>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)"
    rb"|(?P<mark>[{}\[\],:])"
    rb")"
)
_BLANKS = re.compile(rb"[ \t\r\n]*")
_COMPACT = re.compile(rb'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')
_INTEGER = re.compile(rb"-?(?:0|[1-9][0-9]*)")
# Go finds a field by its name in any case, and folds two letters beyond ASCII that have an ASCII twin.
_FOLD = {code: chr(code).lower() for code in range(ord("A"), ord("Z") + 1)} | {0x17F: "s", 0x212A: "k"}
_UNSAFE = re.compile(rb"[<>&]|\xe2\x80[\xa8\xa9]")


@lru_cache(maxsize=1024)
def _quote(text: str) -> str:
    if _PLAIN.fullmatch(text) is None:
        text = _SURROGATES.sub("\ufffd", text).translate(_ESCAPES)
    return f'"{text}"'


def quote(text: str) -> str:
    """Return `text` as a JSON string in Go's spelling; a lone surrogate becomes U+FFFD, as in Go."""
    if type(text) is not str:
        raise TypeError(f"a string is str, not {type(text).__name__}")
    return _quote(text) if len(text) <= 64 else _quote.__wrapped__(text)


def unquote(literal: bytes) -> str:
    """Return the text of a valid JSON string literal, quotes included, as Go reads it.

    A byte that is not UTF-8 and a lone surrogate become U+FFFD, each.
    """
    text = literal.decode("utf-8", "surrogateescape")
    text = json.loads(text, strict=False) if "\\" in text else text[1:-1]
    return _SURROGATES.sub("\ufffd", text)


def _token(text: bytes, at: int) -> re.Match[bytes]:
    match = _TOKEN.match(text, at)
    if match is None:
        raise ValueError(f"not JSON at byte {at}")
    return match


def _mark(text: bytes, at: int, wanted: bytes) -> tuple[bytes, int]:
    """Read one of the `wanted` marks; return it and where it ends."""
    match = _token(text, at)
    if match.lastgroup != "mark" or match["mark"] not in wanted:
        raise ValueError(f"not JSON at byte {at}: one of {wanted.decode()} belongs there")
    return match["mark"], match.end()


def _key(text: bytes, at: int) -> tuple[bytes, int]:
    """Read a member's key and its colon; return the key's literal and where the value may begin."""
    match = _token(text, at)
    if match.lastgroup != "string":
        raise ValueError(f"not JSON at byte {at}: a key belongs there")
    return match["string"], _mark(text, match.end(), b":")[1]


def _value_end(text: bytes, at: int, depth: int = 0) -> int:
    """Return where the JSON value that begins at `at` ends.

    Raises:
        ValueError: no value begins there, or it is nested too deep for a value at `depth`.
    """
    open_marks = bytearray()
    while True:
        match = _token(text, at)
        at = match.end()
        mark = match["mark"]
        if mark in (b"{", b"["):
            if depth + len(open_marks) >= MAX_DEPTH:
                raise ValueError(f"values are nested deeper than {MAX_DEPTH}")
            following = _token(text, at)
            if following["mark"] == (b"}" if mark == b"{" else b"]"):
                at = following.end()
            else:
                open_marks += mark
                if mark == b"{":
                    at = _key(text, at)[1]
                continue
        elif mark is not None:
            raise ValueError(f"not JSON at byte {at}: a value belongs there")
        while open_marks:
            closing = b"}" if open_marks[-1:] == b"{" else b"]"
            mark, at = _mark(text, at, b"," + closing)
            if mark == b",":
                if closing == b"}":
                    at = _key(text, at)[1]
                break
            open_marks.pop()
        else:
            return at


def members(text: bytes, depth: int = 1) -> list[tuple[bytes, bytes]]:
    """Return the members of a JSON object in order: key literals and the exact bytes of their values.

    ``null`` in the object's place has no members, as in Go.

    Raises:
        ValueError: the text is not one JSON object, or is nested too deep.
    """
    if text.strip(b" \t\r\n") == b"null":
        return []
    _, at = _mark(text, 0, b"{")
    found: list[tuple[bytes, bytes]] = []
    mark = b","
    if _token(text, at)["mark"] == b"}":
        mark, at = _mark(text, at, b"}")
    while mark == b",":
        key, at = _key(text, at)
        end = _value_end(text, at, depth)
        found.append((key, text[at:end].strip(b" \t\r\n")))
        mark, at = _mark(text, end, b",}")
    if _BLANKS.fullmatch(text, at) is None:
        raise ValueError(f"not JSON at byte {at}: it should end there")
    return found


def elements(text: bytes) -> list[bytes]:
    """Return the exact bytes of the elements of a JSON array.

    Raises:
        ValueError: the text is not one JSON array, or is nested too deep.
    """
    _, at = _mark(text, 0, b"[")
    found: list[bytes] = []
    mark = b","
    if _token(text, at)["mark"] == b"]":
        mark, at = _mark(text, at, b"]")
    while mark == b",":
        end = _value_end(text, at, 1)
        found.append(text[at:end].strip(b" \t\r\n"))
        mark, at = _mark(text, end, b",]")
    return found


def fields(text: bytes, names: Mapping[str, str], depth: int = 1) -> list[tuple[str, bytes]]:
    """Return those members of an object whose keys name a field, in any case, with their exact values.

    Args:
        text: one JSON object, or ``null``, which has no members.
        names: the attribute that each field name stands for.
        depth: how deep the object is nested, itself counted.

    Raises:
        ValueError: the text is not one JSON object, or is nested too deep.
    """
    pairs = ((unquote(key), value) for key, value in members(text, depth))
    named = ((names.get(key) or names.get(key.translate(_FOLD)), value) for key, value in pairs)
    return [(name, value) for name, value in named if name is not None]


def integer(name: str, value: bytes) -> int:
    """Return the whole number of 64 bits that a value is.

    Raises:
        ValueError: it is none; the message names the field.
    """
    number = int(value) if len(value) <= 20 and _INTEGER.fullmatch(value) else None
    if number is None or not -(2**63) <= number < 2**63:
        raise ValueError(f"{name} must be a whole number of 64 bits")
    return number


def string(name: str, value: bytes) -> str:
    """Return the text that a value is.

    Raises:
        ValueError: it is no string; the message names the field.
    """
    if value[:1] != b'"':
        raise ValueError(f"{name} must be a string")
    return unquote(value)


def compact(value: bytes) -> bytes:
    """Return one JSON value as Go writes it inside an object: without blanks, and safe inside HTML.

    Raises:
        ValueError: it is not one JSON value, or is nested too deep.
    """
    if _BLANKS.fullmatch(value, _value_end(value, 0, depth=1)) is None:
        raise ValueError("not one JSON value")
    value = _COMPACT.sub(lambda match: match[1] or b"", value)
    return _UNSAFE.sub(lambda match: b"\\u%04x" % ord(match[0].decode()), value)
