"""One log's way from a source to a target: compare what both have, append what is missing, read it back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import Final, Literal

from statestore.errors import Conflict, Corrupt, NotFound, StateStoreError, Unavailable
from statestore.records import Scan
from statestore.records.header import MAX_HEADER, decode_header
from statestore.records.parting import common
from statestore.store import NEW, Snapshot, Store, Tail
from statestore.sync._known import Equal, Known

__all__ = ["Job", "Row", "State", "TRIES"]

TRIES: Final = 5
"""How often something is tried that fails in a way that may pass, and that comes no further."""

_PIECE: Final = 4 << 20  # the most bytes in one append of several records: each worker holds two of these
_LARGEST: Final = 16 << 20  # the most bytes in one append of one record, if the target takes them
_BEGINNING: Final = b'{"n":'  # of every record
_MARKED: Final = 4096  # bytes by which the end of what was equal is known again

State = Literal["equal", "copied", "diverged", "extra", "failed"]
"""What became of a log; see :class:`Row`."""


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one log.

    Attributes:
        log: its name.
        state: ``equal`` (the target has all of it), ``copied`` (now it has), ``diverged`` (the target holds something
            else, and was not touched), ``extra`` (the source has no such log), ``failed``.
        size: the log's bytes in the source, without a torn end; of an extra log, in the target.
        copied: how many bytes the target's log has grown by, of a failed log as far as was seen; in a dry run, how
            many it would grow by.
        torn: how many bytes at the source's end were left out, since a crash may have cut their append short.
        offset: of a diverged log, where its first byte is that is not the source's.
        error: of a failed log, why.
    """

    log: str
    state: State
    size: int = 0
    copied: int = 0
    torn: int = 0
    offset: int | None = None
    error: StateStoreError | None = None


@dataclass(frozen=True)
class Job:
    """What all logs of one sync have in common.

    Args:
        source: where the logs are.
        target: where they go.
        known: up to where they were equal before.
        verify: whether what was written is read back.
        dry_run: whether nothing is written.
        pause: seconds before something is tried again; twice as long each time.
        stop: set when nobody waits for results any more.
    """

    source: Store
    target: Store
    known: Known
    verify: bool
    dry_run: bool
    pause: float
    stop: Event

    def settled(self, log: str, source: Tail | None, target: Tail | None) -> Row | None:
        """Return what two listings alone say of a log; None where it has to be looked at."""
        if source is None:
            return Row(log, "extra", target.size if target else 0)
        equal = self._seen(log, source, target) if target and self.source.capabilities.atomic_append else None
        if equal and target and source.size == target.size == equal.size:
            return Row(log, "equal", source.size)
        return None

    def bring(self, log: str, source: Tail | None, there: Tail | None) -> Row | None:
        """Make the target's log equal to the source's; return what became of it, and None where there is none by now.

        Args:
            log: the log's name.
            source: its tail in the source, as a listing had it.
            there: its tail in the target; None where it was not there. It may be old.
        """
        begun = reached = there.size if there else 0
        failures = 0
        while True:
            try:
                if failures:
                    self.rest(failures)
                    there = _tail_or_none(self.target, log)
                    if there and there.size > reached:
                        failures, reached = 0, there.size
                row = self._attempt(log, there)
                if row is None and there:
                    return Row(log, "extra", there.size)
                if row and row.state in ("equal", "copied") and row.size > begun:
                    return replace(row, state="copied", copied=row.size - begun)
                return row
            except StateStoreError as error:
                failures += 1
                passes = error.retry if isinstance(error, Unavailable) else isinstance(error, Conflict | NotFound)
                if not passes or failures == TRIES:
                    return Row(log, "failed", source.size if source else 0, copied=reached - begun, error=error)

    def rest(self, failures: int) -> None:
        """Wait before something is tried again."""
        if self.stop.wait(self.pause * 2 ** (failures - 1)):
            raise CancelledError

    def _attempt(self, log: str, there: Tail | None) -> Row | None:
        """Bring a log whose tail in the target was `there` before this began."""
        try:
            snapshot = self.source.snapshot(log)
        except NotFound:
            return None
        tail, at = snapshot.tail, there or NEW
        equal = self._seen(log, tail, at)
        start = equal.size if equal and self._mark(snapshot, equal.size) == equal.mark else 0
        end, whole = self._end(snapshot, start)
        # Taken before the bytes are read: of what takes their place later, it says nothing.
        mark = self._mark(snapshot, end)
        different = self._compare(snapshot, at, start)
        torn = tail.size - end
        if different is not None:
            return Row(log, "diverged", end, torn=torn, offset=different)
        if at.size < end and not self.dry_run:
            at = self._write(snapshot, at, end)
        if whole and at.size == end:
            self.known.remember(log, Equal(tail.run, at.run, end, mark))
        return Row(log, "equal", end, torn=torn)

    def _seen(self, log: str, source: Tail, target: Tail) -> Equal | None:
        """Return up to where two logs are known to be equal; None where they may not be those that were seen."""
        equal = self.known.get(log)
        same = equal and equal[:2] == (source.run, target.run) and "" not in equal[:2]
        return equal if equal and same and equal.size <= min(source.size, target.size) else None

    def _mark(self, snapshot: Snapshot, end: int) -> str:
        """Return what the source's bytes in front of `end` are known again by, where they may vanish.

        Where an append can tear, a power cut may take whole records that were read, and others are appended in the
        same run then. These have other ids, and so other last bytes.
        """
        if self.source.capabilities.atomic_append:
            return ""
        return hashlib.blake2b(snapshot.read(max(end - _MARKED, 0), end), digest_size=8).hexdigest()

    def _compare(self, snapshot: Snapshot, at: Tail, start: int) -> int | None:
        """Return the offset of the target's first byte, from `start` on, that is not the source's; None without one."""
        stop = min(at.size, snapshot.tail.size)
        if start < stop:
            there = self.target.snapshot(snapshot.log)
            if there.tail.run != at.run or there.tail.size < at.size:
                raise _moved(snapshot.log)
            same, different = common(snapshot.stream(start, stop), there.stream(start, stop))
            self._check_going()
            if different:
                return start + same
            if start + same < stop:
                raise _moved(snapshot.log)
        return stop if stop < at.size else None

    def _end(self, snapshot: Snapshot, start: int) -> tuple[int, bool]:
        """Return up to where the source is copied, and whether all in front of that stays for ever.

        Where an append can tear, the bytes behind the last whole record may be replaced by others: a target that had
        them would never be equal again. `start` is 0, or the end of a record. Bytes that are no records, and damaged
        ones, are copied as they are; nobody can say where an append of theirs ended.
        """
        size = snapshot.tail.size
        if self.source.capabilities.atomic_append:
            return size, True
        if not start and not _BEGINNING.startswith(snapshot.read(0, len(_BEGINNING)).rstrip(b"\0")):
            return size, False
        records = Scan(snapshot.read, start=start, bodies=False, log=snapshot.log)
        try:
            records.skip()
        except Corrupt:
            if self.source.tail(snapshot.log) != snapshot.tail:
                # A torn end may have been cut, and others put in its place, while it was read.
                raise _moved(snapshot.log) from None
            return size, False
        return records.end, True

    def _write(self, snapshot: Snapshot, at: Tail, end: int) -> Tail:
        """Append the source's bytes from `at` on, read them back, and return the tail behind them."""
        log, start = snapshot.log, at.size
        most = min(self.target.capabilities.max_append or _PIECE, _LARGEST)
        limit = min(most, _PIECE)
        written, back = hashlib.blake2b(), hashlib.blake2b()
        for piece in _pieces(snapshot.stream(start, end), limit, most):
            at = self._append(log, piece, at)
            written.update(piece)
        if at.size != end:
            raise _moved(log)
        if self.verify:
            there = self.target.snapshot(log)
            if there.tail != at:
                raise _moved(log)
            for piece in there.stream(start, end):
                self._check_going()
                back.update(piece)
            if back.digest() != written.digest():
                raise Corrupt("what was written reads otherwise: do not trust the target", log=log, offset=start)
        return at

    def _append(self, log: str, piece: bytes, at: Tail) -> Tail:
        """Append a piece, and again with the same arguments where that may help."""
        failures, unknown = 0, False
        while True:
            self._check_going()
            try:
                return self.target.append(log, piece, at=at)
            except Unavailable as error:
                failures += 1
                # One try that may have had an effect is enough, whatever came of those behind it.
                unknown = error.effect_unknown = unknown or error.effect_unknown
                if not error.retry or failures == TRIES:
                    raise
            except StateStoreError as error:
                settled = isinstance(error, Conflict) and getattr(error.found, "run", None) == at.run
                if not unknown or settled:
                    raise
                raise Unavailable(
                    "the target refused to say whether it has a piece of the log: sync again",
                    retry=isinstance(error, Conflict | NotFound),
                    effect_unknown=True,
                    log=log,
                    offset=at.size,
                ) from error
            self.rest(failures)

    def _check_going(self) -> None:
        if self.stop.is_set():
            raise CancelledError


