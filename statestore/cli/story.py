"""One record told in a few words: who said what, which call got which result, what a step took."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from statestore.cli.safe import safe
from statestore.cli.screen import Part, plural
from statestore.records import (
    BLOCKS,
    CALL,
    CONFIG,
    ERROR,
    MESSAGE,
    RESULT,
    START,
    STEP,
    SYSTEM,
    TEXT,
    THINKING,
    Record,
    Usage,
)

__all__ = ["Line", "STYLES", "Story", "flat", "tokens"]

STYLES: Final = {
    START: "dim",
    CONFIG: "dim",
    SYSTEM: "blue",
    MESSAGE: "bold green",
    TEXT: "bold",
    THINKING: "dim",
    CALL: "cyan",
    RESULT: "cyan",
    STEP: "magenta",
    ERROR: "bold red",
}
_MARGIN: Final = 7
_LINES: Final = 3
_WIDTH: Final = 160  # characters of a line


def flat(value: Any, depth: int = 0) -> str:
    """Return a JSON value on one line, in fewer signs than JSON has."""
    if isinstance(value, dict) and depth < 3:
        inner = " ".join(f"{key}={flat(member, depth + 1)}" for key, member in value.items())
        return f"({inner})" if depth else inner
    if isinstance(value, list) and depth < 3:
        return "[" + ", ".join(flat(member, depth + 1) for member in value) + "]"
    if isinstance(value, str) and value and (depth == 0 or not any(sign in value for sign in ' ,()[]="\n')):
        return value
    return json.dumps(value, ensure_ascii=False)


def tokens(usage: Usage) -> str:
    """Return what a step took: ``301 in + 1,909 cached, 714 out``."""
    cached = f" + {usage.cache_read:,} cached" if usage.cache_read else ""
    written = f" + {usage.cache_write:,} to the cache" if usage.cache_write else ""
    return f"{usage.input:,} in{cached}{written}, {usage.output:,} out"


class Line(NamedTuple):
    """A line as a screen takes it: what stands in front, and what may wrap."""

    lead: tuple[Part, ...]
    text: tuple[Part, ...]


@dataclass
class Story:
    """Tells records one after another, and remembers what later ones refer to.

    Attributes:
        full: whether bodies are told whole.
        calls: the calls that no result names yet: their records' numbers and what they call, by id, oldest first.
        blocks: the numbers of blocks whose step has not come yet, by that step's id.
    """

    full: bool = False
    calls: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    blocks: dict[str, list[int]] = field(default_factory=dict)
    _day: str = ""
    _before: str = START

    def tell(self, record: Record, number: int, *, stray: bool = False) -> list[Line]:
        """Return the lines for one record.

        Args:
            record: it.
            number: its place in the log.
            stray: whether it is a result that answers no waiting call.
        """
        header = record.header
        day, _, clock = header.time.partition("T")
        lines: list[Line] = []
        # What somebody says, behind whatever is no message, begins a turn.
        if header.kind == MESSAGE and self._before != MESSAGE:
            lines.append(Line((), ()))
        if day != self._day:
            lines.append(Line((" " * _MARGIN,), ((day, "dim"),)))
            self._day = day
        self._before = header.kind
        head, body = self._words(record, number)
        if stray:
            head = f"{head}, answers no waiting call"
        told = "dim" if header.kind in (THINKING, CONFIG) else ""
        first, *rest = body or [""]
        kind = (f"{header.kind:<8}  ", STYLES.get(header.kind, "yellow"))
        lead: tuple[Part, ...] = ((f"{number:>5}  ", "dim"), (f"{clock[:8]:<8}  ", "dim"), kind)
        lines.append(Line(lead, ((head + (": " if head and first else ""), "italic" if first else ""), (first, told))))
        indent = " " * (_MARGIN + 10 + len(safe(kind[0])))
        return lines + [Line((indent,), ((line, told),)) for line in rest]

    def _words(self, record: Record, number: int) -> tuple[str, list[str]]:
        """Return what is said about a record, and its body's lines."""
        header, value = record.header, _object(record)
        words: list[str] = []
        text: str | None = None
        if header.kind in BLOCKS:
            self.blocks.setdefault(header.step, []).append(number)
        if header.kind == MESSAGE:
            words = [header.via]
        elif header.kind == SYSTEM:
            words = [header.source]
        elif header.kind == CONFIG and value:
            text = flat(value)
        elif header.kind == THINKING and isinstance(value.get("thinking"), str):
            text = value["thinking"]
        elif header.kind == CALL:
            name = value.get("name")
            self.calls.setdefault(header.id, []).append((number, name if isinstance(name, str) else header.id))
            if isinstance(name, str):
                text = f"{name}  {flat(value.get('arguments', {}))}"
        elif header.kind == RESULT:
            words = [f"for {self._called(header.for_)}", "" if header.exit is None else f"exit {header.exit}"]
        elif header.kind == STEP:
            self.blocks.pop(header.id, None)
            stop = value.get("stop_reason")
            words = [header.model, tokens(header.usage) if header.usage else "", stop if isinstance(stop, str) else ""]
            text = "" if isinstance(stop, str) and not self.full else None
        elif header.kind == ERROR and header.for_:
            words = [f"for {header.for_}"]
        if header.truncated:
            words.append("truncated" + (f", all of it in {header.full_output}" if header.full_output else ""))
        return ", ".join(word for word in words if word), self._body(record, text)

    def _called(self, id_: str) -> str:
        """Return the number and the name of the oldest call with an id, which is now answered."""
        known = self.calls.get(id_)
        if not known:
            return id_
        number, name = known.pop(0)
        if not known:
            del self.calls[id_]
        return f"{number} {name}"

    def _body(self, record: Record, text: str | None) -> list[str]:
        """Return a body's lines, all of them or the first few."""
        size = record.header.len
        if text is None:
            try:
                text = record.body.decode("utf-8")
            except UnicodeDecodeError:
                text = "\0"
            if "\0" in text:
                return self._bytes(record)
        lines = text.replace("\t", "    ").removesuffix("\n").split("\n")
        if self.full:
            return lines
        lines = [line for line in lines if line.strip()]
        short = [line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…" for line in lines[:_LINES]]
        if len(lines) > _LINES:
            short[-1] += f" (+{plural(len(lines) - _LINES, 'line')}, {plural(size, 'byte')} in all)"
        return short

    def _bytes(self, record: Record) -> list[str]:
        shown = record.body if self.full else record.body[:8]
        rest = "" if len(shown) == len(record.body) else " …"
        return [f"{record.header.type or 'no text'}, {plural(len(record.body), 'byte')}: {shown.hex(' ')}{rest}"]


def _object(record: Record) -> dict[str, Any]:
    """Return the JSON object that is the body, or an empty one."""
    if record.body[:1] != b"{":
        return {}
    try:
        value = json.loads(record.body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
