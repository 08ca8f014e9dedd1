"""What survives: syncs and their failures, full disks, writers killed at any moment, cuts kept aside.

STATESTORE_LOCAL_KILLS=100 in the environment kills so many writers in each of eight logs; ten otherwise.
"""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from statestore.errors import Conflict, NotFound, NotSupported, Unavailable
from statestore.store import NEW, Tail
from statestore_local import LocalStore, _copy, _sync
from tests.disks import ROOT_ONLY, read_only, small_disk

KILLS = int(os.environ.get("STATESTORE_LOCAL_KILLS", "10"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


class Syncs:
    """Counts the syncs, by the path that was synced, and fails them when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        self.fail_on: Callable[[str], bool] = lambda path: False
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(_sync, name, self._counting(getattr(_sync, name)))

    def _counting(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(fd: int) -> None:
            path = os.readlink(f"/proc/self/fd/{fd}")
            if self.fail_on(path):
                raise OSError(errno.EIO, "input/output error")
            real(fd)
            self.seen.append(path)

        return sync

    def take(self, root: Path) -> list[str]:
        """Return what was synced since the last call, relative to the root's parent."""
        seen, self.seen = self.seen, []
        return [os.path.relpath(path, root.parent) for path in seen]


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    return Syncs(monkeypatch)


# The three policies


def test_always_syncs_each_append_and_each_name_once(root: Path, syncs: Syncs) -> None:
    store = LocalStore(root)
    tail = store.append("a/b", b"1", at=NEW)
    assert syncs.take(root) == ["root/a/b.state", "root/a", "root", "."]
    tail = store.append("a/b", b"2", at=tail)
    assert syncs.take(root) == ["root/a/b.state"]
    with store.hold("a/b"):
        store.append("a/b", b"3", at=tail)
    assert syncs.take(root) == ["root/a/b.state"]
    assert store.capabilities.durable
    assert store.capabilities.flushes
    store.flush("a/b")
    store.delete("a/b")
    assert syncs.take(root) == ["root/a"]


def test_an_append_that_was_there_already_is_as_durable_as_a_fresh_one(root: Path, syncs: Syncs) -> None:
    LocalStore(root, sync="never").append("a", b"12", at=NEW)
    assert syncs.take(root) == []
    assert LocalStore(root).append("a", b"1", at=NEW).size == 1
    assert syncs.take(root) == ["root/a.state", "root", "."]


def test_on_flush_syncs_when_it_is_told_to(root: Path, syncs: Syncs) -> None:
    store = LocalStore(root, sync="on_flush")
    tail = store.append("a", b"1", at=NEW)
    store.copy("a", "b")
    assert syncs.take(root) == []
    store.flush("a")
    assert syncs.take(root) == ["root/a.state", "root", "."]
    store.append("a", b"2", at=tail)
    store.flush("a")
    assert syncs.take(root) == ["root/a.state"]
    store.flush("b")
    assert syncs.take(root) == ["root/b.state", "root", "."]
    assert not store.capabilities.durable
    assert store.capabilities.flushes
    with pytest.raises(NotFound):
        store.flush("c")


def test_a_log_that_others_hold_can_be_flushed(root: Path, syncs: Syncs) -> None:
    store, other = LocalStore(root, sync="on_flush"), LocalStore(root, sync="on_flush")
    store.append("a", b"1", at=NEW)
    with store.hold("a"):
        other.flush("a")
        store.flush("a")
    assert syncs.take(root).count("root/a.state") == 2


def test_never_syncs_nothing_and_has_no_flush(root: Path, syncs: Syncs) -> None:
    store = LocalStore(root, sync="never")
    tail = store.append("a", b"12", at=NEW)
    store.copy("a", "b")
    store.cut("a", 1, at=tail)
    store.delete("a")
    with pytest.raises(NotSupported):
        store.flush("b")
    assert not store.capabilities.durable
    assert not store.capabilities.flushes
    assert syncs.take(root) == []


def test_a_copy_is_synced_before_it_has_its_name(root: Path, syncs: Syncs) -> None:
    store = LocalStore(root)
    store.append("a", b"1", at=NEW)
    syncs.take(root)
    store.copy("a", "b/c")
    synced = syncs.take(root)
    assert len(synced) == 4
    assert synced[1:] == ["root/b", "root", "."]
    (root / "d.state").touch()
    store.copy("a", "d")
    assert syncs.take(root) == ["root/.d.new", "root", "."]


def test_what_is_cut_is_durable_aside_before_it_goes(root: Path, syncs: Syncs) -> None:
    store = LocalStore(root)
    tail = store.append("a", b"12345", at=NEW)
    syncs.take(root)
    sizes = []
    syncs.fail_on = lambda path: bool(sizes.append((root / "a.state").stat().st_size))
    assert store.cut("a", 2, at=tail) == b"345"
    aside, directory, log = syncs.take(root)
    assert aside.startswith("root/.a.cut-2-")
    assert (directory, log) == ("root", "root/a.state")
    assert sizes == [5, 5, 2]
    assert (root.parent / aside).read_bytes() == b"345"


def test_outside_of_tests_the_syncs_are_the_systems_own() -> None:
    assert _sync.fsync is os.fsync
    assert _sync.fdatasync is os.fdatasync


# Syncs that fail


def test_after_a_failed_sync_the_log_is_cut_back_and_this_store_writes_it_no_more(root: Path, syncs: Syncs) -> None:
    store = LocalStore(root)
    tail = store.append("a", b"123", at=NEW)
    syncs.fail_on = lambda path: path.endswith("a.state")
    with pytest.raises(Unavailable, match="cut back to 3 bytes") as caught:
        store.append("a", b"456", at=tail)
    assert caught.value.effect_unknown
    assert not caught.value.retry
    assert isinstance(caught.value.__cause__, OSError)
    assert store.read("a") == b"123"
    syncs.fail_on = lambda path: False
    for refused in (
        lambda: store.append("a", b"456", at=tail),
        lambda: store.append("a", b"123", at=NEW),
        lambda: store.cut("a", 1, at=tail),
    ):
        with pytest.raises(Unavailable, match="open another one"):
            refused()
    for n in range(100):  # many others, so that the log's file is surely not kept open
        store.append(f"other{n}", b"1", at=NEW)
    with pytest.raises(Unavailable, match="open another one"):
        store.append("a", b"456", at=tail)
    assert LocalStore(root).append("a", b"456", at=tail).size == 6


def test_a_failed_sync_while_held_is_cut_back_too(root: Path, syncs: Syncs) -> None:
    store = LocalStore(root)
    with store.hold("a"):
        tail = store.append("a", b"123", at=NEW)
        syncs.fail_on = lambda path: path.endswith("a.state")
        with pytest.raises(Unavailable) as caught:
            store.append("a", b"456", at=tail)
        assert caught.value.effect_unknown
        syncs.fail_on = lambda path: False
        with pytest.raises(Unavailable):
            store.append("a", b"456", at=tail)
    assert (root / "a.state").read_bytes() == b"123"


@pytest.mark.parametrize("what", ["a/b.state", "root/a", "root"])
def test_a_creation_whose_sync_fails_leaves_no_log(root: Path, syncs: Syncs, what: str) -> None:
    store = LocalStore(root)
    syncs.fail_on = lambda path: path.endswith(what)
    with pytest.raises(Unavailable) as caught:
        store.append("a/b", b"1", at=NEW)
    assert caught.value.effect_unknown
    syncs.fail_on = lambda path: False
    assert list(LocalStore(root).list()) == []
    assert LocalStore(root).append("a/b", b"1", at=NEW).size == 1


def test_a_failed_flush_leaves_the_log_and_refuses_to_go_on(root: Path, syncs: Syncs) -> None:
    store = LocalStore(root, sync="on_flush")
    tail = store.append("a", b"123", at=NEW)
    syncs.fail_on = lambda path: True
    with pytest.raises(Unavailable) as caught:
        store.flush("a")
    assert caught.value.effect_unknown
    syncs.fail_on = lambda path: False
    assert store.read("a") == b"123"
    with pytest.raises(Unavailable):
        store.flush("a")
    with pytest.raises(Unavailable):
        store.append("a", b"4", at=tail)


def test_a_copy_whose_data_cannot_be_synced_is_not_made(root: Path, syncs: Syncs) -> None:
    store = LocalStore(root)
    store.append("a", b"1", at=NEW)
    (root / "placeholder.state").touch()
    syncs.fail_on = lambda path: True
    for target in ("b", "placeholder"):
        with pytest.raises(Unavailable, match="nothing was made"):
            store.copy("a", target)
    assert sorted(os.listdir(root)) == ["a.state"]


def test_nothing_is_cut_where_it_cannot_be_kept_aside(root: Path, syncs: Syncs) -> None:
    store = LocalStore(root)
    tail = store.append("a", b"123", at=NEW)
    syncs.fail_on = lambda path: ".cut-" in path
    with pytest.raises(Unavailable, match="nothing was cut"):
        store.cut("a", 1, at=tail)
    assert os.listdir(root) == ["a.state"]
    assert store.read("a") == b"123"


# Writes that fail


def test_a_short_write_is_completed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(root, sync="never")
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:2]))
    tail = store.append("a", b"12345", at=NEW)
    monkeypatch.undo()
    assert (tail.size, store.read("a")) == (5, b"12345")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG])
