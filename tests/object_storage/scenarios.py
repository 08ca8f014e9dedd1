"""Who meets whom: the scenarios that are explored.

Each append is one byte, and no two are alike, so that what a log holds tells the whole story. Scripts go on after an
error as a careful caller would: they repeat what may have had an effect, and read the tail again after a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from statestore.errors import Unavailable
from statestore.store import Tail
from tests.object_storage.clients import WARM, Client, Script

Steps = Iterator[Any]


def appender(log: str, data: str, *, first: str = "", warm: bool = False, repeats: int = 1) -> Script:
    """Appends each byte where it finds the end; keeps its proofs from one to the next.

    Args:
        log: the log's name.
        data: what is appended, one byte after another.
        first: what the log is made of before, byte by byte.
        warm: whether the tail is found while the scene is prepared.
        repeats: how often a call is repeated that may have had an effect.
    """

    def script(me: Client) -> Steps:
        tail: Any = None
        for byte in first:
            tail = yield from (me.append(log, byte.encode(), tail) if tail else me.create(log, byte.encode()))
        if warm and tail is None:
            tail = yield from me.tail(log)
        if warm or first:
            yield WARM
        for byte in data:
            if not isinstance(tail, Tail):
                tail = yield from me.tail(log)
            at = tail
            for _ in range(1 + repeats):
                if not isinstance(at, Tail):
                    return
                tail = yield from me.append(log, byte.encode(), at)
                if not (isinstance(tail, Unavailable) and tail.effect_unknown):
                    break

    return script
