"""The kit itself: what counts as run, passed and conforming, and what nobody can make look better than it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from statestore.conformance import (
    LEVELS,
    Clause,
    Harness,
    Report,
    Result,
    catalogue,
    clauses,
    new_backend,
    run,
    run_clause,
    run_url,
)
from statestore.conformance.case import Case
from statestore.conformance.check import Failure, equal, refused, that
from statestore.conformance.registry import clause
from statestore.errors import Conflict, InvalidName, NotFound
from statestore.store import NEW, Capabilities, Store, Tail
from statestore_memory import MemoryStore

DOCS = Path(__file__).parents[2] / "docs"
NAMED = {each.name: each for each in clauses()}


class Forgetful(MemoryStore):
    """Reads leave out the last byte."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        return super().read(log, start, stop)[:-1]


def memory(place: Path) -> Harness:
    opener = partial(MemoryStore, str(place))
    return Harness(open=opener, reopen=opener, spawn=opener, crash=lambda store: None)


def forgetful(place: Path) -> Harness:
    return replace(memory(place), open=lambda: Forgetful(str(place)))


def all_passed() -> list[Result]:
    return [Result(each.name, "passed", capabilities=Capabilities()) for each in clauses()]


def but(results: list[Result], name: str, status: str) -> list[Result]:
    return [replace(each, status=status) if each.clause == name else each for each in results]


def first_of(level: str) -> str:
    return next(each.name for each in clauses() if each.level == level)


# The catalogue.


def test_the_catalogue_is_the_same_each_time() -> None:
    assert clauses() == clauses()
    assert len(NAMED) == len(clauses())


def test_the_page_of_clauses_is_that_of_the_registry() -> None:
    assert (DOCS / "clauses.md").read_text(encoding="utf-8") == catalogue()


def test_every_capability_has_clauses_for_on_or_off() -> None:
    with_clauses = {each.capability for each in clauses()} | {flag for each in clauses() for flag in each.also}
    assert set(Capabilities.__dataclass_fields__) <= with_clauses


def test_every_refusable_capability_has_a_clause_for_its_refusal() -> None:
    off = {each.capability for each in clauses() if not each.on}
    assert off == {"boundaries", "cuts", "deletes", "flushes", "holds", "runs", "shared", "sidecars"}


def test_every_clause_says_who_is_hurt_in_one_sentence() -> None:
    for each in clauses():
        assert each.hurts[0].isupper(), each.name
        assert each.hurts.endswith("."), each.name
        assert each.level in LEVELS


def test_a_clause_of_an_unknown_level_or_part_is_refused() -> None:
    with pytest.raises(ValueError, match="no such level"):
        clause("best")
    with pytest.raises(ValueError, match="no such level"):
        clause("core", capability="magic")
    with pytest.raises(ValueError, match="no such level"):
        clause("core", needs=("luck",))


# Running one clause.


def test_a_correct_store_passes() -> None:
    result = run_clause(NAMED["an-append-at-new-creates-the-log"], memory)
    assert (result.status, result.reason) == ("passed", "")


def test_a_failure_tells_the_calls_that_led_to_it() -> None:
    result = run_clause(NAMED["an-append-at-new-creates-the-log"], forgetful)
    assert result.status == "failed"
    assert "got b'firs', expected b'first', which part at byte 4" in result.reason
    assert result.trace[-1] == "s1.read('log')  # b'firs'"
    assert result.trace[-2].startswith("s1.append('log', b'first', at=NEW)  # Tail(size=5")
    assert "case.py" not in result.where
    assert "in an_append_at_new_creates_the_log" in result.where


def test_a_missing_part_is_not_run() -> None:
    result = run_clause(NAMED["a-log-put-under-the-store-is-read-as-it-is"], memory)
    assert (result.status, result.reason) == ("not run", "the harness has no raw_write")


def test_a_clause_of_another_kind_of_store_is_not_applicable() -> None:
    result = run_clause(NAMED["a-store-without-holds-refuses-them"], memory)
    assert (result.status, result.reason) == ("not applicable", "holds is on")


