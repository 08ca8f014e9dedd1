"""How a conversation's id becomes a segment of a log's name, and back.

Any text that is not too long has a segment of its own, also where a file system takes upper and lower case for the
same: letters A to Z become escapes, and nothing but the digits of escapes is upper case.
"""

from __future__ import annotations

import re
from typing import Final

from statestore import names
from statestore.companions import RESERVED, check_free
from statestore.errors import InvalidName

__all__ = ["check_id", "quote", "unquote"]

_UPPER: Final = re.compile(r"%[0-9A-F]{2}|[A-Z]")
_ESCAPE: Final = re.compile(r"%([0-9A-F]{2})")


def check_id(conversation: str) -> str:
    """Return an id as it is, or refuse what no conversation can be called.

    Raises:
        InvalidName: it is empty, or reserved for companions.
        TypeError: it is not a string.
    """
    if not isinstance(conversation, str):
        raise TypeError(f"a conversation's id is a str, not {type(conversation).__name__}")
    if not conversation:
        raise InvalidName("a conversation's id is not empty", id=conversation)
    if conversation == RESERVED:
        check_free(conversation)
    return conversation


def quote(conversation: str) -> str:
    """Return the segment that stands for an id: two ids never share one, whatever the case of their letters.

    Raises:
        InvalidName: the id is empty, or its segment would have more than 200 characters.
    """
    segment = _UPPER.sub(
        lambda found: found[0] if found[0][0] == "%" else f"%{ord(found[0]):02X}", names.quote(conversation)
    )
    if len(segment) > names.MAX_SEGMENT:
        raise InvalidName(
            f"too long for a conversation's id: {names.MAX_SEGMENT} characters at most, of which a capital letter, and "
            "each byte that is no letter, digit or one of ._~-, counts as three",
            id=conversation[:77] + "...",
            length=len(segment),
        )
    return segment


def unquote(segment: str) -> str | None:
    """Return the id that a segment stands for; None where no id is spelled so."""

    def letter(found: re.Match[str]) -> str:
        code = int(found[1], 16)
        return chr(code) if ord("A") <= code <= ord("Z") else found[0]

    try:
        conversation = names.unquote(_ESCAPE.sub(letter, segment))
        return conversation if conversation not in ("", RESERVED) and quote(conversation) == segment else None
    except InvalidName:
        return None
