"""What a conversation has come to: the fold of its records.

A state may know only the last messages of the history and how many there are in front of them, since that is all that
most calls ask for. Messages, summaries and values are the JSON that was given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from statestore.conversations._changes import (
    Change,
    Forked,
    Items,
    Messages,
    Metadata,
    Saved,
    Snapshot,
    Summaries,
)

__all__ = ["RECENT", "State", "Written", "apply", "begin"]

RECENT: Final = 64
"""How many of the last messages a snapshot says where to find."""


class Written(msgspec.Struct, frozen=True, gc=False):
    """Where a record stands, and when it was made.

    Attributes:
        offset: the byte at which it begins.
        n: its number.
        size: its size in bytes.
        time: its time, as its header spells it.
    """

    offset: int
    n: int
    size: int
    time: str


class State(msgspec.Struct):
    """A conversation.

    Attributes:
        created: when it was made.
        updated: when the last record was written.
        profile: the JSON of ``user_id``, ``system_prompt`` and ``token_count``.
        metadata: the JSON of each value.
        summaries: the JSON of each.
        lists: the items of each.
        base: how many messages are in front of those in `messages`.
        messages: the JSON of the last ones.
        recent: records that hold the last `RECENT` messages: offset, number, place of the first message.
        weight: about how many bytes the state takes in memory.
        records: how many records there are behind the last snapshot.
        bytes: how many bytes these are.
        snapshot: the size of the last snapshot.
    """

    created: str
    updated: str
    profile: dict[str, bytes]
    metadata: dict[str, bytes]
    summaries: list[bytes]
    lists: dict[str, list[bytes]]
    base: int = 0
    messages: list[bytes] = []
    recent: deque[tuple[int, int, int]] = msgspec.field(default_factory=deque)
    weight: int = 0
    records: int = 0
    bytes: int = 0
    snapshot: int = 0

    @property
    def count(self) -> int:
        """How many messages the history has."""
        return self.base + len(self.messages)

    def snapshot_at(self, n: int) -> Snapshot:
        """Return the snapshot that a record with the number `n` would hold."""
        return Snapshot(
            n=n,
            created=self.created,
            updated=self.updated,
            profile=raw_dict(self.profile),
            metadata=raw_dict(self.metadata),
            summaries=raw_list(self.summaries),
            lists=self.lists,
            count=self.count,
            recent=self.recent[0] if self.recent else None,
        )

    def trim(self, keep: int) -> None:
        """Forget all messages but the last `keep`."""
        gone = len(self.messages) - keep
        if gone > 0:
            self.weight -= sum(map(len, self.messages[:gone]))
            del self.messages[:gone]
            self.base += gone


def raw_dict(values: Mapping[str, bytes]) -> dict[str, Raw]:
    """Return values as they stand in a change."""
    return {key: Raw(value) for key, value in values.items()}


def raw_list(values: Iterable[bytes]) -> list[Raw]:
    """Return values as they stand in a change."""
    return [Raw(value) for value in values]


def begin(change: Change | None, at: Written) -> State:
    """Return the state that a log's first record, or a snapshot to begin at, makes.

    Raises:
        ValueError: the change cannot be the first.
    """
    if isinstance(change, Snapshot):
        return State(
            created=change.created,
            updated=change.updated,
            profile=_bytes_dict(change.profile),
            metadata=_bytes_dict(change.metadata),
            summaries=list(map(bytes, change.summaries)),
            lists=change.lists,
            base=change.count,
            recent=deque([change.recent] if change.recent else ()),
            weight=at.size,
            snapshot=at.size,
        )
    state = State(created=at.time, updated=at.time, profile={}, metadata={}, summaries=[], lists={})
    apply(state, change, at)
    return state


def apply(state: State, change: Change | None, at: Written) -> None:
    """Let a state follow one record.

    Args:
        state: what the records in front have come to.
        change: what the record says; None where it says nothing about a conversation.
        at: where it stands.

    Raises:
        ValueError: the change does not fit; the state is as it was.
    """
    if type(change) is Snapshot:
        state.records, state.bytes, state.snapshot = 0, 0, at.size
        return
    _HOW[type(change)](state, change, at)
    state.updated = at.time
    state.records += 1
    state.bytes += at.size
    state.weight += at.size


def _save(state: State, change: Saved, at: Written) -> None:
    if not (0 <= change.keep <= state.count and 0 <= change.keep_summaries <= len(state.summaries)):
        raise ValueError("it keeps more messages or summaries than there are")
    state.profile = _bytes_dict(change.profile)
    state.metadata = _bytes_dict(change.metadata)
    state.created = change.created or state.created
    if change.lists is not None:
        state.lists = change.lists
    state.summaries[change.keep_summaries :] = map(bytes, change.summaries)
    if change.keep < state.count:
        # What is recent has to follow each other in the log, so it begins anew.
        del state.messages[max(change.keep - state.base, 0) :]
        state.base = min(state.base, change.keep)
        state.recent.clear()
    _extend(state, change.messages, at)


def _extend(state: State, messages: Iterable[Raw], at: Written) -> None:
    known = state.messages
    first = state.base + len(known)
    known.extend(map(bytes, messages))
    count = state.base + len(known)
    if count == first:
        return
    recent = state.recent
    recent.append((at.offset, at.n, first))
    while len(recent) > 1 and recent[1][2] <= count - RECENT:
        recent.popleft()


# A table, since the same as a chain of questions takes 2 us more of the 35 that an append takes.
_HOW: Final[Mapping[type, Callable[[State, Any, Written], None]]] = {
    Messages: lambda state, change, at: _extend(state, change.messages, at),
    Metadata: lambda state, change, _: state.metadata.update(_bytes_dict(change.metadata)),
    Items: lambda state, change, _: state.lists.setdefault(change.name, []).extend(change.items),
    Summaries: lambda state, change, _: state.summaries.extend(map(bytes, change.summaries)),
    Saved: _save,
    Forked: lambda *_: None,
    type(None): lambda *_: None,
}


def _bytes_dict(values: Mapping[str, Raw]) -> dict[str, bytes]:
    return {key: bytes(value) for key, value in values.items()}
