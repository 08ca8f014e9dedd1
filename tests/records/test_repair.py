"""Repairing a log: what is whole stays, what is cut is kept before, and whatever comes between loses nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from statestore.errors import Conflict, Exists, Held, NotFound, NotSupported, Unavailable
from statestore.records import RecordLog, repair
from statestore.store import NEW
from statestore_local import LocalStore
from statestore_memory import MemoryStore
from tests.disks import small_disk


@pytest.fixture
def store(tmp_path):
    with LocalStore(tmp_path / "store") as opened:
        yield opened


def break_third(store: LocalStore) -> tuple[bytes, int]:
    """Make a log of five records whose third is damaged; return its bytes and where the damage begins."""
    log = RecordLog(store, "a")
    for number in range(5):
        log.append("note", b"body %d" % number, expect=number + 1)
    path = Path(store.location("a"))
    offset = list(log)[2].offset
    data = path.read_bytes()
    data = data[:offset] + b"\0" + data[offset + 1 :]
    path.write_bytes(data)
    return data, offset


def tear(store: LocalStore) -> tuple[bytes, int]:
    """Make a log of two records and the beginning of a third."""
    log = RecordLog(store, "a")
    log.append("note", b"one", expect=1)
    log.append("note", b"two")
    end = store.tail("a").size
    with Path(store.location("a")).open("ab") as file:
        file.write(b'{"n":3,"kind":"note"')
    return store.read("a"), end


both = pytest.mark.parametrize("harm", [break_third, tear])


@both
def test_a_plan_says_what_is_whole_and_what_is_behind_it_and_changes_nothing(store, harm):
    data, end = harm(store)
    before = sorted(Path(store.location("a")).parent.iterdir())
    plan = repair.plan(store, "a")
    assert (plan.log, plan.verdict.records, plan.size, plan.surplus) == ("a", 2, end, len(data) - end)
    assert plan.tail == store.tail("a")
    assert (plan.verdict.following, plan.verdict.torn) == ((2, 0) if harm is break_third else (0, len(data) - end))
    assert sorted(Path(store.location("a")).parent.iterdir()) == before
    assert store.read("a") == data


@both
def test_a_cut_keeps_what_it_cuts_and_the_log_goes_on(store, tmp_path, harm):
    data, end = harm(store)
    repair.cut(store, repair.plan(store, "a"), tmp_path / "kept")
    assert store.read("a") == data[:end]
    assert (tmp_path / "kept").read_bytes() == data[end:]
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o600
    assert RecordLog(store, "a").append("note", b"more").n == 3
    assert repair.plan(store, "a").surplus == 0


def test_a_whole_log_is_not_touched(store, tmp_path):
    RecordLog(store, "a").append("note", b"one", expect=1)
    plan = repair.plan(store, "a")
    assert plan.surplus == 0
    repair.cut(store, plan, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_log_without_a_whole_record_is_gone_afterwards(store, tmp_path):
    store.append("a", b"nothing that could be read\n", at=NEW)
    repair.cut(store, repair.plan(store, "a"), tmp_path / "kept")
    assert (tmp_path / "kept").read_bytes() == b"nothing that could be read\n"
    with pytest.raises(NotFound):
        store.tail("a")


def test_a_log_that_is_not_there_is_not_found(store, tmp_path):
    with pytest.raises(NotFound):
        repair.plan(store, "a")
    tear(store)
    plan = repair.plan(store, "a")
    store.delete("a")
    with pytest.raises(NotFound):
        repair.cut(store, plan, tmp_path / "kept")
    with pytest.raises(NotFound):
        repair.save(store, plan, "b")
    assert not (tmp_path / "kept").exists()


# What comes between.


@both
def test_a_writer_that_has_appended_meanwhile_is_a_conflict_and_nothing_is_cut(store, tmp_path, harm):
    harm(store)
    plan = repair.plan(store, "a")
    with Path(store.location("a")).open("ab") as file:
        file.write(b"more")
    data = store.read("a")
    with pytest.raises(Conflict) as caught:
        repair.cut(store, plan, tmp_path / "kept")
    assert (caught.value.expected, caught.value.found) == (plan.tail, store.tail("a"))
    assert store.read("a") == data
    assert not (tmp_path / "kept").exists()


def test_a_record_that_has_taken_the_place_of_a_torn_end_of_its_size_is_not_cut(store, tmp_path):
    _, end = tear(store)
    log = RecordLog(store, "b")
    log.append("note", b"", expect=1)
    record = next(iter(log)).raw
    path = Path(store.location("a"))
    whole = path.read_bytes()[:end]
    path.write_bytes(whole + record[:-1] + b"?")
    plan = repair.plan(store, "a")
    path.write_bytes(whole + record)
    assert store.tail("a") == plan.tail
    with pytest.raises(Conflict):
        repair.cut(store, plan, tmp_path / "kept")
    assert store.read("a") == whole + record
    assert not (tmp_path / "kept").exists()


@both
def test_a_log_that_somebody_holds_is_left_alone(store, tmp_path, harm):
    data, _ = harm(store)
    plan = repair.plan(store, "a")
    with LocalStore(tmp_path / "store") as other, other.hold("a"):
        with pytest.raises(Held) as caught:
            repair.cut(store, plan, tmp_path / "kept")
        assert caught.value.holder.pid == os.getpid()
    assert store.read("a") == data
    assert not (tmp_path / "kept").exists()


def test_nobody_appends_between_the_keeping_and_the_cut(store, tmp_path, monkeypatch):
    data, end = break_third(store)
    real = LocalStore.cut
    refused = []

    def cut(self, log, size, *, at):
        with LocalStore(tmp_path / "store") as other, pytest.raises(Held) as caught:
            other.append("a", b"x", at=at)
        refused.append(caught.value)
        return real(self, log, size, at=at)

    monkeypatch.setattr(LocalStore, "cut", cut)
    repair.cut(store, repair.plan(store, "a"), tmp_path / "kept")
    assert len(refused) == 1
    assert store.read("a") == data[:end]


def test_a_cut_that_is_refused_leaves_no_file(store, tmp_path, monkeypatch):
    data, _ = break_third(store)

    def cut(self, log, size, *, at):
        raise Unavailable("the disk is full, so nothing was cut", log=log)

    monkeypatch.setattr(LocalStore, "cut", cut)
    with pytest.raises(Unavailable):
        repair.cut(store, repair.plan(store, "a"), tmp_path / "kept")
    assert store.read("a") == data
    assert not (tmp_path / "kept").exists()


def test_a_cut_of_which_nobody_knows_leaves_the_file(store, tmp_path, monkeypatch):
    data, end = break_third(store)

    def cut(self, log, size, *, at):
        raise Unavailable("no answer", effect_unknown=True, log=log)

    monkeypatch.setattr(LocalStore, "cut", cut)
    with pytest.raises(Unavailable):
        repair.cut(store, repair.plan(store, "a"), tmp_path / "kept")
    assert (tmp_path / "kept").read_bytes() == data[end:]


def test_a_file_that_is_there_is_never_written_to(store, tmp_path):
    data, _ = break_third(store)
    (tmp_path / "kept").write_bytes(b"precious")
    os.symlink(tmp_path / "elsewhere", tmp_path / "link")
    for path in (tmp_path / "kept", tmp_path / "link", tmp_path / "nowhere" / "kept"):
        with pytest.raises(Unavailable, match="nothing was cut") as caught:
            repair.cut(store, repair.plan(store, "a"), path)
        assert caught.value.facts["path"] == str(path)
    assert (tmp_path / "kept").read_bytes() == b"precious"
    assert not (tmp_path / "elsewhere").exists()
    assert store.read("a") == data


def test_a_full_disk_is_a_refusal_with_nothing_changed(store):
    log = RecordLog(store, "a")
    log.append("note", b"one", expect=1)
    log.append("note", os.urandom(300_000))
    path = Path(store.location("a"))
    path.write_bytes(path.read_bytes()[:-1])
    data = store.read("a")
    with small_disk("64k") as disk:
        with pytest.raises(Unavailable, match="nothing was cut: no space"):
            repair.cut(store, repair.plan(store, "a"), disk / "kept")
        assert list(disk.iterdir()) == []
    assert store.read("a") == data
    assert store.holder("a") is None


@pytest.mark.parametrize("moment", ["in front of the cut", "behind the cut", "while it is kept"])
def test_a_kill_at_any_moment_loses_nothing(store, tmp_path, moment):
    data, end = break_third(store)
    code = """
