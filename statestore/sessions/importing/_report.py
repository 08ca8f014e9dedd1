"""What became of a file's lines, and how they are read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["Brought", "Report", "rows"]

_REASONS: Final = 100  # kinds of line that are counted apart: a file's own words name them
_LONGEST: Final = 60  # characters of such a word


@dataclass(frozen=True, slots=True)
class Brought:
    """A session that a file has become.

    Attributes:
        log: its log's name.
        source: what it was, such as ``claude-code:<id>``: the ``source`` of its first record.
        records: how many records of each kind it has.
        size: how many bytes they take.
        new: whether it was made now; what was there already was left alone.
    """

    log: str
    source: str
    records: dict[str, int]
    size: int
    new: bool


@dataclass(slots=True)
class Report:
    """What became of a file: ``lines`` is the sum of all that was carried over and all that was lost.

    Attributes:
        path: the file.
        lines: how many lines it has.
        carried: how many of them became records, or are told in one, by what they were.
        lost: how many of them did not, by the reason.
        parts: how many parts of lines that were carried over did not come with them, by what they were.
        torn: how many bytes at the file's end are no whole line: a crash cut them, or they are still being written.
        sessions: the sessions that it has become; none where nothing was said.
    """

    path: Path
    lines: int = 0
    carried: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)
    torn: int = 0
    sessions: list[Brought] = field(default_factory=list)

    def carry(self, what: str) -> None:
        """Count a line that was carried over."""
        _count(self.carried, what)

    def lose(self, reason: str) -> None:
        """Count a line that was not."""
        _count(self.lost, reason)

    def leave(self, part: str) -> None:
        """Count a part of a line that stays behind."""
        _count(self.parts, part)


def _count(counts: Counter[str], word: str) -> None:
    word = word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…"
    counts[word if word in counts or len(counts) < _REASONS else "anything else"] += 1


def rows(report: Report) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each line of a file; what is none is lost.

    Raises:
        OSError: the file cannot be read.
    """
    with open(report.path, "rb") as file:
        for line in file:
            report.lines += 1
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                if line.endswith(b"\n"):
                    report.lose("no JSON" if line.strip() else "empty")
                else:
                    report.torn = len(line)
                    report.lose("cut off at the end")
                continue
            if isinstance(row, dict):
                yield row
            else:
                report.lose("no object")
