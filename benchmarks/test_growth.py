"""How cost grows: what each operation asks of its storage when there is ten times as much.

Calls, bytes and requests are asserted. ``python -m benchmarks.growth`` measures more sizes, and times.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.growth import __main__ as growth
from benchmarks.growth.measure import Row, count, slopes
from benchmarks.growth.operations import OPERATIONS, Operation
from benchmarks.growth.places import S3, Place, local, memory
from statestore.records.index import STRIDE
from tests.servers import Rgw

NAMED = {operation.name: operation for operation in OPERATIONS}
SMALL, LARGE = 250, 2_500

# What grows although it need not: a store in memory has no index and knows no boundaries, so its logs are read from the
# beginning by somebody who knows nothing of them.
GROWS = {
    ("memory", "open to append"),
    ("memory", "open a session"),
    ("memory", "last(10)"),
    ("memory", "recent 5 messages"),
    ("memory", "change a conversation"),
}

Counting = Callable[[str, int], Row]


@pytest.fixture(scope="module", params=["local", "memory"])
def costs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Counting:
    """Count what an operation asks at a size; each storage is filled once."""
    kept: dict[object, Place] = {}

    def counted(name: str, size: int) -> Row:
        operation = NAMED[name]
        if (operation.fill, size) not in kept:
            made = memory() if request.param == "memory" else local(tmp_path_factory.mktemp("growth"))
            made.fill(lambda store: operation.fill(store, size))
            kept[operation.fill, size] = made
        return count(kept[operation.fill, size], operation, size)

    return counted


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_nothing_grows_faster_than_it_must(costs: Counting, operation: Operation) -> None:
    small, large = costs(operation.name, SMALL), costs(operation.name, LARGE)
    grows = 1 if (small["store"], operation.name) in GROWS else operation.must
    most = (LARGE / SMALL) ** grows
    assert large["calls"] <= small["calls"] * most + 4
    assert large["bytes"] <= small["bytes"] * most + STRIDE
    if grows > operation.must:
        assert large["bytes"] > small["bytes"] * most / 2, "it does not grow any more: take it off the list"


def test_an_append_asks_as_little_of_a_long_log_as_of_a_short_one(costs: Counting) -> None:
    for name in ("append a record", "change it again"):
        short, long = costs(name, 10), costs(name, LARGE)
        assert short["calls"] == long["calls"] == 1
        assert 0 <= long["bytes"] - short["bytes"] < 8, "the digits of a number"


def test_the_end_of_a_local_log_is_found_without_the_rest(costs: Counting) -> None:
    for name in ("open to append", "open a session", "last(10)"):
        row = costs(name, LARGE)
        if row["store"] == "local":
            assert row["calls"] <= 10
            assert row["bytes"] < 1.5 * STRIDE < LARGE * 1024 / 1.5


REQUESTS: dict[str, Callable[[int], int]] = {
    "last(10)": lambda appends: 13,
    "open to append": lambda appends: 5,
    "open a session": lambda appends: 12,
    "load a session": lambda appends: appends + 3,
    "fork at the middle": lambda appends: 3 * appends // 2 + 7,
    "append a record": lambda appends: 1,
    "start a session": lambda logs: 5,
    "list": lambda logs: 2,
    "list a page of 100": lambda logs: 2,
    "change it again": lambda messages: 1,
}


def test_requests_grow_with_appends_only_where_all_is_read(rgw: Rgw) -> None:
    """What is more than a request an append are the settings, the heads and the listing."""
    size, places = 16, dict[object, Place]()
    for name, most in REQUESTS.items():
        operation = NAMED[name]
        if operation.fill not in places:
            places[operation.fill] = S3(rgw, compacted=False)
            places[operation.fill].fill(lambda store, fill=operation.fill: fill(store, size))
        assert 0 < count(places[operation.fill], operation, size)["requests"] <= most(size), name


def test_a_run_is_kept_as_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    kept = tmp_path / "new" / "growth.json"
    monkeypatch.setattr(growth, "SIZES", (10, 20))
    monkeypatch.setattr(sys, "argv", ["growth", "--stores", "memory", "--json", str(kept)])
    growth.main()
    found = json.loads(kept.read_bytes())
    assert found["machine"].keys() == {"system", "processor", "cores", "python"}
    rows = found["rows"]
    assert len(rows) == 2 * len(OPERATIONS)
    for row in rows:
        assert list(row) == [
            *("store", "operation", "of", "size", "calls", "bytes", "requests"),
            *("median_us", "p25_us", "p75_us", "rounds"),
        ]
        assert 0 < row["p25_us"] <= row["median_us"] <= row["p75_us"]
    shown = capsys.readouterr().out
    assert all(operation.name in shown for operation in OPERATIONS)


def test_a_slope_is_the_power_with_which_a_cost_grows() -> None:
    costs = {"median_us": lambda n: 3 * n, "calls": lambda n: 7, "bytes": lambda n: n * n, "requests": lambda n: None}
    rows = [
        {"operation": "list", "store": "local", "size": size} | {cost: grow(size) for cost, grow in costs.items()}
        for size in (10, 100, 1000)
    ]
    assert slopes(rows) == [
        {
            "operation": "list",
            "store": "local",
            "must": 1,
            "median_us": 1.0,
            "calls": 0.0,
            "bytes": 2.0,
            "requests": None,
        }
    ]
