"""The conversations that a process knows, within a bound."""

from __future__ import annotations

import os
from collections import OrderedDict
from threading import Lock
from typing import Final

from statestore.conversations._log import ConversationLog
from statestore.store import Store

__all__ = ["Cache", "Use"]

_KEPT: Final = 256  # messages that are kept of a history that is too large to be kept whole


class Cache:
    """The logs that were used last, each with what is known of it.

    Nothing depends on it but how much has to be read. A process that was forked begins with an empty one.

    Args:
        store: the store that holds the logs.
        limit: about how many bytes may be kept.
    """

    def __init__(self, store: Store, limit: int) -> None:
        self._store = store
        self._limit = limit
        self.clear()

    def clear(self) -> None:
        """Know nothing any more."""
        self._lock = Lock()
        self._logs: OrderedDict[str, _Kept] = OrderedDict()  # those used last are the last
        self._weight = 0
        self._pid = os.getpid()

    def use(self, name: str) -> Use:
        """Give a log to one thread at a time; of all threads of a process, none decides on an old state."""
        return Use(self, name)

    def take(self, name: str) -> _Kept:
        """Return a log that `give_back` is called for once."""
        if os.getpid() != self._pid:
            self.clear()
        with self._lock:
            kept = self._logs.get(name)
            if kept is None:
                kept = self._logs[name] = _Kept(ConversationLog(self._store, name))
            else:
                self._logs.move_to_end(name)
            kept.users += 1
        return kept

    def give_back(self, name: str, kept: _Kept) -> None:
        """Take back a log from who used it, and forget those used longest ago where there is too much."""
        with self._lock:
            kept.users -= 1
            if kept.users or self._logs.get(name) is not kept:  # of before this was cleared
                return
            # Nobody else has it, nor gets it while the lock is held.
            state = kept.log.state
            if state is None:
                self._weight -= self._logs.pop(name).weight
                return
            if kept.log.weight > self._limit // 4:
                state.trim(_KEPT)
            weight = kept.log.weight
            self._weight += weight - kept.weight
            kept.weight = weight
            while self._weight > self._limit:
                oldest = next((name for name, kept in self._logs.items() if not kept.users), None)
                if oldest is None:
                    return
                self._weight -= self._logs.pop(oldest).weight


class _Kept:
    """A log, the number of threads that use or await it, and what it weighed when it was given back."""

    __slots__ = ("log", "users", "weight")

    def __init__(self, log: ConversationLog) -> None:
        self.log = log
        self.users = 0
        self.weight = 0


class Use:
    """Has a log, alone among the threads of the process, until the context ends."""

    __slots__ = ("_cache", "_kept", "_name")

    def __init__(self, cache: Cache, name: str) -> None:
        self._cache = cache
        self._name = name

    def __enter__(self) -> ConversationLog:
        self._kept = kept = self._cache.take(self._name)
        try:
            kept.log.lock.acquire()
        except BaseException:
            self._cache.give_back(self._name, kept)
            raise
        return kept.log

    def __exit__(self, *_: object) -> None:
        self._kept.log.lock.release()
        self._cache.give_back(self._name, self._kept)