def _moved(log: str) -> Conflict:
    return Conflict("the log was changed by others while it was copied: run the sync again", log=log)


def _tail_or_none(store: Store, log: str) -> Tail | None:
    try:
        return store.tail(log)
    except NotFound:
        return None


def _pieces(stream: Iterable[bytes], limit: int, most: int) -> Iterator[bytes]:
    """Yield the same bytes in pieces of at most `limit` bytes, which end where a record does.

    An append begins where a reader may start, and inside a body could stand what looks like a record. A record that is
    larger is a piece of up to `most` bytes; only one that is larger still is cut, and so are bytes that are no records.
    """
    waiting: list[bytes] = []
    size = inside = 0  # `inside`: how many bytes are still to come of a record that was cut
    wanted = limit
    for piece in stream:
        waiting.append(piece)
        size += len(piece)
        while size >= wanted:
            whole = waiting[0] if len(waiting) == 1 else b"".join(waiting)
            waiting = [whole]
            cut = min(inside, limit) or _last_end(whole, wanted)
            if cut == 0 and limit < (length := _length(whole)):
                if length <= most and wanted < length:
                    wanted = length
                    continue
                inside = length
            cut = cut or limit
            inside = max(inside - cut, 0)
            taken, waiting = whole[:cut], [whole[cut:]]
            size, wanted = size - cut, limit
            del whole
            yield taken
    if size:
        yield b"".join(waiting)


def _last_end(data: bytes, limit: int) -> int:
    """Return where the last whole record ends in the first bytes of data that begin with one; 0 where there is none."""
    records = Scan(lambda start, stop: data[start : min(stop, limit)], bodies=False)
    with suppress(Corrupt):
        records.skip()
    return records.end


def _length(data: bytes) -> int:
    """Return how many bytes a record has that begins with the data; 0 where none does."""
    line, newline, _ = data[: MAX_HEADER + 1].partition(b"\n")
    try:
        return len(line) + decode_header(line).len + 2 if newline else 0
    except ValueError:
        return 0
