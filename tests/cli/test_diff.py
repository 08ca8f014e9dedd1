"""``diff``: where two logs part, and what each has since."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from statestore.records import RecordLog, scan
from statestore_local import LocalStore

from .conftest import Run


@pytest.fixture
def forked(vectors: Path) -> Path:
    """A session, and a fork of its first 21 records that went another way."""
    with LocalStore(vectors) as store:
        fork = RecordLog(store, "session-200").copy("retry", before=22)
        fork.append("message", b"another way", id="1", time="2026-09-28T12:00:00Z")
    return vectors


def test_a_fork_has_everything_in_common_up_to_where_it_was_made(run: Run, forked: Path) -> None:
    ran = run("diff", forked, "session-200", "retry", "--json", "--limit", 1)
    assert ran.status == 1
    first, other, summary = ran.lines
    twenty_second = list(scan((forked / "session-200.state").read_bytes()))[21]
    assert (first["side"], first["record"]["n"], first["record"]["id"]) == ("-", 22, twenty_second.id)
    assert (other["side"], other["record"]["body"]) == ("+", "another way")
    assert summary["summary"]["same"] == {"records": 21, "size": 7210}
    assert summary["summary"]["equal"] is False
    sides = summary["summary"]["sides"]
    assert [(side["log"], side["records"], side["size"]) for side in sides] == [
        ("session-200", 179, 70789),
        ("retry", 1, (forked / "retry.state").stat().st_size - 7210),
    ]
    assert sum(sides[0]["kinds"].values()) == 179
    assert sides[1]["kinds"] == {"message": 1}


def test_the_same_records_are_equal_and_the_status_is_0(run: Run, vectors: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(vectors / "session-12.state", other)
    ran = run("diff", vectors, "session-12", other, "session-12")
    assert (ran.status, ran.out) == (0, "equal  12 records, 2,557 bytes\n")
    assert run("diff", vectors / "session-12.state", other / "session-12.state").out == ran.out
    assert run("diff", vectors / "session-12.state", "session-12").status == 0


def test_a_log_that_is_the_beginning_of_the_other_one_has_nothing_since(run: Run, vectors: Path) -> None:
    run("fork", vectors, "session-12", "short", "--before", 8)
    ran = run("diff", vectors, "short", "session-12", "--limit", 0)
    assert ran.status == 1
    assert f"- {vectors} short  nothing since\n" in ran.out
    assert f"+ {vectors} session-12  5 records, " in ran.out


def test_records_that_only_share_an_id_are_not_the_same(run: Run, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        for name, body in (("a", b"one"), ("b", b"two")):
            log = RecordLog(store, name)
            log.append("start", id="0", time="2026-09-28T12:00:00Z", expect=1)
            log.append("message", body, id="1", time="2026-09-28T12:00:00Z")
    assert run("diff", tmp_path, "a", "b", "--json").lines[-1]["summary"]["same"]["records"] == 1


def test_a_torn_end_is_told_and_does_not_count(run: Run, damaged: Path) -> None:
    run("fork", damaged, "torn", "whole-again")
    ran = run("diff", damaged, "torn", "whole-again")
    assert ran.status == 0
    assert "torn: 128 bytes" in ran.out


def test_a_damaged_log_is_compared_as_far_as_it_goes(run: Run, damaged: Path) -> None:
    ran = run("diff", damaged, "whole", "corrupt", "--json")
    assert ran.status == 1
    summary = ran.lines[-1]["summary"]
    assert summary["same"]["records"] == 5
    assert summary["sides"][0]["records"] == 7
    assert summary["sides"][1]["corrupt"]["record"] == 6
    assert "corrupt: record 6" in run("diff", damaged, "whole", "corrupt").out
    assert run("diff", damaged, "corrupt", "corrupt").status == 1


def test_the_rest_is_counted_and_said(run: Run, forked: Path) -> None:
    out = run("diff", forked, "retry", "session-200", "--limit", 2).out
    assert "and 177 more: --limit shows more\n" in out
    assert "179 records, 70,789 bytes since: " in out


@pytest.mark.parametrize("args", [["a"], ["a", "b", "c", "d"], ["a.state", "b", "c", "d"]])
def test_it_takes_two_logs(run: Run, vectors: Path, args: list[str]) -> None:
    assert run("diff", vectors, *args).status == 2


def test_a_log_that_is_not_there_is_an_error(run: Run, vectors: Path) -> None:
    ran = run("diff", vectors, "session-12", "nothing", "--json")
    assert (ran.status, ran.error["error"]) == (1, "NotFound")
