"""The changes of a conversation, each one record: what their bodies hold. ``docs/format.md`` describes them.

Messages, summaries and values of metadata are kept as the JSON that was given, unread.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
from msgspec import Raw

from statestore.errors import Corrupt
from statestore.records import Record

__all__ = [
    "Change",
    "Forked",
    "Items",
    "KINDS",
    "MEDIA_TYPE",
    "Messages",
    "Metadata",
    "Saved",
    "Snapshot",
    "Summaries",
    "decode_record",
    "encode",
    "kind_of",
    "refusal",
]

MEDIA_TYPE: Final = "application/json"
_PREFIX: Final = "conversation."


class Messages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages come to the end of the history."""

    messages: list[Raw]


class Summaries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Summaries come to the end of those that are there."""

    summaries: list[Raw]


class Metadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Each key given takes the place of the one that is there; a null is a value."""

    metadata: dict[str, Raw]


class Items(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Items, in base64, come to the end of a list."""

    name: str = msgspec.field(name="list")
    items: list[bytes]


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The conversation as a whole.

    Attributes:
        profile: ``user_id``, ``system_prompt`` and ``token_count``.
        metadata: all of it.
        keep: how many messages stay, counted from the first; `messages` come behind them.
        messages: those behind.
        keep_summaries: how many summaries stay.
        summaries: those behind.
        lists: all lists; None leaves them as they are.
        created: when the conversation was made; empty leaves that as it is.
    """

    profile: dict[str, Raw]
    metadata: dict[str, Raw]
    keep: int = 0
    messages: list[Raw] = []
    keep_summaries: int = 0
    summaries: list[Raw] = []
    lists: dict[str, list[bytes]] | None = None
    created: str = ""


class Forked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The records in front were copied from another conversation: nothing changes but the time of the last write."""

    source: str


class Snapshot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the records in front have come to, but for the messages: reading can begin here.

    Attributes:
        n: the number of this record.
        created: when the conversation was made.
        updated: the time of the last write.
        profile: as in `Saved`.
        metadata: all of it.
        summaries: all of them.
        lists: all of them.
        count: how many messages there are.
        recent: where the last messages are, as offset and number of a record and the place of its first message,
            counted from 0: from there on, records hold nothing but messages that follow each other. Absent where
            there are no messages.
    """

    n: int
    created: str
    updated: str
    profile: dict[str, Raw]
    metadata: dict[str, Raw]
    summaries: list[Raw]
    lists: dict[str, list[bytes]]
    count: int
    recent: tuple[int, int, int] | None


Change: TypeAlias = Messages | Summaries | Metadata | Items | Saved | Forked | Snapshot

KINDS: Final[dict[str, type[Change]]] = {
    _PREFIX + kind.__name__.lower(): kind for kind in (Messages, Summaries, Metadata, Items, Saved, Forked, Snapshot)
}
"""What each kind of record holds."""

_KIND_OF: Final = {change: kind for kind, change in KINDS.items()}
_DECODE: Final = {kind: msgspec.json.Decoder(change).decode for kind, change in KINDS.items()}
_encoder = msgspec.json.Encoder()


def kind_of(change: type[Change]) -> str:
    """Return the kind of the record that a change becomes."""
    return _KIND_OF[change]


def encode(change: Change) -> bytes:
    """Return the body of the record that a change becomes.

    Raises:
        ValueError: a string has a lone surrogate.
    """
    return _encoder.encode(change)


def decode_record(record: Record, log: str | None = None, n: int | None = None) -> Change | None:
    """Return the change that a record is; None where its kind is none of a conversation's.

    Args:
        record: the record.
        log: the log's name, for errors.
        n: the record's place in it, for errors.

    Raises:
        Corrupt: the body is not what the kind says, or a later version has made this kind.
    """
    kind = record.kind
    read = _DECODE.get(kind)
    try:
        if read is not None:
            return read(record.body)
        if not kind.startswith(_PREFIX):
            return None
        why = "a later version has made this change"
    except (msgspec.DecodeError, RecursionError) as error:
        why = str(error)
    raise refusal(record, why, log, n)


def refusal(record: Record, why: str, log: str | None, n: int | None) -> Corrupt:
    """Return the error for a record that is whole, and cannot be what it says."""
    return Corrupt(
        f"this record cannot be understood: {why}; what stands before it can be read",
        log=log,
        record=n or record.n,
        offset=record.offset,
        kind=record.kind,
    )
