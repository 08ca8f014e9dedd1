"""Looking through a whole log: what is whole, what a crash tore, what is damaged and what stands behind it."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from statestore.errors import Corrupt
from statestore.records.scan import CHUNK, Fetch, Scan
from statestore.store import Store

__all__ = ["Verdict", "examine", "verify"]

_MARK = re.compile(rb'\n\{"n":[0-9]+,')
_MARK_SIZE = 32  # bytes that a mark has at most


@dataclass(frozen=True, slots=True)
class Verdict:
    """What :func:`verify` found in one log.

    Attributes:
        log: the log's name.
        records: how many whole records stand at its beginning.
        size: how many bytes they take.
        torn: how many bytes a crash left behind them; the next append cuts these.
        corrupt: the damage behind them, with record and offset; None where there is none.
        following: how many whole records were found behind the damage.
        misnumbered: the first record whose header has another number than its place; None where there is none.
    """

    log: str
    records: int
    size: int
    torn: int = 0
    corrupt: Corrupt | None = None
    following: int = 0
    misnumbered: int | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing was lost or damaged: a torn end was never acknowledged, and is in order."""
        return self.corrupt is None


def verify(store: Store, log: str) -> Verdict:
    """Return what a log holds, reading all of it in bounded memory and changing nothing.

    Raises:
        NotFound: there is no such log.
        InvalidName: `log` cannot be a log's name.
    """
    return examine(log, store.snapshot(log).read)


def examine(log: str, fetch: Fetch) -> Verdict:
    """Return what a log holds whose bytes are fetched so; see `verify`."""
    records = Scan(fetch, bodies=False, log=log)
    misnumbered = None
    try:
        for record in records:
            if record.n != records.number - 1 and misnumbered is None:
                misnumbered = records.number - 1
    except Corrupt as damage:
        following = 0
        with suppress(Corrupt):  # of a store that knows of the damage, and gives nothing behind it
            following = _following(fetch, records.end, log)
        return Verdict(log, records.number - 1, records.end, 0, damage, following, misnumbered)
    return Verdict(log, records.number - 1, records.end, records.torn, misnumbered=misnumbered)


def _following(fetch: Fetch, offset: int, log: str) -> int:
    """Count the whole records behind a damaged one: from each place that looks like one, as far as they go."""
    found = 0
    while piece := fetch(offset, offset + CHUNK):
        mark = _MARK.search(piece)
        if mark is None:
            if len(piece) < CHUNK:
                break
            offset += len(piece) - _MARK_SIZE
            continue
        records = Scan(fetch, start=offset + mark.start() + 1, log=log)
        with suppress(Corrupt):
            records.skip()
        found += records.number - 1
        offset = max(records.end, offset + mark.end())
        if records.number > 1:
            offset -= 1  # the newline that ends a record may begin the next mark
    return found
