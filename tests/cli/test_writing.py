"""``append`` and ``fork``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from statestore.records import RecordLog, scan
from statestore_local import LocalStore

from .conftest import Ran, Run


@pytest.mark.parametrize("body", [b"\0", b"text", bytes(range(256)), b'{"n":1}\n', "é\u2028\r\n".encode()])
def test_append_takes_exact_bytes_from_standard_input_or_a_file(run: Run, tmp_path: Path, body: bytes) -> None:
    (tmp_path / "body").write_bytes(body)
    assert run("append", tmp_path, "log", "--create", stdin=body).status == 0
    assert run("append", tmp_path / "log.state", "--file", tmp_path / "body").status == 0
    assert [record.body for record in scan((tmp_path / "log.state").read_bytes())] == [body, body]


@pytest.mark.parametrize("options", [[], ["--create"], ["--create", "--kind", "result"]])
def test_append_of_nothing_from_standard_input_is_refused_and_makes_nothing(
    run: Run, tmp_path: Path, options: list[str]
) -> None:
    ran = run("append", tmp_path / "new", "log", *options)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "error: nothing came on standard input: give --body '' to append an empty body log=log\n"
    assert run("append", tmp_path / "new", "log", *options, "--json").error["facts"] == {"log": "log"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("redirection", ["false | {}", "{} < /dev/null", "{} <&-"])
def test_a_shell_whose_pipe_gave_nothing_appends_no_record(vectors: Path, redirection: str) -> None:
    before = (vectors / "session-12.state").read_bytes()
    script = redirection.format('"$0" -P -m statestore append "$1" session-12')
    ran = subprocess.run(["sh", "-c", script, sys.executable, vectors], capture_output=True)
    assert ran.returncode == 1
    assert ran.stderr.startswith(b"error: nothing came on standard input")
    assert (vectors / "session-12.state").read_bytes() == before


def test_an_empty_body_is_appended_where_it_is_meant(run: Run, tmp_path: Path) -> None:
    (tmp_path / "body").touch()
    assert run("append", tmp_path, "log", "--create", "--body", "").status == 0
    assert run("append", tmp_path, "log", "--file", tmp_path / "body").status == 0
    assert [record.body for record in scan((tmp_path / "log.state").read_bytes())] == [b"", b""]


def test_append_prints_number_id_and_offset(run: Run, vectors: Path) -> None:
    ran = run("append", vectors, "session-200", "--id", "aa", "--body", "more")
    assert (ran.status, ran.out) == (0, "record 201  id aa  at byte 77999\n")
    ran = run("append", vectors, "session-200", "--id", "bb", "--body", "", "--json")
    size = (vectors / "session-200.state").stat().st_size
    offset = size - len(list(scan((vectors / "session-200.state").read_bytes()))[-1].raw)
    assert ran.lines == [{"log": "session-200", "n": 202, "id": "bb", "offset": offset, "end": size}]


def test_append_writes_every_field_that_it_has_an_option_for(run: Run, tmp_path: Path) -> None:
    fields: dict[str, object] = {
        "kind": "step", "id": "i", "time": "2026-09-28T12:00:00.5Z", "type": "t", "step": "s", "provider": "p",
        "for": "f", "exit": 0, "full_output": "o", "via": "v", "source": "c", "upto": 7, "model": "m",
        "harness": "h", "request": "r",
    }  # fmt: skip
    options = [f"--{name.replace('_', '-')}={value}" for name, value in fields.items()]
    options += ["--truncated", '--usage={"input":1,"output":2,"cache_read":3,"cache_write":4}', '--cache={"a": [1]}']
    assert run("append", tmp_path, "log", "--create", "--body=x", *options).status == 0
    (record,) = scan((tmp_path / "log.state").read_bytes())
    assert json.loads(record.line) == fields | {
        "n": 1, "len": 1, "truncated": True, "cache": {"a": [1]},
        "usage": {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4},
    }  # fmt: skip


def test_append_at_the_expected_number_is_done_and_at_another_refused(run: Run, vectors: Path) -> None:
    before = (vectors / "session-12.state").read_bytes()
    ran = run("append", vectors, "session-12", "--expect", 12, "--body", "x", "--json")
    assert ran.status == 1
    assert ran.error["error"] == "Conflict"
    assert (ran.error["facts"]["record"], ran.error["facts"]["next"]) == (12, 13)
    assert ran.error["facts"]["found"]["size"] == 2557
    assert (vectors / "session-12.state").read_bytes() == before
    assert run("append", vectors, "session-12", "--expect", 13, "--body", "x").status == 0


def test_of_many_that_expect_one_number_one_wins_and_all_others_are_told(spawn: Run, vectors: Path) -> None:
    results: list[Ran] = []

    def one(name: int) -> None:
        results.append(spawn("append", vectors, "session-12", "--expect", 13, "--body", name))

    threads = [threading.Thread(target=one, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ran.status for ran in results) == [0, 1, 1, 1, 1, 1]
    assert all("next=14" in ran.err for ran in results if ran.status)
    assert len(list(scan((vectors / "session-12.state").read_bytes()))) == 13


def test_append_to_a_missing_log_fails_and_says_how_to_make_it(run: Run, tmp_path: Path) -> None:
    ran = run("append", tmp_path, "log", "--body", "x")
    assert ran.status == 1
    assert ran.err == "error: no such log: --create makes it log=log\n"
    assert list(tmp_path.iterdir()) == []


def test_create_makes_the_store_and_the_log_and_never_a_second_one(run: Run, tmp_path: Path) -> None:
    assert run("append", tmp_path / "new", "log", "--create", "--body", "x").status == 0
    ran = run("append", tmp_path / "new", "log", "--create", "--body", "x")
    assert ran.status == 1
    assert ran.err == "error: there is such a log already: without --create it is added to log=log\n"
    assert run("append", tmp_path / "typo", "log", "--body", "x").status == 1
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--time", "yesterday"],
        ["--cache", "{"],
        ["--kind", ""],
        ["--usage", "{"],
        ["--usage", '{"inputs":1}'],
        ["--usage", '{"input":1.5}'],
        ["--exit", "one"],
        ["--exit", str(2**63)],
        ["--expect", "0"],
        ["--create", "--expect", "2"],
        ["--body", "x", "--file", "y"],
        ["--nonsense"],
    ],
)
def test_append_refuses_wrong_usage_before_anything_is_made(run: Run, tmp_path: Path, options: list[str]) -> None:
    ran = run("append", tmp_path / "new", "log", *(["--create"] if "--create" not in options else []), *options)
    assert ran.status == 2
    assert ran.err.startswith("error: ")
    assert list(tmp_path.iterdir()) == []


def test_append_cuts_a_torn_end_and_keeps_it_aside(run: Run, damaged: Path) -> None:
    torn = (damaged / "torn.state").read_bytes()
    whole = torn[: torn.rindex(b'{"n":12,')]
    assert run("append", damaged, "torn", "--body", "next").status == 0
    after = (damaged / "torn.state").read_bytes()
    assert after.startswith(whole + b'{"n":12,"kind":"message"')
    (aside,) = damaged.glob(".torn.cut-*")
    assert aside.read_bytes() == torn[len(whole) :]


def test_append_to_a_damaged_log_is_refused_and_changes_nothing(run: Run, damaged: Path) -> None:
    before = (damaged / "corrupt.state").read_bytes()
    ran = run("append", damaged, "corrupt", "--body", "x", "--json")
    assert (ran.status, ran.error["error"]) == (1, "Corrupt")
    assert (damaged / "corrupt.state").read_bytes() == before


def test_append_to_a_held_log_names_the_holder(spawn: Run, vectors: Path) -> None:
    with LocalStore(vectors) as store, RecordLog(store, "session-12").hold():
        ran = spawn("append", vectors, "session-12", "--body", "x", "--json")
    assert ran.status == 1
    assert ran.error["error"] == "Held"
    assert ran.error["facts"]["holder"]["pid"] == os.getpid()


def test_a_file_that_cannot_be_read_fails_by_name(run: Run, vectors: Path) -> None:
    ran = run("append", vectors, "session-12", "--file", vectors / "nope", "--json")
    assert ran.status == 1
    assert ran.err.startswith("error: no such file or directory path=")
    assert ran.error["error"] == "FileNotFoundError"


@pytest.mark.parametrize("name", ["session-200", "session-2000"])
def test_fork_copies_the_records_in_front_of_a_number(run: Run, vectors: Path, name: str) -> None:
    data = (vectors / f"{name}.state").read_bytes()
    records = list(scan(data))
    for number in (2, 57, len(records)):
        ran = run("fork", vectors, name, f"at-{number}", "--before", number)
        assert (ran.status, ran.out) == (0, f"at-{number}\n")
        assert (vectors / f"at-{number}.state").read_bytes() == data[: records[number - 1].offset]
    assert (vectors / f"{name}.state").read_bytes() == data


def test_fork_without_a_name_takes_a_new_id(run: Run, vectors: Path) -> None:
    (row,) = run("fork", vectors, "session-12", "--json").lines
    copy = vectors / f"{row['log']}.state"
    assert row == {"log": row["log"], "source": "session-12", "before": None, "size": 2557, "location": str(copy)}
    assert len(row["log"]) == 8
    assert copy.read_bytes() == (vectors / "session-12.state").read_bytes()


def test_fork_of_a_path_takes_the_name_behind_it(run: Run, vectors: Path) -> None:
    assert run("fork", vectors / "session-12.state", "copy").out == "copy\n"
    assert (vectors / "copy.state").read_bytes() == (vectors / "session-12.state").read_bytes()
    assert len(run("fork", vectors / "session-12.state").out) == 9


def test_fork_of_damage_is_refused_and_in_front_of_it_works(run: Run, damaged: Path) -> None:
    assert run("fork", damaged, "corrupt", "copy").status == 1
    assert not (damaged / "copy.state").exists()
    assert run("fork", damaged, "corrupt", "copy", "--before", 6).status == 0
    assert run("verify", damaged, "copy").status == 0


def test_fork_leaves_a_torn_end_behind(run: Run, damaged: Path) -> None:
    assert run("fork", damaged, "torn", "copy").status == 0
    assert run("verify", damaged, "copy", "--json").lines[0]["state"] == "ok"


def test_fork_refuses_what_cannot_be(run: Run, vectors: Path) -> None:
    assert run("fork", vectors, "session-12", "session-200").status == 1
    assert run("fork", vectors, "session-12", "copy", "--before", 14).status == 1
    assert run("fork", vectors, "session-12", "copy", "--before", 1).status == 2
    assert run("fork", vectors, "session-12", "../copy").status == 1
    assert run("fork", vectors, "nope", "copy").status == 1
    assert not (vectors / "copy.state").exists()
    assert not (vectors.parent / "copy.state").exists()
