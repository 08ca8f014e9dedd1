"""What a listing asks of a conversation, as a fold of its records that a catalog keeps."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Raw

from statestore.conversations import _json
from statestore.conversations._changes import Messages, Saved, Snapshot, decode_record, kind_of, refusal
from statestore.conversations._model import NO_TIME, ListOptions
from statestore.records import Record

__all__ = ["Brief", "BriefFold", "choose", "read_time"]

_MESSAGES, _SAVED, _SNAPSHOT = kind_of(Messages), kind_of(Saved), kind_of(Snapshot)
_LIMIT: Final = 100  # ids that a listing shows where no limit is asked for


class Brief(msgspec.Struct, frozen=True, gc=False):
    """What a listing asks of a conversation.

    Attributes:
        user_id: whose it is.
        first: the first message's time, as it spells it; None where there is no message.
        created: when it was made; ``""`` before there is any record.
        updated: when it was last written.
    """

    user_id: str = ""
    first: str | None = None
    created: str = ""
    updated: str = ""

    def created_at(self) -> datetime:
        """Return the first message's time, or where it has none, when the conversation was made."""
        first = read_time(self.first or "")
        return read_time(self.created) if first == NO_TIME else first

    def updated_at(self) -> datetime:
        """Return when it was last written."""
        return read_time(self.updated)


class BriefFold:
    """Folds a conversation's records into a `Brief`."""

    name = "conversations"
    version = 1

    def initial(self) -> Brief:
        """Return what no records come to."""
        return Brief()

    def step(self, state: Brief, record: Record) -> Brief:
        """Return what the records come to with one more.

        Raises:
            Corrupt: the record's body is not what its kind says.
        """
        kind, time = record.kind, record.header.time
        user_id, first, created = state.user_id, state.first, state.created or time
        if kind == _SAVED or (kind == _MESSAGES and first is None):
            change = decode_record(record)
            if isinstance(change, Saved):
                user_id = _json.loads(bytes(change.profile.get("user_id", b'""')))
                if not isinstance(user_id, str):
                    raise refusal(record, "user_id is no text", None, None)
                created = change.created or created
                first = first if change.keep else _first(change.messages)
            elif isinstance(change, Messages):
                first = _first(change.messages)
        return Brief(user_id, first, created, state.updated if kind == _SNAPSHOT else time)

    def dump(self, state: Brief) -> bytes:
        """Return the state as bytes."""
        return msgspec.json.encode(state)

    def load(self, data: bytes) -> Brief:
        """Return the state that `dump` has written."""
        return msgspec.json.decode(data, type=Brief)


def _first(messages: list[Raw]) -> str | None:
    if not messages:
        return None
    message = _json.loads(bytes(messages[0]))
    time = message.get("timestamp") if isinstance(message, dict) else None
    return time if isinstance(time, str) else ""


def read_time(text: str) -> datetime:
    """Return the time that RFC 3339 spells; where it spells none, the time that stands for none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return NO_TIME
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def choose(rows: Iterable[tuple[str, Brief]], options: ListOptions) -> list[str]:
    """Return the ids that a listing shows, in its order: filter, sort, leave out, cut off."""
    found = [row for row in rows if options.user_id in ("", row[1].user_id)]
    # Sorted twice, since where times are the same ids go up, whatever way the times go.
    found.sort(key=lambda row: row[0], reverse=not options.sort_by and options.sort_order == "desc")
    if options.sort_by:
        key = Brief.created_at if options.sort_by == "created_at" else Brief.updated_at
        found.sort(key=lambda row: key(row[1]), reverse=options.sort_order != "asc")
    return [row[0] for row in found][options.offset :][: options.limit or _LIMIT]
