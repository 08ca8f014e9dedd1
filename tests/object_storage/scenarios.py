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
from tests.object_storage.model import DOUBLED, FAILED, LATE, LOST, NEVER, RETRIED, Scenario

__all__ = ["SCENARIOS", "appender", "collector", "copier", "creator", "deleter", "merger", "reader"]

Steps = Iterator[Any]


def appender(data: str, *, first: str = "", warm: bool = False, repeats: int = 1) -> Script:
    """Appends each byte where it finds the end; keeps its proofs from one to the next.

    Args:
        data: what is appended, one byte after another.
        first: what the log is made of before, byte by byte.
        warm: whether the tail is found while the scene is prepared.
        repeats: how often a call is repeated that may have had an effect.
    """

    def script(me: Client) -> Steps:
        tail: Any = None
        for byte in first:
            tail = yield from (me.append("x", byte.encode(), tail) if tail else me.create("x", byte.encode()))
        if warm and tail is None:
            tail = yield from me.tail("x")
        if warm or first:
            yield WARM
        for byte in data:
            if not isinstance(tail, Tail):
                tail = yield from me.tail("x")
            at = tail
            for _ in range(1 + repeats):
                if not isinstance(at, Tail):
                    return
                tail = yield from me.append("x", byte.encode(), at)
                if not (isinstance(tail, Unavailable) and tail.effect_unknown):
                    break

    return script


def reader(times: int = 1, log: str = "x", start: int = 0, *, warm: bool = False) -> Script:
    """Reads the log, some times over; `warm` where it has read it before."""

    def script(me: Client) -> Steps:
        if warm:
            yield from me.read(log, start)
            yield WARM
        for _ in range(times):
            yield from me.read(log, start)

    return script


def merger(*windows: int, warm: bool = False) -> Script:
    """Merges the log; `warm` where that is done while the scene is prepared."""

    def script(me: Client) -> Steps:
        yield from me.merge("x", windows)
        if warm:
            yield WARM

    return script


def collector(times: int = 1, *, merges: tuple[int, ...] = ()) -> Script:
    """Collects what the log needs no more, some times over; merges before, while the scene is prepared."""

    def script(me: Client) -> Steps:
        if merges:
            yield from me.merge("x", merges)
            yield WARM
        for _ in range(times):
            yield from me.collect("x")

    return script


def deleter(*, at: bool = False, then: str = "", more: str = "", warm: bool = False) -> Script:
    """Deletes the log, at the tail that it has seen where `at` is set; creates it again where `then` is given."""

    def script(me: Client) -> Steps:
        tail: Any = None
        if at:
            tail = yield from me.tail("x")
            if warm:
                yield WARM
            if not isinstance(tail, Tail):
                return
        yield from me.delete("x", tail)
        if then:
            tail = yield from me.create("x", then.encode())
        for byte in more:
            if isinstance(tail, Tail):
                tail = yield from me.append("x", byte.encode(), tail)

    return script


def creator(first: str, more: str = "", *, log: str = "x", deletes: bool = False, warm: bool = False) -> Script:
    """Creates the log and appends to it; deletes it in the end where that is asked."""

    def script(me: Client) -> Steps:
        tail: Any = yield from me.create(log, first.encode())
        for byte in more:
            if isinstance(tail, Tail):
                tail = yield from me.append(log, byte.encode(), tail)
        if warm:
            yield WARM
        if deletes and isinstance(tail, Tail):
            yield from me.delete(log)

    return script


def copier(stop: int | None = None, *, reads: bool = False) -> Script:
    """Copies the log x to y, and reads it there."""

    def script(me: Client) -> Steps:
        made = yield from me.copy("x", "y", stop)
        if reads and isinstance(made, Tail):
            yield from me.read("y")

    return script


