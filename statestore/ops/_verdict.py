"""What a session has come to, from what its source has read: aborted before paused before interrupted before idle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from statestore.errors import StateStoreError
from statestore.ops._events import Request
from statestore.ops._model import Detail, PendingInput, State, Summary
from statestore.ops._source import Marker, Markers, Seen

__all__ = ["Verdict", "abortion", "detail", "judge", "summary"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a session has come to.

    Attributes:
        state: in one word; None where that cannot be said.
        marker: the abort or the interruption that it rests on.
        pending: the open requests, as far as they count.
        error: why it cannot be said, or why there may be more to say.
    """

    state: State | None
    marker: Marker | None = None
    pending: tuple[Request, ...] = ()
    error: StateStoreError | None = None


def judge(seen: Seen) -> Verdict:
    """Say what a session has come to; where a part could not be read, only what the rest proves."""
    error = seen.marker_error or seen.error
    if seen.markers is None:
        return Verdict(None, error=error)
    aborted = abortion(seen.markers, seen.state)
    if aborted is not None:
        return Verdict(State.ABORTED, aborted, error=error)
    if error is not None:
        return Verdict(None, error=error)
    if seen.pending:
        return Verdict(State.PAUSED, pending=seen.pending)
    interrupted = _interruption(seen.markers, seen.state)
    return Verdict(State.INTERRUPTED, interrupted) if interrupted is not None else Verdict(State.IDLE)


def abortion(markers: Markers, state: Mapping[str, Any]) -> Marker | None:
    """Return the abort that counts: the first one in the companion, or else what stands in the session's own state."""
    first = next((marker for marker in markers.all if marker.kind == "abort"), None)
    return first or _own(state, "abort", "mast_abort")


def _interruption(markers: Markers, state: Mapping[str, Any]) -> Marker | None:
    """Return the interruption that counts: a clear in the companion also takes back what stands in the session."""
    last = next((marker for marker in reversed(markers.all) if marker.kind != "abort"), None)
    if last is None:
        return _own(state, "interrupt", "mast_interrupted")
    return last if last.kind == "interrupt" else None


def _own(state: Mapping[str, Any], kind: Literal["abort", "interrupt"], key: str) -> Marker | None:
    """Return the marker that an older program has left in the session's own state; an empty reason is none."""
    reason = state.get(f"{key}_reason")
    if not isinstance(reason, str) or not reason:
        return None
    try:
        time = datetime.fromisoformat(str(state.get(f"{key}_time")))
    except ValueError:
        time = None
    return Marker(kind, reason, time.replace(tzinfo=UTC) if time and time.tzinfo is None else time)


def summary(seen: Seen) -> Summary:
    """Return a session's row in a listing."""
    return Summary(**_fields(seen, judge(seen)))


def detail(seen: Seen) -> Detail:
    """Return all that an operator may know of a session."""
    verdict = judge(seen)
    pending = [PendingInput(**{name: getattr(each, name) for name in each.__slots__}) for each in verdict.pending]
    return Detail(**_fields(seen, verdict), event_count=seen.count, pending=pending)


def _fields(seen: Seen, verdict: Verdict) -> dict[str, Any]:
    state, marker = verdict.state, verdict.marker
    reason = marker.reason if marker else ""
    return {
        **seen.key._asdict(),
        "last_event_time": seen.updated,
        "state": state,
        "pending_interrupt_ids": [request.interrupt_id for request in verdict.pending],
        "abort_reason": reason if state is State.ABORTED else "",
        "interrupt_reason": reason if state is State.INTERRUPTED else "",
        "interrupted_at": marker.time if marker and state is State.INTERRUPTED else None,
        "error": str(verdict.error) if verdict.error else "",
    }