import os, signal, sys
from statestore.records import repair
from statestore_local import LocalStore
root, kept, moment = sys.argv[1:]
die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
real = LocalStore.cut
if moment == "in front of the cut":
    LocalStore.cut = die
elif moment == "behind the cut":
    LocalStore.cut = lambda *args, **named: die(real(*args, **named))
else:
    os.fsync = die
store = LocalStore(root)
repair.cut(store, repair.plan(store, "a"), kept)
"""
    arguments = [tmp_path / "store", tmp_path / "kept", moment]
    assert subprocess.run([sys.executable, "-c", code, *arguments]).returncode == -9
    left = store.read("a")
    if moment == "behind the cut":
        assert left == data[:end]
        assert (tmp_path / "kept").read_bytes() == data[end:]
    else:
        assert left == data
        (tmp_path / "kept").unlink()
        repair.cut(store, repair.plan(store, "a"), tmp_path / "kept")
        assert store.read("a") + (tmp_path / "kept").read_bytes() == data


def test_the_file_and_its_name_are_on_the_disk_before_the_cut(store, tmp_path, monkeypatch):
    data, end = break_third(store)
    happened = []
    sync, real = os.fsync, LocalStore.cut

    def fsync(fd):
        happened.append(os.readlink(f"/proc/self/fd/{fd}"))
        sync(fd)

    def cut(self, *args, **named):
        happened.append("cut")
        assert (tmp_path / "kept").read_bytes() == data[end:]
        return real(self, *args, **named)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(LocalStore, "cut", cut)
    repair.cut(store, repair.plan(store, "a"), tmp_path / "kept")
    assert happened[:3] == [str(tmp_path / "kept"), str(tmp_path), "cut"]


# Without a cut.


def test_a_store_that_cannot_cut_refuses_before_anything_is_done(tmp_path):
    store = MemoryStore()
    store.append("a", b"damage", at=NEW)
    with pytest.raises(NotSupported):
        repair.cut(store, repair.plan(store, "a"), tmp_path / "kept")
    assert store.read("a") == b"damage"
    assert not (tmp_path / "kept").exists()


@both
def test_what_is_whole_is_saved_to_a_new_log_and_the_old_one_stays(store, harm):
    data, end = harm(store)
    assert repair.save(store, repair.plan(store, "a"), "b") == store.tail("b")
    assert store.read("b") == data[:end]
    assert store.read("a") == data
    with pytest.raises(Exists):
        repair.save(store, repair.plan(store, "a"), "b")


def test_nothing_is_saved_of_a_log_without_a_whole_record_or_of_another_log(store):
    store.append("a", b"damage", at=NEW)
    with pytest.raises(NotFound, match="nothing to copy"):
        repair.save(store, repair.plan(store, "a"), "b")
    store.delete("a")
    tear(store)
    plan = repair.plan(store, "a")
    store.delete("a")
    RecordLog(store, "a").append("note", b"x" * 999, expect=1)
    with pytest.raises(Conflict):
        repair.save(store, plan, "b")
    assert [info.name for info in store.list()] == ["a"]
