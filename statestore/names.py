"""What may be a log's name, and how any string becomes a part of one.

A name is one or more segments joined by ``/``. A segment is 1 to 200 characters of ``A-Z a-z 0-9 . _ ~ -`` and
upper-case percent escapes such as ``%2F``, and does not begin with ``.``; a whole name has at most 700
characters. Every storage can hold such names as they are, and they sort alike everywhere. Names are checked,
never changed: what is not a name is refused.

An id from outside becomes a segment with :func:`quote`, and comes back with :func:`unquote`.
"""

from __future__ import annotations

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

from statestore.errors import InvalidName

__all__ = ["MAX_NAME", "MAX_SEGMENT", "check", "check_prefix", "is_name", "quote", "unquote"]

MAX_SEGMENT = 200
"""The largest number of characters in one segment."""

MAX_NAME = 700
"""The largest number of characters in a whole name."""

# Every character that is not part of an escape, then escapes; a segment's 200 characters count each escape as three.
_SEGMENT = r"(?=[^/]{1,200}(?:/|\Z))(?:[A-Za-z0-9_~-]|%[0-9A-F]{2})(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})*"
_NAME = re.compile(rf"(?=.{{1,700}}\Z){_SEGMENT}(?:/{_SEGMENT})*\Z")

# No text encodes to the byte FF, so this escape is free to stand for the empty string.
_EMPTY = "%FF"


def is_name(name: str) -> bool:
    """Say whether `name` may be a log's name."""
    return _NAME.match(name) is not None


def check(name: str) -> str:
    """Return `name` as it is, or refuse it: the first thing that every call of every store does.

    Raises:
        InvalidName: it is not a name.
        TypeError: it is not a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"a log's name is a str, not {type(name).__name__}")
    if _NAME.match(name) is None:
        raise InvalidName(f"not a log's name: {_why(name)}", name=name if len(name) <= 80 else name[:77] + "...")
    return name


def check_prefix(prefix: str) -> str:
    """Return `prefix` as it is, or refuse it where no name could begin with it.

    Raises:
        InvalidName: no name begins so.
        TypeError: it is not a string.
    """
    if not isinstance(prefix, str):
        raise TypeError(f"a prefix is a str, not {type(prefix).__name__}")
    if prefix and not any(is_name(prefix + rest) for rest in ("", "0", "20")):
        raise InvalidName("no log's name begins so; names.quote makes a segment of any string", prefix=prefix[:80])
    return prefix


def quote(text: str) -> str:
    """Return a segment that stands for `text`, whatever it holds: two texts never share one.

    Letters, digits and ``_ ~ - .`` stand for themselves (a ``.`` only after the first place); any other
    character becomes percent escapes of its UTF-8 bytes. The empty string becomes ``%FF``.

    Raises:
        InvalidName: the segment would have more than 200 characters.
    """
    segment = quote_from_bytes(text.encode("utf-8", "surrogatepass"), safe="~") if text else _EMPTY
    if segment[0] == ".":
        segment = "%2E" + segment[1:]
    if len(segment) > MAX_SEGMENT:
        raise InvalidName(
            f"too long for a segment of a name: shorten or hash it, {MAX_SEGMENT} characters at most, escapes counted",
            text=text[:77] + "...",
            length=len(segment),
        )
    return segment


def unquote(segment: str) -> str:
    """Return the text that :func:`quote` made `segment` of.

    Raises:
        InvalidName: quote makes no such segment.
    """
    try:
        text = "" if segment == _EMPTY else unquote_to_bytes(segment).decode("utf-8", "surrogatepass")
    except UnicodeError as error:
        raise InvalidName("not a quoted segment: its escapes are no text", segment=segment[:80]) from error
    if len(segment) > MAX_SEGMENT or quote(text) != segment:
        raise InvalidName("not a quoted segment: names.quote spells this text otherwise", segment=segment[:80])
    return text


def _why(name: str) -> str:
    """Say in words what is wrong with a name that the pattern has refused."""
    if not name:
        return "it is empty"
    if len(name) > MAX_NAME:
        return f"it has {len(name)} characters and {MAX_NAME} are allowed"
    for segment in name.split("/"):
        if not segment:
            return "a segment is empty"
        if len(segment) > MAX_SEGMENT:
            return f"a segment has {len(segment)} characters and {MAX_SEGMENT} are allowed"
        if segment.startswith("."):
            return "a segment begins with a dot"
    return "only A-Z a-z 0-9 . _ ~ - and upper-case escapes may stand in it; names.quote makes a segment of any string"
