"""Measure an operation at one size, and say how its cost grows from size to size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from math import log
from statistics import linear_regression, quantiles
from time import perf_counter, perf_counter_ns
from typing import Any

from benchmarks.growth.counted import Asked
from benchmarks.growth.operations import OPERATIONS, Operation
from benchmarks.growth.places import Place

__all__ = ["count", "measure", "slopes"]

Row = dict[str, Any]

_COSTS = ("median_us", "calls", "bytes", "requests")
_LEAST, _MOST, _SECONDS = 3, 30, 2.0  # rounds, and how long new ones are begun
_DECADES = 3  # sizes of the end of a curve through which its slope is laid


def measure(place: Place, operation: Operation, size: int) -> Row:
    """Return one row: what one operation asks of its storage, and the time that it takes, over several rounds."""
    row = count(place, operation, size)
    times: list[int] = []
    end = perf_counter() + _SECONDS
    while len(times) < _LEAST or (len(times) < _MOST and perf_counter() < end):
        act = operation.act(place, size)
        call = next(act)
        begin = perf_counter_ns()
        result = call()
        times.append(perf_counter_ns() - begin)
        with suppress(StopIteration):
            act.send(result)
    low, middle, high = (round(each / 1e3, 1) for each in quantiles(times, n=4, method="inclusive"))
    return row | {"median_us": middle, "p25_us": low, "p75_us": high, "rounds": len(times)}


def count(place: Place, operation: Operation, size: int) -> Row:
    """Return the same row without times: how many calls, bytes and, where there are any, requests."""
    place.asked = asked = Asked()
    try:
        act = operation.act(place, size)
        call = next(act)
        asked.calls = asked.bytes = 0
        with place.watched() as traffic:
            result = call()
        row = {"store": place.name, "operation": operation.name, "of": operation.of, "size": size}
        row |= {"calls": asked.calls, "bytes": asked.bytes, "requests": None}
        if traffic is not None:
            row |= {"bytes": traffic.sent + traffic.got, "requests": traffic.requests.total()}
        with suppress(StopIteration):
            act.send(result)
    finally:
        place.asked = None
    return row


def slopes(rows: Iterable[Row]) -> list[Row]:
    """Return for each operation and store the power of the size with which each cost grows at the end of its curve."""
    curves: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        curves[row["operation"], row["store"]].append(row)
    must = {operation.name: operation.must for operation in OPERATIONS}
    return [
        {"operation": operation, "store": store, "must": must[operation]}
        | {cost: _slope(curve[-_DECADES:], cost) for cost in _COSTS}
        for (operation, store), curve in curves.items()
    ]


def _slope(curve: list[Row], cost: str) -> float | None:
    points = [(log(row["size"]), log(row[cost])) for row in curve if row.get(cost)]
    if len(points) < 2:
        return None
    return round(linear_regression(*zip(*points, strict=True)).slope, 2)
