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
        self._logs: OrderedDict[str, tuple[ConversationLog, int]] = OrderedDict()
        self._used: dict[str, tuple[ConversationLog, int]] = {}  # with the number of threads that use or await each
        self._weight = 0
        self._pid = os.getpid()

    def use(self, name: str) -> Use:
        """Give a log to one thread at a time; of all threads of a process, none decides on an old state."""
        return Use(self, name)

    def take(self, name: str) -> ConversationLog:
        """Return a log that `keep` is called for once."""
        if os.getpid() != self._pid:
            self.clear()
        with self._lock:
            log, users = self._used.get(name) or (self._known(name), 0)
            self._used[name] = (log, users + 1)
        return log

    def _known(self, name: str) -> ConversationLog:
        found = self._logs.get(name)
        return found[0] if found else ConversationLog(self._store, name)

    def keep(self, name: str, log: ConversationLog) -> None:
        """Take back a log from who used it."""
        with self._lock:
            log_, users = self._used.pop(name, (log, 1))
            if log_ is not log:  # of before this was cleared
                self._used[name] = (log_, users)
                return
            if users > 1:
                self._used[name] = (log, users - 1)
                return
            # Nobody else has it, nor gets it while the lock is held.
            if log.state is not None and log.weight > self._limit // 4:
                log.state.trim(_KEPT)
            self._weight -= self._logs.pop(name, (log, 0))[1]
            if log.state is None:
                return
            self._logs[name] = (log, log.weight)
            self._weight += log.weight
            while self._weight > self._limit:
                self._weight -= self._logs.popitem(last=False)[1][1]


class Use:
    """Has a log, alone among the threads of the process, until the context ends."""

    __slots__ = ("_cache", "_log", "_name")

    def __init__(self, cache: Cache, name: str) -> None:
        self._cache = cache
        self._name = name

    def __enter__(self) -> ConversationLog:
        self._log = self._cache.take(self._name)
        try:
            self._log.lock.acquire()
        except BaseException:
            self._cache.keep(self._name, self._log)
            raise
        return self._log

    def __exit__(self, *_: object) -> None:
        self._log.lock.release()
        self._cache.keep(self._name, self._log)
