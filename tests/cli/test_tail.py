"""``tail``: the last records of a log, and those to come."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from statestore.records import RecordLog
from statestore.store import Tail
from statestore_local import LocalStore

from .conftest import Run, interrupted


def numbers(lines: list[dict[str, dict[str, int]]]) -> list[int]:
    return [line["record"]["n"] for line in lines]


@contextmanager
def following(*args: object) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-P", "-m", "statestore", "tail", *map(str, args), "-f"]
    env = os.environ | {"PYTHONUNBUFFERED": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        yield process
        process.kill()


def line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def test_the_last_records_are_told_as_show_tells_them(run: Run, vectors: Path) -> None:
    shown = run("show", vectors, "session-200", "--last", 3).out.split("\n\nlog ")[0]
    assert run("tail", vectors, "session-200", "-n", 3).out.split("\n")[1:-1] == shown.split("\n")
    assert run("tail", vectors / "session-200.state", "--last", "3").out.split("\n")[1:-1] == shown.split("\n")


def test_ten_by_default_or_all_where_there_are_fewer_or_none(run: Run, vectors: Path) -> None:
    assert numbers(run("tail", vectors, "session-200", "--json").lines) == list(range(191, 201))
    assert numbers(run("tail", vectors, "session-12", "-n", 99, "--json").lines) == list(range(1, 13))
    assert run("tail", vectors, "session-12", "-n", 0, "--json").out == ""


def test_from_a_number_on(run: Run, vectors: Path) -> None:
    assert numbers(run("tail", vectors, "session-12", "--from", 11, "--json").lines) == [11, 12]
    ran = run("tail", vectors, "session-12", "--from", 13, "--json")
    assert (ran.status, ran.out) == (0, "")


def test_a_record_as_json_is_that_of_show(run: Run, vectors: Path) -> None:
    shown = run("show", vectors, "session-12", "--last", 2, "--json").lines
    assert run("tail", vectors, "session-12", "-n", 2, "--json").lines == shown[:-1]


@pytest.mark.parametrize(
    "args", [["-n", "1", "--from", "2"], ["-n", "-1"], ["--from", "0"], ["--from", "x"]], ids=" ".join
)
def test_wrong_usage(run: Run, vectors: Path, args: list[str]) -> None:
    assert run("tail", vectors, "session-12", *args).status == 2
    assert run("tail", vectors).status == 2


def test_damage_is_told_after_the_records_before_it(run: Run, damaged: Path) -> None:
    for more in ([], ["-f"], ["--from", "4"], ["--from", "4", "-f"]):
        ran = run("tail", damaged, "corrupt", "-n2" if "--from" not in more else "--json", "--json", *more)
        assert (numbers(ran.lines), ran.status) == ([4, 5], 1)
        assert ran.error["facts"]["record"] == 6
    assert run("tail", damaged, "other", "-f").status == 1


def test_a_torn_end_is_not_shown(run: Run, damaged: Path) -> None:
    assert numbers(run("tail", damaged, "torn", "-n", 1, "--json").lines) == [11]


def test_a_log_that_is_not_there_fails(run: Run, vectors: Path) -> None:
    for more in ([], ["-f"], ["--from", "2"]):
        assert run("tail", vectors, "nope", *more).status == 1


def test_what_is_appended_is_printed_at_once(vectors: Path) -> None:
    with LocalStore(vectors, sync="never") as store, following(vectors, "session-12", "-n", 1, "--json") as process:
        log = RecordLog(store, "session-12")
        assert json.loads(line(process))["record"]["n"] == 12
        for number in (13, 14):
            log.append("note", b"for %d" % number)
            record = json.loads(line(process))["record"]
            assert (record["n"], record["body"]) == (number, f"for {number}")
        for _ in range(1000):
            log.append("note", os.urandom(100))
        assert [json.loads(line(process))["record"]["n"] for _ in range(1000)] == list(range(15, 1015))


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have something done each time that the store is told to wait; after that the log is deleted."""

    def plan(*acts: Callable[[LocalStore, str], object]) -> None:
        left = iter([*acts, LocalStore.delete])

        def wait(store: LocalStore, log: str, at: Tail, timeout: float) -> bool:
            next(left)(store, log)
            return True

        monkeypatch.setattr(LocalStore, "wait", wait)

    return plan


def add(store: LocalStore, log: str) -> None:
    RecordLog(store, log).append("note", b"new")


def test_a_log_that_is_deleted_meanwhile_ends_it_with_1(
    run: Run, vectors: Path, meanwhile: Callable[..., None]
) -> None:
    meanwhile()
    ran = run("tail", vectors, "session-12", "-f", "-n", 1, "--json")
    assert (numbers(ran.lines), ran.status) == ([12], 1)
    assert ran.err.startswith("error: the log was deleted while it was followed")


@pytest.mark.parametrize(
    ("args", "given"),
    [(["-n", "0"], [13, 14]), (["-n", "1"], [12, 13, 14]), (["--from", "12"], [12, 13, 14]), (["--from", "14"], [14])],
    ids=str,
)
def test_it_goes_on_behind_what_it_has_shown_or_at_a_number_that_is_yet_to_come(
    run: Run, vectors: Path, meanwhile: Callable[..., None], args: list[str], given: list[int]
) -> None:
    meanwhile(add, add)
    assert numbers(run("tail", vectors, "session-12", "-f", *args, "--json").lines) == given


def test_a_reader_that_goes_ends_it_even_while_nothing_comes(vectors: Path) -> None:
    with following(vectors, "session-12", "-n", 1) as process:
        line(process)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_an_interrupt_ends_it_with_130(vectors: Path) -> None:
    assert interrupted("tail", vectors, "session-12", "-f") == 130


def test_nothing_in_a_record_can_forge_a_row_or_drive_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = "\x1b[2J\r    9  00:00:00  step\u2028\u202e"
    with LocalStore(tmp_path / "store") as store:
        RecordLog(store, "a").append(evil, evil.encode(), expect=1, via=evil)
    for args in ([], ["--json"]):
        out = run("tail", tmp_path / "store", "a", *args).out
        assert not set("\x1b\r\u2028\u202e") & set(out)
        assert sum("step" in row for row in out.split("\n")) <= 1


@pytest.mark.parametrize(("n", "next_"), [(0, 2), (-5, 2), (7, 8), (2**63 - 1, 89)])
def test_a_header_with_another_number_than_its_place_does_no_harm(
    run: Run, tmp_path: Path, meanwhile: Callable[..., None], n: int, next_: int
) -> None:
    (tmp_path / "a.state").write_bytes(b'{"n":%d,"kind":"note","id":"x","time":"2026-09-28T09:00:00Z","len":0}\n\n' % n)
    meanwhile(add)
    assert numbers(run("tail", tmp_path, "a", "-f", "--json").lines) == [n, next_]
