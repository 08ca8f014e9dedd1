"""How long one operation takes, again and again, and what that comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import quantiles
from time import perf_counter_ns
from typing import Any, TypeVar

from statestore.bench._traffic import Traffic, Watch

__all__ = ["Meter", "Row"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was measured of one operation. Times are in seconds, sizes in bytes.

    Attributes:
        operation: its name.
        skipped: why it was not done, or ``""``; then all numbers are 0.
        times: how often it was done.
        item: what it is about: records or logs.
        items: how many of them all of the times together took.
        size: their bytes; 0 where no bytes of logs are moved.
        seconds: how long all of it took, by the wall's clock.
        median: how long one took.
        p10: a tenth took at most that.
        p90: a tenth took at least that.
        traffic: what went over the wire for all of them; None where that was not counted.
    """

    operation: str
    skipped: str = ""
    times: int = 0
    item: str
    items: int = 0
    size: int = 0
    seconds: float = 0.0
    median: float = 0.0
    p10: float = 0.0
    p90: float = 0.0
    traffic: Traffic | None = None

    @property
    def items_per_second(self) -> float:
        """Records, or logs, a second."""
        return self.items / self.seconds if self.seconds else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes of logs a second."""
        return self.size / self.seconds if self.seconds else 0.0

    def describe(self) -> dict[str, Any]:
        """Return the row for JSON, with what follows from it; requests and their bytes are those of one operation."""
        row = asdict(self) | {"skipped": self.skipped or None}
        traffic = row.pop("traffic")
        row |= {"items_per_second": self.items_per_second, "bytes_per_second": self.bytes_per_second}
        # A clock of nanoseconds has no more digits than these.
        row = {name: round(value, 9) if isinstance(value, float) else value for name, value in row.items()}
        each = ("requests", "sent", "received")
        return row | {name: round(traffic[name] / self.times, 2) if traffic else None for name in each}


class Meter:
    """Takes the time of an operation, and counts what it sends.

    Args:
        watch: counts what goes over the wire.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._took: list[int] = []  # threads append to it
        self._items = self._size = self._wall = 0
        self._traffic = Traffic()

    def time(self, act: Callable[[], T]) -> T:
        """Do an operation once, and return what it returns."""
        with self.span():
            return self.clock(act)

    def clock(self, act: Callable[[], T]) -> T:
        """Do an operation once, perhaps beside others, inside of a `span`."""
        begin = perf_counter_ns()
        result = act()
        self._took.append(perf_counter_ns() - begin)
        return result

    @contextmanager
    def span(self) -> Iterator[None]:
        """Count what goes over the wire in the context, and the time that all in it takes together."""
        before, done, begin = self._watch.seen(), len(self._took), perf_counter_ns()
        yield
        wall = perf_counter_ns() - begin
        # One operation has its own time, without what it takes to count.
        self._wall += self._took[-1] if len(self._took) == done + 1 else wall
        self._traffic += self._watch.seen() - before

    def add(self, items: int, size: int = 0) -> None:
        """Say what was done: how many records, or logs, and how many bytes of logs were moved."""
        self._items += items
        self._size += size

    def row(self, operation: str, item: str) -> Row:
        """Return what came of it.

        Args:
            operation: its name.
            item: what it is about.
        """
        took = [each / 1e9 for each in self._took]
        tenths = quantiles(took, n=10, method="inclusive") if len(took) > 1 else took * 9
        return Row(
            operation=operation,
            times=len(took),
            item=item,
            items=self._items,
            size=self._size,
            seconds=self._wall / 1e9,
            median=tenths[4],
            p10=tenths[0],
            p90=tenths[8],
            traffic=self._traffic if self._watch.sessions else None,
        )
