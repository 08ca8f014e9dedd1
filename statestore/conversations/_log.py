"""One conversation's log: its state, kept up with what others write, and changes appended at its end.

A change is decided on the state that is known and appended only where the log still ends there; so of any number of
writers each decides on what the one before it has left. A writer that knows the state does not look whether it is the
newest: if it is not, the append is refused, and it reads what is new and decides again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from threading import RLock
from typing import Final

from statestore.conversations._changes import (
    MEDIA_TYPE,
    Change,
    Messages,
    Saved,
    Snapshot,
    decode_record,
    encode,
    kind_of,
    refusal,
)
from statestore.conversations._fold import State, Written, apply, begin
from statestore.errors import Conflict, Corrupt, NotFound, StateStoreError, Unavailable
from statestore.records import Record, RecordLog, Scan, draft, times
from statestore.records.index import Index
from statestore.records.scan import NEVER
from statestore.store import Snapshot as Bytes
from statestore.store import Store, Tail

__all__ = ["ConversationLog", "INTERVAL"]

INTERVAL: Final = 50
"""How many records there are at least from one snapshot to the next. ``docs/performance.md`` has the measurements."""

_SHARE: Final = 8  # and how many times as many bytes as the last snapshot has
_REACH: Final = 32 << 10  # bytes in which the last snapshot is looked for first
_HEADERS: Final = 1000  # bytes that two headers of ours have at most
_RACES: Final = 1000
_SNAPSHOT: Final = kind_of(Snapshot)
_MARK: Final = f'"kind":"{_SNAPSHOT}"'.encode()


class ConversationLog:
    """The log of one conversation and its state, as far as they were read.

    Use it with `lock` held.

    Args:
        store: the store that holds the log.
        name: the log's name.

    Attributes:
        lock: keeps threads apart.
        weighed: what the cache has last heard of its weight.
        state: what the records have come to up to the place where they were read last; None where nothing is known.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = name
        self.lock = RLock()
        self.weighed = 0
        self.state: State | None = None
        self._log = RecordLog(store, name)
        self._end = Tail(0, "")
        self._number = 1
        self._last = (0, b"")  # the last record's offset and header line, to know the log by

    @property
    def weight(self) -> int:
        """About how many bytes the state takes."""
        return 1000 + self.state.weight if self.state else 0

    def refresh(self, count: int | None = 0) -> State | None:
        """Return the state as it is now, reading what is new; None where there is no conversation.

        Args:
            count: how many of the last messages have to be in the state; None stands for all.

        Raises:
            Corrupt: a record is damaged.
        """
        try:
            snapshot = self.store.snapshot(self.name)
            if not self._is_same(snapshot):
                self._start(snapshot, whole=count is None)
            elif snapshot.tail.size > self._end.size:
                self._follow(snapshot)
            if not self._knows(count):
                self._look_back(snapshot, count)
        except NotFound:
            self.forget()
        except Unavailable:
            raise
        except BaseException:
            self.forget()
            raise
        return self.state

    def forget(self) -> None:
        """Know nothing any more; the next call reads anew."""
        self.state = None
        self._end, self._number = Tail(0, ""), 1

    def _is_same(self, snapshot: Bytes) -> bool:
        """Say whether what is known is the beginning of this log."""
        tail = snapshot.tail
        if self.state is None or tail.run != self._end.run or tail.size < self._end.size:
            return False
        can = self.store.capabilities
        if can.runs and (can.atomic_append or tail.size == self._end.size):
            return True
        # A log made anew under the same name tells by nothing but its records, whose ids are random. And where appends
        # can tear, a record that was read before it was acknowledged may have been taken back, and others be there.
        offset, line = self._last
        return snapshot.read(offset, offset + len(line)) == line

    def _knows(self, count: int | None) -> bool:
        """Say whether the last `count` messages are in the state, or all where that is None."""
        state = self.state
        return state is None or state.base == 0 or (count is not None and count <= len(state.messages))

    def _start(self, snapshot: Bytes, *, whole: bool) -> None:
        """Read the state anew, from the last snapshot, or from the first record where all messages are wanted."""
        self.forget()
        self._end = Tail(0, snapshot.tail.run)
        offset = 0 if whole else self._find_snapshot(snapshot)
        if offset:
            record = next(iter(Scan(snapshot.read, start=offset, before=2, log=self.name)))  # one record
            change = decode_record(record, self.name)
            if isinstance(change, Snapshot):
                self._number = change.n
            self._take(record, change)
        self._follow(snapshot)

    def _find_snapshot(self, snapshot: Bytes) -> int:
        """Return the offset of the last snapshot in the log; 0 where there is none."""
        boundaries = self.store.capabilities.boundaries
        if not boundaries and (sidecar := self.store.sidecar(self.name)) is not None:
            return self._find_by_index(snapshot, Index(sidecar, snapshot))
        reach = _REACH
        while True:
            start = 0
            if boundaries and reach < snapshot.tail.size:
                start = snapshot.boundary(snapshot.tail.size - reach)
            try:
                found = _last_snapshot(Scan(snapshot.read, start=start, bodies=False, log=self.name))
            except Corrupt:
                # An append need not have begun where a record does; and what is damaged is named by its number.
                if start == 0:
                    raise
                found = 0
            if found or start == 0:
                return found
            reach *= 4

    def _find_by_index(self, snapshot: Bytes, index: Index) -> int:
        """Look for the last snapshot from one position of the index to the next, the last ones first."""
        end, number = snapshot.tail.size, NEVER

        def fetch(start: int, stop: int) -> bytes:
            return snapshot.read(start, min(stop, end))

        while True:
            before = number
            start, number = index.nearest(before)
            found = _last_snapshot(Scan(fetch, start=start, number=number, before=before, bodies=False, log=self.name))
            if found or start == 0:
                return found
            end = start

    def _follow(self, snapshot: Bytes) -> None:
        """Let the state follow the records behind those that were read."""
        for record in Scan(snapshot.read, start=self._end.size, number=self._number, log=self.name):
            self._take(record, decode_record(record, self.name, self._number))

    def _take(self, record: Record, change: Change | None) -> None:
        size = record.end - record.offset
        try:
            at = Written(record.offset, self._number, size, record.header.time)
            self._apply(change, at, Tail(record.end, self._end.run))
        except ValueError as error:
            raise refusal(record, str(error), self.name, self._number) from error
        self._last = (record.offset, record.line)

    def _apply(self, change: Change | None, at: Written, end: Tail) -> None:
        if self.state is None:
            self.state = begin(change, at)
        else:
            apply(self.state, change, at)
        self._end, self._number = end, at.n + 1

    def _look_back(self, snapshot: Bytes, count: int | None) -> None:
        """Add earlier messages to the state: from where the last ones are, if these are enough, else all."""
        state = self.state
        assert state is not None
        if count is None or not state.recent or count > state.count - state.recent[0][2]:
            self._start(snapshot, whole=True)
            return
        offset, n, first = state.recent[0]
        missing = state.base - first
        earlier: list[bytes] = []
        for record in Scan(snapshot.read, start=offset, number=n, log=self.name):
            change = decode_record(record, self.name)
            if isinstance(change, Messages | Saved):
                earlier += map(bytes, islice(change.messages, missing - len(earlier)))
            if len(earlier) == missing:
                break
        state.messages[:0] = earlier
        state.base = first
        state.weight += sum(map(len, earlier))

    def copy(self, target: str) -> tuple[Tail, int]:
        """Make a new log of the records that were read; return its tail and its next record's number.

        Raises:
            NotFound: there is no such log any more.
            Exists: there is a log `target`, or somebody holds it to make it.
        """
        while True:
            snapshot = self.store.snapshot(self.name)
            if self._is_same(snapshot):
                return snapshot.copy(target, stop=self._end.size), self._number
            if self.refresh() is None:
                raise NotFound("no such log", log=self.name)

    def change(self, decide: Callable[[State | None], Change | None], *, count: int | None = 0) -> State | None:
        """Append the change that is decided on the newest state, and return the state that it leaves.

        Args:
            decide: returns the change for a state, or None for none; it is asked again where others were faster, and
                an error of its own counts only where it has seen the newest state.
            count: how many of the last messages it wants to see; None stands for all.

        Raises:
            Conflict: others append all the time.
            Held: somebody else holds the log.
            Unavailable: the storage failed; ``error.effect_unknown`` says whether the change may be there.
        """
        newest = self.state is None or not self._knows(count)
        state = self.refresh(count) if newest else self.state
        for _ in range(_RACES):
            try:
                change = decide(state)
            except (StateStoreError, ValueError):
                if newest:
                    raise
                change = None
            if change is not None:
                try:
                    self._append(change)
                except (Conflict, NotFound):
                    pass
                else:
                    return self.state
            elif newest:
                return state
            state, newest = self.refresh(count), True
        raise Conflict("others append all the time: hold the log, or try again", log=self.name, attempts=_RACES)

    def _append(self, change: Change) -> None:
        """Append a change where the state ends, and let the state follow."""
        state, log, n = self.state, self._log, self._number
        kind, body, time = kind_of(type(change)), encode(change), times.now()
        if state is None:
            record = log.append(kind, body, expect=1, time=time, type=MEDIA_TYPE)
            self._last = (0, record.line)
            return self._appended(change, 0, 1, time)
        log.resume(self._end, n)
        due = state.records >= INTERVAL and state.bytes >= _SHARE * state.snapshot
        snapshot = encode(state.snapshot_at(n)) if due else b""
        if not due or not self._fits(len(snapshot) + len(body)):
            log.append(kind, body, expect=n, time=time, type=MEDIA_TYPE)
            return self._appended(change, self._end.size, n, time)
        # In the same write in front of the change: should the write be torn, a snapshot alone does no harm.
        drafts = [
            draft(_SNAPSHOT, snapshot, time=time, type=MEDIA_TYPE),
            draft(kind, body, time=time, type=MEDIA_TYPE),
        ]
        log.append_many(drafts, expect=n)
        sizes = [len(drafts[at].rest) + len(f'{{"n":{n + at}') for at in (0, 1)]
        state.records, state.bytes, state.snapshot = 0, 0, sizes[0]
        return self._appended(change, self._end.size + sizes[0], n + 1, time)

    def _fits(self, size: int) -> bool:
        """Say whether two records with bodies of this size together can be one append."""
        limit = self.store.capabilities.max_append
        return limit is None or size + _HEADERS <= limit

    def _appended(self, change: Change, offset: int, n: int, time: str) -> None:
        known = self._log.end
        assert known is not None
        end = known[0]
        try:
            self._apply(change, Written(offset, n, end.size - offset, time), end)
        except BaseException:
            self.forget()
            raise


def _last_snapshot(records: Iterable[Record]) -> int:
    """Return the offset of the last snapshot among records; 0 where there is none."""
    found = 0
    for record in records:
        if _MARK in record.line and record.kind == _SNAPSHOT:
            found = record.offset
    return found
