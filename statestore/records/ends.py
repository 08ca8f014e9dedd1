"""The end of a log, read without all that stands in front of it, as far as the store knows a place to begin at.

A record is never found by searching backwards. Where the store keeps a position index beside the log, that proves
where a record begins. Where the store knows where appends began, one is tried: an append need not have begun where a
record does, and what stands there may not be one.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from itertools import islice
from typing import Final

from statestore.errors import Corrupt
from statestore.records.index import BEGINNING, Index, Position
from statestore.records.record import Record
from statestore.records.scan import NEVER, Scan
from statestore.store import Snapshot, Store

__all__ = ["begun", "last", "proven"]

_REACH: Final = 256 << 10  # bytes in which the last records are looked for first, where appends are large


def proven(store: Store, snapshot: Snapshot, before: int = NEVER) -> Position:
    """Return the last place that the log's index proves of a record with a number below `before`, or the beginning."""
    sidecar = store.sidecar(snapshot.log)
    return Index(sidecar, snapshot).nearest(before) if sidecar is not None else BEGINNING


def begun(store: Store, snapshot: Snapshot) -> Position:
    """Return where the last append began and the number of the record there, or the beginning."""
    start = snapshot.boundary(max(snapshot.tail.size - 1, 0)) if store.capabilities.boundaries else 0
    if start:
        with suppress(Corrupt):
            for record in Scan(snapshot.read, start=start, before=2, log=snapshot.log):
                return Position(start, record.n)
    return BEGINNING


def last(store: Store, snapshot: Snapshot, k: int) -> list[Record]:
    """Return the last `k` records, or all where there are fewer, in order.

    Raises:
        Corrupt: a record on the way is damaged.
    """
    return (_last_proven if store.capabilities.sidecars else _last_begun)(store, snapshot, k)


def _last_proven(store: Store, snapshot: Snapshot, k: int) -> list[Record]:
    place = proven(store, snapshot)
    found = _keep(snapshot, place, k)
    if len(found) < k and place != BEGINNING:
        found = _keep(snapshot, proven(store, snapshot, place.number + len(found) - k + 1), k)
    return found


def _last_begun(store: Store, snapshot: Snapshot, k: int) -> list[Record]:
    start, reach, found = snapshot.tail.size, _REACH, list[Record]()
    while True:
        edge = start
        # Each append holds at least one record, and may hold many.
        for _ in range(max(k - len(found), 1)):
            start = snapshot.boundary(max(start - 1, 0))
            if start == 0 or edge - start >= reach:
                break
        try:
            found = _keep(snapshot, Position(start, 1), k)
        except Corrupt:
            if start == 0:
                raise
        if len(found) == k or start == 0:
            return found
        reach *= 2


def _keep(snapshot: Snapshot, place: Position, k: int) -> list[Record]:
    """Read from a place on and return the last `k` records; only theirs are the bodies that are kept."""
    records = Scan(snapshot.read, start=place.offset, number=place.number, log=snapshot.log, bodies=False)
    offsets = deque((record.offset for record in records), maxlen=k)
    if not offsets:
        return []
    return list(islice(Scan(snapshot.read, start=offsets[0], log=snapshot.log), len(offsets)))
