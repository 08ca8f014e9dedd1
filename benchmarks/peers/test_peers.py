"""Every peer does every operation that it can, and what it did is checked: only then is its time worth telling.

In each run those do that are made of nothing but files and SQLite, at the smallest sizes. STATESTORE_BENCH=all lets all
do it that are installed (the extra ``[bench]``), ``--benchmark-enable`` times them at small sizes, and
STATESTORE_BENCH=full at full ones. ``python -m benchmarks.peers`` measures them in turns, for the page.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers.__main__ import PAGE, RECORDED
from benchmarks.peers.kinds import BASES, KINDS
from benchmarks.peers.lines import Lines
from benchmarks.peers.measure import Places, Turn, measure, once
from benchmarks.peers.operations import FULL, OPERATIONS, SHORT, TINY, Operation, Sizes
from benchmarks.peers.peer import Kind, text
from benchmarks.peers.report import APART, machine, markdown, missing, page, tables, versions
from benchmarks.peers.syncs import can_trace, syncs

WANTED = os.environ.get("STATESTORE_BENCH", "")
LIGHT = {str(kind): kind for kind in KINDS if not kind.bucket and set(kind.needs) <= {"fsspec"}}
NAMED = {operation.name: operation for operation in OPERATIONS}
WORK = [
    pytest.param(kind, operation, id=f"{kind}: {operation.name}")
    for kind in KINDS
    for operation in OPERATIONS
    if operation.name not in kind.cannot
]


@pytest.fixture
def timed(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("benchmark_enable"))


@pytest.fixture
def place_for(request: pytest.FixtureRequest, tmp_path: Path, timed: bool) -> Callable[[Kind], Places]:
    """Return empty places for a kind, or skip and say why it is not tried here."""

    def places(kind: Kind) -> Places:
        if kind.missing:
            pytest.skip(kind.missing)
        if str(kind) not in LIGHT and not WANTED and not timed:
            pytest.skip("it takes seconds: STATESTORE_BENCH=all tries every peer")
        return Places(tmp_path, request.getfixturevalue("rgw") if kind.bucket else None)

    return places


@pytest.mark.filterwarnings("default")  # those of the peers' own code are theirs
@pytest.mark.parametrize(("kind", "operation"), WORK)
def test_a_peer_does_what_it_is_timed_for(
    kind: Kind,
    operation: Operation,
    place_for: Callable[[Kind], Places],
    timed: bool,
    request: pytest.FixtureRequest,
) -> None:
    places = place_for(kind)
    sizes = (FULL if WANTED == "full" else SHORT if timed else TINY).of(kind)
    place = places.filled(kind, operation, sizes)
    once(kind, operation, place, sizes)
    if timed:
        _time(request.getfixturevalue("benchmark"), kind, operation, lambda: places.new(), place, sizes)


def _time(benchmark: Any, kind: Kind, operation: Operation, new: Callable[[], Any], filled: Any, sizes: Sizes) -> None:
    turns: list[Turn] = []

    def begin() -> None:
        turns.append(Turn(kind, operation, filled if operation.fill else new(), sizes, len(turns) + 1))

    benchmark.pedantic(lambda: turns[-1].do(), setup=begin, teardown=lambda: turns[-1].check(), rounds=3)


class Forgetful(Lines):
    """Acknowledges every seventh message and keeps it not."""

    def append(self, session: str, texts: Sequence[str]) -> None:
        super().append(session, [words for words in texts if not words.startswith("00000007")])


class Hasty(Lines):
    """Gives messages back in another order."""

    def load(self, session: str) -> list[str]:
        return super().load(session)[::-1]

    def last(self, session: str, count: int) -> list[str]:
        return super().last(session, count)[::-1]

    def sessions(self) -> list[str]:
        return super().sessions()[1:]


@pytest.mark.parametrize(
    ("wrong", "operation"),
    [(Forgetful, name) for name in ("append", "load", "fork", "workers")] + [(Hasty, name) for name in NAMED],
)
def test_a_peer_that_loses_or_turns_messages_gets_no_time(wrong: type[Lines], operation: str, tmp_path: Path) -> None:
    kind = Kind("wrong", "never", lambda place: wrong(place.folder, synced=False))
    sizes = replace(TINY, turns=8)
    place = Places(tmp_path, None).filled(kind, NAMED[operation], sizes)
    with pytest.raises(AssertionError):
        once(kind, NAMED[operation], place, sizes)


@pytest.fixture
def run(tmp_path: Path) -> dict[str, Any]:
    """A run of few peers and two operations, as the file holds it."""
    names = ("statestore local, never", "SQLite WAL, never", "statestore memory, memory")
    kinds = [replace(LIGHT[name], items=5 if "SQLite" in name else None) for name in names]
    places = Places(tmp_path, None)
    rows = [
        row | {"syncs_per_item": 0.0}
        for name in ("append", "list")
        for row in measure(kinds, NAMED[name], TINY, places, rounds=3)
    ]
    told = {"machine": machine(), "versions": versions(kinds)}
    return told | {"rows": rows, "missing": list(missing(KINDS, served=False))}


def test_each_peer_is_compared_with_ours_of_the_same_durability(run: dict[str, Any]) -> None:
    append = {row["peer"]: row for row in run["rows"] if row["operation"] == "append"}
    assert append["statestore local"]["ratio"] == append["statestore memory"]["ratio"] == 1
    theirs, ours = append["SQLite WAL"], append["statestore local"]
    assert theirs["ratio"] == pytest.approx(theirs["median_us"] / ours["median_us"], rel=0.05)
    assert all(row["p25_us"] <= row["median_us"] <= row["p75_us"] and row["rounds"] == 3 for row in run["rows"])


def test_a_smaller_size_is_marked(run: dict[str, Any]) -> None:
    rows = {(row["peer"], row["operation"]): row for row in run["rows"]}
    assert rows["SQLite WAL", "append"]["items"] == 5
    assert rows["SQLite WAL", "append"]["capped"]
    assert not rows["SQLite WAL", "list"]["capped"]
    assert not rows["statestore local", "append"]["capped"]
    shown = [line for line in markdown(run).splitlines() if line.startswith("| SQLite WAL")]
    assert len(shown) == 1
    assert shown[0].count(r"\*") == 1


def test_what_a_peer_cannot_do_is_a_dash_with_a_reason(run: dict[str, Any]) -> None:
    for kind in KINDS:
        assert all(reason and name in NAMED for name, reason in kind.cannot.items())
    absent = [(row["peer"], row["operation"]) for row in run["missing"] if row["note"]]
    assert ("OpenAI SQLiteSession", "list") in absent
    assert len(list(tables(run))) == 2
    assert "| **statestore local** | never |" in markdown(run)
    assert markdown(run).count(" - |") == 3 * 4, "three peers, four operations that they were not asked for"


def test_a_peer_that_fails_gets_no_numbers_and_says_why(tmp_path: Path) -> None:
    wrong = Kind("wrong", "never", lambda place: Forgetful(place.folder, synced=False))
    kinds = [LIGHT["statestore local, never"], wrong]
    good, bad = measure(kinds, NAMED["append"], TINY, Places(tmp_path, None), rounds=2)
    assert good["rounds"] == 2
    assert "median_us" not in bad
    assert bad["note"].startswith("failed: AssertionError")


def test_the_page_shows_what_was_recorded() -> None:
    shown = PAGE.read_text()
    assert shown == page(shown, json.loads(RECORDED.read_bytes())), "run: python -m benchmarks.peers --page"
    assert all(" ".join(line.split()) in " ".join(shown.split()) for line in APART)


def test_all_durabilities_have_one_of_ours() -> None:
    assert {kind.durability for kind in KINDS} == set(BASES)
    assert all(kind.name.startswith("statestore") for kind in BASES.values())
    assert len({str(kind) for kind in KINDS}) == len(KINDS)


def test_a_message_has_a_kibibyte_and_no_two_are_alike() -> None:
    texts = {text(number) for number in range(2000)}
    assert len(texts) == 2000
    assert {len(words.encode()) for words in texts} == {1024}


@pytest.mark.skipif(not can_trace(), reason="strace counts the syncs: install it, and let it trace")
@pytest.mark.parametrize(("name", "count"), [("statestore local, always", 1), ("JSON lines, never", 0)])
def test_syncs_are_counted_and_not_believed(name: str, count: int) -> None:
    assert syncs(LIGHT[name]) == count
