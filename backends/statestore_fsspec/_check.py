"""Checking: every object of a log is read, and compared with what the others say.

What is wrong with heads is wrong for ever, since they never change. What is wrong with segments depends on a listing,
and meanwhile others merge, collect and delete, and late requests put objects back where a collector has been. So a
listing is used only while it can be believed, and a problem is told only when a second listing shows the very objects
that it is about: then what was read between the two was theirs. Otherwise the log is looked at anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from statestore.errors import Corrupt, Unavailable
from statestore.store import Problem
from statestore_fsspec import _layout as layout
from statestore_fsspec._finding import Finder
from statestore_fsspec._layout import Dead, Entry, Segment
from statestore_fsspec._reading import Gone, fetch_segments
from statestore_fsspec._steps import NOW, Fetch, Pause, Span, Steps
from statestore_fsspec._upkeep import survey
from statestore_fsspec._walk import Walk, came_late, walk

__all__ = ["check", "foreign"]

_LOOKS: Final = 4  # at a log that changes meanwhile, before that is the answer


class _Suspicion(NamedTuple):
    """A problem, if the objects that it is about are still the same ones."""

    problem: Problem
    about: tuple[Segment, ...]


def check(finder: Finder, log: str) -> Steps[list[Problem]]:
    """Return all that is wrong with a log's objects: heads, and the segments of the run that lives.

    Raises:
        Corrupt: a head is missing, or an object is none of the log's; nothing else was looked at.
        Unavailable: the storage is slow, or the log's objects come and go too fast, for an answer to be believed.
    """
    for attempt in range(_LOOKS):
        if attempt:
            yield Pause(attempt)
        sent = yield NOW
        heads, live, runs = yield from survey(finder, log)
        if not finder.is_fresh(sent, (yield NOW)):
            continue
        problems = yield from _check_heads(log, heads)
        if live is None:
            return problems
        suspicions = yield from _suspect(log, live, runs.get(live, []))
        if not suspicions or (yield from _confirm(finder, log, live, suspicions)):
            return problems + [suspicion.problem for suspicion in suspicions]
    raise Unavailable(
        "the log's objects change faster than they can be checked: try again",
        retry=True,
        log=log,
        grace=finder.grace,
    )


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


def _suspect(log: str, live: str, segments: Sequence[Segment]) -> Steps[list[_Suspicion]]:
    """Return what seems to be wrong with the segments of a run, as they were just listed."""
    suspicions: list[_Suspicion] = []
    walked = walk(segments)
    if not walked.segments or walked.beyond is not None:
        key = walked.beyond.key if walked.beyond else layout.run_prefix(log, live)
        missing = Problem(log, key, f"an object that held byte {walked.size} of the log is missing")
        suspicions.append(_Suspicion(missing, (walked.beyond,) if walked.beyond else ()))
    late = came_late(segments)
    for segment in segments:
        suspicions += yield from _check_segment(log, segment, walked, segment.key in late)
    return suspicions + _crossing(log, segments)


def _confirm(finder: Finder, log: str, live: str, suspicions: Sequence[_Suspicion]) -> Steps[bool]:
    """Say whether the log is the same run still, and all objects that suspicions are about are the same ones."""
    _, now, runs = yield from survey(finder, log)
    return now == live and {*runs.get(live, ())}.issuperset(one for found in suspicions for one in found.about)


def _check_segment(log: str, segment: Segment, walked: Walk, late: bool) -> Steps[list[_Suspicion]]:
    """Return what seems to be wrong with a segment: in itself, or beside those that the walk uses in its place."""
    (raw,) = yield Fetch((Span(segment.key),))
    around = walked.covering(segment.start, segment.start + 1)
    used = not around or segment in around or segment == walked.seal
    if raw is None:
        gone = Problem(log, segment.key, "an object is listed and cannot be read: restore it from a copy of the bucket")
        return [_Suspicion(gone, (segment,))] if used else []  # what no walk uses may be collected at any time
    cover = walked.covering(segment.start, segment.stop)
    try:
        if segment.seal:
            layout.open_seal(raw, segment)
            return []
        data = layout.open_segment(raw, segment)
        if used or late or (segment.merged and around[0].stop < segment.stop):
            return []  # nobody reads what came late, and merges that cross are told as such
        same = yield from fetch_segments(cover, segment.start, segment.stop)
    except Gone:
        return [_Suspicion(Problem(log, segment.key, f"cannot be compared with {around[0].key}"), (segment, *cover))]
    except Corrupt as error:
        about = (segment, *cover)
        return [_Suspicion(Problem(log, error.facts.get("object", segment.key), error.message), about)]
    if same == data:
        return []
    return [_Suspicion(Problem(log, segment.key, f"disagrees with {around[0].key}"), (segment, *cover))]


def _crossing(log: str, segments: Sequence[Segment]) -> list[_Suspicion]:
    """Return the merges that overlap, and of which neither lies inside the other: no client makes such."""
    merges = sorted(
        (segment for segment in segments if segment.merged), key=lambda segment: (segment.start, -segment.stop)
    )
    crossing = []
    open_until: list[Segment] = []
    for merge in merges:
        while open_until and open_until[-1].stop <= merge.start:
            open_until.pop()
        if open_until and open_until[-1].stop < merge.stop:
            problem = Problem(log, merge.key, f"overlaps {open_until[-1].key}")
            crossing.append(_Suspicion(problem, (merge, open_until[-1])))
        open_until.append(merge)
    return crossing
