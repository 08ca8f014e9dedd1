"""Logs in this process's memory: for tests, and for reading how a store is written.

Nothing outlives the process. Stores that were opened under one name share their logs::

    from statestore_memory import MemoryStore

    writer, reader = MemoryStore("shared"), MemoryStore("shared")
"""

from __future__ import annotations

from statestore_memory._store import MemoryStore

__all__ = ["MemoryStore"]
