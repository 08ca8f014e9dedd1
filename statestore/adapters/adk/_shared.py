"""State that sessions share: a log of changes, each of which takes effect with one record of a session, or never.

An event and what it changes in shared state are one outcome. The event's record, at its place in the session's log, is
the commit. Before it, each change is proposed: appended to the log of its scope as an `Entry` that names the place and
the record's id. So the place decides:

- it holds the record with that id: the change took effect;
- it holds another record, or the session was deleted: it never did, and never will;
- it is free: it may yet. A reader leaves such a change out. A writer must not go by: it waits a moment, then fills the
  place with an empty record, which the session's own writer, if it still lives, finds and steps over.

An entry is appended only behind one that is decided, and says how that one was: so all but a scope's last entry are
decided by its log alone, in its order, and stay so when sessions are deleted.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec

from statestore.errors import Conflict, Corrupt, NotFound
from statestore.records import Record, RecordLog, Scan
from statestore.store import Snapshot, Store, Tail

__all__ = ["Entry", "Moved", "Place", "RACES", "SharedLog", "State", "VOID"]

VOID: Final = "adk.void"
"""The kind of a record that only takes a place."""

RACES: Final = 1000
"""How often something is tried again that others have come before."""

_STATE: Final = "adk.state"
_PEEK: Final = 4096  # bytes in which most records that decide begin and end
_SHARE: Final = 4  # how many times as many bytes as the state the entries behind its last copy may have
_LEAST: Final = 4096  # and how many in any case
_SHORTEST: Final = 0.002  # seconds
_encode: Final = msgspec.json.Encoder().encode


class Place(msgspec.Struct, frozen=True):
    """Where a session's log ends: the tail to append at, and the number of the record that comes next."""

    tail: Tail
    number: int


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A proposed change of shared state.

    Attributes:
        delta: the values to set, by key.
        log: the session's log; ``""`` where there is nothing to decide.
        run: the session's run.
        offset: the place in it that decides.
        number: the number of the record there.
        id: the id of the record that makes the change take effect.
        tries: which try of its writer this is.
        before: whether the entry in front of this one took effect.
        base: all of the state in front of this entry, where it is repeated here.
        back: offset and number of the last entry, this one included, that has a `base`.
    """

    delta: dict[str, Any] = {}
    log: str = ""
    run: str = ""
    offset: int = 0
    number: int = 0
    id: str = ""
    tries: int = 1
    before: bool = False
    base: dict[str, Any] | None = None
    back: tuple[int, int] = (0, 1)

    @property
    def place(self) -> Place:
        """The place that decides."""
        return Place(Tail(self.offset, self.run), self.number)


_decode: Final = msgspec.json.Decoder(Entry).decode


class State(msgspec.Struct, frozen=True):
    """What a scope's log has come to.

    Attributes:
        tail: the log's tail.
        end: where its records end; behind them may be what a crash has left.
        values: the state in front of the last entry.
        last: the last entry; its place decides whether it counts.
        offset: where that entry's record begins.
        line: its header line, to know the log by.
    """

    tail: Tail
    end: Place
    values: dict[str, Any]
    last: Entry
    offset: int
    line: bytes

    def after(self, took_effect: bool) -> dict[str, Any]:
        """Return the state behind the last entry, given what was decided."""
        return self.values | self.last.delta if took_effect else self.values


class Moved(Exception):
    """The scope's log has grown since it was read, and what it says may rest on what is no longer there."""


