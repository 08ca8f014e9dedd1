"""Upkeep: merging small segments into larger ones, and collecting what no walk uses any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from statestore.errors import NotFound
from statestore_fsspec import _layout as layout
from statestore_fsspec._finding import Finder, gather, next_generation
from statestore_fsspec._layout import Entry, Segment
from statestore_fsspec._reading import Gone, fetch_fresh
from statestore_fsspec._steps import Pause, Put, Remove, Steps, every
from statestore_fsspec._walk import came_late, walk
from statestore_fsspec._writing import Writer

__all__ = ["Spare", "collect", "merge", "plan_merges", "spare_objects", "survey"]

_TRIES: Final = 4


def plan_merges(segments: Sequence[Segment], size: int, window: int) -> Iterator[tuple[Segment, ...]]:
    """Yield the groups of neighbours that make one merge each.

    A group is all appends that begin in one window of the log, up to the next that is too large to be merged. That
    depends on where appends began and on nothing else: whoever plans, with whatever merges are there already, plans
    the same merges or none, so that any two nest or are disjoint. A group that may still grow is left alone.

    Args:
        segments: what a walk uses.
        size: the log's size in bytes.
        window: the length of the windows, in bytes.
    """
    group: list[Segment] = []
    for segment in segments:
        large = not segment.merged and segment.stop - segment.start > layout.LARGEST
        if group and (large or segment.start // window != group[0].start // window):
            yield from _merge_of(group)
            group = []
        if not large:
            group.append(segment)
    if group and size // window != group[0].start // window:
        yield from _merge_of(group)


def _merge_of(group: list[Segment]) -> Iterator[tuple[Segment, ...]]:
    if len(group) > 1:
        yield tuple(group)


def merge(finder: Finder, log: str, windows: Sequence[int]) -> Steps[int]:
    """Merge a log's segments; return how many segments were merged away from the walk.

    Large windows come first, so that each byte is read and written once. What is left to the smaller ones is the end of
    the log, and windows that hold more objects than can be read while a listing is believed.
    """
    merged = 0
    for window in sorted(windows, reverse=True):
        for attempt in range(_TRIES):
            if attempt:
                yield Pause(attempt)
            found = yield from finder.find(log)
            if found.run is None or found.walk is None:
                raise NotFound("no such log", log=log)
            try:
                for group in plan_merges(found.walk.segments, found.walk.size, window):
                    start, stop = group[0].start, group[-1].stop
                    data = yield from fetch_fresh(finder, found.sent, group, start, stop)
                    # Whatever the answer: the next walk shows what is there, and another's merge is the same.
                    yield Put(layout.merge_key(log, found.run, start, stop), layout.segment_object(data, merged=True))
                    merged += len(group) - 1
            except Gone:
                continue
            break
    return merged


class Spare(NamedTuple):
    """An object that no walk uses, and since when that is so.

    Attributes:
        key: the object's key.
        size: its size in bytes.
        since: when it was superseded, in seconds by the storage's own clock.
        why: a few words for whoever reads the dry run.
        rank: the objects of a lower rank are removed first.
    """

    key: str
    size: int
    since: float
    why: str
    rank: int


_UNFINISHED: Final = "of a deletion that was begun and left, which is completed"
_RANKS: Final = (0, 1, 2)  # what goes first, the rest, and seals


def spare_objects(heads: Sequence[Entry], live: str | None, runs: Mapping[str, Sequence[Segment]]) -> list[Spare]:
    """Return the objects of one log that no walk uses.

    A run whose generation has no head is left alone, however old: its creator may only be slow.

    Args:
        heads: the log's heads, in order, listed before `runs` were.
        live: the run that the last head names, where that is an odd one.
        runs: all segments that are there, by run.
    """
    spare: list[Spare] = []
    for run in sorted(runs):
        generation = layout.run_generation(run)
        if generation > len(heads):
            continue
        segments = runs[run]
        if run == live:
            spare += _merged_away(segments)
        elif generation == len(heads):
            why = "left by a creation that another one forestalled"
            spare += (_spare(segment, heads[-1].modified, why, segment.start == 0) for segment in segments)
        else:
            why = "of a log that was deleted"
            spare += (_spare(segment, heads[generation].modified, why, segment.start == 0) for segment in segments)
    return spare


def _merged_away(segments: Sequence[Segment]) -> Iterator[Spare]:
    """Yield the segments of a living run that lie inside another one, which the walk uses; appends go first.

    So a merge that is older than what came late inside it stays for as long as that does: see `came_late`.
    """
    walked, late = walk(segments), came_late(segments)
    used = {segment.key for segment in walked.segments}
    for segment in segments:
        if segment.key in used or segment.start >= walked.size:
            continue
        for cover in walked.covering(segment.start, segment.start + 1):
            if segment.stop <= cover.stop or segment.key in late:
                yield _spare(segment, cover.modified, "inside a merge", not segment.merged)


def _spare(segment: Segment, since: float, why: str, first: bool = False) -> Spare:
    rank = 2 if segment.seal else int(not first)
    return Spare(segment.key, layout.PREAMBLE + segment.stop - segment.start, since, why, rank)


def survey(finder: Finder, log: str) -> Steps[tuple[list[Entry], str | None, dict[str, list[Segment]]]]:
    """Return all heads and all segments of a log, and the run that the last head names."""
    heads = yield from every(layout.heads_prefix(log))
    for generation, entry in enumerate(heads):
        next_generation(entry, log, generation)
    runs: dict[str, list[Segment]] = {}
    gather((yield from every(f"data/{log}!")), runs)
    live = (yield from finder.run(log, len(heads))) if len(heads) % 2 else None
    return heads, live, runs


def collect(writer: Writer, log: str, now: float, *, dry_run: bool) -> Steps[list[Spare]]:
    """Remove what has been superseded for longer than the grace period, and complete a deletion that was left.

    Args:
        writer: who completes the deletion.
        log: the log's name; what is left of one that was deleted counts too.
        now: the time by the storage's own clock, taken before this call.
        dry_run: only say what would go.

    Returns:
        what was, or would be, removed; and the seal of a deletion that was, or would be, completed.
    """
    heads, live, runs = yield from survey(writer.finder, log)
    gone = [item for item in spare_objects(heads, live, runs) if now - item.since > writer.finder.grace]
    seals = [_spare(segment, segment.modified, _UNFINISHED) for segment in runs.get(live or "", ()) if segment.seal]
    if dry_run:
        return gone + seals
    if seals and not (yield from writer.complete(log)):
        seals = []  # it lay inside a merge, or its deleter was quicker
    # Several removals, one after another: whoever still reads a deleted log finds that it begins with a hole, whoever
    # still writes to it finds the seal, and whoever checks a log finds no late append without the merge before it.
    for rank in _RANKS:
        keys = tuple(item.key for item in gone if item.rank == rank)
        if keys:
            yield Remove(keys)
    return gone + seals
