"""``verify``: what is whole, torn, corrupt."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier, Event, current_thread

import pytest

from statestore.cli.parallel import each_log
from statestore.records import RecordLog, scan
from statestore.records.scan import Fetch
from statestore_local import LocalStore
from statestore_memory import MemoryStore

from .conftest import Run

NOTHING = dict.fromkeys(("logs", "damaged", "unreadable", "corrupt", "torn", "ok", "records", "size", "torn_bytes"), 0)


def test_verify_of_whole_logs_exits_with_0(run: Run, vectors: Path) -> None:
    ran = run("verify", vectors, "--json")
    assert ran.status == 0
    whole = {"state": "ok", "torn": 0, "corrupt": None, "following": 0, "misnumbered": None}
    assert ran.lines == [
        {"log": "session-12", "records": 12, "size": 2557} | whole,
        {"log": "session-200", "records": 200, "size": 77999} | whole,
        {"log": "session-2000", "records": 2000, "size": 782242} | whole,
        {"summary": NOTHING | {"logs": 3, "ok": 3, "records": 2212, "size": 862798}},
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
    rows = {row["log"]: row for row in ran.lines[:-1]}
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
    counted = {"logs": 4, "corrupt": 2, "torn": 1, "ok": 1, "records": 28, "size": 6097, "torn_bytes": 128}
    assert ran.lines[-1] == {"summary": NOTHING | counted}


def test_a_log_that_cannot_be_read_is_told_and_the_others_are_still_read(run: Run, unreadable: Path) -> None:
    ran = run("verify", unreadable, "--json")
    assert ran.status == 1
    assert [(row["log"], row["state"]) for row in ran.lines[:-1]] == [
        ("session-12", "ok"),
        ("session-200", "unreadable"),
        ("session-2000", "ok"),
    ]
    assert "unreadable  session-200  the disk says no" in run("verify", unreadable).out
    assert run("verify", unreadable, "session-200").status == 1


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
    assert [row["log"] for row in ran.lines[:-1]] == ["session-12", "session-200", "session-2000"]
    assert run("verify", vectors, "empty").status == 1


def test_at_the_end_the_worst_are_named_again_ten_of_each(run: Run, tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"bad{number:02}.state").write_bytes(b"x\n")
    (tmp_path / "torn.state").write_bytes(b"{")
    told = run("verify", tmp_path).out.split("\n")
    named = ", ".join(f"bad{number:02}" for number in range(10))
    assert told[-4:] == [
        "13 logs, 0 records, 0 bytes: 12 corrupt, 1 torn",
        f"corrupt     {named} and 2 more",
        "torn        torn",
        "",
    ]


@pytest.mark.parametrize("jobs", [1, 2, 8, 300])
def test_many_logs_are_read_at_once_and_told_in_order(run: Run, tmp_path: Path, jobs: int) -> None:
    with LocalStore(tmp_path, sync="never") as store:
        for number in range(100):
            RecordLog(store, f"{number:03}").append("note", b"x" * (100 - number) * 1000, expect=1)
    ran = run("verify", tmp_path, "--jobs", jobs, "--json")
    assert [row["log"] for row in ran.lines[:-1]] == [f"{number:03}" for number in range(100)]


def test_logs_are_read_by_so_many_threads_and_not_far_ahead() -> None:
    store = MemoryStore()
    for number in range(100):
        RecordLog(store, f"{number:03}").append("note", expect=1)
    started: list[str] = []
    together = Barrier(3)

    def look(log: str, fetch: Fetch) -> str:
        started.append(log)
        if len(started) <= 3:
            together.wait(30)  # three are at work at the same time, or this fails
        return current_thread().name

    found = each_log(store, (info.name for info in store.list()), look, 3)
    first = next(found)
    assert first[0] == "000"
    assert len(started) <= 3 * 5 + 1
    assert len({first[1], *(name for _, name in found)}) == 3


def test_what_ends_the_command_ends_its_threads() -> None:
    store = MemoryStore()
    for name in ("a", "b"):
        RecordLog(store, name).append("note", expect=1)
    going, ended = Event(), Event()

    def look(log: str, fetch: Fetch) -> None:
        if log == "a":
            going.wait()
            return
        going.set()
        try:
            while True:
                fetch(0, 1)
        finally:
            ended.set()

    found = each_log(store, ["a", "b"], look, 2)
    assert next(found) == ("a", None)
    found.close()
    assert ended.is_set()


def test_a_log_that_goes_meanwhile_is_left_out() -> None:
    store = MemoryStore()
    RecordLog(store, "a").append("note", expect=1)
    assert list(each_log(store, ["a", "gone"], lambda log, fetch: 1, 2)) == [("a", 1)]
