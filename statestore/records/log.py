"""Records over a store's bytes: append them, read them, copy them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

import msgspec

from statestore import names
from statestore.errors import Conflict, Corrupt, Held, NotFound, StateStoreError, Unavailable
from statestore.records import ends
from statestore.records.follow import Following, follow
from statestore.records.index import BEGINNING, RECORDS, STRIDE, Index, Position, note
from statestore.records.record import Draft, Record, place, spell, unnumbered
from statestore.records.scan import NEVER, Scan
from statestore.store import NEW, Snapshot, Store, Tail

__all__ = ["RecordLog"]

# How often an append looks for the end again after others have moved it, and how often it is repeated, the same
# bytes at the same place, after the storage has failed in a way that may pass.
_RACES: Final = 1000
_REPEATS: Final = 3


class _End(msgspec.Struct, frozen=True, gc=False):
    """Where the records end: the tail to append at, and which number comes next."""

    tail: Tail
    number: int

    @property
    def place(self) -> Position:
        """Where the next record begins."""
        return Position(self.tail.size, self.number)


_START: Final = _End(NEW, 1)


class RecordLog:
    """One log of a store, seen as records.

    Making one touches nothing. Any number of them, in any processes, may read and append to one log: each
    append wins its own place. One object may be used from many threads.

    Args:
        store: the store that holds the log.
        name: the log's name.

    Raises:
        InvalidName: `name` cannot be a log's name.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = names.check(name)
        # Replaced as a whole by whoever learns more, so that threads need no lock: at worst one of them finds
        # its place taken and looks again.
        self._end: _End | None = None
        self._noted = BEGINNING  # the last position in the log's index that this object knows of
        self._due = STRIDE, RECORDS  # from which size, or number, on the next one is due

    def __repr__(self) -> str:
        return f"RecordLog({self.store!r}, {self.name!r})"

    @property
    def end(self) -> tuple[Tail, int] | None:
        """Where the records end, as far as this object has seen: the tail, and the next record's number."""
        return (self._end.tail, self._end.number) if self._end else None

    def resume(self, tail: Tail, number: int) -> None:
        """Take over from a reader who knows where the records end, so that no header has to be read for that.

        Args:
            tail: the tail just behind the last whole record.
            number: the next record's number.
        """
        self._end = _End(tail, number)

    def __iter__(self) -> Iterator[Record]:
        """Yield all records, in bounded memory; a torn end is left out."""
        return self.read()

    def read(self, first: int = 1, before: int | None = None) -> Iterator[Record]:
        """Yield the records with the numbers ``[first, before)``, as far as there are any, in bounded memory.

        A record's number is its place in the log, counted from 1. The log ends where it does when the first record
        is asked for; a torn record at its end is left out.

        Raises:
            NotFound: there is no such log; raised with the first record asked for.
            Corrupt: a record in front of `before` is damaged. All records before it have been given. Where the log's
                index proves a place in front of `first`, what stands before that is not looked at.
            ValueError: `first` is below 1; raised at once.
        """
        if first < 1:
            raise ValueError(f"records are counted from 1: first={first}")
        return self._read(first, before)

    def _read(self, first: int, before: int | None) -> Iterator[Record]:
        snapshot = self.store.snapshot(self.name)
        place = ends.proven(self.store, snapshot, first + 1) if first > 1 else BEGINNING
        yield from self._scan(snapshot, place, first=first, before=before)

    def follow(
        self,
        first: int = 1,
        *,
        at: Tail | None = None,
        timeout: float | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Iterator[Record]:
        """Yield the records from number `first` on as they come, and wait for more: whoever appends them.

        A torn end is waited for: it may be an append that goes on. A local store wakes up when the log changes;
        elsewhere its end is looked at after 0.2 seconds, and more and more rarely while nothing comes, up to every 5.

        Args:
            first: the number of the first record; those before it are read over, and it need not be there yet.
            at: the tail just behind the record before `first`, for who knows it: then nothing before is read.
            timeout: end after so many seconds in which no record came; by default never.
            stop: asked whether to end, between records and about four times a second while waiting, such as
                ``threading.Event().is_set``.

        Raises:
            NotFound: there is no such log, or it was deleted.
            Conflict: the log was deleted and made again, or was cut in front of what was given.
            Corrupt: the next record is damaged. All records before it have been given.
            Unavailable: the storage failed; nothing is lost by following again from the next number.
            ValueError: `first` is below 1, or is 1 and `at` is not the beginning; raised at once.
        """
        return follow(Following(self.store, self.name, first=first, at=at), timeout=timeout, stop=stop)

    def last(self, k: int) -> list[Record]:
        """Return the last `k` records, or all where there are fewer, in order.

        It is read from a place that the log's index proves, or where an append began, as far as the store has these;
        otherwise all headers are read.

        Raises:
            NotFound: there is no such log.
            Corrupt: a record on the way is damaged.
            ValueError: `k` is below zero.
        """
        if k < 0:
            raise ValueError(f"a number of records is not below zero: {k}")
        return ends.last(self.store, self.store.snapshot(self.name), k)

    def count(self) -> int:
        """Return how many whole records the log holds.

        They are counted from the last place on that this object knows, or that the log's index proves.

        Raises:
            NotFound: there is no such log.
            Corrupt: a record that is read is damaged.
        """
        snapshot = self._snapshot()
        end = self._end
        known = end.place if end and not _is_gone(end, snapshot.tail) else ends.proven(self.store, snapshot)
        records = self._scan(snapshot, known)
        records.skip()
        return records.number - 1

    def append(
        self,
        kind: str,
        body: bytes = b"",
        *,
        id: str | None = None,  # noqa: A002 - the field's name in the format
        time: str | None = None,
        expect: int | None = None,
        **fields: Any,
    ) -> Record:
        """Add one record at the end and return it; it gets the next number.

        Without `expect` the end is found, whoever moved it. A torn end, which a crash has left, is cut first.

        Args:
            kind: what the record is; see `KINDS`.
            body: its bytes, whatever they are.
            id: its id; by default eight random hexadecimal digits.
            time: when it was made, in RFC 3339; by default now.
            expect: the number that the record must get; 1 creates the log.
            fields: other fields of the header, by name (``for_`` for ``for``).

        Raises:
            NotFound: there is no such log; ``expect=1`` creates it.
            Conflict: the record would not get the number expected, or the log was deleted and made again.
            Held: somebody else holds the log.
            Corrupt: the log is damaged; nothing was added.
            Unavailable: the storage failed; ``error.effect_unknown`` says whether the record may be there.
            TypeError: a field or the body has the wrong type.
            ValueError: a field cannot be written.
        """
        end, tried, unknown = self._end, None, False
        line = spell(0 if end is None else end.number, kind, body, id, time, fields)
        if end is not None and (expect is None or expect == end.number):
            # Nearly always the log still ends where it did: tried without any detour, this costs half.
            try:
                tail = self.store.append(self.name, b"\n".join((line, body, b"")), at=end.tail)
            except Conflict:
                pass
            except Unavailable as error:
                if not error.retry:
                    raise
                tried, unknown = end, error.effect_unknown
            else:
                self._end = _End(tail, end.number + 1)
                offset = end.tail.size
                size, number = self._due
                if offset >= size or end.number >= number:
                    self._note(tail, end, line)
                return Record(line, body, offset)
        start, data = self._write((Draft(b"\n".join((unnumbered(line), body, b""))),), expect, tried, unknown)
        return Record(data[: -len(body) - 2], body, start.tail.size)

    def append_many(self, drafts: Iterable[Draft], *, expect: int | None = None) -> range:
        """Add several records in one write and return the numbers that they got.

        One write is not a transaction: after a crash any whole number of them may be there. What must not be
        split belongs into one record's body.

        Args:
            drafts: the records, made with :func:`draft`.
            expect: the number that the first one must get; 1 creates the log.

        It raises what :meth:`append` does.
        """
        drafts = list(drafts)
        if not drafts:
            return range(0)
        start, _ = self._write(drafts, expect)
        return range(start.number, start.number + len(drafts))

    def _write(
        self, drafts: Sequence[Draft], expect: int | None, tried: _End | None = None, unknown: bool = False
    ) -> tuple[_End, bytes]:
        """Append drafts in one write; return where they begin and the bytes that they became.

        Where they were `tried`, perhaps with an `unknown` effect, they are tried again there: elsewhere they could
        come twice.
        """
        if expect is not None and expect < 1:
            raise ValueError(f"records are counted from 1: expect={expect}")
        end = tried or (_START if expect == 1 else self._end or self._find_end(_START))
        races = failures = 0
        while True:
            if expect is not None and expect != end.number:
                end = self._find_end(end, expect)
                if expect != end.number:
                    raise Conflict(
                        "the next record gets another number: read what is new and decide again",
                        log=self.name,
                        record=expect,
                        next=end.number,
                        found=end.tail,
                    )
            data = place(drafts, end.number)
            try:
                tail = self.store.append(self.name, data, at=end.tail)
            except Conflict as error:
                if unknown and getattr(error.found, "run", None) != end.tail.run:
                    raise self._unsettled(end, error) from error
                # The place is taken by other bytes: whatever was unknown, ours are not there and never will be.
                unknown = False
                races += 1
                if races == _RACES:
                    raise self._overtaken() from None
                end = self._find_end(end, expect)
            except Unavailable as error:
                # The same bytes at the same place: where the storage has them all the same, that is success.
                failures += 1
                unknown = unknown or error.effect_unknown
                if not error.retry or failures == _REPEATS:
                    # One try that may have had an effect is enough, whatever came of those behind it.
                    error.effect_unknown = unknown
                    raise
            except StateStoreError as error:
                # "Nothing was done" is true of this try alone.
                if not unknown:
                    raise
                raise self._unsettled(end, error) from error
            else:
                self._end = _End(tail, end.number + len(drafts))
                size, number = self._due
                if end.tail.size >= size or end.number >= number:
                    self._note(tail, end, data[: data.index(b"\n")])
                return end, data

    def _note(self, tail: Tail, end: _End, line: bytes) -> None:
        """Enter a record that was appended into the log's index."""
        self._due = NEVER, NEVER
        with suppress(StateStoreError):  # the append is acknowledged, whatever becomes of its entry
            if (sidecar := self.store.sidecar(self.name)) is not None:
                position = Position(end.tail.size, end.number)
                note(sidecar, tail.run, position, line, self._noted.offset)
                self._knows(position)

    def _knows(self, position: Position) -> None:
        self._noted = position
        self._due = position.offset + STRIDE, position.number + RECORDS

    def recover(self) -> int:
        """Make the log ready to append to, and return the number that the next record gets.

        Every header is read from the last place on that the log's index proves, or where the last append began, as far
        as the store has these, else from the beginning; so damage there is reported now. A torn end, which a crash has
        left, is cut. `append` does the same where it has not been done.

        Raises:
            NotFound: there is no such log.
            Conflict: the log was deleted and made again, or cut.
            Held: somebody else holds the log, and its end is torn.
            Corrupt: the log is damaged; nothing was changed.
        """
        return self._find_end(self._end or _START).number

    def copy(self, to: str, *, before: int | None = None) -> RecordLog:
        """Make a new log of the records in front of number `before`, byte for byte, and return it.

        Headers are read from the last place in front of it on that the log's index proves, or from the beginning.

        Args:
            to: the new log's name.
            before: copy records 1 to ``before - 1``; by default all whole ones.

        Raises:
            NotFound: there is no such log, or it has fewer records.
            Exists: there is a log named `to`.
            Corrupt: a record that was read is damaged.
            ValueError: `before` is below 2: a log has at least one record.
        """
        names.check(to)
        if before is not None and before < 2:
            raise ValueError(f"a copy has at least one record: before={before}")
        snapshot = self.store.snapshot(self.name)
        records = self._scan(snapshot, ends.proven(self.store, snapshot, before or NEVER), before=before)
        records.skip()
        if records.number == 1 or (before is not None and records.number < before):
            raise NotFound(
                "the log has no such record to copy up to",
                log=self.name,
                record=records.number,
                torn=records.torn or None,
            )
        copy = RecordLog(self.store, to)
        copy.resume(snapshot.copy(to, stop=records.end), records.number)
        return copy

    def hold(self) -> AbstractContextManager[None]:
        """Keep everybody else from appending, until the context ends. See `Store.hold`.

        Raises:
            NotSupported: the store cannot hold.
            Held: somebody else holds the log.
        """
        return self.store.hold(self.name)

    def _scan(self, snapshot: Snapshot, place: Position, **limits: Any) -> Scan:
        """Scan what a snapshot holds, from a place on."""
        return Scan(snapshot.read, start=place.offset, number=place.number, log=self.name, **limits)

    def _snapshot(self) -> Snapshot:
        try:
            return self.store.snapshot(self.name)
        except NotFound as error:
            raise NotFound("no such log: append with expect=1 to create it", log=self.name) from error

    def _find_end(self, known: _End, expect: int | None = None) -> _End:
        """Find where to append: read on from what is known, and cut what a crash left behind the last record.

        Where another number is expected than comes next, nothing will be appended there, and nothing is cut.
        """
        for _ in range(_RACES):
            snapshot = self._snapshot()
            tail = snapshot.tail
            if _is_gone(known, tail):
                raise Conflict(
                    "the log was deleted and made again, or cut: open it anew",
                    log=self.name,
                    expected=known.tail,
                    found=tail,
                )
            records = self._skip(snapshot, known.place)
            end = _End(Tail(records.end, tail.run) if records.end else NEW, records.number)
            if expect not in (None, records.number):
                # Not at the log's tail, which may lie inside a record that is being written.
                return end
            if records.end < tail.size:
                try:
                    self._cut(records, tail)
                except Conflict:
                    continue
            self._end = end
            return end
        raise self._overtaken()

    def _skip(self, snapshot: Snapshot, known: Position) -> Scan:
        """Read on to the log's end; what an index can learn from that, it learns."""
        sidecar = self.store.sidecar(self.name)
        if sidecar is not None:
            index = Index(sidecar, snapshot)
            if known == BEGINNING:
                known = self._noted = index.nearest()
            records = index.scan(known, self._noted)
            records.skip()
            self._knows(index.keep())
            return records
        if known == BEGINNING and (begun := ends.begun(self.store, snapshot)) != BEGINNING:
            records = self._scan(snapshot, begun)
            # What is damaged is named by its number, which only a reader from the beginning knows for sure.
            with suppress(Corrupt):
                records.skip()
                if not records.torn:
                    return records
        records = self._scan(snapshot, known)
        records.skip()
        return records

    def _cut(self, records: Scan, tail: Tail) -> None:
        """Cut a torn end off, where the store can; one that could and may not refuses."""
        can = self.store.capabilities
        if can.atomic_append and not can.cuts:
            raise Corrupt(
                "the log ends inside a record, and this store never tears one: repair it before appending",
                log=self.name,
                record=records.number,
                offset=records.end,
            )
        self.store.cut(self.name, records.end, at=tail)

    def _unsettled(self, end: _End, error: StateStoreError) -> Unavailable:
        """Return the error for records whose fate is unknown and was not settled by what a repetition met."""
        return Unavailable(
            "the storage refused to say whether the records are there: look for them before adding them again",
            retry=isinstance(error, Held),  # whoever holds the log will let go; a log that is gone does not come back
            effect_unknown=True,
            log=self.name,
            offset=end.tail.size,
        )

    def _overtaken(self) -> Conflict:
        return Conflict("others append all the time: hold the log, or try again", log=self.name, attempts=_RACES)


def _is_gone(known: _End, tail: Tail) -> bool:
    """Say whether the log that `known` was found in is no longer the one that has this tail."""
    return known.tail != NEW and (tail.run != known.tail.run or tail.size < known.tail.size)
