"""Checking: every object of a log is read, and compared with what the others say."""

from __future__ import annotations

from collections.abc import Sequence

from statestore.errors import Corrupt
from statestore.store import Problem
from statestore_fsspec import _layout as layout
from statestore_fsspec._finding import Finder
from statestore_fsspec._layout import Dead, Entry, Segment
from statestore_fsspec._reading import Gone, fetch_segments
from statestore_fsspec._steps import Fetch, Span, Steps
from statestore_fsspec._upkeep import survey
from statestore_fsspec._walk import walk

__all__ = ["check", "foreign"]


def check(finder: Finder, log: str) -> Steps[list[Problem]]:
    """Return all that is wrong with a log's objects: heads, and the segments of the run that lives."""
    heads, live, runs = yield from survey(finder, log)
    problems = yield from _check_heads(log, heads)
    if live is None:
        return problems
    segments = runs.get(live, [])
    walked = walk(segments)
    if not walked.segments or walked.beyond is not None:
        key = walked.beyond.key if walked.beyond else layout.run_prefix(log, live)
        problems.append(Problem(log, key, f"an object that held byte {walked.size} of the log is missing"))
    for segment in segments:
        problem = yield from _check_segment(log, segment, walked.covering(segment.start, segment.stop))
        problems += [problem] if problem else []
    return problems + _crossing(log, segments)


def foreign(entry: Entry) -> Problem:
    """Return the problem that an object is none of the store's."""
    return Problem("", entry.key, "an object that no store made: move it elsewhere")


def _check_heads(log: str, heads: Sequence[Entry]) -> Steps[list[Problem]]:
    """Return what is wrong with what the heads say: each even one ends the run that the one before it names."""
    problems: list[Problem] = []
    said = yield Fetch(tuple(Span(entry.key) for entry in heads))
    run = ""
    for number, (entry, raw) in enumerate(zip(heads, said, strict=True), start=1):
        try:
            if number % 2:
                run = layout.read_live(raw or b"", entry.key)
                right = layout.run_generation(run) == number
            else:
                dead: Dead = layout.read_dead(raw or b"", entry.key)
                right = dead.run == run
        except Corrupt as error:
            problems.append(Problem(log, entry.key, error.message))
        else:
            if not right:
                problems.append(Problem(log, entry.key, "a head names another run than it can mean"))
    return problems


def _check_segment(log: str, segment: Segment, walked: Sequence[Segment]) -> Steps[Problem | None]:
    """Return what is wrong with a segment: in itself, or beside those that a walk uses in its place."""
    (raw,) = yield Fetch((Span(segment.key),))
    if raw is None:
        return None  # collected meanwhile
    try:
        if segment.seal:
            layout.open_seal(raw, segment)
            return None
        data = layout.open_segment(raw, segment)
        if segment in walked or not walked or walked[-1].stop < segment.stop:
            return None
        if not segment.merged and segment.modified > walked[0].modified:
            return None  # a late request has put it where a collector had been: nobody will read it
        same = yield from fetch_segments(walked, segment.start, segment.stop)
    except Gone:
        return None
    except Corrupt as error:
        return Problem(log, error.facts.get("object", segment.key), error.message)
    return None if same == data else Problem(log, segment.key, f"disagrees with {walked[0].key}")


def _crossing(log: str, segments: Sequence[Segment]) -> list[Problem]:
    """Return the merges that overlap, and of which neither lies inside the other: no client makes such."""
    merges = sorted(
        (segment for segment in segments if segment.merged), key=lambda segment: (segment.start, -segment.stop)
    )
    problems = []
    open_until: list[Segment] = []
    for merge in merges:
        while open_until and open_until[-1].stop <= merge.start:
            open_until.pop()
        if open_until and open_until[-1].stop < merge.stop:
            problems.append(Problem(log, merge.key, f"overlaps {open_until[-1].key}"))
        open_until.append(merge)
    return problems
