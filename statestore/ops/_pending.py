"""Which requests are open, derived from events alone, by the rules of the two runtimes that write them.

Both are pure functions of the events. They differ in who may answer, and in what an event does first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from statestore.ops._events import Call, Event, Request, Response

__all__ = ["CONFIRMATION", "CREDENTIAL", "INPUT", "Open", "Rules", "go_rules", "python_rules"]

INPUT: Final = "adk_request_input"
"""The function that stands for an explicit request for input: its id is the request's."""

CONFIRMATION: Final = "adk_request_confirmation"
"""The function that asks whether another one may be called."""

CREDENTIAL: Final = "adk_request_credential"
"""The function that asks for what lets a tool in."""

_ABORTED: Final = "INVOCATION_ABORTED"  # the error code of the answers that seal the calls of a turn that was aborted
_CONFIRMED: Final = {"type": "object", "properties": {"confirmed": {"type": "boolean"}}, "required": ["confirmed"]}

Rules: TypeAlias = Callable[[Iterable[Event]], list[Request]]
"""What makes events into the open requests, each once, in the order in which they were raised."""


class Open:
    """The open requests behind some events, by the rules of the Go runtime, brought forward event by event.

    An answer closes whoever gave it, whatever it says. A request that is raised again while it is open is replaced
    where it stands; one that was answered stands where it was raised again.

    Args:
        requests: those that are open already.
    """

    def __init__(self, requests: Iterable[Request] = ()) -> None:
        self._by_id = {request.interrupt_id: request for request in requests}

    @property
    def requests(self) -> list[Request]:
        """Those that are open, in the order in which they were raised."""
        return list(self._by_id.values())

    def add(self, event: Event) -> None:
        """Go on by one event."""
        for asked in _asked(event):
            self._by_id[asked.interrupt_id] = asked
        for call in _parked(event):
            if call.id not in self._by_id:
                self._by_id[call.id] = _request(event, call)
        for response in _responses(event):
            self._by_id.pop(response.id, None)


def go_rules(events: Iterable[Event]) -> list[Request]:
    """Return the requests that are open by the rules of the Go runtime, which are also those of our own logs."""
    opened = Open()
    for event in events:
        opened.add(event)
    return opened.requests


def python_rules(events: Iterable[Event]) -> list[Request]:
    """Return the requests that are open by the rules of the Python ADK.

    Only a user answers: what a tool says in the meantime leaves its call open. A user's turn on a branch that runs
    below a call closes the call. Calls of a turn that was aborted are dead, and what was taken back never happened.
    Pieces of events count for nothing.
    """
    opened: dict[str, Request] = {}
    for event in _live([event for event in events if not event.partial]):
        responses = _responses(event)
        if event.author == "user":
            for response in responses:
                opened.pop(response.id, None)
            for run in _runs(event.branch) if responses else ():
                opened.pop(run, None)
        elif event.error_code == _ABORTED:
            for response in responses:
                opened.pop(response.id, None)
        # Older sessions do not say of these calls that they wait; an explicit request says more than its call.
        raised = {call.id: _request(event, call) for call in _parked(event, INPUT, CREDENTIAL)}
        opened |= raised | {asked.interrupt_id: asked for asked in _asked(event)}
    return list(opened.values())


def _live(events: Sequence[Event]) -> list[Event]:
    """Return the events that count after every taking back, the last of which is looked at first."""
    if not any(event.rewind_before for event in events):
        return list(events)
    first: dict[str, int] = {}
    for place, event in enumerate(events):
        if event.invocation_id:
            first.setdefault(event.invocation_id, place)
    kept: list[Event] = []
    place = len(events) - 1
    while place >= 0:
        event = events[place]
        if event.rewind_before:
            place = min(first.get(event.rewind_before, place), place)
        else:
            kept.append(event)
        place -= 1
    return kept[::-1]


def _runs(branch: str | None) -> list[str]:
    """Return the ids of the runs that a branch is made of: what stands behind the ``@`` of each of its steps."""
    return [run for step in (branch or "").split(".") if (run := step.rpartition("@")[2] if "@" in step else "")]


def _asked(event: Event) -> list[Request]:
    """Return the explicit request of an event, if it makes one."""
    asked = event.requested_input
    if asked is None or not asked.interrupt_id:
        return []
    return [
        Request(
            interrupt_id=asked.interrupt_id,
            message=asked.message,
            author=event.author,
            raised_at=event.time,
            response_schema=asked.response_schema,
            payload=asked.payload,
        )
    ]


def _responses(event: Event) -> list[Response]:
    return [part.response for part in event.parts or () if part is not None and part.response and part.response.id]


def _parked(event: Event, *always: str) -> list[Call]:
    """Return the calls of an event that wait, as it makes them; then those that it names and does not make."""
    named = {id_ for id_ in event.long_running or () if id_}
    calls = [part.call for part in event.parts or () if part is not None and part.call and part.call.id]
    found = {call.id: call for call in calls if call.id in named or call.name in always}
    return [*found.values(), *(Call(id_) for id_ in sorted(named - found.keys()))]


def _request(event: Event, call: Call) -> Request:
    """Return the request that a call that waits is."""
    args: dict[str, Any] = call.args if isinstance(call.args, dict) else {}
    message = args.get("message")
    request = Request(
        interrupt_id=call.id,
        message=message if isinstance(message, str) else "",
        author=event.author,
        raised_at=event.time,
        long_running=True,
        tool_name=call.name,
    )
    if call.name == INPUT:
        return replace(
            request,
            response_schema=args.get("response_schema"),
            payload=args.get("payload"),
            long_running=False,
            tool_name="",
        )
    if call.name == CREDENTIAL:
        return replace(request, payload=args or None)
    if call.name == CONFIRMATION:
        asked, original = args.get("toolConfirmation"), args.get("originalFunctionCall")
        hint = asked.get("hint") if isinstance(asked, dict) else None
        tool = original.get("name") if isinstance(original, dict) else None
        told = hint if isinstance(hint, str) and hint else f"may {tool or 'a tool'} be called?"
        return replace(request, response_schema=_CONFIRMED, payload=original, message=told)
    return request
