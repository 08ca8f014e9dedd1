"""What commands print: lines for people, JSON for programs, errors on standard error; all of it harmless."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from statestore.cli.progress import aside
from statestore.cli.safe import safe

if TYPE_CHECKING:
    from rich.console import Console

    from statestore.errors import StateStoreError

__all__ = ["Part", "Screen", "binary", "columns", "complain", "describe", "emit", "fail", "plural", "write"]

Part = str | tuple[str, str]
"""A piece of a line: its text, or its text and its style as rich names it."""

_NARROW = 24  # columns: where fewer are left, a line goes on at the left
_HANG = 2  # columns by which it is indented there


class Screen:
    """Lines for a person: coloured and wrapped on a terminal, and as they are, one each, everywhere else.

    Args:
        width: columns to wrap at as a terminal does; by default the terminal's, and no wrapping where standard
            output is none.
    """

    def __init__(self, width: int | None = None) -> None:
        self._console: Console | None = None
        if width is not None or sys.stdout.isatty():
            from rich.console import Console

            self._console = Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)

    def put(self, *parts: Part, lead: Sequence[Part] = ()) -> None:
        """Print one line.

        Args:
            parts: what the line says; on a terminal it wraps, and goes on below its own beginning.
            lead: what stands in front of that, and does not wrap.
        """
        start, text = _cells(lead), _cells(parts)
        if self._console is None:
            with aside():
                sys.stdout.write("".join(piece for piece, _ in start + text).rstrip() + "\n")
            return
        from rich.text import Text

        head, body, width = Text.assemble(*start), Text.assemble(*text), self._console.width
        if width - head.cell_len < _NARROW:
            head, body = (Text(), Text.assemble(*start, *text)) if head.plain.strip() else (Text(" " * _HANG), body)
        # What goes on is always indented, so that no text can begin a line by its length.
        indent = head.cell_len or _HANG
        room = width - head.cell_len
        for line in body.wrap(self._console, room if body.cell_len <= room else width - indent) or [Text()]:
            line.rstrip()
            with aside():
                self._console.print(head + line, no_wrap=True, overflow="ignore", crop=False)
            head = Text(" " * indent)


def _cells(parts: Sequence[Part]) -> list[tuple[str, str]]:
    return [(safe(part), "") if isinstance(part, str) else (safe(part[0]), part[1]) for part in parts]


def columns(*fields: str) -> None:
    """Print one line for a script: fields with a tab between them, which no field holds."""
    with aside():
        sys.stdout.write("\t".join(map(safe, fields)) + "\n")


def emit(value: Mapping[str, Any], file: TextIO | None = None) -> None:
    """Print one JSON object on one line, in ASCII without control characters."""
    with aside():
        (file or sys.stdout).write(json.dumps(value, ensure_ascii=True, allow_nan=False) + "\n")


def write(data: bytes) -> None:
    """Write all of some bytes to standard output, which takes a part at a time where PYTHONUNBUFFERED is set."""
    view = memoryview(data)
    with aside():
        while view:
            view = view[sys.stdout.buffer.write(view) :]
        if sys.stdout.isatty():
            sys.stdout.buffer.flush()


def binary(data: bytes) -> str | dict[str, str]:
    """Return bytes for JSON: their text where they are UTF-8, else ``{"base64": …}``."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def describe(error: StateStoreError) -> dict[str, Any]:
    """Return an error for JSON: its kind, its message and its facts."""
    facts = {name: _fact(value) for name, value in error.facts.items()}
    flags = {name: getattr(error, name) for name in ("retry", "effect_unknown") if hasattr(error, name)}
    return {"error": type(error).__name__, "message": error.message, "facts": facts | flags}


def _fact(value: object) -> Any:
    from statestore.store import Holder, Tail

    if isinstance(value, Tail):
        return {"size": value.size, "run": value.run}
    if isinstance(value, Holder):
        return {"pid": value.pid, "host": value.host, "since": value.since}
    return value if isinstance(value, bool | int | float | None) else str(value)


def complain(text: str) -> None:
    """Print one line on standard error."""
    with aside():
        sys.stderr.write(safe(text) + "\n")


def fail(error: StateStoreError, *, as_json: bool, label: str = "error") -> None:
    """Print an error on standard error: a line for people and, where asked for, then one for programs."""
    complain(f"{label}: {error}")
    if error.__cause__ is not None and "see the cause" in error.message:
        complain(f"cause: {_cause(error.__cause__)}")
    if as_json:
        emit(describe(error), sys.stderr)


def _cause(error: BaseException) -> str:
    """Return the kinds of a library's exceptions, the outermost first, and what the system said.

    Their own words are left out: they may quote a URL that is signed, or a header.
    """
    kinds, said = [], ""
    seen: set[int] = set()
    rest: BaseException | None = error
    while rest is not None and id(rest) not in seen:
        seen.add(id(rest))
        kinds.append(type(rest).__name__)
        if isinstance(rest, OSError) and rest.errno is not None:
            said = f": {os.strerror(rest.errno).lower()}" if rest.errno > 0 else ": the host is not known"
        rest = rest.__cause__ or rest.__context__
    return " < ".join(dict.fromkeys(kinds)) + said


def plural(count: int, noun: str) -> str:
    """Return ``1 record``, ``2,000 records``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
