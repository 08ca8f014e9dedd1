"""``verify``: what is whole, torn, corrupt."""

from __future__ import annotations

from pathlib import Path

import pytest

from statestore.errors import Unavailable
from statestore.records import scan
from statestore_local import LocalStore

from .conftest import Run


def test_verify_of_whole_logs_exits_with_0(run: Run, vectors: Path) -> None:
    ran = run("verify", vectors, "--json")
    assert ran.status == 0
    whole = {"state": "ok", "torn": 0, "corrupt": None, "following": 0, "misnumbered": None}
    assert ran.lines == [
        {"log": "session-12", "records": 12, "size": 2557} | whole,
        {"log": "session-200", "records": 200, "size": 77999} | whole,
        {"log": "session-2000", "records": 2000, "size": 782242} | whole,
    ]
    assert run("verify", vectors / "session-200.state", "--json").lines == ran.lines[1:2]
    assert run("verify", vectors, "session-200", "--json").lines == ran.lines[1:2]


def test_a_torn_end_is_a_warning(run: Run, damaged: Path) -> None:
    ran = run("verify", damaged, "torn")
    assert ran.status == 0
    assert ran.out.startswith("torn  ")
    assert "128 bytes of an append that a crash cut short" in ran.out


def test_damage_is_told_with_its_place_and_what_follows_and_fails(run: Run, damaged: Path) -> None:
    ran = run("verify", damaged, "--json")
    assert ran.status == 1
    rows = {row["log"]: row for row in ran.lines}
    offset = list(scan((damaged / "whole.state").read_bytes()))[5].offset
    assert {name: row["state"] for name, row in rows.items()} == {
        "corrupt": "corrupt",
        "other": "corrupt",
        "torn": "torn",
        "whole": "ok",
    }
    assert (rows["corrupt"]["records"], rows["corrupt"]["following"]) == (5, 6)
    assert (rows["corrupt"]["corrupt"]["record"], rows["corrupt"]["corrupt"]["offset"]) == (6, offset)
    assert ran.error["facts"] == {"corrupt": 2}


def test_a_log_that_cannot_be_read_is_told_and_the_others_are_still_read(
    run: Run, vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = LocalStore.read

    def read(store: LocalStore, log: str, start: int = 0, stop: int | None = None) -> bytes:
        if log == "session-200":
            raise Unavailable("the disk says no", log=log)
        return real(store, log, start, stop)

    monkeypatch.setattr(LocalStore, "read", read)
    ran = run("verify", vectors, "--json")
    assert ran.status == 1
    assert [(row["log"], row["state"]) for row in ran.lines] == [
        ("session-12", "ok"),
        ("session-200", "unreadable"),
        ("session-2000", "ok"),
    ]
    assert "unreadable  session-200  the disk says no" in run("verify", vectors).out
    assert run("verify", vectors, "session-200").status == 1


def test_verify_changes_nothing(run: Run, damaged: Path) -> None:
    before = {file.name: file.read_bytes() for file in damaged.iterdir()}
    run("verify", damaged)
    assert {file.name: file.read_bytes() for file in damaged.iterdir()} == before


def test_verify_of_a_log_or_a_store_that_is_not_there_fails(run: Run, vectors: Path) -> None:
    for target in ([vectors, "nope"], [vectors / "nope.state"], [vectors / "nope"]):
        assert run("verify", *target).status == 1
    assert run("verify").status == 2


def test_an_empty_file_is_a_creation_that_died_and_no_log(run: Run, vectors: Path) -> None:
    (vectors / "empty.state").touch()
    ran = run("verify", vectors, "--json")
    assert ran.status == 0
    assert [row["log"] for row in ran.lines] == ["session-12", "session-200", "session-2000"]
    assert run("verify", vectors, "empty").status == 1
