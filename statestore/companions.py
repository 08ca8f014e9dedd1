"""The name of a session's companion: the log beside it that holds what an operator has said of it.

The segment ``~ops`` is reserved for that: no session and no conversation, and no place for them, has it in its name.
"""

from __future__ import annotations

from typing import Final

from statestore import names
from statestore.errors import InvalidName

__all__ = ["RESERVED", "check_free", "companion", "is_companion"]

RESERVED: Final = "~ops"
"""The last segment of a companion's name."""


def companion(log: str) -> str:
    """Return the name of a log's companion.

    Raises:
        InvalidName: it would be too long.
    """
    return names.check(f"{log}/{RESERVED}")


def is_companion(log: str) -> bool:
    """Say whether a name is a companion's."""
    return log.endswith(f"/{RESERVED}")


def check_free(name: str) -> str:
    """Return a name as it is, or refuse it where the reserved segment is in it.

    Raises:
        InvalidName: it is.
    """
    if RESERVED in name.split("/"):
        raise InvalidName(
            f"the name {RESERVED} is reserved for what operators say of sessions: take another", name=name
        )
    return name