def test_a_store_that_cannot_be_opened_fails_every_clause() -> None:
    def broken(place: Path) -> Harness:
        return replace(memory(place), open=lambda: open("/nowhere/at/all"))  # type: ignore[arg-type, return-value]

    result = run_clause(NAMED["an-append-at-new-creates-the-log"], broken)
    assert (result.status, result.reason[:17]) == ("failed", "FileNotFoundError")


def test_a_harness_that_fails_is_a_failure() -> None:
    def broken(place: Path) -> Harness:
        raise OSError("no place")

    result = run_clause(NAMED["an-append-at-new-creates-the-log"], broken)
    assert (result.status, result.reason) == ("failed", "the harness failed: OSError: no place")


def test_a_harness_may_be_yielded_or_entered_and_is_cleaned_up() -> None:
    done: list[str] = []

    def yielded(place: Path) -> Iterator[Harness]:
        yield memory(place)
        done.append("yielded")

    @contextmanager
    def entered(place: Path) -> Iterator[Harness]:
        yield memory(place)
        done.append("entered")

    for factory in (yielded, entered):
        assert run_clause(NAMED["an-append-at-new-creates-the-log"], factory).status == "passed"
    assert done == ["yielded", "entered"]


def test_each_clause_gets_an_empty_directory_that_is_removed() -> None:
    places: list[Path] = []

    def harness(place: Path) -> Harness:
        assert list(place.iterdir()) == []
        (place / "left").touch()
        places.append(place)
        return memory(place)

    for _ in range(2):
        run_clause(NAMED["an-append-at-new-creates-the-log"], harness)
    assert len(set(places)) == 2
    assert not any(place.exists() for place in places)


def test_a_clause_that_hangs_is_broken_off_and_fails() -> None:
    def hang(case: Case) -> None:
        time.sleep(60)

    hanging = Clause("hang", "Nobody.", "core", "appends", hang)
    result = run_clause(hanging, memory, limit=0.05)
    assert (result.status, result.reason) == ("failed", "it did not come to an end within 0.05 seconds")


def test_a_clause_that_hangs_is_broken_off_whatever_it_catches() -> None:
    def hang(case: Case) -> None:
        with suppress(Exception):
            time.sleep(60)

    result = run_clause(Clause("hang", "Nobody.", "core", "appends", hang), memory, limit=0.05)
    assert (result.status, result.reason) == ("failed", "it did not come to an end within 0.05 seconds")


# Divergences.


def diverging(place: Path, name: str, factory: object = forgetful) -> Harness:
    return replace(factory(place), divergences={name: "the last byte is known to be lost"})  # type: ignore[operator]


def test_a_declared_divergence_is_shown_with_its_reason() -> None:
    name = "an-append-at-new-creates-the-log"
    result = run_clause(NAMED[name], partial(diverging, name=name))
    assert (result.status, result.reason) == ("diverged", "the last byte is known to be lost")


def test_a_divergence_that_passes_is_a_failure() -> None:
    name = "an-append-at-new-creates-the-log"
    result = run_clause(NAMED[name], partial(diverging, name=name, factory=memory))
    assert result.status == "failed"
    assert "remove the entry" in result.reason


def test_a_divergence_of_no_clause_is_refused() -> None:
    with pytest.raises(ValueError, match="name no clause of the kit: no-such-clause"):
        run_clause(NAMED["an-append-at-new-creates-the-log"], partial(diverging, name="no-such-clause"))


# Levels.


def test_a_report_without_any_clause_is_no_pass() -> None:
    report = Report.of([])
    assert report.level is None
    assert not report.ok
    assert report.counts["not run"] == len(clauses())


def test_a_report_of_nothing_but_inapplicable_clauses_is_no_pass() -> None:
    report = Report.of([Result(each.name, "not applicable") for each in clauses()])
    assert report.level is None


def test_all_passed_is_the_highest_level() -> None:
    assert Report.of(all_passed()).level == LEVELS[-1]


