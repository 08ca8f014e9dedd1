"""Listing: which logs are alive, and where they end, read off one listing of heads and one of data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from statestore import names
from statestore.errors import Corrupt
from statestore_fsspec import _layout as layout
from statestore_fsspec._engine import Engine, entries
from statestore_fsspec._finding import next_generation
from statestore_fsspec._layout import Entry, Segment

__all__ = ["Listed", "listed"]


class Listed(NamedTuple):
    """What one pass over a root shows of one log.

    Attributes:
        log: its name.
        heads: its heads, in order.
        runs: its segments by run, of all generations; None where the pass left them out.
    """

    log: str
    heads: list[Entry]
    runs: dict[str, list[Segment]] | None


def listed(engine: Engine, prefix: str = "", after: str = "", *, ordered: bool, data: bool) -> Iterator[Listed]:
    """Yield the logs that have heads, in the order of their names, whether they are alive or not.

    Args:
        engine: what sends requests.
        prefix: what the names begin with.
        after: a name; only greater ones are shown.
        ordered: whether the storage lists in byte order; else all is read and sorted first.
        data: whether the segments are listed too.
    """
    heads = _heads(_rows(engine, "heads/", prefix, after, ordered))
    if not data:
        yield from (Listed(log, group, None) for log, group in heads)
        return
    segments = _segments(_rows(engine, "data/", prefix, after, ordered))
    ahead = next(segments, None)
    for log, group in heads:
        # Names without heads are creations that are not there yet, or never will be.
        while ahead is not None and ahead[0] < log:
            ahead = next(segments, None)
        yield Listed(log, group, ahead[1] if ahead is not None and ahead[0] == log else {})


def _rows(engine: Engine, kind: str, prefix: str, after: str, ordered: bool) -> Iterator[Entry]:
    # "!" comes before, and "~" behind, all that can follow a name in a key.
    begin = f"{kind}{after}!~" if after else ""
    if ordered:
        return entries(engine.pages(kind + prefix, begin))
    return iter(sorted(row for row in entries(engine.pages(kind + prefix)) if row.key > begin))


def _heads(rows: Iterable[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    for log, group in groupby(rows, key=lambda entry: layout.parse_head(entry.key)[0]):
        heads: list[Entry] = []
        for entry in group:
            if not heads and not names.is_name(log):
                raise Corrupt("an object that no store made lies among its own: move it elsewhere", object=entry.key)
            next_generation(entry, log, len(heads))
            heads.append(entry)
        yield log, heads


def _segments(rows: Iterable[Entry]) -> Iterator[tuple[str, dict[str, list[Segment]]]]:
    for log, group in groupby(map(layout.parse_data, rows), key=lambda parsed: parsed[0]):
        runs: dict[str, list[Segment]] = {}
        for _, run, segment in group:
            runs.setdefault(run, []).append(segment)
        yield log, runs
