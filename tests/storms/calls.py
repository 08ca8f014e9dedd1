"""The calls of a store, each with what it must return and leave, whatever happens to one request of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from statestore import NEW, Store, Tail

__all__ = ["CALLS", "CHANGES", "Call", "collect", "grown"]


def grown(store: Store, log: str) -> Tail:
    return store.append(log, b"second.", at=store.append(log, b"first.", at=NEW))


def _windows(store: Store, log: str) -> Tail:
    tail = NEW
    for _ in range(4):
        tail = store.append(log, b"%032d" % 1, at=tail)
    return tail


def collect(store: Store, log: str) -> list[str]:
    assert store.maintenance is not None
    return sorted(one.object for one in store.maintenance.collect(log, dry_run=False))


def _compact(store: Store, log: str) -> int:
    assert store.maintenance is not None
    return store.maintenance.compact(log)


@dataclass(frozen=True)
class Call:
    """A call: what is there before it, and what it must return and leave, whatever happens to one request of it.

    Attributes:
        before: makes what the call begins with, and is done by the same store where the call is `warm`.
        call: is given the store, the log and what `before` returned; returns what is compared.
        result: what it must return.
        holds: what the log must hold afterwards; None where it must be gone.
        warm: whether the store that calls has made the log, and so knows its tail.
    """

    before: Callable[[Store, str], Tail]
    call: Callable[[Store, str, Tail], Any]
    result: Any
    holds: bytes | None
    warm: bool = False


CALLS = {
    "create": Call(
        lambda store, log: NEW, lambda store, log, at: store.append(log, b"first.", at=at).size, 6, b"first."
    ),
    "append": Call(
        grown, lambda store, log, at: store.append(log, b"third.", at=at).size, 19, b"first.second.third.", warm=True
    ),
    "append to a log that others made": Call(
        grown, lambda store, log, at: store.append(log, b"third.", at=at).size, 19, b"first.second.third."
    ),
    "append what is there already": Call(
        grown,
        lambda store, log, at: store.append(log, b"second.", at=Tail(6, at.run)).size,
        13,
        b"first.second.",
    ),
    "read": Call(grown, lambda store, log, at: store.read(log), b"first.second.", b"first.second."),
    "stream": Call(grown, lambda store, log, at: b"".join(store.stream(log, 3, 9)), b"st.sec", b"first.second."),
    "list": Call(
        grown,
        lambda store, log, at: [info.tail == at for info in store.list(log, tails=True)],
        [True],
        b"first.second.",
    ),
    "copy": Call(
        grown,
        lambda store, log, at: (store.copy(log, log + "-2").size, store.read(log + "-2")),
        (13, b"first.second."),
        b"first.second.",
    ),
    "copy one segment": Call(
        lambda store, log: store.append(log, b"first.", at=NEW),
        lambda store, log, at: (store.copy(log, log + "-2").size, store.read(log + "-2")),
        (6, b"first."),
        b"first.",
    ),
    "delete": Call(grown, lambda store, log, at: store.delete(log, at=at), None, None),
    "compact": Call(_windows, lambda store, log, at: _compact(store, log) > 0, True, b"%032d" % 1 * 4),
}

CHANGES = ("create", "append", "append to a log that others made", "delete")
