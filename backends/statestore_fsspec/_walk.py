"""The walk: what a run holds, read off one listing of it.

At each offset, from the first byte on, the widest merge that begins there is used, else the single append. Where
nothing begins, or a seal, the run ends. Never is the end told by the largest key, and never does a single come
before a merge: what a collector has left of merged appends, or a late request has put back, is then not seen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from statestore_fsspec._layout import Segment

__all__ = ["Walk", "came_late", "walk"]


@dataclass(frozen=True, slots=True)
class Walk:
    """What a run holds.

    Attributes:
        segments: the objects that hold it, each beginning where the one before ends.
        size: the offset behind the last byte.
        seal: the seal at the end, where a deletion has begun.
        beyond: an object that begins behind the end, which nobody can have put there; None in a whole run.
    """

    segments: tuple[Segment, ...]
    size: int
    seal: Segment | None
    beyond: Segment | None

    def covering(self, start: int, stop: int) -> tuple[Segment, ...]:
        """Return the segments that hold bytes of ``[start, stop)``."""
        if start >= min(stop, self.size):
            return ()
        first = bisect_right(self.segments, start, key=_start) - 1
        return self.segments[first : bisect_right(self.segments, stop - 1, key=_start)]

    def boundary(self, before: int) -> int:
        """Return the greatest offset, at most `before`, where a segment begins."""
        place = bisect_right(self.segments, before, key=_start)
        return self.segments[place - 1].start if place else 0


def walk(segments: Iterable[Segment]) -> Walk:
    """Return what the run holds whose objects these are, in any order.

    Where the listing was not read to its end, that is so only if the walk ends where all has been listed already.
    """
    widest: dict[int, Segment] = {}
    singles: dict[int, Segment] = {}
    for segment in segments:
        if not segment.merged:
            singles[segment.start] = segment
        elif segment.start not in widest or widest[segment.start].stop < segment.stop:
            widest[segment.start] = segment
    used = tuple(_steps(widest, singles))
    end = used[-1].stop if used else 0
    last = max((*widest.values(), *singles.values()), key=_start, default=None)
    return Walk(
        segments=used[:-1] if used and used[-1].seal else used,
        size=end,
        seal=used[-1] if used and used[-1].seal else None,
        beyond=last if last is not None and last.start > end else None,
    )


def came_late(segments: Iterable[Segment]) -> set[str]:
    """Return the keys of the singles that are younger than a merge of what lies where they begin.

    A late request has put them where a collector had been, and nobody reads them. What they hold need not be what
    the merge holds. Any other single inside a merge was there before it and is a part of it.
    """
    late: set[str] = set()
    around: list[tuple[int, float]] = []  # the merges around a place: where they end, and since when there was one
    for segment in sorted(segments, key=lambda one: (one.start, not one.merged, -one.stop)):
        while around and around[-1][0] <= segment.start:
            around.pop()
        since = around[-1][1] if around else segment.modified
        if segment.merged:
            around.append((segment.stop, min(since, segment.modified)))
        elif since < segment.modified:
            late.add(segment.key)
    return late


def _steps(widest: dict[int, Segment], singles: dict[int, Segment]) -> Iterator[Segment]:
    offset = 0
    while (segment := widest.get(offset) or singles.get(offset)) is not None:
        yield segment
        if segment.seal:
            return
        offset = segment.stop


def _start(segment: Segment) -> int:
    return segment.start
