"""What an operator gets: summaries, details and open requests, and their JSON.

Keys without a value are left out of the JSON, and times are in UTC and end in ``Z``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainSerializer, SerializerFunctionWrapHandler, model_serializer

__all__ = ["Detail", "PendingInput", "State", "Summary", "spell"]


class State(StrEnum):
    """What a session has come to, as far as its store proves it. Nothing proves that one runs, or is done."""

    ABORTED = "aborted"
    """An operator has ended it."""
    PAUSED = "paused"
    """Somebody has to answer a request."""
    INTERRUPTED = "interrupted"
    """A process that shut down has cut its turn short."""
    IDLE = "idle"
    """None of these."""


def spell(time: datetime) -> str:
    """Return a time in RFC 3339, in UTC, with its microseconds where it has any."""
    text = time.astimezone(UTC).isoformat().removesuffix("+00:00")
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "Z"


Time = Annotated[datetime, PlainSerializer(spell, return_type=str, when_used="json")]


class _Lean(BaseModel):
    """A model whose JSON leaves out what is empty."""

    model_config = ConfigDict(frozen=True)

    @model_serializer(mode="wrap")
    def _leave_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if not _is_empty(key, value)}


def _is_empty(key: str, value: Any) -> bool:
    """Say whether a value is left out: of what others gave, only what is not there; a count of 0 stays."""
    if key in ("payload", "response_schema"):
        return value is None
    return value is None or value is False or value in ("", [])


class PendingInput(_Lean):
    """A request that waits for an answer.

    Attributes:
        interrupt_id: what the answer names.
        message: what to ask the person.
        author: who asks.
        raised_at: when.
        response_schema: the JSON Schema of the answer.
        payload: any JSON that belongs to the question.
        long_running: whether it is a call that waits for its result.
        tool_name: the function that was called.
    """

    interrupt_id: str
    message: str = ""
    author: str = ""
    raised_at: Time | None = None
    response_schema: Any = None
    payload: Any = None
    long_running: bool = False
    tool_name: str = ""


class Summary(_Lean):
    """One row of a listing.

    Attributes:
        id: the session's id.
        app_name: the application; ``""`` where there is none.
        user_id: whose it is; ``""`` where there are no users.
        last_event_time: when its last event came, or else when it was made; None where that is not known.
        state: what it has come to; None where that cannot be said, and `error` says why.
        pending_interrupt_ids: the open requests; none of an aborted session.
        abort_reason: why it was aborted.
        interrupt_reason: why it was interrupted.
        interrupted_at: when it was interrupted.
        error: why the session, or what was said of it, cannot be read.
    """

    id: str
    app_name: str = ""
    user_id: str = ""
    last_event_time: Time | None = None
    state: State | None = None
    pending_interrupt_ids: list[str] = []
    abort_reason: str = ""
    interrupt_reason: str = ""
    interrupted_at: Time | None = None
    error: str = ""

    @model_serializer(mode="wrap")
    def _leave_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Who reads rows may rely on a session's whole name.
        names = {"id": self.id, "app_name": self.app_name, "user_id": self.user_id}
        return names | {key: value for key, value in handler(self).items() if not _is_empty(key, value)}


class Detail(Summary):
    """One session.

    Attributes:
        event_count: how many events it has; markers do not count.
        pending: the open requests; none of an aborted session.
    """

    event_count: int = 0
    pending: list[PendingInput] = []
