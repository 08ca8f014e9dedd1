"""``stats``: how much there is, of what, and of which day."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from statestore.records import RecordLog, Usage, scan
from statestore_local import LocalStore
from statestore_memory import MemoryStore

from .conftest import Run


def summary(run: Run, *args: object) -> dict[str, Any]:
    ran = run("stats", *args, "--json")
    found = ran.lines[-1]["summary"]
    assert isinstance(found, dict)
    return found


def test_records_bytes_and_tokens_are_those_that_the_headers_have(run: Run, vectors: Path) -> None:
    data = (vectors / "session-200.state").read_bytes()
    records = list(scan(data))
    used = [record.header.usage for record in records if record.header.usage]
    found = summary(run, vectors, "session-200")
    assert (found["logs"], found["records"], found["size"]) == (1, len(records), len(data))
    assert found["kinds"] == {
        kind: {"records": count, "size": sum(len(record.raw) for record in records if record.kind == kind)}
        for kind, count in Counter(record.kind for record in records).items()
    }
    assert found["usage"] == {
        name: sum(getattr(usage, name) for usage in used) for name in ("input", "output", "cache_read", "cache_write")
    }
    assert (found["steps"], found["told"]) == (found["kinds"]["step"]["records"], len(used))
    assert found["days"] == {
        "2026-09-28": {name: found[name] for name in ("records", "size", "steps", "told", "usage")}
    }


def test_a_store_is_the_sum_of_its_logs_and_a_prefix_a_part_of_it(run: Run, vectors: Path) -> None:
    one, all_of_them = summary(run, vectors / "session-12.state"), summary(run, vectors)
    some = summary(run, vectors, "--prefix", "session-2")
    assert (one["logs"], some["logs"], all_of_them["logs"]) == (1, 2, 3)
    for name in ("records", "size", "steps", "told"):
        assert one[name] + some[name] == all_of_them[name]
    assert summary(run, vectors, "--jobs", 1) == all_of_them
    assert summary(run, vectors, "--prefix", "nothing")["records"] == 0


def test_days_are_in_utc(run: Run, tmp_path: Path) -> None:
    with LocalStore(tmp_path / "store") as store:
        log = RecordLog(store, "a")
        log.append("note", expect=1, time="2026-09-28T23:30:00Z")
        log.append("note", time="2026-09-29T01:00:00+02:00")
        log.append("note", time="2026-09-29T01:59:59+02:00")
        log.append("step", time="2026-09-29T12:00:00Z", usage=Usage(input=5, output=2))
        log.append("step", time="2026-09-29T12:00:00Z")
    found = summary(run, tmp_path / "store")
    assert {day: (part["records"], part["steps"], part["told"]) for day, part in found["days"].items()} == {
        "2026-09-28": (3, 0, 0),
        "2026-09-29": (2, 2, 1),
    }
    assert found["days"]["2026-09-28"]["usage"] is None
    assert found["days"]["2026-09-29"]["usage"] == {"input": 5, "output": 2, "cache_read": 0, "cache_write": 0}
    assert "5 in, 2 out in 1 of 2 steps" in run("stats", tmp_path / "store").out


def test_damaged_logs_count_as_far_as_they_are_whole_and_are_named(run: Run, damaged: Path) -> None:
    ran = run("stats", damaged, "--json")
    assert ran.status == 1
    assert [(row["log"], row["state"], row["corrupt"]["record"]) for row in ran.lines[:-1]] == [
        ("corrupt", "corrupt", 6),
        ("other", "corrupt", 1),
    ]
    found = ran.lines[-1]["summary"]
    assert [found[name] for name in ("logs", "corrupt", "torn", "unreadable", "records")] == [4, 2, 1, 0, 28]
    assert ran.error["facts"] == {"corrupt": 2}


def test_a_log_that_cannot_be_read_is_named_and_the_others_still_count(run: Run, unreadable: Path) -> None:
    ran = run("stats", unreadable, "--json")
    assert (ran.status, ran.error["facts"]) == (1, {"unreadable": 1})
    assert [(row["log"], row["state"], row["error"]) for row in ran.lines[:-1]] == [
        ("session-200", "unreadable", "Unavailable")
    ]
    assert (ran.lines[-1]["summary"]["logs"], ran.lines[-1]["summary"]["records"]) == (3, 2012)
    assert "unreadable  session-200  the disk says no" in run("stats", unreadable).out
    assert run("stats", unreadable, "session-200").status == 1


def test_large_bodies_are_not_fetched(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    store, fetched = MemoryStore(), 0
    log = RecordLog(store, "a")
    log.append("result", bytes(30 << 20), expect=1)
    log.append("note", b"")
    real = MemoryStore.read

    def read(store: MemoryStore, log: str, start: int = 0, stop: int | None = None) -> bytes:
        nonlocal fetched
        data = real(store, log, start, stop)
        fetched += len(data)
        return data

    monkeypatch.setattr(MemoryStore, "read", read)
    monkeypatch.setattr("statestore.plugins.open_store", lambda *_, **__: store)
    assert summary(run, "memory://", "a")["size"] > 30 << 20
    assert fetched < 2 << 20


def test_kinds_and_days_that_are_too_many_are_counted_together(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statestore.cli.stats._KINDS", 3)
    monkeypatch.setattr("statestore.cli.stats._DAYS", 2)
    with LocalStore(tmp_path / "store", sync="never") as store:
        for name in ("a", "b"):
            log = RecordLog(store, name)
            for number in range(5):
                time = f"2026-01-0{number + 1}T00:00:00Z"
                log.append(f"{name}{number}", expect=number + 1, time=time)
    found = summary(run, tmp_path / "store")
    assert list(found["kinds"]) == ["a0", "a1", "a2"]
    assert found["other_kinds"]["records"] == 7
    assert sum(part["size"] for part in found["kinds"].values()) + found["other_kinds"]["size"] == found["size"]
    assert {day: part["records"] for day, part in found["days"].items()} == {"2026-01-01": 2, "2026-01-02": 2}
    assert found["other_days"]["records"] == 6
    out = run("stats", tmp_path / "store").out
    assert out.count("all other kinds\n") == out.count("all other days\n") == 1


def test_no_kind_can_forge_a_row_or_drive_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = [
        "\x1b[2J",
        "a\n        999             999  step",
        "\u202e\u2028",
        "all other kinds",
        "",
        '"',
        "\r",
        "x" * 999,
    ]
    with LocalStore(tmp_path / "store") as store:
        log = RecordLog(store, "a")
        for number, kind in enumerate(evil, 1):
            log.append(kind, expect=number)
    out = run("stats", tmp_path / "store").out
    assert not set("\x1b\r\u2028\u202e") & set(out)
    table = out.split("KIND\n")[1].split("\n\n")[0].split("\n")
    assert len(table) == len(evil)
    assert [row for row in table if row.endswith("  all other kinds")] == []
    assert [row for row in table if '"all other kinds"' in row] != []


def test_no_sum_is_too_large(run: Run, tmp_path: Path) -> None:
    most = 2**63 - 1
    with LocalStore(tmp_path / "store") as store:
        log = RecordLog(store, "a")
        for number in (1, 2):
            log.append("step", expect=number, usage=Usage(most, most, most, -most))
    usage = summary(run, tmp_path / "store")["usage"]
    assert usage == {"input": 2 * most, "output": 2 * most, "cache_read": 2 * most, "cache_write": -2 * most}
    assert run("stats", tmp_path / "store").status == 0


def test_wrong_usage_and_what_is_not_there(run: Run, vectors: Path) -> None:
    assert run("stats", vectors, "session-12", "--prefix", "s").status == 2
    assert run("stats", vectors, "--jobs", "0").status == 2
    assert run("stats").status == 2
    assert run("stats", vectors, "nope").status == 1
    assert run("stats", vectors / "nope").status == 1
