"""Listing: which logs are alive, and where they end, read off one listing of heads and one of data."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from statestore import names
from statestore.errors import Corrupt
from statestore_fsspec import _layout as layout
from statestore_fsspec._engine import Engine, entries
from statestore_fsspec._finding import next_generation
from statestore_fsspec._layout import Entry, Segment
from statestore_fsspec._steps import Page

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
    if not data:
        for log, group in _heads(_rows(engine, "heads/", prefix, after, ordered)):
            yield Listed(log, group, None)
        return
    heads = _Heads(_pages(engine, "heads/", prefix, after, ordered))
    segments = _segments(_behind(heads, engine, prefix, after, ordered))
    ahead = next(segments, None)
    while (head := heads.next()) is not None:
        log, group = head
        # Names without heads are creations that are not there yet, or never will be.
        while ahead is not None and ahead[0] < log:
            ahead = next(segments, None)
        yield Listed(log, group, ahead[1] if ahead is not None and ahead[0] == log else {})


class _Heads:
    """The heads of a root, page by page.

    Args:
        pages: what lists them.

    Attributes:
        upto: the name up to which all are listed; None once that is so of all names.
    """

    def __init__(self, pages: Iterator[Page]) -> None:
        self.upto: str | None = ""
        self._pages = pages
        self._rows: list[Entry] = []  # of the last name on the page, of which the next one may have more
        self._groups: deque[tuple[str, list[Entry]]] = deque()

    def read(self) -> None:
        """Read one more page."""
        page = next(self._pages, Page((), False))
        groups = [*_heads((*self._rows, *page.entries))]
        if not page.more:
            self.upto = None
        elif groups:
            self._rows = groups.pop()[1]
            self.upto = groups[-1][0] if groups else self.upto
        self._groups += groups

    def next(self) -> tuple[str, list[Entry]] | None:
        """Return the next log and its heads; None behind the last one."""
        while not self._groups and self.upto is not None:
            self.read()
        return self._groups.popleft() if self._groups else None


def _behind(heads: _Heads, engine: Engine, prefix: str, after: str, ordered: bool) -> Iterator[Entry]:
    """Yield the rows of segments, each of them listed after the heads of its log.

    Else a head might name a run that was not there yet when another one, which nobody has published, was listed.
    """
    begin, more = "", True
    while more:
        while heads.upto is not None and (not heads.upto or begin >= f"data/{heads.upto}!"):
            heads.read()
        last = f"data/{heads.upto}!~" if heads.upto is not None else None
        page = next(_pages(engine, "data/", prefix, after, ordered, begin))
        more = page.more
        for entry in page.entries:
            if last is not None and entry.key > last:
                more = True  # once more, behind its heads
                heads.read()
                break
            begin = entry.key
            yield entry


def _pages(engine: Engine, kind: str, prefix: str, after: str, ordered: bool, begin: str = "") -> Iterator[Page]:
    # "!" comes before, and "~" behind, all that can follow a name in a key.
    begin = max(begin, f"{kind}{after}!~" if after else "")
    if ordered:
        return engine.pages(kind + prefix, begin)
    rows = sorted(row for row in entries(engine.pages(kind + prefix)) if row.key > begin)
    return iter([Page(tuple(rows), False)])


def _rows(engine: Engine, kind: str, prefix: str, after: str, ordered: bool) -> Iterator[Entry]:
    return entries(_pages(engine, kind, prefix, after, ordered))


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
