"""Sessions: a log that tells what an agent was asked, what it answered, which tools it called and what they said.

Start, open, load, list and fork them with :class:`Sessions`; read what they have come to off a
:class:`Transcript`. ``docs/sessions.md`` explains the concepts.
"""

from __future__ import annotations

from statestore.records import Usage
from statestore.sessions.conf import Conf, Worker
from statestore.sessions.session import Session
from statestore.sessions.sessions import Sessions, valid_id
from statestore.sessions.transcript import Status, Transcript, Unpaired

__all__ = [
    "Conf",
    "Session",
    "Sessions",
    "Status",
    "Transcript",
    "Unpaired",
    "Usage",
    "Worker",
    "valid_id",
]
