"""Reading: which parts of which objects hold a range of a log, and whether what came back can be believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from statestore.errors import Corrupt, NotFound, Unavailable
from statestore_fsspec import _layout as layout
from statestore_fsspec._finding import Finder, Found
from statestore_fsspec._layout import PREAMBLE, Segment
from statestore_fsspec._steps import NOW, Fetch, Pause, Span, Steps

__all__ = ["Gone", "fetch_fresh", "fetch_segments", "read", "reread"]

_WHOLE: Final = 1 << 18  # segments of up to so many bytes are read whole, and so checked, whatever part is wanted
_TRIES: Final = 4


class Gone(Exception):
    """An object of a walk is no longer there: it was collected, so the walk is old."""


def fetch_segments(segments: Sequence[Segment], start: int, stop: int) -> Steps[bytes]:
    """Return the bytes of ``[start, stop)`` from the segments that cover it.

    Segments that are wanted whole, and small ones, are read whole and their checksum is compared.

    Raises:
        Gone: a segment is no longer there.
        Corrupt: a segment is damaged.
    """
    spans, whole = [], []
    for segment in segments:
        first, last = max(start, segment.start), min(stop, segment.stop)
        length = segment.stop - segment.start
        whole.append(last - first == length or length <= _WHOLE)
        skip = PREAMBLE - segment.start
        spans.append(Span(segment.key) if whole[-1] else Span(segment.key, first + skip, last + skip))
    if not spans:
        return b""
    pieces = []
    for segment, complete, raw in zip(segments, whole, (yield Fetch(tuple(spans))), strict=True):
        if raw is None:
            raise Gone
        first, last = max(start, segment.start), min(stop, segment.stop)
        if complete:
            raw = layout.open_segment(raw, segment)[first - segment.start : last - segment.start]
        if len(raw) != last - first:
            raise Corrupt(
                "a segment is not as long as the listing said: restore it from a copy of the bucket",
                object=segment.key,
                offset=segment.start,
            )
        pieces.append(raw)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def fetch_fresh(finder: Finder, sent: float, segments: Sequence[Segment], start: int, stop: int) -> Steps[bytes]:
    """Return the bytes of ``[start, stop)`` from segments that were listed at `sent`, if that can still be believed.

    Raises:
        Gone: a segment is no longer there, or may have been collected and replaced by a late request.
        Corrupt: a segment is damaged.
    """
    failure: Corrupt | None = None
    data = b""
    try:
        data = yield from fetch_segments(segments, start, stop)
    except Corrupt as error:
        failure = error
    if not finder.is_fresh(sent, (yield NOW)):
        raise Gone
    if failure is not None:
        raise failure
    return data


def read(finder: Finder, log: str, start: int, stop: int | None) -> Steps[bytes]:
    """Return the bytes of ``[start, stop)`` of what the log is now; see `Store.read`."""
    for attempt in range(_TRIES):
        if attempt:
            yield Pause(attempt)
        found = yield from finder.find(log)
        if found.walk is None:
            raise NotFound("no such log", log=log)
        end = found.walk.size if stop is None else min(stop, found.walk.size)
        data = yield from _try(finder, found, start, end)
        if data is not None:
            return data
    raise _changing(log)


def reread(finder: Finder, log: str, found: Found, start: int, stop: int) -> Steps[tuple[Found, bytes]]:
    """Return the bytes of ``[start, stop)`` of a log that was found before, and what it is by now known to be.

    The listing is used for as long as it can be believed, and then renewed.

    Raises:
        NotFound: the log was deleted meanwhile, and what it held may be gone.
    """
    run = found.run
    for attempt in range(_TRIES):
        if attempt:
            yield Pause(attempt)
            found = yield from finder.find(log)
            if found.run != run:
                raise NotFound("the log was deleted while it was read", log=log)
        data = yield from _try(finder, found, start, stop)
        if data is not None:
            return found, data
    raise _changing(log)


def _try(finder: Finder, found: Found, start: int, stop: int) -> Steps[bytes | None]:
    """Return the bytes, or None where the listing has become too old meanwhile."""
    assert found.walk is not None
    try:
        return (yield from fetch_fresh(finder, found.sent, found.walk.covering(start, stop), start, stop))
    except Gone:
        return None


def _changing(log: str) -> Unavailable:
    return Unavailable("the log's objects are collected faster than it can be read: try again", retry=True, log=log)
