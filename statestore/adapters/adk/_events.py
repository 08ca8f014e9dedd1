"""Events of google-adk, as bytes and back, and as the operator's surface reads them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from google.adk.events import Event
from google.genai import types
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from statestore import ops
from statestore.errors import Corrupt
from statestore.records import Record

__all__ = ["dump_event", "dump_state", "load_event", "seen_event", "seen_time"]


def dump_event(event: Event) -> tuple[bytes, dict[str, Any]]:
    """Return an event's JSON, and of it the state that it sets. What is not JSON becomes text."""
    try:
        body = event.model_dump_json(exclude_none=True, by_alias=True, fallback=repr).encode()
    except (PydanticSerializationError, UnicodeError):
        body = _force(event.model_dump(exclude_none=True, by_alias=True))
    state = json.loads(body)["actions"].get("stateDelta") if event.actions.state_delta else None
    return body, state or {}


def dump_state(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state as JSON has it. What is not JSON becomes text."""
    try:
        body = to_json(state, serialize_unknown=True, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeError):
        body = _force(state)
    loaded: dict[str, Any] = json.loads(body)
    return loaded


def _force(value: Any) -> bytes:
    """Return the JSON of what has text in it that is no Unicode."""
    plain = to_jsonable_python(value, serialize_unknown=True, inf_nan_mode="null")
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def load_event(record: Record, log: str) -> Event:
    """Return the event that a record holds.

    Raises:
        Corrupt: it holds none that this google-adk knows.
    """
    try:
        return Event.model_validate_json(record.body)
    except ValidationError as error:
        raise Corrupt(
            f"a record holds no event that this google-adk knows: {error.errors()[0]['msg']}",
            log=log,
            record=record.n,
            offset=record.offset,
        ) from error


def seen_event(event: Event) -> ops.Event:
    """Return an event as the operator's surface reads it."""
    parts = event.content.parts if event.content else None
    return ops.Event(
        author=event.author,
        time=seen_time(event.timestamp),
        invocation_id=event.invocation_id,
        parts=[_part(part) for part in parts or ()],
        requested_input=_requested(getattr(event, "requested_input", None)),
        long_running=frozenset(event.long_running_tool_ids or ()),
        partial=bool(event.partial),
        branch=event.branch,
        error_code=event.error_code,
        rewind_before=event.actions.rewind_before_invocation_id,
    )


def seen_time(timestamp: float) -> datetime | None:
    """Return the time that a timestamp says; None where it says none."""
    try:
        return datetime.fromtimestamp(timestamp, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _part(part: types.Part | None) -> ops.Part | None:
    if part is None:
        return None
    call, response = part.function_call, part.function_response
    return ops.Part(
        text=part.text,
        call=ops.Call(call.id or "", call.name or "", call.args) if call else None,
        response=ops.Response(response.id or "", response.name or "", response.response) if response else None,
    )


def _requested(asked: Any) -> ops.Requested | None:
    """Return the explicit request of an event that has one, as those of the Go runtime do."""
    if isinstance(asked, BaseModel):
        asked = asked.model_dump()
    if not isinstance(asked, dict):
        return None
    return ops.Requested(
        interrupt_id=asked.get("interrupt_id") or "",
        message=asked.get("message") or "",
        response_schema=asked.get("response_schema"),
        payload=asked.get("payload"),
    )
