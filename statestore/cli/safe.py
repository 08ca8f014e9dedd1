"""Text that may be shown: whatever a log holds, nothing in it can drive a terminal or pose as something else."""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["decode", "is_safe", "safe"]

# Control, format (bidirectional overrides among them), surrogate, unassigned, line and paragraph separator.
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})
# These two join or part letters and change nothing else; whole scripts, and many emoji, need them.
_JOINERS: Final = "\u200c\u200d"


def is_safe(character: str) -> bool:
    """Say whether one character may be shown as it is. A newline may not."""
    return unicodedata.category(character) not in _UNSAFE or character in _JOINERS


def safe(text: str) -> str:
    """Return `text` as it may be shown on one line: every character that is not harmless is spelled as an escape.

    Escapes are ``\\x1b``, ``\\u202e`` and the like. The result is for eyes: a text that holds such an escape
    already looks the same, and is not told apart.
    """
    if text.isprintable():
        return text
    return "".join(
        character if is_safe(character) else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )


def decode(data: bytes) -> str:
    """Return bytes as text for :func:`safe`: what is not UTF-8 becomes ``\\xff`` and the like."""
    return data.decode("utf-8", "backslashreplace")
