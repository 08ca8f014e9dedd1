"""What callers give and get: a conversation, its messages and summaries, and what a listing is to show."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from statestore.records import times

__all__ = ["ConversationState", "ListOptions", "Message", "NO_TIME", "Summary", "spell_time"]

NO_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)
"""The time that stands for none."""


def spell_time(time: datetime) -> str:
    """Return a time in RFC 3339, with its own offset and all its microseconds.

    Raises:
        ValueError: it has no time zone.
    """
    if time.utcoffset() is None:
        raise ValueError(f"a time needs a time zone, since another machine may have another one: {time.isoformat()}")
    return times.spell_time(time.isoformat())


def _spell(value: Any) -> Any:
    return spell_time(value) if isinstance(value, datetime) else value


def _nothing_is_empty(value: Any) -> Any:
    return {} if value is None else value


class Message(BaseModel):
    """One message of a history: what is known of it by name, and whatever else it was given.

    Fields that were not given stay absent in what is stored. Keys that are not listed are kept, and are attributes
    too. The key ``source`` is not stored.

    Attributes:
        role: ``system``, ``user``, ``assistant`` or ``tool``.
        content: the text.
        parts: parts of a content that is more than text: ``type``, and ``text`` or ``media``.
        tool_calls: the tools called: ``id``, ``name``, ``args`` (any JSON).
        tool_result: what a tool answered: ``id``, ``name``, ``parts``, ``error``.
        timestamp: when it was made, in RFC 3339; a datetime with a zone is turned into that.
        latency_ms: how long it took, in milliseconds.
        cost_info: tokens and prices.
        finish_reason: why the model stopped.
        meta: whatever the program wants to keep.
        reasoning: the model's reasoning.
        validations: what validators said.
        media_summary: counts of media.
    """

    model_config = ConfigDict(extra="allow", strict=True)

    role: str
    content: str | list[Any] | None = ""
    parts: list[dict[str, Any]] | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_result: dict[str, Any] | None = None
    timestamp: Annotated[str, BeforeValidator(_spell)] = "0001-01-01T00:00:00Z"
    latency_ms: int | None = 0
    cost_info: dict[str, Any] | None = None
    finish_reason: str | None = ""
    meta: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    validations: list[dict[str, Any]] | None = None
    media_summary: dict[str, Any] | None = None


class Summary(BaseModel):
    """A summary of a part of the history. In JSON its keys are ``StartTurn``, ``EndTurn`` and so on.

    Attributes:
        start_turn: the first turn that it covers.
        end_turn: the last one.
        content: the text.
        token_count: how many tokens the text has.
        created_at: when it was made.
    """

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    start_turn: int = Field(0, alias="StartTurn")
    end_turn: int = Field(0, alias="EndTurn")
    content: str = Field("", alias="Content")
    token_count: int = Field(0, alias="TokenCount")
    created_at: AwareDatetime = Field(NO_TIME, alias="CreatedAt")


class ConversationState(BaseModel):
    """A whole conversation.

    Attributes:
        id: what it is called.
        user_id: whose it is; ``""`` is nobody's.
        messages: its history.
        system_prompt: the instructions to the model.
        summaries: summaries of the history.
        token_count: a number of tokens, which is never computed here.
        last_accessed_at: when it was last written; what is given to a save is ignored.
        metadata: whatever the program wants to keep; None is taken as empty.
    """

    id: str
    user_id: str = ""
    messages: list[Message] = []
    system_prompt: str = ""
    summaries: list[Summary] = []
    token_count: int = 0
    last_accessed_at: AwareDatetime = NO_TIME
    metadata: Annotated[dict[str, Any], BeforeValidator(_nothing_is_empty)] = {}


class ListOptions(BaseModel):
    """What a listing shows.

    Attributes:
        user_id: only this user's conversations; ``""`` shows all.
        limit: how many ids at most; 0 stands for 100.
        offset: how many ids to leave out first.
        sort_by: ``created_at`` (the first message's time, or else when the conversation was made) or ``updated_at``
            (the last write); ``""`` sorts by id.
        sort_order: ``asc`` or ``desc``, in any case. By default times come newest first, and ids from a to z.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    user_id: str = ""
    limit: int = Field(0, ge=0)
    offset: int = Field(0, ge=0)
    sort_by: Literal["", "created_at", "updated_at"] = ""
    sort_order: Annotated[
        Literal["", "asc", "desc"], BeforeValidator(lambda order: order.lower() if isinstance(order, str) else order)
    ] = ""
