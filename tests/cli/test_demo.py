"""``demo``: everything that it says has happened."""

from __future__ import annotations

import signal
from pathlib import Path

from statestore.records import scan, verify
from statestore_local import LocalStore

from .conftest import Run


def test_the_demo_does_what_it_says(spawn: Run, tmp_path: Path) -> None:
    ran = spawn("demo", "--json", "--keep", tmp_path / "demo")
    assert (ran.status, ran.err) == (0, "")
    (facts,) = ran.lines
    session, fork = facts["session"], facts["fork"]
    data = (tmp_path / "demo" / f"{session}.state").read_bytes()
    records = list(scan(data))

    assert facts["status"] == -signal.SIGKILL
    assert facts["refused"]["facts"]["holder"]["pid"] == facts["pid"]
    assert list(facts["acknowledged"]) == ["4", "5", "6"]
    assert facts["lost"] == []
    assert [record.kind for record in records] == [
        "start", "config", "message", "text", "call", "step", "result", "text", "step",
    ]  # fmt: skip
    assert [record.header.upto for record in records if record.kind == "step"] == [3, 7]
    if facts["torn"]:
        (aside,) = facts["aside"]
        cut = (tmp_path / "demo" / aside).read_bytes()
        assert len(cut) == facts["torn"]
        assert cut.startswith(b'{"n":7,"kind":"result"')
    assert facts["closed"] == [7]
    assert facts["session_status"] == "closed"

    assert facts["parent_unchanged"]
    forked = list(scan((tmp_path / "demo" / f"{fork}.state").read_bytes()))
    assert [record.raw for record in forked[:3]] == [record.raw for record in records[:3]]
    race = facts["race"]
    assert race["place"] == 5
    (winner,), ((loser, told),) = race["winners"], race["told"].items()
    assert (told["error"], told["facts"]["next"]) == ("Conflict", 6)
    assert [record.header.via for record in forked[4:]] == [winner, loser]

    assert facts["bytes"].encode() == records[2].raw
    with LocalStore(tmp_path / "demo") as store:
        assert facts["verify"] == [
            {"log": name, "records": verdict.records, "size": verdict.size, "ok": True}
            for name in sorted([session, fork])
            for verdict in [verify(store, name)]
        ]


def test_the_demo_is_told_to_a_person_and_leaves_nothing(spawn: Run, tmp_path: Path) -> None:
    ran = spawn("demo", env={"TMPDIR": str(tmp_path)})
    assert (ran.status, ran.err) == (0, "")
    for words in (
        "1  A session is a file that only grows",
        "got SIGKILL",
        "Every acknowledged record is there, byte for byte.",
        "The torn end was cut, and kept aside",
        "for 5 run: the process died before the tool was done",
        "which it came from, is as it was",
        "wins;",
        "statestore demo --keep ./demo",
    ):
        assert words in ran.out
    assert list(tmp_path.iterdir()) == []


def test_the_demo_says_how_to_look_at_what_it_kept(spawn: Run, tmp_path: Path) -> None:
    ran = spawn("demo", "--keep", tmp_path)
    commands = [line.split()[1:] for line in ran.out.splitlines() if line.startswith("   statestore ")]
    assert [command[0] for command in commands] == ["show", "ls", "verify"]
    for command in commands:
        assert spawn(*command).status == 0


def test_the_demo_keeps_out_of_a_directory_that_is_not_empty(spawn: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    ran = spawn("demo", "--keep", tmp_path)
    assert ran.status == 2
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]
