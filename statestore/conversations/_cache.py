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
        self._logs: OrderedDict[str, ConversationLog] = OrderedDict()  # those used last are the last
        self._weight = 0
        self._pid = os.getpid()

    def use(self, name: str) -> Use:
        """Give a log to one thread at a time, so that threads of a process do not refuse each other's appends."""
        return Use(self, name)

    def take(self, name: str) -> ConversationLog:
        """Return a log, to use with its lock held."""
        if os.getpid() != self._pid:
            self.clear()
        with self._lock:
            log = self._logs.get(name)
            if log is None:
                log = self._logs[name] = ConversationLog(self._store, name)
            else:
                self._logs.move_to_end(name)
        return log

    def weigh(self, log: ConversationLog) -> None:
        """Forget the logs used longest ago where this one, whose lock is held, has grown and all are too much."""
        if log.weight > self._limit // 4 and log.state:
            log.state.trim(_KEPT)
        weight = log.weight
        with self._lock:
            if self._logs.get(log.name) is not log:  # cleared, or forgotten while it was in use
                return
            if log.state is None:
                del self._logs[log.name]
            self._weight += weight - log.weighed
            log.weighed = weight
            while self._weight > self._limit:
                self._weight -= self._logs.popitem(last=False)[1].weighed


class Use:
    """Has a log, alone among the threads of the process, until the context ends."""

    __slots__ = ("_cache", "_log", "_name")

    def __init__(self, cache: Cache, name: str) -> None:
        self._cache = cache
        self._name = name

    def __enter__(self) -> ConversationLog:
        self._log = log = self._cache.take(self._name)
        log.lock.acquire()
        return log

    def __exit__(self, *_: object) -> None:
        try:
            self._cache.weigh(self._log)
        finally:
            self._log.lock.release()
