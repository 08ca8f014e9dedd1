"""Words that may be pasted into a shell, whatever they hold, and read in a row of words."""

from __future__ import annotations

import shlex

from statestore.cli.safe import is_safe, safe

__all__ = ["quoted", "word"]


def quoted(text: str) -> str:
    """Return a word that a shell takes for `text`, of characters that may be shown.

    Where others are in it, it is ``$'…'``, which bash, zsh and ksh know. No word holds a zero character: for such a
    text it is another one, which shows an escape in its place.
    """
    if all(map(is_safe, text)) or "\0" in text:
        return shlex.quote(safe(text))
    return "$'" + "".join(map(_escape, text)) + "'"


def _escape(character: str) -> str:
    if character in "'\\":
        return "\\" + character
    if is_safe(character):
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def word(text: str) -> str:
    """Return `text` as one word in a row: what is empty is a dash, and what has blanks in it is quoted."""
    shown = safe(text)
    return shlex.quote(shown) if any(map(str.isspace, shown)) or text == "-" else shown or "-"
