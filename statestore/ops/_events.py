"""Events as the operator's surface reads them, whatever system has written them: what all of them have, and no more.

They are read tolerantly: parts may be None, and so may what they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

__all__ = ["Call", "Event", "Part", "Request", "Requested", "Response"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function.

    Attributes:
        id: its id; ``""`` where it has none.
        name: the function.
        args: what it was called with; a mapping, if the system keeps its promise.
    """

    id: str
    name: str = ""
    args: Any = None


@dataclass(frozen=True, slots=True)
class Response:
    """What came of a call, or the answer to a request for input.

    Attributes:
        id: the id of the call or request; ``""`` answers nothing.
        name: the function.
        response: any JSON.
    """

    id: str
    name: str = ""
    response: Any = None


@dataclass(frozen=True, slots=True)
class Part:
    """One part of what an event says; the three are None where it is another kind of part."""

    text: str | None = None
    call: Call | None = None
    response: Response | None = None


@dataclass(frozen=True, slots=True)
class Requested:
    """An explicit request for input.

    Attributes:
        interrupt_id: what the answer names; an empty one is no request.
        message: what to ask the person.
        response_schema: the JSON Schema of the answer; None where any will do.
        payload: any JSON that belongs to the question.
    """

    interrupt_id: str
    message: str = ""
    response_schema: Any = None
    payload: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a session.

    Attributes:
        author: ``user``, or the name of an agent.
        time: when it was made, in UTC; None where it does not say.
        invocation_id: the turn that it belongs to.
        parts: what it says, in order.
        requested_input: the explicit request that it makes.
        long_running: ids of its calls whose results come later. Their order means nothing: calls have one.
        partial: whether it is a piece of an event that comes whole later.
        branch: where in a tree of agents it was made.
        error_code: the code of the failure that it tells of.
        rewind_before: the turn in front of which the session was taken back; what came between no longer counts.
    """

    author: str = ""
    time: datetime | None = None
    invocation_id: str = ""
    parts: Sequence[Part | None] | None = None
    requested_input: Requested | None = None
    long_running: Sequence[str] | frozenset[str] | None = None
    partial: bool = False
    branch: str | None = None
    error_code: str | None = None
    rewind_before: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request that is open: somebody has to answer it.

    Attributes:
        interrupt_id: what the answer names.
        message: what to ask the person.
        author: who asks.
        raised_at: when; None where that is not known.
        response_schema: the JSON Schema of the answer; None where any will do.
        payload: any JSON that belongs to the question.
        long_running: whether it is a call that waits, and no explicit request.
        tool_name: the function that was called.
    """

    interrupt_id: str
    message: str = ""
    author: str = ""
    raised_at: datetime | None = None
    response_schema: Any = None
    payload: Any = None
    long_running: bool = False
    tool_name: str = ""
