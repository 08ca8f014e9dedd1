"""The ten kinds of record that a session knows. Kinds are open: any other string passes through unchanged."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BLOCKS",
    "CALL",
    "CONFIG",
    "ERROR",
    "KINDS",
    "MESSAGE",
    "RESULT",
    "START",
    "STEP",
    "SYSTEM",
    "TEXT",
    "THINKING",
]

START: Final = "start"
"""The first record of a session; its body is empty."""

CONFIG: Final = "config"
"""How the session is set up: the JSON of a ``Conf``."""

SYSTEM: Final = "system"
"""Instructions to the model that no user wrote."""

MESSAGE: Final = "message"
"""What somebody said to the agent."""

TEXT: Final = "text"
"""A block of text that the model answered with; ``step`` names the step that closes it."""

THINKING: Final = "thinking"
"""A block of the model's thinking; ``step`` names the step that closes it."""

CALL: Final = "call"
"""A block that calls a tool; ``step`` names the step that closes it."""

RESULT: Final = "result"
"""What a tool answered; ``for`` names the call."""

STEP: Final = "step"
"""The end of one answer of the model: it closes its blocks and says up to which record the model had seen."""

ERROR: Final = "error"
"""Something failed; the session can go on."""

BLOCKS: Final = frozenset({TEXT, THINKING, CALL})
"""The kinds that count only once a step has closed them."""

KINDS: Final = (START, CONFIG, SYSTEM, MESSAGE, TEXT, THINKING, CALL, RESULT, STEP, ERROR)
"""All ten."""
