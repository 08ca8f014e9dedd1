"""Markers as records: what a companion holds, one record a marker. ``docs/format.md`` describes them.

A session's own log may hold such records too, written by whoever holds the session. They count where the companion
says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, Literal

from statestore.conversations import _json
from statestore.errors import Corrupt
from statestore.ops._source import Marker
from statestore.records import Draft, Record, draft
from statestore.records.times import spell_time

__all__ = ["KINDS", "decode", "encode", "read_json", "read_object", "read_time", "that_count"]

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
    body = json.dumps({"reason": marker.reason} if marker.reason else {}).encode()  # a reason may be any text
    return draft(_KIND_OF[marker.kind], body, id=marker.nonce or None, time=time, type="application/json")


def decode(record: Record) -> Marker | None:
    """Return the marker that a record is; None where it is none.

    Raises:
        Corrupt: it is one that cannot be understood, or that a later version has made.
    """
    if not record.kind.startswith(_PREFIX):
        return None
    kind = KINDS.get(record.kind)
    reason = read_object(record.body, record).get("reason", "")
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


def read_json(data: bytes, record: Record) -> Any:
    """Return the value that a part of a record spells: finite, not too deep, and of texts that everybody can read.

    Raises:
        Corrupt: it spells none.
    """
    try:
        return _json.parse(data)
    except (TypeError, ValueError) as error:
        raise Corrupt(
            f"this record cannot be understood: {error}", record=record.n, offset=record.offset, kind=record.kind
        ) from error


def read_object(data: bytes, record: Record) -> dict[str, Any]:
    """Return the JSON object that a part of a record is; an empty one for ``null``.

    Raises:
        Corrupt: it is something else.
    """
    value = read_json(data, record)
    if value is not None and not isinstance(value, dict):
        raise Corrupt(
            "this record cannot be understood: an object is missing",
            record=record.n,
            offset=record.offset,
            kind=record.kind,
        )
    return value or {}


def read_time(text: object) -> datetime | None:
    """Return the time that RFC 3339 spells, in UTC; None where it spells none, or the year 1, which stands for none."""
    try:
        time = datetime.fromisoformat(str(text))
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time if time.year > 1 else None
