"""statestore: the state of AI agents, as append-only logs.

A store holds logs (:func:`open_store`), a log holds records (:class:`RecordLog`), and a session is a log that
tells an agent's story (:class:`Sessions`); a conversation is one that keeps messages, metadata, summaries and lists
(:class:`Conversations`). What can go wrong is drawn in :mod:`statestore.errors`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from statestore.errors import StateStoreError

if TYPE_CHECKING:
    from statestore.conversations import Conversations
    from statestore.plugins import open_store
    from statestore.records import Record, RecordLog, draft
    from statestore.sessions import Conf, Sessions, Transcript
    from statestore.store import NEW, Store, Tail

__all__ = [
    "Conf",
    "Conversations",
    "NEW",
    "Record",
    "RecordLog",
    "Sessions",
    "StateStoreError",
    "Store",
    "Tail",
    "Transcript",
    "draft",
    "open_store",
]

__version__ = "0.1.0"

# Loaded when first asked for, so that nobody loads more than is used.
_LAZY = {
    "Conf": "statestore.sessions",
    "Conversations": "statestore.conversations",
    "NEW": "statestore.store",
    "Record": "statestore.records",
    "RecordLog": "statestore.records",
    "Sessions": "statestore.sessions",
    "Store": "statestore.store",
    "Tail": "statestore.store",
    "Transcript": "statestore.sessions",
    "draft": "statestore.records",
    "open_store": "statestore.plugins",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'statestore' has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
