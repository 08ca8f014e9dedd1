"""Conversations: messages, metadata, summaries and named lists, kept as one log each.

Load, save, append to, fork, list and sweep them with :class:`Conversations`. ``docs/conversations.md`` explains the
concepts, ``docs/format.md`` the records.
"""

from __future__ import annotations

from statestore.conversations._conversations import Conversations
from statestore.conversations._messages import GivenMessage, GivenSummary
from statestore.conversations._model import ConversationState, ListOptions, Message, Summary

__all__ = [
    "ConversationState",
    "Conversations",
    "GivenMessage",
    "GivenSummary",
    "ListOptions",
    "Message",
    "Summary",
]
