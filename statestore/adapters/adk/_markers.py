"""Markers as events of a companion session, in the words of the Go system, so that each reads what the other writes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, Literal

from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions import Session
from google.genai import types

from statestore.ops import Marker
from statestore.ops._model import spell

__all__ = [
    "KEYS",
    "RESERVED",
    "claim",
    "claim_state",
    "companion",
    "is_companion",
    "read_claim",
    "read_markers",
    "write_marker",
]

RESERVED: Final = ":mast-ops"
"""How the id of a companion ends; in front of it stands the session's."""

_ABORT, _ABORT_TIME = "mast_abort_reason", "mast_abort_time"
_CUT, _CUT_TIME = "mast_interrupted_reason", "mast_interrupted_time"
KEYS: Final = (_ABORT, _ABORT_TIME, _CUT, _CUT_TIME)
"""The keys of state that say what markers say. An empty text takes back."""

_NONCE: Final = "statestore_nonce"

_WORDS: Final = {
    "abort": ("operator-abort", "operator", "session aborted by operator: "),
    "interrupt": ("shutdown-interrupt", "daemon", "turn interrupted by daemon shutdown: "),
    "clear": ("shutdown-interrupt-clear", "daemon", "interruption cleared"),
}
_TICK: Final = 1e-6  # what SQL services tell two times apart by


def companion(id: str) -> str:  # noqa: A002 - what it is called everywhere
    """Return the id of a session's companion; blanks around the session's do not count."""
    return id.strip() + RESERVED


def claim(id: str) -> str:  # noqa: A002
    """Return the id of the session whose making is a session's abort, where nothing else tells who was first."""
    return f"{id.strip()}:abort{RESERVED}"


def is_companion(id: str) -> bool:  # noqa: A002
    """Say whether an id is a companion's."""
    return id.strip().endswith(RESERVED)


def read_markers(session: Session) -> Iterator[Marker]:
    """Yield the markers of a companion, in their order."""
    told: set[bool] = set()
    for event in session.events:
        for marker in _read(event.actions.state_delta, event.id):
            told.add(marker.kind == "abort")
            yield marker
    # A companion may have been made with a state, and its events may not all have been kept.
    yield from (marker for marker in _read(session.state, "") if (marker.kind == "abort") not in told)


def claim_state(marker: Marker) -> dict[str, str]:
    """Return the state of a session whose making is an abort."""
    return {_ABORT: marker.reason, _ABORT_TIME: spell(marker.time or datetime.now(UTC)), _NONCE: marker.nonce}


def read_claim(session: Session) -> Marker:
    """Return the abort that a session was made for."""
    told = session.state
    return Marker("abort", str(told.get(_ABORT, "")), _time(told.get(_ABORT_TIME)), str(told.get(_NONCE, "")))


def _read(state: dict[str, Any], nonce: str) -> Iterator[Marker]:
    reason = state.get(_ABORT)
    if isinstance(reason, str) and reason:
        yield Marker("abort", reason, _time(state.get(_ABORT_TIME)), nonce)
    reason = state.get(_CUT)
    if isinstance(reason, str):
        kind: Literal["interrupt", "clear"] = "interrupt" if reason else "clear"
        yield Marker(kind, reason, _time(state.get(_CUT_TIME)), nonce)


def _time(text: object) -> datetime | None:
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def write_marker(marker: Marker, behind: Session) -> Event:
    """Return the event that a marker becomes; its time is later than all that the companion has."""
    invocation, author, text = _WORDS[marker.kind]
    time = marker.time or datetime.now(UTC)
    reason, when = (marker.reason, spell(time)) if marker.kind != "clear" else ("", "")
    keys = (_ABORT, _ABORT_TIME) if marker.kind == "abort" else (_CUT, _CUT_TIME)
    return Event(
        id=marker.nonce,
        invocation_id=invocation,
        author=author,
        timestamp=max([time.timestamp(), *(event.timestamp + _TICK for event in behind.events)]),
        content=types.Content(role="user", parts=[types.Part(text=text + marker.reason)]),
        actions=EventActions(state_delta=dict(zip(keys, (reason, when), strict=True))),
    )
