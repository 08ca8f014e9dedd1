"""Markers as records: what a companion holds, one record a marker. ``docs/format.md`` describes them.

A session's own log may hold such records too, written by whoever holds the session. They count where the companion
says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, Literal

from statestore.errors import Corrupt
from statestore.ops._source import Marker
from statestore.records import Draft, Record, draft
from statestore.records.times import spell_time

__all__ = ["KINDS", "decode", "encode", "read_object", "read_time", "that_count"]

_PREFIX: Final = "ops."
KINDS: Final[dict[str, Literal["abort", "interrupt", "clear"]]] = {
    "ops.aborted": "abort",
    "ops.interrupted": "interrupt",
    "ops.cleared": "clear",
}
"""The kinds of records that are markers."""

_KIND_OF: Final = {marker: kind for kind, marker in KINDS.items()}


def encode(marker: Marker) -> Draft:
    """Return the record that a marker becomes; its id is the marker's nonce."""
    time = spell_time((marker.time or datetime.now(UTC)).astimezone(UTC).isoformat())
    body = json.dumps({"reason": marker.reason} if marker.reason else {}).encode()
    return draft(_KIND_OF[marker.kind], body, id=marker.nonce or None, time=time, type="application/json")


def decode(record: Record) -> Marker | None:
    """Return the marker that a record is; None where it is none.

    Raises:
        Corrupt: it is one that cannot be understood, or that a later version has made.
    """
    if not record.kind.startswith(_PREFIX):
        return None
    kind = KINDS.get(record.kind)
    reason = read_object(record).get("reason", "")
    if kind is None or not isinstance(reason, str):
        raise Corrupt(
            "this marker cannot be understood: a later version may have made it",
            record=record.n,
            offset=record.offset,
            kind=record.kind,
        )
    return Marker(kind, reason, read_time(record.header.time), record.id)


def that_count(markers: Iterable[Marker]) -> tuple[Marker, ...]:
    """Return the markers that anything depends on: the first abort, and the last of the others, in their order."""
    kept: list[Marker] = []
    for marker in markers:
        if marker.kind != "abort":
            kept = [*(each for each in kept if each.kind == "abort"), marker]
        elif all(each.kind != "abort" for each in kept):
            kept.append(marker)
    return tuple(kept)


def read_object(record: Record) -> dict[str, Any]:
    """Return the JSON object that a record's body is; an empty one for ``null``.

    Raises:
        Corrupt: the body is something else.
    """
    try:
        value = json.loads(record.body, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise _no_object(record) from error
    if value is not None and not isinstance(value, dict):
        raise _no_object(record)
    return value or {}


def _refuse(word: str) -> None:
    raise ValueError(f"JSON has no {word}")


def _no_object(record: Record) -> Corrupt:
    return Corrupt(
        "this record cannot be understood: its body is no JSON object",
        record=record.n,
        offset=record.offset,
        kind=record.kind,
    )


def read_time(text: object) -> datetime | None:
    """Return the time that RFC 3339 spells, in UTC; None where it spells none, or the year 1, which stands for none."""
    try:
        time = datetime.fromisoformat(str(text))
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time if time.year > 1 else None
