"""What an operator may know and do: which sessions exist, which wait for an answer, abort one, mark an interruption.

Everything is derived from what is stored. A :class:`Source` says how a system of sessions is read and where its markers
go; :class:`Operator` is the same over each of them.
"""

from __future__ import annotations

from statestore.ops._events import Call, Event, Part, Request, Requested, Response
from statestore.ops._model import Detail, PendingInput, State, Summary
from statestore.ops._pending import go_rules, python_rules
from statestore.ops._source import Answer, Key, Marker, Markers, Seen, Source

__all__ = [
    "Answer",
    "Call",
    "Detail",
    "Event",
    "Key",
    "Marker",
    "Markers",
    "Part",
    "PendingInput",
    "Request",
    "Requested",
    "Response",
    "Seen",
    "Source",
    "State",
    "Summary",
    "go_rules",
    "python_rules",
]
