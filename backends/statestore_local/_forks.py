"""Descriptors that may carry a lock, and what becomes of them when the process forks.

A kernel lock belongs to an open file, and a forked child shares its parent's open files: as long as the child
keeps one, the lock outlives the parent. So the child closes them at once. It only closes: to unlock would take
the lock from the parent.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

__all__ = ["adopt", "let_go", "watch"]


class _Forgetful(Protocol):
    def forget(self) -> None:
        """Drop all that belonged to the parent process, without touching a descriptor."""


# Held while a descriptor is opened or closed, and across a fork: so no child gets one that is not in the set. A
# signal handler may fork or open a store in the middle, hence reentrant.
_guard = threading.RLock()
_adopted: set[int] = set()
_stores: weakref.WeakSet[_Forgetful] = weakref.WeakSet()


def adopt(opening: Callable[[], int]) -> int:
    """Call `opening`, and keep the descriptor that it returns from outliving a fork."""
    with _guard:
        fd = opening()
        _adopted.add(fd)
    return fd


def let_go(fd: int) -> None:
    """Close a descriptor that was adopted."""
    with _guard:
        _adopted.discard(fd)
        os.close(fd)


def watch(store: _Forgetful) -> None:
    """Have `store.forget()` called in every child that is forked from now on."""
    with _guard:
        _stores.add(store)


def _in_child() -> None:
    global _guard
    _guard = threading.RLock()
    for fd in _adopted:
        with suppress(OSError):  # a program that closes descriptors which are not its own leaves none to close
            os.close(fd)
    _adopted.clear()
    for store in list(_stores):
        store.forget()


os.register_at_fork(
    before=lambda: _guard.acquire() and None,
    after_in_parent=lambda: _guard.release(),
    after_in_child=_in_child,
)
