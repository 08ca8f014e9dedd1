"""Do the work in turns, each peer once a round, and say what one unit of it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import quantiles
from time import perf_counter_ns
from typing import Any
from uuid import uuid4

from benchmarks.peers.kinds import BASES
from benchmarks.peers.operations import Operation, Sizes
from benchmarks.peers.peer import Kind, Place
from tests.servers import S3Server

__all__ = ["Places", "Row", "Turn", "measure", "once"]

Row = dict[str, Any]


class Places:
    """Gives out empty places, below a folder and in a bucket."""

    def __init__(self, root: Path, server: S3Server | None) -> None:
        self._root = root
        self._server = server
        self._bucket = server.new_bucket() if server else ""

    def new(self) -> Place:
        folder = self._root / uuid4().hex
        folder.mkdir()
        return Place(folder, self._server, self._bucket)

    def filled(self, kind: Kind, operation: Operation, sizes: Sizes) -> Place:
        """Return a place with what the operation reads."""
        place = self.new()
        if operation.fill is not None:
            operation.fill(kind, place, sizes)
        return place


class Turn:
    """One call of an operation: all that it needs is opened before, and what it did is checked behind it."""

    def __init__(self, kind: Kind, operation: Operation, place: Place, sizes: Sizes, number: int = 0) -> None:
        self._act = operation.act(kind, place, sizes, number)
        self._call = next(self._act)
        self._result: object = None

    def do(self) -> None:
        self._result = self._call()

    def check(self) -> None:
        with suppress(StopIteration):
            self._act.send(self._result)
            raise AssertionError("an operation has one call")


def once(*what: Any) -> int:
    """Do an operation once, check what it did, and return the nanoseconds that it took."""
    turn = Turn(*what)
    begin = perf_counter_ns()
    turn.do()
    took = perf_counter_ns() - begin
    turn.check()
    return took


def measure(
    kinds: Sequence[Kind],
    operation: Operation,
    sizes: Sizes,
    places: Places,
    rounds: int,
    told: Callable[[str], None] = lambda _: None,
) -> Iterator[Row]:
    """Yield a row for each kind that has the operation: all do it in turns, so many rounds.

    The row of a kind that failed says so in its note, and has no numbers.
    """
    able = [kind for kind in kinds if operation.name not in kind.cannot]
    there: dict[str, Place] = {}
    times: dict[str, list[float]] = {str(kind): [] for kind in able}
    failed: dict[str, str] = {}
    for turn in range(rounds):
        for kind in able:
            name, own = str(kind), sizes.of(kind)
            if name in failed:
                continue
            told(f"{operation.name}, round {turn + 1} of {rounds}: {name}")
            try:
                if operation.fill is not None and name not in there:
                    there[name] = places.filled(kind, operation, own)
                took = once(kind, operation, there.get(name) or places.new(), own, turn)
            except Exception as error:
                failed[name] = f"failed: {type(error).__name__}: {error}"
                told(failed[name])
            else:
                times[name].append(took / 1e3 / operation.units(own))
    for name in failed:
        del times[name]
    middles = {name: _quartiles(taken)[1] for name, taken in times.items()}
    for kind in able:
        row = {"peer": kind.name, "durability": kind.durability, "operation": operation.name}
        if str(kind) in failed:
            yield row | {"note": failed[str(kind)]}
            continue
        low, middle, high = _quartiles(times[str(kind)])
        base = middles.get(str(BASES[kind.durability]))
        items = _items(operation, sizes.of(kind))
        yield row | {
            "items": items,
            "median_us": round(middle, 2),
            "p25_us": round(low, 2),
            "p75_us": round(high, 2),
            "rounds": rounds,
            "ratio": round(middle / base, 2) if base else None,
            "capped": items < _items(operation, sizes),
            "note": kind.notes.get(operation.name, kind.note),
        }


def _items(operation: Operation, sizes: Sizes) -> int:
    return {"list": sizes.sessions, "workers": sizes.crowd * sizes.turns}.get(operation.name, sizes.items)


def _quartiles(times: Sequence[float]) -> tuple[float, float, float]:
    if len(times) == 1:
        return (times[0],) * 3
    low, middle, high = quantiles(times, n=4, method="inclusive")
    return low, middle, high
