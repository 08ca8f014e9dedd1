"""Copying: the new log's data first, then its head, so that it is there whole or not at all.

Only merges are copied on the storage. Such a request overwrites, and a double of it may come at any time; so it has to
carry the same bytes whenever that is. A merge's key says what it holds. A single's does not: once that was collected, a
late append may lie there, which the double would then put into a log that has long been acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from statestore.errors import Exists, NotFound, Unavailable
from statestore.store import Tail
from statestore_fsspec import _layout as layout
from statestore_fsspec._finding import Finder, Found
from statestore_fsspec._layout import Segment
from statestore_fsspec._reading import Gone, fetch_fresh
from statestore_fsspec._steps import NOW, TOKEN, Copy, Outcome, Pause, Put, Steps
from statestore_fsspec._writing import Writer

__all__ = ["copy"]

_TRIES: Final = 4
_PART: Final = 4 << 20  # bytes up to which segments are joined into one
_PAIRS: Final = 64  # objects that the storage is asked to copy at once


def copy(
    writer: Writer,
    source: str,
    target: str,
    stop: int | None,
    known: Found | None = None,
    kept: tuple[int, bytes] = (0, b""),
) -> Steps[Tail]:
    """Make `target` a new log equal to ``source[:stop]``; see `Store.copy`.

    Args:
        writer: who creates the target's head.
        source: the log that is read.
        target: the log that is made.
        stop: how many bytes are copied; all where it is None.
        known: what the source was found to be, to copy just that.
        kept: an offset in that run, and bytes of it from there on that were read and checked: they are not read again.
    """
    finder, meant = writer.finder, known.run if known is not None else None
    for attempt in range(_TRIES):
        if attempt:
            yield Pause(attempt)
        found = known or (yield from finder.find(source))
        known = None
        if found.walk is None:
            raise NotFound("no such log", log=source)
        if meant not in (None, found.run):
            raise NotFound("the log was deleted before it was copied", log=source)
        try:
            generation, there = yield from writer.vacancy(target)
            if there is not None:
                raise Exists("there is such a log already: copy to another name", log=target)
            end = found.walk.size if stop is None else min(stop, found.walk.size)
            run = layout.new_run(generation, (yield TOKEN))
            filled = yield from _fill(finder, found, target, run, end, kept)
        except Gone:
            filled = False
        if filled and (yield from writer.publish(target, run)):
            return Tail(end, run)
    raise Unavailable("the storage does not say that it has stored the copy: try again", retry=True, log=target)


def _fill(finder: Finder, found: Found, target: str, run: str, end: int, kept: tuple[int, bytes]) -> Steps[bool]:
    """Put the first bytes of what was found into a run that nobody knows of; return whether they are all there."""
    assert found.walk is not None
    pairs: list[tuple[str, str]] = []
    for group in _groups(found.walk.covering(0, end), end):
        first, last = group[0], group[-1]
        if first is last and last.merged and last.stop <= end:
            pairs.append((first.key, layout.merge_key(target, run, first.start, first.stop)))
            continue
        stop = min(last.stop, end)
        begin, held = kept
        if begin <= first.start and stop <= begin + len(held):
            if not finder.is_fresh(found.sent, (yield NOW)):
                raise Gone
            data = held[first.start - begin : stop - begin]
        else:
            data = yield from fetch_fresh(finder, found.sent, group, first.start, stop)
        outcome = yield Put(layout.single_key(target, run, first.start), layout.segment_object(data))
        if outcome is not Outcome.CREATED:
            return False
    for place in range(0, len(pairs), _PAIRS):
        if not (yield Copy(tuple(pairs[place : place + _PAIRS]))):
            return False
    return True


def _groups(segments: Sequence[Segment], end: int) -> Iterator[list[Segment]]:
    """Yield neighbours that make one new segment: small ones are joined, a large one stays as it is."""
    group: list[Segment] = []
    for segment in segments:
        if group and min(segment.stop, end) - group[0].start > _PART:
            yield group
            group = []
        group.append(segment)
    if group:
        yield group
