"""Changing keys: a log's records, sealed anew into another log."""

from __future__ import annotations

from statestore import names
from statestore.records.log import RecordLog
from statestore.records.making import NewLog
from statestore.store import Store, Tail

__all__ = ["reseal"]


def reseal(source: Store, log: str, target: Store, to: str) -> Tail:
    """Make a new log of another one's records, sealed with the first key of `target`; return its tail.

    Neither the old log nor any key is changed. `source` is a store that opens the records: an `Encrypted` one that has
    the old key, or a plain store whose records are to be sealed from now on.

    Raises:
        NotFound: there is no such log.
        Exists: there is a log named `to`.
        Corrupt: a record is damaged; nothing is left of the new log.
        Unavailable: a key is not here, or the storage failed.
    """
    names.check(to)
    with NewLog() as new:
        for record in RecordLog(source, log):
            new.add(record.raw)
        return new.create(target, to)
