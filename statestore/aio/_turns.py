"""Turns: what must not be done by several tasks at once waits in line, and takes no thread meanwhile."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

__all__ = ["Turns"]


class Turns:
    """One line for each name; those of different event loops know nothing of each other."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    def of(self, name: str = "") -> asyncio.Lock:
        """Return what to hold while it is one's turn: who comes first is first."""
        place = (id(asyncio.get_running_loop()), name)
        lock = self._locks.get(place)
        if lock is None:
            lock = self._locks[place] = asyncio.Lock()
        return lock