@pytest.mark.parametrize("status", ["failed", "diverged", "not run"])
@pytest.mark.parametrize("level", LEVELS)
def test_whatever_is_not_passed_lowers_the_level(level: str, status: str) -> None:
    earned = LEVELS[LEVELS.index(level) - 1] if level != LEVELS[0] else None
    assert Report.of(but(all_passed(), first_of(level), status)).level == earned


def test_a_clause_that_has_no_result_is_not_run() -> None:
    results = all_passed()[1:]
    report = Report.of(results)
    assert report.results[0].status == "not run"
    assert report.level is None


def test_an_inapplicable_clause_does_not_lower_the_level() -> None:
    assert Report.of(but(all_passed(), first_of("core"), "not applicable")).level == LEVELS[-1]


def test_levels_that_were_not_asked_for_are_not_run() -> None:
    report = run(memory, levels=["model"], sample=0.02)
    assert report.level is None
    assert {each.status for each in report.results if NAMED[each.clause].level != "model"} == {"not run"}
    with pytest.raises(ValueError, match="levels are some of"):
        run(memory, levels=["best"])
    with pytest.raises(ValueError, match="a sample is above 0"):
        run(memory, sample=0)


# Reports.


def test_the_json_report_has_what_its_format_says() -> None:
    results = but(all_passed(), first_of("core"), "failed")
    data = json.loads(Report.of(results, sample=0.5, seconds=2).to_json())
    assert set(data) == {
        "format", "level", "ok", "sample", "seconds", "counts", "versions", "remarks", "capabilities", "clauses",
    }  # fmt: skip
    assert (data["format"], data["level"], data["ok"]) == ("statestore-conformance/1", None, False)
    assert set(data["clauses"][0]) == {
        "clause", "status", "reason", "seconds", "where", "trace", "calls", "level", "area", "capability", "hurts",
    }  # fmt: skip
    assert data["capabilities"]["holds"]["declared"] is False
    assert "a-hold-has-one-winner" in data["capabilities"]["holds"]["shown_by"]
    page = (DOCS / "conformance.md").read_text(encoding="utf-8")
    for field in [*data, *data["clauses"][0]]:
        assert f"`{field}`" in page, field


def test_the_page_loads_nothing_and_holds_no_markup_of_a_store() -> None:
    evil = Result(first_of("core"), "failed", "<script>alert(1)</script>", where="<b>", trace=("<i>",), calls=90)
    page = Report.of([evil]).to_html("<img src=x>")
    assert "<script" not in page
    assert "<img" not in page
    assert "src=" not in page.replace("&lt;img src=x&gt;", "")
    assert "http" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "... 89 calls before" in page


def test_the_text_names_each_failure_and_the_level() -> None:
    failed = Result(first_of("core"), "failed", "it broke", trace=("s1.read('log')",), calls=1)
    text = Report.of([failed]).to_text()
    assert f"FAILED {first_of('core')}\n  it broke\n" in text
    assert "    s1.read('log')\n" in text
    assert "level: none: not conforming" in text


# Expectations.


def test_an_expectation_fails_where_it_should() -> None:
    with pytest.raises(Failure, match="part at byte 2"):
        equal(b"abc", b"abd", "bytes")
    with pytest.raises(Failure):
        equal(bytearray(b"a"), b"a", "kinds")
    with pytest.raises(Failure):
        that(0, "no")
    store = MemoryStore()
    with pytest.raises(Failure, match="returned"):
        refused(NotFound, store.append, "log", b"x", at=NEW)
    with pytest.raises(Failure, match="raised NotFound where Conflict is due"):
        refused(Conflict, store.append, "missing", b"x", at=Tail(1, ""))
    with pytest.raises(Failure, match="raised InvalidName where a plain ValueError is due"):
        refused(ValueError, store.read, "..")
    assert isinstance(refused(InvalidName, store.read, ".."), InvalidName)


