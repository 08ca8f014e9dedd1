"""``bench``: a table, one object, a file; an end that cleans up; and refusals that say what is wrong."""

from __future__ import annotations

import base64
import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statestore.bench import OPERATIONS
from statestore.store import Tail
from statestore_memory import MemoryStore
from tests.servers import eventually

from .conftest import Run

NAMES = [operation.name for operation in OPERATIONS]
SMALL = ("--records", "4", "--size", "50", "--logs", "2", "--workers", "2")
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty directory, as a store."""
    place = tmp_path / "state"
    place.mkdir()
    return place


def test_a_table_has_a_row_for_each_operation_and_says_what_was_not_counted(run: Run, root: Path) -> None:
    ran = run("bench", root, *SMALL)
    assert (ran.status, ran.err) == (0, "")
    lines = ran.out.split("\n")
    assert lines[:3] == [
        f"store     LocalStore('{root}')",
        "appends   durable",
        "sizes     50 bytes in a body, 2 logs, 2 threads",
    ]
    assert [line.split()[0] for line in lines[4:15]] == ["OPERATION", *NAMES]
    assert all(re.search(r"( +[\d.]+ (s|ms|µs)){3}$", line) for line in lines[5:15])
    assert all(len(line) <= 80 for line in lines[4:])  # on a terminal no row is wrapped
    assert lines[15:] == ["", "requests  not counted, nor their bytes: the store sends none by aiohttp", ""]
    assert list(root.iterdir()) == []


def test_the_object_is_as_the_page_says_and_the_file_holds_it_too(run: Run, root: Path, tmp_path: Path) -> None:
    ran = run("bench", root, *SMALL, "--option", "sync=never", "--json", "--output", tmp_path / "run.json")
    assert (ran.status, ran.err) == (0, "")
    (found,) = ran.lines
    assert json.loads((tmp_path / "run.json").read_bytes()) == found
    section = (DOCS / "commands.md").read_text().partition("\n## bench\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z0-9_]+)`", section.partition("The object has")[2]))
    assert named == {*found, *found["rows"][0]} | {"record", "log"}
    assert found["options"] == {"sync": "never", "create": True, "lock_timeout": 10.0}
    assert found["capabilities"]["durable"] is False
    assert (found["backend"], found["place"], found["temporary"]) == ("local", str(root), False)
    assert found["sizes"] == {"records": 4, "size": 50, "logs": 2, "workers": 2, "rounds": 5, "batch": 100}
    assert [row["operation"] for row in found["rows"]] == NAMES
    assert {row["item"] for row in found["rows"]} == {"record", "log"}
    assert {row["requests"] for row in found["rows"]} == {None}
    assert found["left"] == []


def test_options_are_shown_wherever_they_come_from_and_never_a_text(
    run: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESTORE_LOCAL_LOCK_TIMEOUT", "3")
    found = run("bench", f"{root.as_uri()}?sync=on_flush", *SMALL, "--only", "list", "--json").lines[0]
    assert found["options"] == {"sync": "on_flush", "create": True, "lock_timeout": 3.0}
    assert found["place"] == f"{root.as_uri()}?sync=***"
    monkeypatch.setenv("STATESTORE_ENCRYPTED_KEYS", key := base64.b64encode(bytes(range(32))).decode())
    ran = run("bench", "encrypted::memory://x", *SMALL, "--json")
    assert ran.status == 0
    assert key not in ran.out
    assert [row["times"] > 0 for row in ran.lines[0]["rows"]] == [True] * len(NAMES)


def test_without_a_store_a_temporary_one_is_measured_and_that_is_said(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ran = run("bench", *SMALL, "--only", "append")
    assert ran.out.startswith(f"store     LocalStore('{tmp_path}/statestore-bench-")
    assert "'), a temporary one, since none was named\n" in ran.out
    assert list(tmp_path.iterdir()) == []
    assert run("bench", *SMALL, "--only", "append", "--json").lines[0]["temporary"] is True


def test_only_what_is_asked_for_is_done(run: Run) -> None:
    found = run("bench", "memory://x", *SMALL, "--only", "list", "--only", "append", "--json").lines[0]
    assert [row["operation"] for row in found["rows"]] == ["append", "list"]


def test_what_cannot_be_done_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryStore, "capabilities", replace(MemoryStore.capabilities, holds=False))
    ran = run("bench", "memory://x", *SMALL, "--only", "held")
    assert "\nheld      not done: the store lacks holds\n" in ran.out


def test_a_store_that_gives_back_something_else_fails_the_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = MemoryStore.copy

    def copy(store: MemoryStore, source: str, target: str, *, stop: int | None = None) -> Tail:
        made = real(store, source, target, stop=stop)
        return Tail(made.size, made.run) if store.append(target, b"x", at=made) else made

    monkeypatch.setattr(MemoryStore, "copy", copy)
    ran = run("bench", "memory://x", *SMALL, "--json")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("error: what was read is not what was written")
    assert (ran.error["error"], ran.error["facts"]["operation"]) == ("StateStoreError", "fork")


def test_a_store_that_is_only_read_is_refused(run: Run, root: Path) -> None:
    ran = run("bench", f"readonly::{root.as_uri()}", *SMALL, "--json")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("error: this store is only read: open it without ReadOnly to change something")
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--only", "nonsense"], f"--only is one of {', '.join(NAMES)}, not 'nonsense'"),
        (["--records", "0"], "--records is a whole number from 1 on, not '0'"),
        (["--option", "secret"], "an option of a backend is KEY=VALUE: there is no ="),
        (["--output", "."], "the report is a file in a directory that is there"),
        (["--output", "nowhere/run.json"], "the report is a file in a directory that is there"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_done(
    run: Run, root: Path, args: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    ran = run("bench", root, *args)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == f"error: {told}; statestore bench --help shows what it takes\n"
    assert list(root.iterdir()) == []


def test_a_store_that_is_missing_is_not_made(run: Run, tmp_path: Path) -> None:
    ran = run("bench", tmp_path / "nowhere", "--json")
    assert (ran.status, ran.error["error"]) == (1, "Unavailable")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("number", "status", "only"), [(signal.SIGINT, 130, "held"), (signal.SIGTERM, 143, "many")], ids=["int", "term"]
)
def test_an_end_before_the_end_leaves_nothing(root: Path, number: signal.Signals, status: int, only: str) -> None:
    command = [sys.executable, "-P", "-m", "statestore", "bench", str(root), "--option", "sync=never"]
    command += ["--only", only, "--records", "100000000"]

    def is_at_work() -> bool:
        return sum(path.stat().st_size for path in root.glob("bench-*/*.state")) > 100_000

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        eventually(is_at_work)
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, err) == (status, b"")
    assert only.encode() not in out
    assert list(root.iterdir()) == []


def test_what_is_left_is_told_on_standard_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def delete(store: MemoryStore, log: str, **_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(MemoryStore, "delete", delete)
    ran = run("bench", "memory://left", *SMALL, "--only", "append")
    assert ran.status == 130
    assert re.fullmatch(r"note: 1 log is left below bench-[0-9a-f]{12}/: it was interrupted\n", ran.err)


def test_the_page_and_the_help_name_every_operation(run: Run) -> None:
    page = (DOCS / "bench.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == NAMES
    told = " ".join(run("bench", "--help").out.split())
    assert f"The operations are {', '.join(NAMES[:-1])} and {NAMES[-1]}." in told
