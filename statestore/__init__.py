"""statestore: the state of AI agents, as append-only logs.

A store (:func:`open_store`) holds logs; a log holds records (:class:`RecordLog`); a session is a log that tells
an agent's story (:class:`Sessions`).
"""

from __future__ import annotations

from statestore.errors import StateStoreError
from statestore.store import NEW, Store, Tail

__all__ = ["NEW", "StateStoreError", "Store", "Tail"]

__version__ = "0.1.0"