def test_the_kit_fails_wrong_stores_under_optimization_too(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text(
        "from statestore.conformance import Harness, clauses, run_clause\n"
        "from statestore_memory import MemoryStore\n"
        "class Wrong(MemoryStore):\n"
        "    def read(self, log, start=0, stop=None):\n"
        "        return super().read(log, start, stop)[:-1]\n"
        "result = run_clause(clauses()[0], lambda place: Harness(open=lambda: Wrong(str(place))))\n"
        "print(result.status)\n"
    )
    done = subprocess.run([sys.executable, "-O", script], capture_output=True, check=True)
    assert done.stdout == b"failed\n"


# Pytest.


def pytest_run(place: Path, *arguments: str) -> str:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-c",
            os.devnull,
            "--rootdir",
            place,
            *arguments,
        ],
        cwd=place,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
    )
    return done.stdout


SUITE = """
from functools import partial
from statestore.conformance import Harness, conformance
from statestore_memory import MemoryStore

def harness(place):
    opener = partial(MemoryStore, str(place))
    return Harness(open=opener, reopen=opener, spawn=opener)

test_conformance = conformance(harness, sample=0.02)
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_deselected_clauses_show_as_not_run(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_mine.py").write_text(SUITE)
    report = tmp_path / "report.json"
    told = pytest_run(tmp_path, "-k", "append and not again", "-n", workers, f"--conformance-report={report}")
    assert "conformance of test_mine.py::test_conformance: level none: not conforming" in told
    data = json.loads(report.read_text())
    assert data["level"] is None
    assert data["counts"]["failed"] == 0
    assert data["counts"]["passed"] > 10
    deselected = [row for row in data["clauses"] if "deselected" in row["reason"]]
    assert len(deselected) > 100


def test_a_whole_run_tells_its_level(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(SUITE)
    told = pytest_run(tmp_path, "-n", "2", f"--conformance-report={tmp_path / 'report.html'}")
    assert "level concurrent, heavy clauses at 0.02 of their size" in told
    assert "Level: concurrent" in (tmp_path / "report.html").read_text()


def test_a_skip_by_the_author_shows_as_not_run(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(SUITE)
    (tmp_path / "conftest.py").write_text(
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        if 'beyond-the-end' in item.name:\n"
        "            item.add_marker(pytest.mark.skip(reason='no time'))\n"
    )
    told = pytest_run(tmp_path, "-k", "core or append", f"--conformance-report={tmp_path / 'report.json'}")
    row = next(
        row
        for row in json.loads((tmp_path / "report.json").read_text())["clauses"]
        if row["clause"] == "an-append-beyond-the-end-is-refused"
    )
    assert row["status"] == "not run", told


# Live stores and new backends.


def test_a_live_store_is_tried_in_a_scratch_place_and_left_as_it_was(tmp_path: Path) -> None:
    report = run_url(str(tmp_path / "state"), {"sync": "never"}, levels=["core"], sample=0.1)
    assert report.level == "core"
    assert report.remarks == ()
    assert [path.name for path in (tmp_path / "state").iterdir()] == []


def test_a_new_backend_installs_and_is_found(tmp_path: Path) -> None:
    written = new_backend("my_shelf", tmp_path)
    package = tmp_path / "statestore-my-shelf"
    assert all(path.is_relative_to(package) for path in written)
    with pytest.raises(FileExistsError):
        new_backend("my_shelf", tmp_path)
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", site, package]
    subprocess.run(pip, check=True, capture_output=True)
    env = {**os.environ, "PYTHONPATH": str(site), "PYTEST_ADDOPTS": ""}
    found = subprocess.run(
        [sys.executable, "-c", "from statestore.plugins import open_store; print(open_store('my-shelf://x').place)"],
        env=env,
        capture_output=True,
        text=True,
    )
    assert found.stdout == "x\n", found.stderr


@pytest.mark.parametrize("name", ["", "My", "1a", "a-b", "../a", "a b", "a" * 41])
def test_a_backend_of_no_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="a backend's name"):
        new_backend(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_store_under_test_is_a_store(tmp_path: Path) -> None:
    case = Case(memory(tmp_path))
    assert isinstance(case.harness.open(), Store)
