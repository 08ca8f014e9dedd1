"""``conform``: a live store tried in a scratch place that is gone afterwards, and what is said about it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from statestore.cli.conform import Level
from statestore.conformance import LEVELS, clauses
from statestore.store import Capabilities, Tail
from statestore_memory import MemoryStore

from .conftest import Run

QUICK = ("--option", "sync=never", "--sample", "0.02")
ONE = ("--clause", "all-byte-values-are-kept")
WRONG = """
from statestore.plugins import Backend, hookimpl
from statestore_memory import MemoryStore
from statestore_memory.plugin import MemoryOptions

class Wrong(MemoryStore):
    def read(self, log, start=0, stop=None):
        if log == "log" and stop is None:
            raise RuntimeError("\\x1b[31m<script>alert(1)</script>")
        return super().read(log, start, stop)

@hookimpl
def statestore_backends():
    make = lambda url, options: Wrong(url)
    return [Backend(name="wrong", schemes=("wrong",), options=MemoryOptions, open=make, summary="a wrong one")]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty directory, as a store."""
    place = tmp_path / "state"
    place.mkdir()
    return place


@pytest.fixture
def wrong(tmp_path: Path) -> dict[str, str]:
    """An environment in which ``wrong://`` opens a store that cannot read, and says so in hostile words."""
    site = tmp_path / "site"
    info = site / "wrong_plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "wrong_plugin.py").write_text(WRONG)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[statestore]\nwrong = wrong_plugin\n")
    return {"PYTHONPATH": os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])}


def test_a_store_that_keeps_the_promises_conforms_and_is_left_as_it_was(run: Run, vectors: Path) -> None:
    before = {path.name: path.read_bytes() for path in vectors.iterdir()}
    ran = run("conform", vectors, *QUICK)
    assert ran.status == 0, ran.out
    assert ran.err == ""
    *_, counts, level, outcome = ran.out.rstrip("\n").split("\n")
    assert re.fullmatch(r"clauses     \d+ passed, \d+ not applicable, \d+ not asked for, in \d+\.\d s", counts)
    assert level == "level       concurrent, heavy clauses at 0.02 of their size"
    assert outcome == "yes         it conforms at the level concurrent"
    assert {path.name: path.read_bytes() for path in vectors.iterdir()} == before


def test_what_a_live_run_cannot_try_is_shown_and_lowers_the_level(run: Run, root: Path) -> None:
    ran = run("conform", root, *QUICK, "--level", "durable")
    assert ran.status == 1
    assert "\nnot run     " in f"\n{ran.out}"
    assert "a live run has no raw_read: what-is-appended-lies-under-the-store-byte-for-byte" in ran.out
    assert ran.out.endswith("no          the level durable is not shown: concurrent is\n")


def test_a_wrong_store_does_not_conform_and_the_way_there_is_told(spawn: Run, wrong: dict[str, str]) -> None:
    ran = spawn("conform", "wrong://place", "--level", "core", env=wrong)
    assert ran.status == 1
    assert (
        "failed      all-byte-values-are-kept\n            A picture, or text in an old encoding, comes back" in ran.out
    )
    assert "\n            the calls that led to it:\n              s1.append('log', " in ran.out
    assert "\n            RuntimeError: \\x1b[31m<script>alert(1)</script>\n" in ran.out
    assert "\x1b" not in ran.out
    assert re.search(r"\nlevel       none: not conforming\nno          \d+ clauses failed\n\Z", ran.out)


