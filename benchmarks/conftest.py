"""Benchmarks that are tests first: each checks what it times, then times it beside the least that could do it.

Machines are noisy, so no time is asserted, ever. Each benchmark runs its floor and the work itself in turns, and
reports the ratio of the two. ``pytest benchmarks --benchmark-enable`` measures, and ``--ratios FILE`` writes the table
of ratios as JSON; without the first flag everything runs once, as a test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any

import pytest

from statestore.records import Draft, RecordLog, draft
from statestore_local import LocalStore
from tests.servers import rgw

__all__ = ["rgw"]

BODY = b"b" * 1024
ROWS = pytest.StashKey[list[dict[str, Any]]]()

Compare = Callable[..., None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ratios", type=Path, metavar="FILE", help="write the table of ratios to a file, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []


@pytest.fixture
def compare(benchmark: Any, request: pytest.FixtureRequest) -> Iterator[Compare]:
    """Time `work` in turns with `floor`, each `times` operations a round, and keep both for the table."""
    done: dict[str, Any] = {}

    def run(
        work: Callable[[], object],
        floor: Callable[[], object],
        *,
        against: str,
        times: int = 1,
        rounds: int = 60,
        bar: float | None = None,
    ) -> None:
        floors: list[int] = []

        def repeat(call: Callable[[], object]) -> None:
            for _ in range(times):
                call()

        def before() -> None:
            begin = perf_counter_ns()
            repeat(floor)
            floors.append(perf_counter_ns() - begin)

        benchmark.pedantic(repeat, args=(work,), setup=before, rounds=rounds, warmup_rounds=2)
        done.update(against=against, times=times, bar=bar, floors=floors)

    yield run
    if not done or benchmark.disabled:
        return
    stats, times, floors = benchmark.stats.stats, done["times"], done["floors"]
    row = {
        "name": request.node.name.removeprefix("test_"),
        "against": done["against"],
        "us": stats.min * 1e6 / times,
        "floor_us": min(floors) / 1e3 / times,
        "ratio": stats.min * 1e9 / min(floors),
        "median_ratio": stats.median * 1e9 / median(floors),
        "bar": done["bar"],
    }
    benchmark.extra_info.update(row)
    request.config.stash[ROWS].append(row)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    rows = config.stash[ROWS]
    if not rows:
        return
    if config.option.ratios:
        config.option.ratios.write_text(json.dumps(rows, indent=1) + "\n")
    terminalreporter.section("ratios: ours beside the floor, taken in turns in this run")
    head = f"{'operation':44} {'ours µs':>10} {'floor µs':>10} {'ratio':>6} {'median':>6} {'bar':>5}  floor"
    terminalreporter.line(head)
    for row in rows:
        bar = "" if row["bar"] is None else f"{row['bar']:g}"
        over = " over" if row["bar"] is not None and row["ratio"] > row["bar"] else ""
        terminalreporter.line(
            f"{row['name']:44} {row['us']:10.2f} {row['floor_us']:10.2f} {row['ratio']:6.4g} "
            f"{row['median_ratio']:6.4g} {bar:>5}  {row['against']}{over}"
        )


@pytest.fixture
def local(tmp_path: Any) -> Callable[[str], LocalStore]:
    """Open a local store with a sync policy."""
    stores: list[LocalStore] = []

    def make(sync: str = "never") -> LocalStore:
        stores.append(LocalStore(tmp_path / "state", sync=sync))  # type: ignore[arg-type]
        return stores[-1]

    return make


def drafts(count: int) -> list[Draft]:
    return [draft("message", BODY) for _ in range(count)]


def fill(log: RecordLog, count: int) -> None:
    log.append("start", expect=1)
    log.append_many(drafts(count - 1))
