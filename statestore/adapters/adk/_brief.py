"""What a session's records come to but for its events, as a fold that a catalog keeps."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from statestore.adapters.adk._shared import VOID
from statestore.errors import Corrupt
from statestore.records import Record

__all__ = ["Brief", "BriefFold", "CREATED", "Created", "EVENT", "SHARED", "own_part", "shared_part"]

CREATED: Final = "adk.session"
"""The kind of the record that makes a session: its body is a `Created`."""

EVENT: Final = "adk.event"
"""The kind of a record that holds one event, its body is the event's own JSON."""

SHARED: Final = {"app": "app:", "user": "user:"}
"""How the keys of state begin that sessions share: with all of the application, and with those of one user."""

_OTHERS: Final = (*SHARED.values(), "temp:")


class Created(msgspec.Struct, frozen=True):
    """What a session begins with.

    Attributes:
        app: the application.
        user: whose it is.
        id: its id.
        time: when it was made, in seconds since 1970.
        state: its state, and what it sets of the state that is shared.
    """

    app: str
    user: str
    id: str
    time: float
    state: dict[str, Any]


class _Actions(msgspec.Struct, frozen=True):
    state: dict[str, Any] | None = msgspec.field(default=None, name="stateDelta")


class _Event(msgspec.Struct, frozen=True):
    id: str
    timestamp: float
    actions: _Actions = _Actions()


class Brief(msgspec.Struct, frozen=True):
    """What a session's records come to.

    Attributes:
        user: whose it is.
        id: its id.
        exists: whether there is a session: a log may hold none, where one was only to be made.
        updated: the time of its last event, or when it was made.
        state: its own state.
        events: how many events it has.
        last: the last event's id.
    """

    user: str = ""
    id: str = ""
    exists: bool = False
    updated: float = 0.0
    state: dict[str, Any] = {}
    events: int = 0
    last: str = ""


_created: Final = msgspec.json.Decoder(Created).decode
_event: Final = msgspec.json.Decoder(_Event).decode
_brief: Final = msgspec.json.Decoder(Brief).decode


class BriefFold:
    """Folds a session's records into a `Brief`."""

    name = "adk"
    version = 1

    def initial(self) -> Brief:
        """Return what no records come to."""
        return Brief()

    def step(self, state: Brief, record: Record) -> Brief:
        """Return what the records come to with one more.

        Raises:
            Corrupt: the record's body is not what its kind says.
        """
        kind = record.kind
        try:
            if kind == EVENT:
                event = _event(record.body)
                own = own_part(event.actions.state or {})
                return msgspec.structs.replace(
                    state,
                    updated=event.timestamp,
                    state=state.state | own if own else state.state,
                    events=state.events + 1,
                    last=event.id,
                )
            if kind == CREATED:
                made = _created(record.body)
                return Brief(made.user, made.id, True, made.time, own_part(made.state))
        except msgspec.DecodeError as error:
            raise Corrupt(f"a record of a session is none: {error}", record=record.n, offset=record.offset) from error
        if kind != VOID:
            raise Corrupt(f"a session has no records of this kind: {kind}", record=record.n, offset=record.offset)
        return state

    def dump(self, state: Brief) -> bytes:
        """Return the state as bytes."""
        return msgspec.json.encode(state)

    def load(self, data: bytes) -> Brief:
        """Return the state that `dump` has written."""
        return _brief(data)


def shared_part(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what a state sets for others, by scope, its keys without their prefix."""
    return {
        scope: {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
        for scope, prefix in SHARED.items()
    }


def own_part(state: dict[str, Any]) -> dict[str, Any]:
    """Return what a state sets for its session alone."""
    return {key: value for key, value in state.items() if not key.startswith(_OTHERS)}
