"""The work: six operations, each on a peer of any kind, and each checked before its time counts.

An operation is a generator, as in ``benchmarks.growth``: it opens what it needs, yields the call that is measured, and
checks what that did. Reading begins with a peer that was opened just now, and has read another session.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.peers.peer import Kind, Peer, Place, Share, text

__all__ = ["Act", "FULL", "OPERATIONS", "Operation", "SHORT", "Sizes", "TINY"]

LONG, OTHER = "00000000", "ffffffff"  # the session that is measured, and the one that a reader has read before

OPEN = 500  # how many sessions a peer has at once while its place is filled: some keep files open

Act = Generator[Callable[[], Any], Any, None]


@dataclass(frozen=True)
class Sizes:
    """How much work there is.

    Attributes:
        items: messages of a session.
        sessions: sessions that are listed.
        crowd: sessions that are appended to at once.
        workers: who append to these.
        turns: messages that each of these sessions gets.
    """

    items: int
    sessions: int
    crowd: int = 100
    workers: int = 16
    turns: int = 10

    def of(self, kind: Kind) -> Sizes:
        """Return the sizes for a kind that would take too long with these."""
        items = min(self.items, kind.items or self.items)
        return replace(self, items=items, sessions=min(self.sessions, kind.sessions or self.sessions))


FULL = Sizes(10_000, 10_000)
SHORT = Sizes(200, 100, crowd=50, turns=2)
TINY = Sizes(20, 12, crowd=8, workers=4, turns=2)


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        name: what it is called in the rows.
        title: what it does, for a reader.
        act: does it once, in a place, for one of its rounds.
        fill: puts there what is read; None where each round begins with an empty place.
        units: how many units of work one call does; its time is told for one.
    """

    name: str
    title: str
    act: Callable[[Kind, Place, Sizes, int], Act]
    fill: Callable[[Kind, Place, Sizes], None] | None
    units: Callable[[Sizes], int]


def texts(count: int) -> list[str]:
    return [text(number) for number in range(count)]


def name(number: int) -> str:
    return f"{number:08x}"


def fill_long(kind: Kind, place: Place, sizes: Sizes) -> None:
    with closing(kind.open(place)) as peer:
        peer.append(OTHER, texts(1))
        peer.append(LONG, texts(sizes.items))


def fill_many(kind: Kind, place: Place, sizes: Sizes) -> None:
    for start in range(0, sizes.sessions, OPEN):
        with closing(kind.open(place)) as peer:
            for number in range(start, min(start + OPEN, sizes.sessions)):
                peer.append(name(number), texts(1))


def append(kind: Kind, place: Place, sizes: Sizes, turn: int) -> Act:
    first, *rest = texts(sizes.items + 1)
    with closing(kind.open(place)) as peer:
        peer.append(LONG, [first])
        yield lambda: peer.append(LONG, rest)
    with closing(kind.open(place)) as other:
        assert other.load(LONG) == [first, *rest]


def load(kind: Kind, place: Place, sizes: Sizes, turn: int) -> Act:
    with closing(reader(kind, place)) as peer:
        found = yield lambda: peer.load(LONG)
        assert found == texts(sizes.items)


def last(kind: Kind, place: Place, sizes: Sizes, turn: int) -> Act:
    with closing(reader(kind, place)) as peer:
        found = yield lambda: peer.last(LONG, 10)
        assert found == texts(sizes.items)[-10:]


def fork(kind: Kind, place: Place, sizes: Sizes, turn: int) -> Act:
    half, to = sizes.items // 2, name(turn + 1)
    with closing(reader(kind, place)) as peer:
        yield lambda: peer.fork(LONG, half, to)
        assert peer.load(to) == texts(half)
        peer.append(to, [text(half)])
        assert peer.load(to) == texts(half + 1), "a fork is appended to as any other session"


def sessions(kind: Kind, place: Place, sizes: Sizes, turn: int) -> Act:
    with closing(kind.open(place)) as peer:
        peer.load(name(0))
        found = yield peer.sessions
        assert sorted(found) == [name(number) for number in range(sizes.sessions)]


def storm(kind: Kind, place: Place, sizes: Sizes, turn: int) -> Act:
    crowd = [name(number) for number in range(sizes.crowd)]
    shares: list[Share] = [
        [(session, text(number)) for number in range(1, sizes.turns + 1) for session in crowd[worker :: sizes.workers]]
        for worker in range(sizes.workers)
    ]
    with closing(kind.open(place)) as peer:
        for session in crowd:
            peer.append(session, texts(1))
        yield lambda: peer.storm(shares)
        for session in crowd:
            assert peer.load(session) == texts(sizes.turns + 1)


def reader(kind: Kind, place: Place) -> Peer:
    peer = kind.open(place)
    assert peer.load(OTHER) == texts(1)
    peer.know(LONG)
    return peer


OPERATIONS = [
    Operation("append", "append 1 KiB messages one at a time, each", append, None, lambda sizes: sizes.items),
    Operation("load", "load all messages, each", load, fill_long, lambda sizes: sizes.items),
    Operation("last", "load the last ten messages", last, fill_long, lambda sizes: 1),
    Operation("fork", "fork at the middle, for each message copied", fork, fill_long, lambda sizes: sizes.items // 2),
    Operation("list", "list sessions, each", sessions, fill_many, lambda sizes: sizes.sessions),
    Operation(
        "workers",
        "append to many sessions by 16 workers, each message",
        storm,
        None,
        lambda sizes: sizes.crowd * sizes.turns,
    ),
]
