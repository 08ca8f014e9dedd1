"""Following a live log: its records as they come, one after another, whoever appends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import Final

from statestore import names
from statestore.errors import Conflict, Corrupt, NotFound
from statestore.records.record import Record
from statestore.records.scan import Scan
from statestore.store import NEW, Snapshot, Store, Tail

__all__ = ["Following", "Pace", "follow"]

_FIRST_PAUSE: Final = 0.2  # both in seconds, between two looks at a log at which nothing happens
_LONGEST_PAUSE: Final = 5.0
_SLICE: Final = 0.25  # seconds after which it is asked again whether to stop


class Following:
    """A place in a live log, which moves on with each record that is given.

    Args:
        store: the store that holds the log.
        log: the log's name.
        first: the number of the first record to give; those before it are read over.
        at: the tail just behind the record before `first`, for who knows it: then nothing before is read.

    Attributes:
        number: the number of the next record.
        tail: where it begins, or will begin. With `number` a later `Following` goes on here.
        seen: the log's tail at the last look, at which `Store.wait` waits; NEW before the first one.

    Raises:
        InvalidName: `log` cannot be a log's name.
        ValueError: `first` is below 1, or is 1 and `at` is not the beginning.
    """

    def __init__(self, store: Store, log: str, *, first: int = 1, at: Tail | None = None) -> None:
        if first < 1 or (at is not None and (first == 1) != (at.size == 0)):
            raise ValueError(f"records are counted from 1, which begins at byte 0: first={first} at={at}")
        self.store = store
        self.log = names.check(log)
        self.tail = at or NEW
        self.number = 1 if at is None else first
        self.seen = NEW
        self._first = first
        self._doubted: Tail | None = None

    def news(self) -> Iterator[Record]:
        """Yield the records that are there now and were not given; none where nothing has come.

        What stands torn at the end is left for a later look: it may be an append that goes on. One look asks the
        storage for the log's tail, and for more only where that has moved.

        Raises:
            NotFound: there is no such log, or it was deleted.
            Conflict: the log was deleted and made again, or was cut in front of what was given.
            Corrupt: the next record is damaged. All records before it have been given.
        """
        snapshot = self._look()
        if snapshot.tail == self.seen and self._doubted is None:
            return
        records = Scan(snapshot.read, start=self.tail.size, number=self.number, first=self._first, log=self.log)
        try:
            for record in records:
                self._move(records, snapshot)
                yield record
        except Corrupt as damage:
            # Where its length reaches beyond the log, it may be one that is being written, with records in its body.
            if "next" not in damage.facts or snapshot.tail == self._doubted:
                raise
            self._doubted = snapshot.tail
        else:
            self._doubted = None
        self._move(records, snapshot)
        self.seen = snapshot.tail

    def _look(self) -> Snapshot:
        try:
            snapshot = self.store.snapshot(self.log)
        except NotFound as error:
            if self.seen == NEW and self.tail == NEW:
                raise
            raise NotFound("the log was deleted while it was followed", log=self.log) from error
        found, known = snapshot.tail, self.seen if self.seen != NEW else self.tail
        if known != NEW and (found.run != known.run or found.size < self.tail.size):
            raise Conflict(
                "the log was deleted and made again, or cut: follow it anew", log=self.log, expected=known, found=found
            )
        return snapshot

    def _move(self, records: Scan, snapshot: Snapshot) -> None:
        self.tail, self.number = Tail(records.end, snapshot.tail.run) if records.end else NEW, records.number


class Pace:
    """How long to rest between two looks at a log: longer and longer while nothing happens there.

    Args:
        timeout: rest no more after so many seconds in which no record came; None never ends.
    """

    def __init__(self, timeout: float | None = None) -> None:
        self._timeout = timeout
        self._pause = _FIRST_PAUSE
        self._since = monotonic()
        self._told = False

    def given(self) -> None:
        """Take note that a record came."""
        self._since = monotonic()

    def rest(self, *, moved: bool) -> float:
        """Return for how many seconds to rest after a look, at which the log had `moved` or not; 0 ends it."""
        pause = _FIRST_PAUSE if moved else self._pause
        self._pause = min(2 * pause, _LONGEST_PAUSE)
        self._told = self._told and not moved
        left = pause if self._timeout is None else self._since + self._timeout - monotonic()
        return max(min(pause, left), 0.0)

    @property
    def ask(self) -> bool:
        """Whether to have the store wait: not where it was wrong the last time to say that something had happened."""
        return not self._told

    def rested(self, *, told: bool) -> None:
        """Take note of whether a rest ended since the store was told of a change."""
        self._told = told


def follow(
    place: Following, *, timeout: float | None = None, stop: Callable[[], bool] | None = None
) -> Iterator[Record]:
    """Yield the records of a live log as they come; see `RecordLog.follow`."""
    pace = Pace(timeout)
    while not (stop and stop()):
        seen = place.seen
        for record in place.news():
            yield record
            if stop and stop():
                return
            pace.given()
        if not (rest := pace.rest(moved=place.seen != seen)):
            return
        pace.rested(told=_rest(place, rest, stop, ask=pace.ask))


def _rest(place: Following, seconds: float, stop: Callable[[], bool] | None, *, ask: bool) -> bool:
    """Wait, and say whether the store was told of a change before so many seconds were over."""
    until = monotonic() + seconds
    while (left := until - monotonic()) > 0 and not (stop and stop()):
        left = min(left, _SLICE) if stop else left
        if not ask:
            sleep(left)
        elif place.store.wait(place.log, place.seen, left):
            return True
    return False
