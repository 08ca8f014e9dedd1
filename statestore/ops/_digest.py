"""What a log comes to for an operator, small enough to be kept for each of ten thousand logs."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from statestore.errors import StateStoreError
from statestore.ops._events import Request
from statestore.ops._markers import decode, read_time, that_count
from statestore.ops._source import Key, Marker, Seen
from statestore.records import Record

__all__ = ["Digest", "DigestFold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What a log comes to: a session's, or a companion's, of which only the markers are there.

    Attributes:
        records: how many records were looked at.
        is_session: whether the log is a session.
        user_id: whose it is, where the log itself says so.
        created: the first record's time, as it is spelled.
        updated: the last event's.
        count: how many events there are.
        pending: the open requests.
        state: the session's own state, as far as it may hold what older programs have left there.
        markers: the markers that count.
        more: what the next step needs to know, as JSON has it.
    """

    records: int = 0
    is_session: bool = False
    user_id: str = ""
    created: str = ""
    updated: str = ""
    count: int = 0
    pending: tuple[Request, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    markers: tuple[Marker, ...] = ()
    more: Any = None

    def seen(self, key: Key, error: StateStoreError | None = None, at: Any = None) -> Seen:
        """Return what an operator sees of a session, but for its companion."""
        own: dict[str, Any] = {}
        for marker in self.markers:
            reason = "mast_abort" if marker.kind == "abort" else "mast_interrupted"
            own |= {f"{reason}_reason": marker.reason, f"{reason}_time": marker.time and marker.time.isoformat()}
        return Seen(
            key=key,
            created=read_time(self.created),
            updated=read_time(self.updated),
            count=self.count,
            pending=self.pending,
            state={**self.state, **own},
            error=error,
            at=at,
        )


class DigestFold(ABC):
    """Folds the records of a session, and those of a companion; see :class:`statestore.catalog.Fold`."""

    name: str
    version: int

    def initial(self) -> Digest:
        """Return what no records come to."""
        return Digest()

    def step(self, state: Digest, record: Record) -> Digest:
        """Return the state behind a record.

        Raises:
            Corrupt: it cannot be understood.
        """
        marker = decode(record)
        if marker is not None:
            return replace(state, records=state.records + 1, markers=that_count((*state.markers, marker)))
        return self.go_on(state, record)

    @abstractmethod
    def go_on(self, state: Digest, record: Record) -> Digest:
        """Return the state behind a record that is no marker.

        Raises:
            Corrupt: it cannot be understood.
        """

    def dump(self, state: Digest) -> bytes:
        """Return a state as bytes."""
        plain = {each.name: getattr(state, each.name) for each in fields(state)}
        plain["pending"] = [_plain(request) for request in state.pending]
        plain["markers"] = [_plain(marker) for marker in state.markers]
        return json.dumps(plain, separators=(",", ":")).encode()

    def load(self, data: bytes) -> Digest:
        """Return the state that `dump` has written."""
        plain = json.loads(data)
        requests = (Request(**each | {"raised_at": read_time(each["raised_at"])}) for each in plain.pop("pending"))
        markers = (Marker(**each | {"time": read_time(each["time"])}) for each in plain.pop("markers"))
        return Digest(**plain, pending=tuple(requests), markers=tuple(markers))


def _plain(thing: Request | Marker) -> dict[str, Any]:
    """Return a thing's fields as JSON has them."""
    values = {each.name: getattr(thing, each.name) for each in fields(thing)}
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in values.items()}
