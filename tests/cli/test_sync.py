"""``sync``: what it prints, how it ends, what it refuses, and what it keeps between two runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from statestore import RecordLog
from statestore.store import NEW
from statestore_local import LocalStore
from tests.disks import ROOT_ONLY, read_only, small_disk

from .conftest import Run, interrupted
from .test_screens import compare

KEYS = {"log", "state", "size", "copied", "torn", "offset", "error"}


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return tmp_path / "backup"


def logs(root: Path) -> dict[str, bytes]:
    return {path.stem: path.read_bytes() for path in root.glob("*.state")}


def test_names_and_bytes_are_equal_at_the_end(run: Run, vectors: Path, backup: Path) -> None:
    ran = run("sync", vectors, backup)
    assert (ran.status, ran.err) == (0, "")
    assert logs(backup) == logs(vectors)
    assert run("sync", vectors, backup).out == "3 logs: 3 equal\n"


def test_a_screen_shows_what_became_of_each_log(run: Run, damaged: Path, backup: Path, tmp_path: Path) -> None:
    store = LocalStore(backup)
    store.append("mine", b"12", at=NEW)
    store.append("corrupt", b"12", at=NEW)
    store.append("whole", (damaged / "whole.state").read_bytes()[:1000], at=NEW)
    for name, options in (("sync-dry-run", ["--dry-run"]), ("sync", []), ("sync-again", [])):
        with store.hold("other"):
            ran = run("sync", damaged, backup, *options)
        told = ran.out + f"---- standard error\n{ran.err}"
        assert ran.status == 1
        for line in told.splitlines():
            if "other" in line and "failed" in line:
                told = told.replace(line, line.partition("holder=")[0] + "…")
        compare(name, told.replace(str(tmp_path), "…"))
    assert backup.joinpath("corrupt.state").read_bytes() == b"12"


def test_json_is_one_object_a_log_and_a_summary(run: Run, damaged: Path, backup: Path) -> None:
    store = LocalStore(backup)
    store.append("corrupt", b"12", at=NEW)
    store.append("mine", b"12", at=NEW)
    with store.hold("other"):
        ran = run("sync", damaged, backup, "--json")
    *rows, last = ran.lines
    assert all(set(row) == KEYS for row in rows)
    told = {row["log"]: (row["state"], row["size"], row["copied"], row["torn"], row["offset"]) for row in rows}
    assert told == {
        "corrupt": ("diverged", 2557, 0, 0, 0),
        "mine": ("extra", 2, 0, 0, None),
        "other": ("failed", 11, 0, 0, None),
        "torn": ("copied", 2419, 2419, 128, None),
        "whole": ("copied", 2557, 2557, 0, None),
    }
    (error,) = [row["error"] for row in rows if row["error"]]
    assert error["error"] == "Held"
    assert set(error) == {"error", "message", "facts"}
    assert last == {
        "summary": {
            "logs": 5,
            "equal": 0,
            "copied": 2,
            "extra": 1,
            "diverged": 1,
            "failed": 1,
            "bytes": 4976,
            "dry_run": False,
        }
    }
    assert ran.status == 1
    assert ran.error["error"] == "Conflict"
    assert ran.error["facts"] == {"diverged": 1, "failed": 1}


def test_a_failure_alone_exits_with_1_and_an_extra_log_with_0(run: Run, vectors: Path, backup: Path) -> None:
    store = LocalStore(backup)
    with store.hold("session-12"):
        ran = run("sync", vectors, backup, "--json")
    assert (ran.status, ran.error["error"], ran.error["facts"]["failed"]) == (1, "Unavailable", 1)
    store.append("mine", b"12", at=NEW)
    assert run("sync", vectors, backup).status == 0


def test_a_dry_run_makes_nothing(run: Run, vectors: Path, backup: Path) -> None:
    ran = run("sync", vectors, backup, "--dry-run", "--json")
    assert ran.status == 0
    assert ran.lines[-1]["summary"] | {"dry_run": True, "copied": 3, "bytes": 862798} == ran.lines[-1]["summary"]
    assert not backup.exists()
    LocalStore(backup)
    assert run("sync", vectors, backup, "--dry-run").status == 0
    assert list(backup.iterdir()) == []


def test_a_store_is_not_copied_into_itself_and_nothing_is_made(run: Run, vectors: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(vectors)
    for target in (vectors, f"{vectors}/", f"{vectors}/below", vectors.as_uri(), tmp_path / "link"):
        ran = run("sync", vectors, target)
        assert ran.status == 2
        assert "into itself" in ran.err
    for url in ("memory://one", "s3://bucket/place"):
        assert run("sync", url, f"{url}/").status == 2
    assert not (vectors / "below").exists()


def test_wrong_usage_exits_with_2(run: Run, vectors: Path, backup: Path) -> None:
    assert run("sync", vectors).status == 2
    assert run("sync", vectors, backup, "--workers", "0").status == 2
    assert run("sync", vectors, backup, "--state", "x", "--no-state").status == 2
    assert not backup.exists()


def test_a_source_that_is_missing_is_told_before_a_target_is_made(run: Run, tmp_path: Path, backup: Path) -> None:
    ran = run("sync", tmp_path / "missing", backup)
    assert (ran.status, ran.out) == (1, "")
    assert not backup.exists()
    assert not (tmp_path / "missing").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_is_read_only_fails_log_by_log(run: Run, vectors: Path, backup: Path) -> None:
    backup.mkdir(mode=0o500)
    ran = run("sync", vectors, backup, "--json")
    assert ran.status == 1
    assert ran.lines[-1]["summary"]["failed"] == 3


@ROOT_ONLY
def test_a_disk_that_is_read_only_fails_log_by_log_and_one_that_lacks_the_store_at_once(
    run: Run, vectors: Path
) -> None:
    with small_disk("1m") as disk:
        LocalStore(disk / "backup").close()
        read_only(disk)
        ran = run("sync", vectors, disk / "backup", "--json")
        assert (ran.status, ran.lines[-1]["summary"]["failed"]) == (1, 3)
        assert {row["error"]["facts"]["errno"] for row in ran.lines[:-1]} == {"EROFS"}
        ran = run("sync", vectors, disk / "new", "--json")
        assert (ran.status, ran.out, ran.error["facts"]["errno"]) == (1, "", "EROFS")


def test_a_prefix_and_what_it_may_not_be(run: Run, vectors: Path, backup: Path) -> None:
    run("sync", vectors, backup, "--prefix", "session-20")
    assert sorted(logs(backup)) == ["session-200", "session-2000"]
    assert run("sync", vectors, backup, "--prefix", "..").status == 1


def test_what_was_equal_is_remembered_between_two_runs(run: Run, vectors: Path, backup: Path, cache: Path) -> None:
    runs = {info.tail.run for info in LocalStore(vectors).list(tails=True) if info.tail}
    if "" in runs:
        pytest.skip("this file system has no inode generations")
    run("sync", vectors, backup)
    (file,) = (cache / "statestore" / "sync").iterdir()
    assert file.read_bytes().count(b"\n") == 3
    # A byte that changes in place is not what a store does, so it is only found where all is compared.
    damaged = backup / "session-12.state"
    damaged.write_bytes(damaged.read_bytes())
    with damaged.open("r+b") as opened:
        opened.seek(100)
        opened.write(b"?")
    assert run("sync", vectors, backup).status == 0
    ran = run("sync", vectors, backup, "--no-state", "--json")
    assert (ran.status, ran.lines[0]["state"], ran.lines[0]["offset"]) == (1, "diverged", 100)
    file.unlink()
    assert run("sync", vectors, backup).status == 1


def test_a_state_file_that_is_something_else_is_told_and_left_alone(run: Run, vectors: Path, backup: Path) -> None:
    diary = vectors.parent / "diary"
    diary.write_bytes(b"dear diary")
    ran = run("sync", vectors, backup, "--state", diary)
    assert ran.status == 0
    assert ran.err.startswith("note: what is equal is not remembered: it is no state of a sync of these two stores")
    assert diary.read_bytes() == b"dear diary"
    state = vectors.parent / "state"
    assert run("sync", vectors, backup, "--state", state).err == ""
    assert run("sync", vectors, vectors.parent / "other", "--state", state).err.startswith("note: ")


def test_a_cache_directory_that_cannot_be_made_is_no_failure(
    run: Run, vectors: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = vectors.parent / "file"
    file.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    ran = run("sync", vectors, backup)
    assert ran.status == 0
    assert ran.err.startswith("note: what is equal is not remembered")
    assert logs(backup) == logs(vectors)


def test_nothing_is_remembered_of_a_store_that_ends_with_its_process(run: Run, vectors: Path, cache: Path) -> None:
    assert run("sync", vectors, "memory://sync-test").status == 0
    assert run("sync", "memory://sync-test", vectors.parent / "back").status == 0
    assert logs(vectors.parent / "back") == logs(vectors)
    assert not (cache / "statestore").exists()


def test_no_password_of_a_url_is_kept(run: Run, vectors: Path, backup: Path, cache: Path) -> None:
    run("sync", f"{vectors.as_uri()}?lock_timeout=7", backup)
    (file,) = (cache / "statestore" / "sync").iterdir()
    assert b"lock_timeout" not in file.read_bytes()
    run("sync", vectors, backup)
    assert len(list((cache / "statestore" / "sync").iterdir())) == 1


def test_without_reading_back_the_bytes_are_the_same(run: Run, vectors: Path, backup: Path) -> None:
    assert run("sync", vectors, backup, "--no-verify", "--workers", "1").status == 0
    assert logs(backup) == logs(vectors)


def test_an_interrupt_leaves_what_the_next_sync_goes_on_with(run: Run, tmp_path: Path, backup: Path) -> None:
    source = LocalStore(tmp_path / "many", sync="never")
    for number in range(400):
        RecordLog(source, f"log{number:03}").append("message", b"x" * 5000, expect=1)
    assert interrupted("sync", tmp_path / "many", backup, "--json") == 130
    assert run("sync", tmp_path / "many", backup).status == 0
    assert logs(backup) == logs(tmp_path / "many")


def test_a_store_can_be_copied_there_and_back(run: Run, vectors: Path, backup: Path, tmp_path: Path) -> None:
    run("sync", vectors, backup)
    run("sync", backup.as_uri(), tmp_path / "again")
    assert logs(tmp_path / "again") == logs(vectors)
