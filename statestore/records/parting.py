"""Where two logs part: compared byte by byte, told in records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from statestore.errors import Corrupt
from statestore.records.scan import Fetch, Scan

__all__ = ["Parting", "common", "parting"]


class Parting(NamedTuple):
    """What two logs have in common at their beginning: how many whole records, and how many bytes these take."""

    records: int
    size: int


def parting(fetch: Fetch, ones: Iterator[bytes], others: Iterator[bytes]) -> Parting:
    """Return what two logs have in common, in bounded memory.

    Records are the same where all their bytes are: an id, which is copied with a fork, says nothing.

    Args:
        fetch: gives the bytes of a range of one of the logs.
        ones: that log's bytes, from the beginning.
        others: the other one's.
    """
    same, _ = common(ones, others)
    found = Parting(0, 0)
    records = Scan(fetch, bodies=False)
    # What is damaged is no record: whoever reads on from here comes to it.
    with suppress(Corrupt):
        for _ in records:
            if records.end > same:
                break
            found = Parting(records.number - 1, records.end)
    return found


def common(ones: Iterator[bytes], others: Iterator[bytes]) -> tuple[int, bool]:
    """Return how many bytes are the same at the beginning of two streams, and whether a different one follows."""
    same, one, other = 0, b"", b""
    while True:
        one, other = one or next(ones, b""), other or next(others, b"")
        length = min(len(one), len(other))
        if not length:
            return same, False
        if one[:length] != other[:length]:
            return same + next(place for place in range(length) if one[place] != other[place]), True
        same, one, other = same + length, one[length:], other[length:]
