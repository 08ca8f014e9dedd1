"""The conversations that a process knows, within a bound."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from statestore.conversations._log import ConversationLog
from statestore.store import Store

__all__ = ["Cache"]

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
        self._weight = 0
        self._pid = os.getpid()

    @contextmanager
    def use(self, name: str) -> Iterator[ConversationLog]:
        """Give a log to one thread."""
        if os.getpid() != self._pid:
            self.clear()
        with self._lock:
            log, _ = self._logs.get(name) or (ConversationLog(self._store, name), 0)
        with log.lock:
            try:
                yield log
            finally:
                self._keep(name, log)

    def _keep(self, name: str, log: ConversationLog) -> None:
        state = log.state
        if state is not None and log.weight > self._limit // 4:
            state.trim(_KEPT)
        with self._lock:
            self._weight -= self._logs.pop(name, (log, 0))[1]
            if state is None:
                return
            self._logs[name] = (log, log.weight)
            self._weight += log.weight
            while self._weight > self._limit:
                self._weight -= self._logs.popitem(last=False)[1][1]