@pytest.mark.parametrize("held", [False, True])
def test_a_write_that_fails_part_way_is_taken_back(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: int, held: bool
) -> None:
    store = LocalStore(root, sync="never")
    tail = store.append("a", b"123", at=NEW)
    real = os.write
    calls = []

    def failing(fd: int, data: bytes) -> int:
        calls.append(1)
        if len(calls) > 1:
            raise OSError(code, os.strerror(code))
        return real(fd, data[:2])

    def append() -> None:
        monkeypatch.setattr(os, "write", failing)
        with pytest.raises(Unavailable, match="nothing was added") as caught:
            store.append("a", b"456", at=tail)
        monkeypatch.undo()
        assert not caught.value.effect_unknown
        assert caught.value.facts["errno"] == errno.errorcode[code]
        assert isinstance(caught.value.__cause__, OSError)
        assert caught.value.retry == (code in (errno.ENOSPC, errno.EDQUOT))
        assert store.read("a") == b"123"
        assert store.append("a", b"456", at=tail).size == 6

    if held:
        with store.hold("a"):
            append()
    else:
        append()
    assert store.read("a") == b"123456"


def test_a_write_that_cannot_be_taken_back_is_said_and_stops_this_store(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(root, sync="never")
    tail = store.append("a", b"123", at=NEW)
    real = os.write
    calls = []

    def failing(fd: int, data: bytes) -> int:
        calls.append(1)
        if len(calls) > 1:
            raise OSError(errno.EIO, "input/output error")
        return real(fd, data[:2])

    def refuse(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(os, "write", failing)
    monkeypatch.setattr(os, "ftruncate", refuse)
    with pytest.raises(Unavailable, match="behind byte 3") as caught:
        store.append("a", b"456", at=tail)
    assert caught.value.effect_unknown
    monkeypatch.undo()
    with pytest.raises(Unavailable, match="could not be taken back"):
        store.append("a", b"456", at=tail)
    again = LocalStore(root, sync="never")
    assert again.cut("a", 3, at=again.tail("a")) == b"45"
    assert again.append("a", b"456", at=tail).size == 6


def test_a_creation_that_cannot_be_written_leaves_no_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(root, sync="never")

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(Unavailable, match="make space"):
        store.append("a", b"1", at=NEW)
    monkeypatch.undo()
    assert os.listdir(root) == []


WITHOUT_DESCRIPTORS = """
import os, resource, sys
from contextlib import suppress
from statestore.errors import Unavailable
from statestore.store import NEW
from statestore_local import LocalStore

store = LocalStore(sys.argv[1], sync="never")
store.append("a", b"1", at=NEW)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
spare = []
with suppress(OSError):
    while True:
        spare.append(os.open("/dev/null", os.O_RDONLY))
for name, call in {
    "read": lambda: store.read("a"),
    "append": lambda: store.append("b", b"1", at=NEW),
    "append below": lambda: store.append("c/d", b"1", at=NEW),
    "list": lambda: list(store.list()),
    "hold": lambda: store.hold("a").__enter__(),
    "copy": lambda: store.copy("a", "b"),
    "holder": lambda: store.holder("a"),
    "delete": lambda: store.delete("a"),
}.items():
    try:
        call()
    except Unavailable as error:
        assert "too many open files" in str(error), (name, error)
        assert error.retry, name
        print(name)
for fd in spare:
    os.close(fd)
with store.hold("a"):
    assert store.append("a", b"2", at=store.tail("a")).size == 2
"""


def test_too_many_open_files_is_an_error_that_may_pass(root: Path) -> None:
    # In a process of its own: a test runner's threads open and close files too, and would find none left.
    command = [sys.executable, "-c", WITHOUT_DESCRIPTORS, str(root)]
    refused = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert refused == ["read", "append", "append below", "list", "hold", "copy", "holder", "delete"]


@pytest.fixture
def disk() -> Iterator[Path]:
    with small_disk("1m") as disk:
        yield disk


@ROOT_ONLY
@pytest.mark.parametrize("sync", ["always", "never"])
@pytest.mark.parametrize("held", [False, True])
def test_a_disk_that_fills_up_during_an_append_loses_nothing(disk: Path, sync: str, held: bool) -> None:
    store = LocalStore(disk, sync=sync)  # type: ignore[arg-type]
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(600 << 10))
    hold = store.hold("a")
    if held:
        hold.__enter__()
    tail = store.append("a", b"x" * 1000, at=NEW)
    big = random.Random(1).randbytes(512 << 10)
    with pytest.raises(Unavailable, match="the disk is full: make space") as caught:
        store.append("a", big, at=tail)
    assert caught.value.retry
    assert not caught.value.effect_unknown
    assert (disk / "a.state").read_bytes() == b"x" * 1000
    with pytest.raises(Unavailable, match="the disk is full"):
        store.append("b", big, at=NEW)
    with pytest.raises(NotFound):
        store.read("b")
    ballast.unlink()
    tail = store.append("a", big, at=tail)
    assert store.read("a") == b"x" * 1000 + big
    with pytest.raises(Unavailable, match="the disk is full"):
        store.copy("a", "copy")
    with pytest.raises(Unavailable, match="nothing was cut"):
        store.cut("a", 10, at=tail)
    assert store.read("a") == b"x" * 1000 + big
    if held:
        hold.__exit__(None, None, None)
    assert sorted(os.listdir(disk)) == ["a.state"]


@ROOT_ONLY
def test_a_read_only_file_system_can_be_read_and_says_why_it_is_not_written(disk: Path) -> None:
    with LocalStore(disk) as store:
        tail = store.append("a", b"1", at=NEW)
    read_only(disk)
    store = LocalStore(disk)
    assert store.read("a") == b"1"
    assert [info.name for info in store.list(tails=True)] == ["a"]
    for refused in (
        lambda: store.append("a", b"2", at=tail),
        lambda: store.append("b", b"2", at=NEW),
        lambda: store.copy("a", "b"),
        lambda: store.delete("a"),
        lambda: store.hold("a").__enter__(),
    ):
        with pytest.raises(Unavailable, match="read-only") as caught:
            refused()
        assert not caught.value.retry


# Writers that are killed

WRITER = """
import random, sys
from statestore.errors import Conflict
from statestore.store import NEW
from statestore_local import LocalStore
root, seed, hold, sync = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "hold", sys.argv[4]
store = LocalStore(root, sync=sync)
chance = random.Random(seed)
try:
    at = store.tail("a/log")
except LookupError:
    at = NEW
if hold:
    keep = store.hold("a/log")
    keep.__enter__()
number = 0
while True:
    body = bytes([65 + number % 26]) * chance.choice((1, 100, 4096, 70000))
    at = store.append("a/log", b"%d:%d:" % (number, len(body)) + body, at=at)
    sys.stdout.buffer.write(b"%d\\n" % at.size)
    sys.stdout.buffer.flush()
    number += 1
"""


@pytest.mark.parametrize("part", range(8))
def test_a_writer_killed_at_any_moment_has_lost_nothing_acknowledged(root: Path, part: int) -> None:
    """Each of the eight parts kills several writers one after another, each at a moment drawn from its seed."""
    chance = random.Random(part)
    known = b""
    store = LocalStore(root, sync="never")
    for kill in range(KILLS):
        seed = part * 1000 + kill
        mode = ["hold" if kill % 2 else "free", "always" if kill % 5 == 0 else "never"]
        command = [sys.executable, "-c", WRITER, str(root), str(seed), *mode]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            acknowledged = len(known)
            for _ in range(chance.randrange(1, 20)):
                acknowledged = int(process.stdout.readline())
            for _ in range(chance.randrange(2000)):
                pass  # any moment from here on
            process.kill()
            rest = process.stdout.read().split(b"\n")[:-1]
            acknowledged = int(rest[-1]) if rest else acknowledged
        found = store.read("a/log")
        assert found.startswith(known), f"seed {seed}"
        assert len(found) >= acknowledged, f"seed {seed}"
        check_chunks(found[len(known) : acknowledged], f"seed {seed}")
        again = LocalStore(root, sync="never")
        tail = again.cut("a/log", acknowledged, at=again.tail("a/log"))
        assert found == found[:acknowledged] + tail
        with again.hold("a/log"):
            again.append("a/log", b"|", at=again.tail("a/log"))
        known = found[:acknowledged] + b"|"
        assert again.read("a/log") == known
        again.close()


def check_chunks(data: bytes, seed: str) -> None:
    number = 0
    while data:
        count, size, rest = data.split(b":", 2)
        assert int(count) == number, seed
        body, data = rest[: int(size)], rest[int(size) :]
        assert body == bytes([65 + number % 26]) * int(size), seed
        number += 1


# Cuts


def test_a_cut_gives_back_what_it_drops_and_keeps_it_aside(root: Path) -> None:
    store = LocalStore(root)
    tail = store.append("a/b", b"12345", at=NEW)
    assert store.cut("a/b", 3, at=tail) == b"45"
    assert store.read("a/b") == b"123"
    (aside,) = (root / "a").glob(".b.cut-3-*")
    assert aside.read_bytes() == b"45"
    assert store.cut("a/b", 3, at=store.tail("a/b")) == b""
    assert store.append("a/b", b"6", at=store.tail("a/b")).size == 4


def test_a_cut_at_a_tail_that_has_moved_is_refused(root: Path) -> None:
    store = LocalStore(root)
    tail = store.append("a", b"12", at=NEW)
    later = store.append("a", b"3", at=tail)
    with pytest.raises(Conflict) as caught:
        store.cut("a", 1, at=tail)
    assert (caught.value.expected, caught.value.found) == (tail, later)
    for size in (-1, 4):
        with pytest.raises(ValueError, match="cannot be cut"):
            store.cut("a", size, at=later)
    assert os.listdir(root) == ["a.state"]
    with pytest.raises(NotFound):
        store.cut("b", 0, at=Tail(1, "x"))


# Copies


def test_a_copy_is_whole_where_the_kernel_cannot_help(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(root, sync="never")
    data = random.Random(1).randbytes(3_000_000)
    store.append("a", data, at=NEW)
    real = os.copy_file_range
    calls = []

    def some(source: int, target: int, count: int, *offsets: int) -> int:
        calls.append(1)
        if len(calls) > 1:
            raise OSError(errno.EXDEV, "invalid cross-device link")
        return real(source, target, min(count, 1000), *offsets)

    monkeypatch.setattr(os, "copy_file_range", some)
    assert store.copy("a", "b").size == len(data)
    monkeypatch.delattr(os, "copy_file_range")
    assert store.copy("a", "c", stop=2_000_000).size == 2_000_000
    assert store.read("b") == data
    assert store.read("c") == data[:2_000_000]


@pytest.mark.parametrize("without", ["unnamed files", "links of open files"])
def test_a_copy_is_made_where_the_file_system_cannot_do_it_in_one_step(
    root: Path, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    store = LocalStore(root, sync="never")
    store.append("a", b"123", at=NEW)

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "operation not supported")

    if without == "unnamed files":
        monkeypatch.delattr(os, "O_TMPFILE")
    else:
        monkeypatch.setattr(os, "link", refuse)
    assert store.copy("a", "b/c").size == 3
    assert store.read("b/c") == b"123"
    assert os.listdir(root / "b") == ["c.state"]
    assert store.append("b/c", b"4", at=store.tail("b/c")).size == 4
    assert store.read("a") == b"123"


@pytest.mark.parametrize("unnamed", [True, False], ids=["at once", "in the place of an empty file"])
def test_the_kernel_copies_and_the_new_log_is_appended_to_by_all(
    root: Path, monkeypatch: pytest.MonkeyPatch, unnamed: bool
) -> None:
    store, other = LocalStore(root, sync="never"), LocalStore(root, sync="never")
    store.append("a", b"123", at=NEW)
    real, copied = os.copy_file_range, []

    def count(*args: int) -> int:
        copied.append(real(*args))
        return copied[-1]

    monkeypatch.setattr(os, "copy_file_range", count)
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")
    tail = store.copy("a", "b")
    assert copied == [3]
    for writer in (other, store, other):
        tail = writer.append("b", b"4", at=tail)
    assert store.read("b") == b"123444"


def test_a_source_that_is_cut_during_a_copy_makes_no_copy(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(root, sync="never")
    store.append("a", b"123", at=NEW)
    monkeypatch.setattr(_copy, "clone", lambda source, target, length: length - 1)
    with pytest.raises(Unavailable, match="was cut while it was copied") as caught:
        store.copy("a", "b")
    assert caught.value.retry
    assert os.listdir(root) == ["a.state"]


def test_a_stream_reads_one_file_whatever_becomes_of_its_name(root: Path) -> None:
    store = LocalStore(root, sync="never")
    data = random.Random(2).randbytes(2_500_000)
    tail = store.append("a", data, at=NEW)
    stream = store.stream("a", 10)
    first = next(stream)
    store.append("a", b"later", at=tail)
    store.delete("a")
    store.append("a", bytes(3_000_000), at=NEW)
    assert first + b"".join(stream) == data[10:]