class Page(HTMLParser):
    """Collects what a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_loads_nothing_and_shows_hostile_text_as_text(spawn: Run, wrong: dict[str, str], tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    ran = spawn("conform", "wrong://user:hush@<img src=x>", *ONE, "--report", report, env=wrong)
    assert ran.status == 1
    page = Page(report.read_text())
    assert not page.tags & {"script", "img", "link", "iframe", "object"}
    assert not page.attributes & {"src", "href", "onload", "onerror"}
    assert "url(" not in report.read_text()
    assert "\\x1b[31m<script>alert(1)</script>" in page.text
    assert "\x1b" not in report.read_text()
    assert "wrong://***@<img src=x>" in page.text
    assert "hush" not in report.read_text()


def test_json_is_the_report_with_the_answer(run: Run, root: Path, tmp_path: Path) -> None:
    ran = run("conform", root, *QUICK, "--level", "core", "--json", "--report", tmp_path / "report.json")
    assert ran.status == 0
    (told,) = ran.lines
    assert (told.pop("asked"), told.pop("conforms")) == ("core", True)
    assert told["level"] == "core"
    assert told == json.loads((tmp_path / "report.json").read_text())
    assert run("conform", root, *QUICK, *ONE, "--json").lines[0]["asked"] is None


def test_one_clause_is_tried_alone_and_its_answer_is_the_status(run: Run, root: Path) -> None:
    ran = run("conform", root, *ONE)
    assert (ran.status, ran.err) == (0, "")
    assert re.fullmatch(
        rf"clauses     1 passed, {len(clauses()) - 1} not asked for, in \d+\.\d s\n"
        r"yes         every clause that was tried is kept\n",
        ran.out,
    )
    ran = run("conform", root, "--clause", "a-copy-lies-under-the-store-byte-for-byte")
    assert ran.status == 1
    assert ran.out.endswith("\nno          1 clause could not be run\n")
    ran = run("conform", root, "--clause", "a-store-without-deletions-refuses-them")
    assert ran.status == 1
    assert ran.out.endswith("\nno          none of these clauses is about such a store\n")


def test_a_seed_draws_other_operations_the_same_ones_each_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hypothesis", reason="hypothesis draws the operations")
    calls: list[tuple[str, bytes]] = []

    class Noted(MemoryStore):
        def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
            calls.append((log, data))
            return super().append(log, data, at=at)

    def drawn(*seed: str) -> list[tuple[str, bytes]]:
        calls.clear()
        only = ("--clause", "random-operations-agree-with-the-model", "--sample", "0.1")
        assert run("conform", "memory://", *only, *seed).status == 0
        return calls.copy()

    monkeypatch.setattr("statestore.conformance.live.open_store", lambda url: Noted(url))
    unseeded, seven = drawn(), drawn("--seed", "7")
    assert drawn() == unseeded != []
    assert drawn("--seed", "7") == seven
    assert drawn("--seed", "8") != seven != unseeded


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ((), "name a store, or give --list"),
        (("memory://", "--list"), "--list tries nothing"),
        (("memory://", "--clause", "nonsense"), "the kit has no such clause (--list prints all): nonsense"),
        (("memory://", "--sample", "0"), "--sample is a number above 0 and at most 1, not '0'"),
        (("memory://", "--sample", "1.5"), "--sample is a number above 0 and at most 1, not '1.5'"),
        (("memory://", "--sample", "nan"), "--sample is a number above 0 and at most 1, not 'nan'"),
        (("memory://", "--level", "best"), "--level is core, concurrent, durable, scale or model, not 'best'"),
        (("memory://", "--option", "hush"), "an option of a backend is KEY=VALUE"),
        (("memory://", "--option", "=hush"), "an option of a backend is KEY=VALUE"),
        (("memory://", "--option", "a=1", "--option", "a=2"), "an option is given once: a"),
        (("memory://", "--report", "report.txt"), "ends in .html or .json"),
        (("memory://", "--report", "nowhere/report.html"), "in a directory that is there"),
    ],
)
def test_wrong_usage_tries_nothing(run: Run, args: tuple[str, ...], why: str) -> None:
    ran = run("conform", *args)
    assert (ran.status, ran.out) == (2, "")
    assert why in ran.err
    assert "hush" not in ran.err


def test_a_store_that_is_missing_is_not_made(run: Run, tmp_path: Path) -> None:
    ran = run("conform", tmp_path / "nowhere", "--json")
    assert (ran.status, ran.out) == (1, "")
    assert ran.error["error"] == "Unavailable"
    assert not (tmp_path / "nowhere").exists()
    assert run("conform", "memory://", "--option", "nonsense=1", "--json").error["error"] == "PluginError"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_end_before_the_end_cleans_up_too_and_a_terminal_shows_how_far_it_is(
    root: Path, number: signal.Signals, status: int
) -> None:
    begun = re.compile(rb"[1-9]\d*/%d" % len(clauses()))
    ours, theirs = os.openpty()
    command = [sys.executable, "-P", "-m", "statestore", "conform", str(root), "--option", "sync=never"]
    env = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        shown, sent = b"", False
        try:
            while piece := os.read(ours, 65536):
                shown += piece
                if begun.search(shown) and not sent:  # once: another one could come when the command is over
                    process.send_signal(number)
                    sent = True
        except OSError:
            pass  # a terminal whose other side has been closed ends so
    os.close(ours)
    assert begun.search(shown)
    assert process.returncode == status
    assert b"Traceback" not in shown
    assert list(root.iterdir()) == []


def test_what_an_interrupted_run_cannot_clean_up_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Undeletable(MemoryStore):
        capabilities = Capabilities(atomic_append=True, runs=True)

        def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
            super().read(log, start, stop)
            raise KeyboardInterrupt  # in the midst of a clause, with a log there

        def delete(self, log: str, *, at: Tail | None = None) -> None:
            raise self._refusal("deletes")

    monkeypatch.setattr("statestore.conformance.live.open_store", lambda url: Undeletable(url))
    ran = run("conform", "memory://place", "--level", "core")
    assert (ran.status, ran.out) == (130, "")
    assert re.fullmatch(r"note: 1 scratch log is left below conformance-[0-9a-f]{12}/: \d+/log\n", ran.err)


def test_the_list_is_the_catalogue(run: Run) -> None:
    rows = run("conform", "--list", "--json").lines
    assert [row["clause"] for row in rows] == [each.name for each in clauses()]
    assert [row["hurts"] for row in rows] == [each.hurts for each in clauses()]
    told = run("conform", "--list").out
    for each in clauses():
        flag = f"  {'' if each.on else 'without '}{each.capability}" if each.capability else ""
        assert f"\n  {each.level:<12}{each.name}{flag}\n              {each.hurts}\n" in told


def test_the_levels_are_those_of_the_kit() -> None:
    assert tuple(Level) == LEVELS
