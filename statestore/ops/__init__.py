"""What an operator may know and do: which sessions exist, which wait for an answer, abort one, mark an interruption.

Everything is derived from what is stored. A :class:`Source` says how a system of sessions is read and where its markers
go; :class:`Operator` is the same over each of them.
"""

from __future__ import annotations

from statestore.ops._conversations import ConversationsSource
from statestore.ops._events import Call, Event, Part, Request, Requested, Response
from statestore.ops._model import Detail, PendingInput, State, Summary
from statestore.ops._operator import DEFAULT_REASON, Operator
from statestore.ops._pending import go_rules, python_rules
from statestore.ops._sessions import SessionsSource, request_input
from statestore.ops._source import Answer, Key, Marker, Markers, Seen, Source
from statestore.ops._sync import SyncOperator

__all__ = [
    "Answer",
    "Call",
    "ConversationsSource",
    "DEFAULT_REASON",
    "Detail",
    "Event",
    "Key",
    "Marker",
    "Markers",
    "Operator",
    "Part",
    "PendingInput",
    "Request",
    "Requested",
    "Response",
    "Seen",
    "SessionsSource",
    "Source",
    "State",
    "Summary",
    "SyncOperator",
    "go_rules",
    "python_rules",
    "request_input",
]