def _scenario(name: str, scripts: dict[str, Script], **settings: Any) -> Scenario:
    made = {word: frozenset(who for who, script in scripts.items() if word in script.__qualname__) for word in _MAKERS}
    settings.setdefault("kinds", frozenset({LOST, LATE, DOUBLED}))
    return Scenario(
        name, scripts, collectors=made["collector"], turners=made["creator"] | made["deleter"] | made["copier"], **settings
    )


_MAKERS = ("collector", "creator", "deleter", "copier")
ALL = frozenset({LOST, NEVER, LATE, DOUBLED, RETRIED, FAILED})

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        _scenario(
            "two writers, two faults",
            {"a": appender("bc", first="a"), "b": appender("de")},
            prepared=("a",),
            faults=2,
            kinds=ALL,
        ),
        _scenario(
            "two writers with proofs, and time",
            {"a": appender("bcd", first="a"), "b": appender("ef", warm=True)},
            prepared=("a", "b"),
            faults=1,
            ticks=(3,),
        ),
        _scenario(
            "a writer, and a collector after a merge",
            {"a": appender("de", first="abc"), "b": appender("fg", warm=True), "c": collector(merges=(2,))},
            prepared=("a", "b", "c"),
            faults=1,
            ticks=(3,),
        ),
        _scenario(
            "a writer, a merger and a reader",
            {"a": appender("de", first="abc"), "m": merger(2, 4), "r": reader()},
            prepared=("a",),
            faults=1,
            page=2,
        ),
        _scenario(
            "two mergers and a reader",
            {"a": appender("", first="abcde"), "m": merger(2, 4), "n": merger(4), "r": reader()},
            prepared=("a",),
            faults=1,
        ),
        _scenario(
            "a reader, and a collector after a merge",
            {"a": appender("f", first="abcde"), "c": collector(merges=(2, 4)), "r": reader()},
            prepared=("a", "c"),
            ticks=(1, 2),
            page=2,
        ),
        _scenario(
            "a writer and a deleter",
            {"a": appender("bc", first="a"), "d": deleter(), "r": reader()},
            prepared=("a",),
            faults=1,
        ),
        _scenario(
            "two deleters and a writer",
            {"a": appender("b", first="a"), "d": deleter(), "e": deleter(at=True)},
            prepared=("a",),
            faults=1,
        ),
        _scenario(
            "a deleter that creates again, and an old writer",
            {"a": appender("bc", first="a"), "d": deleter(then="d", more="e")},
            prepared=("a",),
            faults=2,
        ),
        _scenario(
            "the same, and a collector",
            {"a": appender("b", first="a"), "d": deleter(then="d"), "c": collector()},
            prepared=("a",),
            faults=1,
            ticks=(3,),
        ),
        _scenario(
            "an old reader and a collector of deleted logs",
            {"a": creator("a", "b", deletes=True, warm=True), "r": reader(2, warm=True), "c": collector()},
            prepared=("a", "r"),
            ticks=(1, 3),
            page=2,
        ),
        _scenario("two creators", {"a": creator("a", "b"), "b": creator("c", "d"), "r": reader()}, faults=1),
        _scenario(
            "a creator, a deleter and another creator",
            {"a": creator("a", deletes=True), "b": creator("b", "c")},
            faults=2,
        ),
        _scenario(
            "a slow creator and a collector",
            {"a": creator("a", "b"), "b": creator("c", deletes=True), "c": collector()},
            faults=1,
            ticks=(3,),
        ),
        _scenario(
            "a copier, a writer and a deleter",
            {"a": appender("b", first="a"), "k": copier(reads=True), "d": deleter()},
            prepared=("a",),
            faults=1,
        ),
        _scenario(
            "a copier, and a collector after a merge",
            {"a": appender("f", first="abcd"), "k": copier(3), "c": collector(merges=(2,))},
            prepared=("a", "c"),
            faults=1,
            ticks=(3,),
        ),
        _scenario(
            "a copier and a creator of the target",
            {"a": appender("", first="ab"), "k": copier(reads=True), "b": creator("y", "z", log="y", deletes=True)},
            prepared=("a",),
            faults=1,
        ),
    )
}
