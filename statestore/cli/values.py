"""Options whose values are more than text, and what is said, in our own words, of a value that one does not take."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import typer

__all__ = ["choice", "part", "whole"]

_SIXTY_FOUR_BITS: Final = range(-(2**63), 2**63)


class _WrongValue(typer.BadParameter):
    """A value that an option does not take: the message stands alone, without the parser's words in front."""

    def format_message(self) -> str:
        """Return the message."""
        return self.message


def whole(flag: str, help_text: str, *, least: int | None = None, short: str | None = None) -> Any:
    """Return an option that takes a whole number of at most 64 bits.

    Args:
        flag: the option as it is typed.
        help_text: its line of help.
        least: the smallest number that it takes.
        short: the option as one letter.
    """
    kind = "a whole number" + ("" if least is None else f" from {least} on")

    def parse(text: str) -> int:
        number = int(text) if re.fullmatch(r"[+-]?[0-9]{1,1000}", text) else None
        if number is None or (least is not None and number < least):
            raise _WrongValue(f"{flag} is {kind}, not '{text}'")
        if number not in _SIXTY_FOUR_BITS:
            raise _WrongValue(f"{flag} is {kind} of at most 64 bits, not {text}")
        return number

    return _option(flag, help_text, "N", parse, short=short)


def part(flag: str, help_text: str) -> Any:
    """Return an option that takes a part of a whole: a number above 0 and at most 1."""

    def parse(text: str | float) -> float:
        try:
            number = float(text)  # the default comes as a number
        except ValueError:
            number = 0.0
        if not 0 < number <= 1:
            raise _WrongValue(f"{flag} is a number above 0 and at most 1, not '{text}'")
        return number

    return _option(flag, help_text, "PART", parse, show_default=True)


def choice(flag: str, help_text: str, words: Sequence[str], *, default: str) -> Any:
    """Return an option that takes one of some words.

    Args:
        flag: the option as it is typed.
        help_text: its line of help.
        words: what it takes.
        default: what the help says of the option left out.
    """

    def parse(text: str) -> str:
        if text not in words:
            raise _WrongValue(f"{flag} is {', '.join(words[:-1])} or {words[-1]}, not '{text}'")
        return text

    return _option(flag, help_text, "|".join(words), parse, show_default=default)


def _option(
    flag: str,
    help_text: str,
    metavar: str,
    parse: Callable[[Any], Any],
    *,
    show_default: bool | str = False,
    short: str | None = None,
) -> Any:
    flags = [flag, short] if short else [flag]
    return typer.Option(*flags, help=help_text, metavar=metavar, parser=parse, show_default=show_default)
