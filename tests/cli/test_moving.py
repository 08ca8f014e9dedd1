"""``import`` and ``export`` of one log as JSON lines, and of the files of coding agents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from statestore.records import scan
from statestore.sessions.importing import AGENTS

from .conftest import Run

AGENT_FILES = Path(__file__).parents[1] / "vectors" / "agents"
CLAUDE = AGENT_FILES / "claude-code" / "projects"


@pytest.mark.parametrize("log", ["session-12", "session-200", "session-2000"])
def test_a_log_goes_to_a_file_and_comes_back_byte_for_byte(run: Run, vectors: Path, tmp_path: Path, log: str) -> None:
    file, data = tmp_path / f"{log}.jsonl", (vectors / f"{log}.state").read_bytes()
    count = len(list(scan(data)))
    assert run("export", "jsonl", vectors, log, file, "--json").lines == [
        {"log": log, "path": str(file), "records": count, "size": len(data), "torn": 0}
    ]
    assert run("import", "jsonl", file, tmp_path / "new", "--json").lines == [
        {"log": log, "records": count, "size": len(data)}
    ]
    assert (tmp_path / "new" / f"{log}.state").read_bytes() == data


def test_a_log_goes_through_a_pipe(vectors: Path, tmp_path: Path) -> None:
    statestore = f'"{sys.executable}" -P -m statestore'
    export = f'{statestore} export jsonl "{vectors}/session-12.state"'
    command = f'{export} | {statestore} import jsonl - "{tmp_path}" copy'
    ran = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert ran.stdout == b"copy  12 records, 2,557 bytes\n"
    assert (tmp_path / "copy.state").read_bytes() == (vectors / "session-12.state").read_bytes()


def test_a_torn_end_is_left_out_and_told(run: Run, damaged: Path, tmp_path: Path) -> None:
    ran = run("export", "jsonl", damaged, "torn")
    assert (ran.status, ran.err) == (0, "note: a torn end was left out log=torn torn=128\n")
    assert len(ran.lines) == 11
    told = run("export", "jsonl", damaged, "torn", tmp_path / "torn.jsonl").out
    assert told == "torn  11 records, 2,419 bytes, without 128 bytes of a torn end\n"
    run("import", "jsonl", tmp_path / "torn.jsonl", tmp_path / "new")
    assert (tmp_path / "new" / "torn.state").read_bytes() == (damaged / "torn.state").read_bytes()[:2419]


def test_damage_leaves_no_half_a_file(run: Run, damaged: Path, tmp_path: Path) -> None:
    ran = run("export", "jsonl", damaged, "corrupt", tmp_path / "out.jsonl", "--json")
    assert (ran.status, ran.error["error"]) == (1, "Corrupt")
    assert not (tmp_path / "out.jsonl").exists()
    ran = run("export", "jsonl", damaged, "corrupt")
    assert (ran.status, len(ran.lines)) == (1, 5)


def test_what_is_there_is_left_alone(run: Run, vectors: Path, tmp_path: Path) -> None:
    file = tmp_path / "session-12.jsonl"
    file.write_bytes(b"mine")
    assert run("export", "jsonl", vectors, "session-12", file).status == 1
    assert file.read_bytes() == b"mine"
    file.unlink()
    run("export", "jsonl", vectors, "session-12", file)
    ran = run("import", "jsonl", file, vectors, "--json")
    assert (ran.status, ran.error["error"]) == (1, "Exists")
    assert (vectors / "session-12.state").stat().st_size == 2557


def test_a_line_that_is_no_record_is_named_and_nothing_is_made(run: Run, vectors: Path, tmp_path: Path) -> None:
    lines = run("export", "jsonl", vectors, "session-12").data.split(b"\n")[:-1]
    row = json.loads(lines[6])
    lines[6] = json.dumps(row | {"body": row["body"] + "!"}).encode()
    (tmp_path / "bad.jsonl").write_bytes(b"\n".join(lines))
    ran = run("import", "jsonl", tmp_path / "bad.jsonl", tmp_path / "new", "--json")
    assert ran.status == 1
    assert ran.error["facts"] == {"line": 7, "path": str(tmp_path / "bad.jsonl")}
    assert not (tmp_path / "new").exists()
    assert run("import", "jsonl", "/dev/null", tmp_path / "new", "log").err.startswith("error: there is no line in it")


@pytest.mark.parametrize(
    "args",
    [
        ["export", "jsonl", "{store}"],
        ["export", "jsonl", "{store}", "session-12", "--prefix", "a"],
        ["export", "jsonl", "{store}/session-12.state", "log", "file"],
        ["export", "promptkit", "{store}"],
        ["export", "promptkit", "{store}", "a", "b"],
        ["export", "codex", "{store}", "a"],
        ["import", "jsonl", "-", "{store}"],
        ["import", "jsonl", "file", "{store}", "--prefix", "a"],
        ["import", "codex", "file", "{store}", "log"],
        ["import", "none", "file", "{store}"],
    ],
)
def test_wrong_usage_says_what_is_right(run: Run, vectors: Path, args: list[str]) -> None:
    ran = run(*(arg.replace("{store}", str(vectors)) for arg in args))
    assert (ran.status, ran.out) == (2, "")


@pytest.mark.parametrize("agent", AGENTS)
def test_the_files_of_an_agent_become_sessions_and_the_report_adds_up(run: Run, tmp_path: Path, agent: str) -> None:
    ran = run("import", agent, AGENT_FILES / agent, tmp_path / "new", "--json")
    assert ran.status == 0
    assert len(ran.lines) == 2
    for row in ran.lines:
        assert row["lines"] == sum(row["carried"].values()) + sum(row["lost"].values())
        for session in row["sessions"]:
            assert run("ls", tmp_path / "new", "--prefix", session["log"], "--json").lines[0]["size"] == session["size"]
            assert run("show", tmp_path / "new", session["log"]).status == 0
    again = run("import", agent, AGENT_FILES / agent, tmp_path / "new")
    assert again.status == 1
    assert again.err.count("there is such a session already") == again.out.count("was there") > 0


def test_one_file_that_cannot_be_read_does_not_keep_the_others_out(run: Run, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").symlink_to("nowhere")
    (tmp_path / "logs" / "b.jsonl").write_bytes(b'{"type":"user","message":{"content":"hi"}}\n')
    ran = run("import", "claude-code", tmp_path / "logs", tmp_path / "new", "--prefix", "mine", "--json")
    assert ran.status == 1
    assert list(ran.lines[0]) == ["path", "error"]
    assert ran.lines[1]["sessions"][0]["log"].startswith("mine/")
    assert run("import", "codex", tmp_path / "nothing", tmp_path / "new").status == 1
