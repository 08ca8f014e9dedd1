"""Finding out what a log is now: fresh heads, then a fresh walk of the run that they name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from statestore.errors import Corrupt, Unavailable
from statestore.store import Tail
from statestore_fsspec import _layout as layout
from statestore_fsspec._layout import Dead, Entry, Segment
from statestore_fsspec._steps import NOW, Fetch, List, Page, Pause, Span, Steps, every
from statestore_fsspec._walk import Walk, walk

__all__ = ["Finder", "Found", "gather", "next_generation"]

_REMEMBERED: Final = 100_000  # logs whose runs are remembered
_LOOKS: Final = 4  # listings that show a hole, or come too late, before that is the answer


@dataclass(frozen=True, slots=True)
class Found:
    """What fresh listings say about a log.

    Attributes:
        generation: the highest generation of its heads; 0 where it never was.
        run: the run that the head names, and `walk` what it holds; None where the log is not there.
        sent: when the first request for it was sent, in seconds.
    """

    generation: int
    run: str | None
    walk: Walk | None
    sent: float

    @property
    def tail(self) -> Tail:
        """The log's tail."""
        assert self.run is not None
        assert self.walk is not None
        return Tail(self.walk.size, self.run)


class Finder:
    """Finds logs. It remembers which run each generation has, since a head never changes.

    Args:
        grace: seconds for which collectors keep what is superseded.
    """

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self._runs: dict[str, tuple[int, str]] = {}

    def is_fresh(self, sent: float, now: float) -> bool:
        """Say whether what was listed then can be believed now: nothing on it can have been collected since."""
        return now - sent <= self.grace / 2

    def find(self, log: str) -> Steps[Found]:
        """Return what the log is now.

        Raises:
            Corrupt: objects of the log are missing, damaged or not its own.
            Unavailable: the storage is so slow that no listing can be believed.
        """
        failure: Corrupt | None = None
        for attempt in range(_LOOKS):
            if attempt:
                yield Pause(attempt)
            sent = yield NOW
            generation = yield from self.generation(log)
            if generation % 2 == 0:
                return Found(generation, None, None, sent)
            try:
                run, walked = yield from self._survey(log, generation)
            except _Gap as gap:
                # Between two pages, or between heads and data, objects may have been collected.
                failure = gap.failure
                continue
            if self.is_fresh(sent, (yield NOW)):
                return Found(generation, run, walked, sent)
            failure = None
        raise failure or Unavailable(
            "the storage takes longer to answer than half the grace period: give the root a longer one",
            retry=True,
            log=log,
            grace=self.grace,
        )

    def generation(self, log: str) -> Steps[int]:
        """Return the highest generation of the log's heads, which counts; 0 where there is none."""
        generation = 0
        for entry in (yield from every(layout.heads_prefix(log))):
            generation = next_generation(entry, log, generation)
        return generation

    def run(self, log: str, generation: int) -> Steps[str]:
        """Return the run that an odd head names, read from that head."""
        key = layout.head_key(log, generation)
        (raw,) = yield Fetch((Span(key),))
        if raw is None:
            raise Corrupt("a head is gone: heads are never removed", log=log, object=key)
        run = layout.read_live(raw, key)
        if layout.run_generation(run) != generation:
            raise Corrupt("a head names a run of another generation", log=log, object=key, run=run)
        self._remember(log, generation, run)
        return run

    def dead(self, log: str, generation: int) -> Steps[Dead | None]:
        """Return what an even head says; None where there is none yet."""
        key = layout.head_key(log, generation)
        (raw,) = yield Fetch((Span(key),))
        return None if raw is None else layout.read_dead(raw, key)

    def _remember(self, log: str, generation: int, run: str) -> None:
        if len(self._runs) >= _REMEMBERED:
            self._runs.clear()  # each is found again at the cost of at most one request
        self._runs[log] = (generation, run)

    def _survey(self, log: str, generation: int) -> Steps[tuple[str, Walk]]:
        """List the run of a generation and walk over it."""
        known = self._runs.get(log)
        run = known[1] if known is not None and known[0] == generation else None
        segments: dict[str, list[Segment]] = {}
        after, reach = "", layout.MAX_OFFSET + 1
        while True:
            prefix = layout.data_prefix(log, generation) if run is None else layout.run_prefix(log, run)
            page: Page = yield List(prefix, after if after > prefix else "")
            listed = len(segments.get(run, ())) if run is not None else 0
            gather(page.entries, segments)
            if page.entries:
                after = page.entries[-1].key
            if run is None:
                # Of one generation's runs only one has the head. Where just one is there, that is it: the head's
                # run was there before its head, and is collected only long after a later head.
                if not page.more and len(segments) == 1:
                    (run,) = segments
                    self._remember(log, generation, run)
                else:
                    run = yield from self.run(log, generation)
            new = segments.get(run, [])[listed:]
            floor = _floor(new, page.more)
            if floor > reach and not any(segment.merged for segment in new):
                continue  # what begins where the last walk ended is not listed yet: this one would end there too
            walked = walk(segments.get(run, ()))
            reach = walked.size
            if reach >= floor:
                if not walked.segments or walked.beyond is not None:
                    raise _Gap(_broken(log, run, walked))
                return run, walked


class _Gap(Exception):
    """A listing shows a run with a hole: it may have been listed while it was collected."""

    def __init__(self, failure: Corrupt) -> None:
        super().__init__()
        self.failure = failure


def next_generation(entry: Entry, log: str, generation: int) -> int:
    """Return the generation of a log's next head in a listing.

    Raises:
        Corrupt: it is none of that log's heads, has another size than heads have, or one before it is missing.
    """
    of, found = layout.parse_head(entry.key)
    if of != log or found != generation + 1:
        raise Corrupt(
            "a head is missing: heads are never removed",
            log=log,
            object=layout.head_key(log, generation + 1),
            found=entry.key,
        )
    layout.check_head_entry(entry, found)
    return found


def gather(entries: Iterable[Entry], segments: dict[str, list[Segment]]) -> None:
    """Add the segments of a page to the runs they belong to."""
    for entry in entries:
        _, run, segment = layout.parse_data(entry)
        segments.setdefault(run, []).append(segment)


def _floor(segments: Iterable[Segment], more: bool) -> int:
    """Return from which offset on all is listed by the end of a page: singles come last, the newest first."""
    if not more:
        return 0
    return min((segment.start for segment in segments if not segment.merged), default=layout.MAX_OFFSET + 1)


def _broken(log: str, run: str, walked: Walk) -> Corrupt:
    if walked.beyond is None:
        return Corrupt("all objects of a log are gone, though it was not deleted", log=log, run=run)
    return Corrupt(
        "an object of the log is missing: restore it from a copy of the bucket",
        log=log,
        run=run,
        offset=walked.size,
        found=walked.beyond.key,
    )
