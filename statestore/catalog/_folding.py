"""One log's fold, brought up to where the log ends: read on from what was folded before, where that can be believed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Generic, Protocol, TypeVar

from statestore.errors import Conflict, Corrupt, NotFound
from statestore.records import Record, Scan
from statestore.store import Snapshot, Store, Tail

__all__ = ["Fold", "Folded", "Result", "fold_log"]

S = TypeVar("S")

_TRIES: Final = 5  # how often a log is read anew that is deleted, made or cut while it is read


class Fold(Protocol[S]):
    """What a catalog makes of a log: a state, from record to record. Several threads may ask at once."""

    @property
    def name(self) -> str:
        """What tells this fold from others of the same store."""

    @property
    def version(self) -> int:
        """Another number wherever the same records would give another state, or its bytes another meaning."""

    def initial(self) -> S:
        """Return the state of a log without records, a new one each time."""

    def step(self, state: S, record: Record) -> S:
        """Return the state behind a record. It depends on nothing but the two, and the state given stays as it is.

        Raises:
            Corrupt: the record makes no sense. It is the log's error until the log is made anew.
        """

    def dump(self, state: S) -> bytes:
        """Return bytes for a state. What holds a log's state in memory also holds these."""

    def load(self, data: bytes) -> S:
        """Return the state that `dump` has given these bytes for."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What is kept of a log.

    Attributes:
        tail: where the log ended when it was read.
        end: the offset behind the last record that was folded: before the tail's where the rest is torn or damaged.
        number: the number that the next record has.
        last: the offset of the last record that was folded.
        mark: a digest of that record.
        state: the state behind it, as bytes.
    """

    tail: Tail
    end: int
    number: int
    last: int
    mark: bytes
    state: bytes

    def is_all(self, tail: Tail) -> bool:
        """Say whether a tail alone proves that the state is that of the whole log.

        It does not behind a torn end, which may be cut and replaced by as many bytes, nor without a run, where the log
        may be another one.
        """
        return self.tail == tail and self.end == tail.size and tail.run != ""

    def may_begin(self, tail: Tail) -> bool:
        """Say whether a log that has this tail may be the same one, and have grown."""
        return self.tail.run == tail.run and self.end <= tail.size


@dataclass(frozen=True, slots=True)
class Result(Generic[S]):
    """What came of folding a log.

    Attributes:
        state: the state behind the last record that could be folded.
        folded: what to keep of it.
        error: why this is not all of the log; None where it is.
    """

    state: S
    folded: Folded
    error: Corrupt | None = None


def fold_log(store: Store, fold: Fold[S], log: str, kept: Folded | None, check_going: Callable[[], None]) -> Result[S]:
    """Fold a log as it is now, from what is kept on where that is a beginning of it.

    Args:
        store: the store that holds the log.
        fold: what to make of it.
        log: its name.
        kept: what an earlier fold has left.
        check_going: called before each read; what it raises ends the work.

    Raises:
        NotFound: there is no such log.
        StateStoreError: it cannot be read.
    """
    for attempt in range(1, _TRIES + 1):
        snapshot = store.snapshot(log)
        begin = kept if kept and kept.may_begin(snapshot.tail) else None
        try:
            result = _fold_on(snapshot, fold, begin, check_going)
        except NotFound:
            # Another log has the name by now, or none: the next snapshot tells.
            result = None
        if result is None:
            kept = None
        elif result.error is None or _is_settled(snapshot) or attempt == _TRIES or store.tail(log) == snapshot.tail:
            return result
        # Else a torn end may have been cut, and others put in its place, while it was read.
    raise Conflict("the log is deleted and made again all the time: try again", log=log, attempts=_TRIES)


def _fold_on(
    snapshot: Snapshot, fold: Fold[S], kept: Folded | None, check_going: Callable[[], None]
) -> Result[S] | None:
    """Fold what a snapshot holds behind what is kept; None where that is no beginning of it, or no state."""

    def fetch(start: int, stop: int) -> bytes:
        check_going()
        return snapshot.read(start, stop)

    if kept is None:
        state = fold.initial()
    else:
        try:
            state = fold.load(kept.state)
        except Exception:
            # Whatever a fold says to bytes that another version of it has left, the records say it right.
            return None
        if kept.is_all(snapshot.tail):
            return Result(state, kept)
    end, number = (kept.end, kept.number) if kept else (0, 1)
    last: Record | None = None
    if kept and number > 1 and not _is_settled(snapshot):
        # The record in front of what is new is read once more: where it is the same, so is all before it.
        records = Scan(fetch, start=kept.last, number=number - 1, log=snapshot.log)
        rest = iter(records)
        try:
            last = next(rest, None)
        except Corrupt:
            return None
        if last is None or _mark(last) != kept.mark:
            return None
    else:
        records = Scan(fetch, start=end, number=number, log=snapshot.log)
        rest = iter(records)
    error = None
    try:
        for record in rest:
            state = fold.step(state, record)
            end, number, last = records.end, records.number, record
    except Corrupt as damage:
        error = damage
    if last is not None:
        place, mark = last.offset, _mark(last)
    else:
        place, mark = (kept.last, kept.mark) if kept else (0, b"")
    return Result(state, Folded(snapshot.tail, end, number, place, mark, fold.dump(state)), error)


def _is_settled(snapshot: Snapshot) -> bool:
    """Say whether a log with the same run surely still holds all that was read of it."""
    return snapshot.store.capabilities.atomic_append and snapshot.tail.run != ""


def _mark(record: Record) -> bytes:
    return blake2b(record.raw, digest_size=16).digest()