class SharedLog:
    """The state of one scope.

    Args:
        store: the store that holds all logs.
        name: the scope's log.
        patience: for how many seconds a writer waits for another one to decide its change.
    """

    def __init__(self, store: Store, name: str, patience: float) -> None:
        self.store = store
        self.name = name
        self._patience = patience
        self._known: State | None = None  # replaced as a whole, so that threads need no lock

    def read(self) -> State | None:
        """Return what the log has come to; None where there is none.

        What was read before is not read again.

        Raises:
            Corrupt: a record is damaged.
        """
        try:
            snapshot = self.store.snapshot(self.name)
            known = self._known if self._is_beginning(snapshot) else None
            if known is None or known.tail != snapshot.tail:
                known = self._follow(snapshot, known)
        except BaseException as error:
            self._known = None
            if isinstance(error, NotFound):
                return None
            raise
        self._known = known
        return known

    def _is_beginning(self, snapshot: Snapshot) -> bool:
        """Say whether what is known is the beginning of this log."""
        known, tail = self._known, snapshot.tail
        if known is None or tail.run != known.tail.run or tail.size < known.end.tail.size:
            return False
        if self.store.capabilities.atomic_append or tail == known.tail:
            return True
        # A record that was read before it was acknowledged may have been taken back, and others be there.
        return snapshot.read(known.offset, known.offset + len(known.line)) == known.line

    def _follow(self, snapshot: Snapshot, known: State | None) -> State | None:
        """Return the state that a snapshot's records lead to, behind one that is known."""
        start = known.end if known else self._last_base()
        values, entry = (known.values, known.last) if known else ({}, None)
        scan = Scan(snapshot.read, start=start.tail.size, number=start.number, log=self.name)
        record: Record | None = None
        for record in scan:
            following = self._decode(record)
            if following.base is not None:
                values = following.base
            elif entry is not None and following.before:
                values = values | entry.delta
            entry = following
        if record is None or entry is None:
            return known and msgspec.structs.replace(known, tail=snapshot.tail)
        end = Place(Tail(scan.end, snapshot.tail.run), scan.number)
        return State(snapshot.tail, end, values, entry, record.offset, record.line)

    def _last_base(self) -> Place:
        """Return where the last entry is that has all of the state in front of it."""
        last = RecordLog(self.store, self.name).last(1)
        offset, number = self._decode(last[0]).back if last else (0, 1)
        return Place(Tail(offset, ""), number)

    def _decode(self, record: Record) -> Entry:
        try:
            return _decode(record.body)
        except msgspec.DecodeError as error:
            raise Corrupt(
                f"a record holds no change of state: {error}", log=self.name, record=record.n, offset=record.offset
            ) from error

    def values(self, state: State | None) -> dict[str, Any]:
        """Return the values that count as it is now, given what was read.

        Raises:
            Moved: read again.
        """
        return {} if state is None else state.after(self.decided(state) is True)

    def decided(self, state: State) -> bool | None:
        """Say whether the last entry took effect; None where that is open.

        Raises:
            Moved: the session is gone, and what it has decided may stand in a newer entry: read again.
        """
        entry = state.last
        if not entry.log:
            return True
        try:
            record = next(self._look(entry), None)
        except NotFound:
            # Whoever deletes a session that has decided writes that down first.
            if self.store.tail(self.name) != state.tail:
                raise Moved from None
            return False
        return None if record is None else record.id == entry.id

    def _look(self, entry: Entry) -> Iterator[Record]:
        """Yield the record at the place that decides, if there is one.

        Raises:
            NotFound: the session is gone.
        """
        snapshot = self.store.snapshot(entry.log)
        if snapshot.tail.run != entry.run:
            raise NotFound("the session was deleted and made again", log=entry.log)
        yield from Scan(
            snapshot.read,
            start=entry.offset,
            number=entry.number,
            before=entry.number + 1,
            log=entry.log,
            chunk=_PEEK,
        )

    def propose(self, delta: dict[str, Any], log: str, place: Place, id_: str, tries: int) -> None:
        """Append a change that takes effect with a record of a session.

        Raises:
            Conflict: others append all the time.
        """
        self._append(
            Entry(
                delta=delta,
                log=log,
                run=place.tail.run,
                offset=place.tail.size,
                number=place.number,
                id=id_,
                tries=tries,
            )
        )

    def close(self, log: str, run: str) -> None:
        """Write down what a session has decided, before it is deleted; where it is open it will be no.

        Raises:
            Conflict: others append all the time.
        """
        for _ in range(RACES):
            state = self.read()
            if state is None or (state.last.log, state.last.run) != (log, run):
                return None
            try:
                if not self.decided(state):
                    return None
                return self._append(Entry(), state)
            except (Moved, Conflict):
                continue
        raise self._overtaken()

    def _append(self, entry: Entry, behind: State | None = None) -> None:
        """Append an entry, behind one state alone where that is given, else behind whatever is the last."""
        for _ in range(RACES):
            state = behind or self.read()
            log, number = RecordLog(self.store, self.name), 1
            try:
                if state is not None:
                    number = state.end.number
                    entry = self._behind(entry, state, self._settle(state))
                    log.resume(state.end.tail, number)
                else:
                    entry = msgspec.structs.replace(entry, base={}, back=(0, 1), before=False)
                log.append(_STATE, _encode(entry), expect=number)
            except (Moved, Conflict):
                if behind is not None:
                    raise
            else:
                return
        raise self._overtaken()

    def _behind(self, entry: Entry, state: State, took_effect: bool) -> Entry:
        """Return an entry as it is to stand behind a state."""
        offset, number = state.end.tail.size, state.end.number
        values = state.after(took_effect)
        due = offset - state.last.back[0] > _LEAST + _SHARE * len(_encode(values))
        return msgspec.structs.replace(
            entry,
            before=took_effect,
            base=values if due else None,
            back=(offset, number) if due else state.last.back,
        )

    def _settle(self, state: State) -> bool:
        """Have the last entry decided for good, and say how."""
        entry = state.last
        wait, waited = _SHORTEST, 0.0
        while (took_effect := self.decided(state)) is None:
            if waited >= self._patience * entry.tries:
                self._fill(entry)
                continue
            time.sleep(wait * random.uniform(0.5, 1.5))  # noqa: S311
            waited += wait
            wait *= 2
        if entry.log and not self.store.capabilities.atomic_append:
            # What is not acknowledged yet may vanish. Appended again it is as durable as any record.
            try:
                record = next(self._look(entry), None)
                if record is None:
                    return self._settle(state)
                self.store.append(entry.log, record.raw, at=entry.place.tail)
            except Conflict:
                return self._settle(state)
            except NotFound:
                pass
        return took_effect

    def _fill(self, entry: Entry) -> None:
        """Take the place that decides, unless it is taken."""
        log = RecordLog(self.store, entry.log)
        log.resume(entry.place.tail, entry.number)
        with suppress(Conflict, NotFound):
            log.append(VOID, expect=entry.number)

    def _overtaken(self) -> Conflict:
        return Conflict("others append all the time: try again", log=self.name, attempts=RACES)
