"""``grep``: the records whose bodies match a pattern."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from statestore.records import RecordLog, scan
from statestore_local import LocalStore

from .conftest import Run, on_a_terminal, plain
from .test_safe import HOSTILE, unsafe_characters


def matching(path: Path, pattern: bytes, kinds: tuple[str, ...] = ()) -> list[int]:
    return [
        number
        for number, record in enumerate(scan(path.read_bytes()), 1)
        if re.search(pattern, record.body) and (not kinds or record.kind in kinds)
    ]


def test_it_finds_what_a_plain_search_finds_in_the_order_of_the_logs(run: Run, vectors: Path) -> None:
    ran = run("grep", "copy|na.{2}ve", vectors, "--json")
    assert ran.status == 0
    for name in ("session-12", "session-200", "session-2000"):
        expected = matching(vectors / f"{name}.state", b"copy|na.{2}ve")
        assert [row["n"] for row in ran.lines if row["log"] == name] == expected
    assert [row["log"] for row in ran.lines] == sorted(row["log"] for row in ran.lines)


def test_a_match_says_where_it_is(run: Run, vectors: Path) -> None:
    (row,) = run("grep", "revert", vectors, "session-12", "--json").lines
    record = list(scan((vectors / "session-12.state").read_bytes()))[2]
    assert row == {
        "log": "session-12",
        "n": 3,
        "offset": record.offset,
        "kind": "system",
        "id": record.id,
        "matches": 1,
        "at": record.body.index(b"revert"),
        "line": "revert naïve the copy provider",
    }
    assert run("grep", "revert", vectors, "session-12").out == "session-12\t3\tsystem\trevert naïve the copy provider\n"
    assert (
        run("grep", "revert", vectors / "session-12.state").out
        == "session-12\t3\tsystem\trevert naïve the copy provider\n"
    )


def test_options_choose_and_count(run: Run, vectors: Path) -> None:
    assert run("grep", "x==y", vectors, "-F", "--prefix", "session-200", "--logs").out == "session-200\nsession-2000\n"
    kinds = ("call", "result")
    count = len(matching(vectors / "session-2000.state", b"(?i)COPY", kinds))
    ran = run("grep", "-i", "COPY", vectors, "--kind", "call", "--kind", "result", "--count")
    assert f"session-2000\t{count}\n" in ran.out
    assert {"log": "session-2000", "count": count} in run(
        "grep", "-ic", "COPY", vectors, "--kind", "call", "--kind", "result", "--json"
    ).lines
    assert run("grep", "a.b", vectors, "-F").status == 1
    assert run("grep", "^Two", vectors, "session-12").status == 0
    assert run("grep", "Tw$", vectors, "session-12").status == 1


def test_nothing_found_is_1_and_nothing_printed(run: Run, vectors: Path) -> None:
    assert (run("grep", "zebra", vectors).status, run("grep", "zebra", vectors).out) == (1, "")


def test_a_log_that_cannot_be_read_is_told_and_the_others_are_read(run: Run, damaged: Path) -> None:
    ran = run("grep", "list", damaged, "--logs")
    assert ran.status == 1
    assert ran.out == "corrupt\ntorn\nwhole\n"
    assert "log=other" in ran.err
    ran = run("grep", "Two", damaged, "corrupt", "--json")
    assert (ran.status, ran.error["error"]) == (1, "Corrupt")


@pytest.mark.parametrize(
    "args", [["("], ["[[a]"], ["a{99999999999}"], ["x", "--logs", "--count"], ["x", "log", "--prefix", "a"]]
)
def test_what_is_no_pattern_is_wrong_usage(run: Run, vectors: Path, args: list[str]) -> None:
    ran = run("grep", args[0], vectors, *args[1:])
    assert (ran.status, ran.out) == (2, "")


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A store with a body on which a bad pattern never comes to an end."""
    with LocalStore(tmp_path) as store:
        RecordLog(store, "log").append("note", b"a" * 60 + b"!", expect=1)
    return tmp_path


def test_a_pattern_that_never_comes_to_an_end_is_given_up(
    run: Run, endless: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statestore.cli.grep._PATIENCE", 0.05)
    before = signal.getsignal(signal.SIGALRM)
    ran = run("grep", "(a+)+$", endless)
    assert (ran.status, "record 1 of log" in ran.err) == (2, True)
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_an_interrupt_ends_it_in_the_middle_of_a_match(endless: Path) -> None:
    with LocalStore(endless) as store:
        RecordLog(store, "a").append("note", b"aaa", expect=1)
    command = [sys.executable, "-P", "-m", "statestore", "grep", "(a+)+$", str(endless)]
    env = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"a\t1\tnote\taaa\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
    assert process.returncode == 130


def test_a_match_is_marked_on_a_terminal_alone(vectors: Path) -> None:
    shown = on_a_terminal("grep", "revert", vectors, "session-12")
    assert b"\x1b[1;31mrevert\x1b[0m" in shown
    assert plain(shown) == "session-12     3  system    revert naïve the copy provider\n"
    assert b"\x1b[1;31m" not in on_a_terminal("grep", "revert", vectors, "session-12", NO_COLOR="1")


@pytest.mark.parametrize("pattern", [".", "3", "(?s).*", "", "x*"])
def test_nothing_that_is_found_drives_a_terminal_or_poses_as_another_row(
    run: Run, tmp_path: Path, pattern: str
) -> None:
    body = f"{HOSTILE}\n{HOSTILE}\tlog\t9".encode("utf-8", "surrogatepass") + b"\xff\xc3"
    with LocalStore(tmp_path) as store:
        log = RecordLog(store, "log")
        log.append(f"a\n{HOSTILE}".encode("utf-8", "replace").decode(), body, expect=1, id="\x1b[31m")
    ran = run("grep", pattern, tmp_path)
    assert ran.out.count("\n") == 1
    assert ran.out.count("\t") == 3
    assert not any(map(unsafe_characters, ran.out.split("\t")))
    assert not any(map(unsafe_characters, run("grep", pattern, tmp_path, "--json").out.split("\n")))


@pytest.mark.parametrize("place", range(1, 12))
def test_a_long_line_is_shown_around_the_match_and_no_character_is_cut(run: Run, tmp_path: Path, place: int) -> None:
    line = "é" * (40 + place) + "\U0001f600" * 20 + "x" * place + "needle" + "日本" * 100
    with LocalStore(tmp_path) as store:
        RecordLog(store, "log").append("note", line.encode(), expect=1)
    (row,) = run("grep", "needle", tmp_path, "--json").lines
    assert "needle" in row["line"]
    assert row["line"].removesuffix("…") in line
    assert len(row["line"].encode()) <= 210


def test_a_large_log_is_searched_in_bounded_memory(tmp_path: Path) -> None:
    with open(tmp_path / "log.state", "wb") as file:
        for number in range(1, 151):
            file.write(b'{"n":%d,"kind":"note","id":"1","time":"2026-09-28T12:00:00Z","len":1048576}\n' % number)
            file.seek(1 << 20, os.SEEK_CUR)
            file.write(b"\n")
    code = f"""
import sys
sys.argv[1:] = ["grep", "x", {str(tmp_path)!r}]
from statestore.cli import main
try:
    main()
except SystemExit as end:
    # Not what getrusage says: that begins with the size of the process that has started this one.
    [most] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")]
    print(end.code, int(most) >> 10)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    status, mebibytes = map(int, ran.stdout.split())
    assert status == 1
    assert mebibytes < 120  # of 150 that the log has; half of it is Python and what it has loaded
