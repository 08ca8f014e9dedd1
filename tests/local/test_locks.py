"""Who may write: holds, appends under way, other processes, other threads, forks."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from statestore.errors import Closed, Conflict, Held, NotFound, Unavailable
from statestore.store import NEW, Holder, Tail
from statestore_local import LocalStore
from tests.opened import opened

SPAWN = multiprocessing.get_context("spawn")

HOLD = """
import sys, os
from statestore_local import LocalStore
store = LocalStore(sys.argv[1], sync="never")
with store.hold(sys.argv[2]):
    print(os.getpid(), flush=True)
    sys.stdin.read(1)
    if len(sys.argv) > 3:
        os.kill(os.getpid(), 9)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def store(root: Path) -> LocalStore:
    return LocalStore(root, sync="never")


@contextmanager
def holding_process(root: Path, log: str, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HOLD, str(root), log, *more]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def in_child(call: Callable[[], object]) -> str:
    """Fork, make the call in the child, and return the name of the error it raised, or what it returned."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of a fork beside threads
        child = os.fork()
    if child == 0:
        try:
            answer = repr(call())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    return answer


def append_all(root: str, log: str, who: str, count: int, sync: str = "never") -> int:
    """Append `count` lines of our own, each where the log ends; return how often another one was first."""
    conflicts = 0
    with LocalStore(root, sync=sync) as store:  # type: ignore[arg-type]
        for number in range(count):
            line = f"{who} {number}\n".encode()
            at = NEW
            while True:
                try:
                    store.append(log, line, at=at)
                    break
                except Conflict as error:
                    conflicts += 1
                    at = error.found
    return conflicts


def check_lines(data: bytes, writers: list[str], count: int) -> None:
    lines = data.decode().split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(writers) * count
    for who in writers:
        assert [line for line in lines if line.startswith(who + " ")] == [f"{who} {n}" for n in range(count)]


# Holds


def test_a_hold_keeps_every_other_store_from_writing_and_names_its_holder(store: LocalStore, root: Path) -> None:
    tail = store.append("a", b"1", at=NEW)
    store.append("source", b"1", at=NEW)
    other = LocalStore(root)
    with holding_process(root, "a") as process:
        for refused in (
            lambda: store.append("a", b"2", at=tail),
            lambda: store.append("a", b"1", at=NEW),
            lambda: other.append("a", b"2", at=tail),
            lambda: store.delete("a"),
            lambda: store.cut("a", 0, at=tail),
            lambda: store.hold("a").__enter__(),
        ):
            with pytest.raises(Held) as caught:
                refused()
            holder = caught.value.holder
            assert (holder.pid, holder.host) == (process.pid, os.uname().nodename)
            time.strptime(holder.since, "%Y-%m-%dT%H:%M:%SZ")
            assert str(process.pid) in str(caught.value)
            assert holder.host in str(caught.value)
            assert holder.since in str(caught.value)
        assert store.holder("a") == other.holder("a") == holder
        assert store.read("a") == b"1"
    assert store.append("a", b"2", at=tail).size == 2


def test_a_copy_to_a_held_name_is_refused(store: LocalStore, root: Path) -> None:
    store.append("source", b"1", at=NEW)
    with holding_process(root, "a"), pytest.raises(Held):
        store.copy("source", "a")
    assert store.copy("source", "a").size == 1


def test_the_store_that_holds_may_do_everything_and_from_every_thread(store: LocalStore, root: Path) -> None:
    store.append("source", b"source", at=NEW)
    other = LocalStore(root)
    with store.hold("a"):
        with ThreadPoolExecutor(1) as pool:
            tail = pool.submit(store.append, "a", b"12", at=NEW).result()
        assert store.cut("a", 1, at=tail) == b"2"
        store.delete("a")
        with pytest.raises(Held):
            other.append("a", b"x", at=NEW)
        store.copy("source", "a")
        with pytest.raises(Held):
            other.append("a", b"x", at=other.tail("a"))
        assert store.append("a", b"!", at=store.tail("a")).size == 7
    assert other.append("a", b"?", at=other.tail("a")).size == 8
    assert other.read("a") == b"source!?"


def test_a_store_cannot_hold_a_log_twice(store: LocalStore) -> None:
    with store.hold("a"):
        with pytest.raises(Held) as caught, store.hold("a"):
            pass
        assert caught.value.holder.pid == os.getpid()
        store.append("a", b"1", at=NEW)
    with store.hold("a"):
        pass


def test_of_many_who_want_to_hold_one_wins_each_time(root: Path) -> None:
    stores = [LocalStore(root, sync="never") for _ in range(4)]
    inside = []
    won = []

    def contend(store: LocalStore) -> None:
        for _ in range(40):
            try:
                with store.hold("a"):
                    inside.append(1)
                    assert len(inside) == 1
                    won.append(1)
                    inside.pop()
            except Held:
                pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(contend, stores * 2))
    assert won
    assert os.listdir(root) == []


def test_a_hold_on_a_log_that_is_not_there_leaves_nothing_behind(store: LocalStore, root: Path) -> None:
    with store.hold("a/b"):
        assert sorted(os.listdir(root / "a")) == [".b.hold", "b.state"]
        assert list(store.list()) == []
        with pytest.raises(NotFound):
            store.read("a/b")
    assert os.listdir(root / "a") == []


def test_the_kernel_lets_go_when_a_holder_is_killed(store: LocalStore, root: Path) -> None:
    tail = store.append("a", b"1", at=NEW)
    with holding_process(root, "a", "die") as process:
        assert store.holder("a") is not None
        process.communicate(b"!", timeout=30)
        assert process.returncode == -signal.SIGKILL
    assert (root / ".a.hold").exists()
    assert store.holder("a") is None
    assert store.append("a", b"2", at=tail).size == 2
    with store.hold("a"):
        assert store.holder("a") == Holder(os.getpid(), os.uname().nodename, store.holder("a").since)  # type: ignore[union-attr]
    assert not (root / ".a.hold").exists()


@pytest.mark.parametrize("note", [b"", b'{"pid": 1', b"[]", b'{"pid": "x", "host": 1}', b"\xff", b"[" * 4000])
def test_a_note_that_says_nothing_is_not_believed(root: Path, note: bytes) -> None:
    store = LocalStore(root, sync="never", lock_timeout=0.02)
    tail = store.append("a", b"1", at=NEW)
    (root / ".a.hold").write_bytes(note)
    assert store.holder("a") is None
    assert store.append("a", b"2", at=tail).size == 2
    with open(root / ".a.hold", "rb") as sidecar, open(root / "a.state", "rb") as data:
        fcntl.flock(sidecar, fcntl.LOCK_EX)
        fcntl.flock(data, fcntl.LOCK_EX)
        assert store.holder("a") is None
        with pytest.raises(Held) as caught:
            store.append("a", b"3", at=Tail(2, tail.run))
        assert caught.value.holder is None


def test_an_append_under_way_is_waited_for(store: LocalStore, root: Path) -> None:
    tail = store.append("a", b"1", at=NEW)
    with open(root / "a.state", "rb") as data, ThreadPoolExecutor(1) as pool:
        fcntl.flock(data, fcntl.LOCK_EX)
        waiting = pool.submit(store.append, "a", b"2", at=tail)
        assert not waiting.done()
        assert store.read("a") == b"1"
        fcntl.flock(data, fcntl.LOCK_UN)
        assert waiting.result(timeout=30).size == 2


def test_the_wait_for_others_is_bounded(root: Path) -> None:
    store = LocalStore(root, sync="never", lock_timeout=0.02)
    tail = store.append("a", b"1", at=NEW)
    with open(root / "a.state", "rb") as data:
        fcntl.flock(data, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match="lock_timeout") as caught:
            store.append("a", b"2", at=tail)
        assert caught.value.retry
        assert not caught.value.effect_unknown
    assert store.append("a", b"2", at=tail).size == 2


def test_looking_for_the_holder_does_not_disturb_holds(root: Path) -> None:
    store, other = LocalStore(root, sync="never"), LocalStore(root, sync="never")
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            other.holder("a")

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for number in range(60):
            with store.hold("a"):
                assert other.holder("a") is not None, number
    finally:
        stop.set()
        watcher.join()
    assert os.listdir(root) == []


def test_the_note_says_in_json_who_holds(store: LocalStore, root: Path) -> None:
    with store.hold("a"):
        note = json.loads((root / ".a.hold").read_bytes())
    assert set(note) == {"pid", "host", "since"}
    assert note["pid"] == os.getpid()


# What changes under an open store


def test_a_log_deleted_by_another_store_is_noticed(store: LocalStore, root: Path) -> None:
    tail = store.append("a", b"1", at=NEW)
    LocalStore(root).delete("a")
    with pytest.raises(NotFound):
        store.append("a", b"2", at=tail)
    assert store.append("a", b"1", at=NEW).run != tail.run or not store.capabilities.runs


def test_a_log_made_again_is_another_run(store: LocalStore, root: Path) -> None:
    if not store.capabilities.runs:
        pytest.skip("the file system under the tests has no inode generations")
    tail = store.append("a", b"1", at=NEW)
    other = LocalStore(root)
    other.delete("a")
    again = other.append("a", b"1", at=NEW)
    with pytest.raises(Conflict) as caught:
        store.append("a", b"2", at=tail)
    assert caught.value.found == again != tail
    later = other.append("a", b"2", at=again)
    with pytest.raises(Conflict) as caught:  # the bytes are there, but in another run
        store.append("a", b"2", at=tail)
    assert caught.value.found == later
    with pytest.raises(Conflict):
        store.delete("a", at=tail)
    with pytest.raises(Conflict):
        store.cut("a", 0, at=tail)


def replace_by_a_copy(path: Path) -> None:
    path.rename(path.with_suffix(".bak"))
    path.write_bytes(path.with_suffix(".bak").read_bytes())


CHANGES: dict[str, tuple[Callable[[Path], object], type[Exception]]] = {
    "replaced": (replace_by_a_copy, Conflict),
    "removed": (lambda path: path.unlink(), NotFound),
    "truncated": (lambda path: os.truncate(path, 1), Conflict),
    "emptied": (lambda path: os.truncate(path, 0), NotFound),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + b"x"), Conflict),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("held", [False, True])
def test_a_file_that_another_program_changed_is_noticed(root: Path, change: str, held: bool) -> None:
    store = LocalStore(root, sync="always")
    if not store.capabilities.runs:
        pytest.skip("the file system under the tests has no inode generations")
    tail = store.append("a", b"123", at=NEW)
    act, error = CHANGES[change]
    if held:
        with store.hold("a"):
            tail = store.append("a", b"4", at=tail)
            act(root / "a.state")
            before = (root / "a.state").read_bytes() if change != "removed" else b""
            with pytest.raises(error):
                store.append("a", b"5", at=tail)
    else:
        act(root / "a.state")
        before = (root / "a.state").read_bytes() if change != "removed" else b""
        with pytest.raises(error):
            store.append("a", b"5", at=tail)
    now = (root / "a.state").read_bytes() if (root / "a.state").exists() else b""
    assert now == before


def test_a_hold_goes_over_to_the_file_that_another_program_put_there(root: Path) -> None:
    store, other = LocalStore(root, sync="always"), LocalStore(root)
    store.append("a", b"123", at=NEW)
    with store.hold("a"):
        before = len(opened(root))
        replace_by_a_copy(root / "a.state")
        store.append("a", b"4", at=store.tail("a"))
        assert len(opened(root)) == before
        with pytest.raises(Held):
            other.append("a", b"5", at=other.tail("a"))
        assert (root / "a.state").read_bytes() == b"1234"
    assert other.append("a", b"5", at=other.tail("a")).size == 5


def test_a_root_removed_and_made_again_under_a_hold_is_noticed(root: Path) -> None:
    store = LocalStore(root, sync="always")
    with store.hold("a"):
        tail = store.append("a", b"1", at=NEW)
        for path in root.iterdir():
            path.unlink()
        root.rmdir()
        root.mkdir()
        with pytest.raises(NotFound):
            store.append("a", b"2", at=tail)
        store.append("a", b"1", at=NEW)
        with pytest.raises(Held):
            LocalStore(root).append("a", b"1", at=NEW)
    assert os.listdir(root) == ["a.state"]


# Many at once


def test_threads_with_store_objects_of_their_own_lose_and_double_nothing(root: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: append_all(str(root), "a", f"writer{n}", 50), range(8)))
    check_lines((root / "a.state").read_bytes(), [f"writer{n}" for n in range(8)], 50)


def test_threads_that_share_a_store_object_lose_and_double_nothing(store: LocalStore, root: Path) -> None:
    def work(who: int) -> None:
        for number in range(50):
            at = NEW
            while True:
                try:
                    store.append("a", f"writer{who} {number}\n".encode(), at=at)
                    break
                except Conflict as error:
                    at = error.found

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    check_lines(store.read("a"), [f"writer{n}" for n in range(8)], 50)


def test_two_processes_that_append_to_one_log_lose_and_double_nothing(root: Path) -> None:
    with SPAWN.Pool(2) as pool:
        pool.starmap(append_all, [(str(root), "a/b", f"writer{n}", 200) for n in range(2)])
    check_lines((root / "a" / "b.state").read_bytes(), ["writer0", "writer1"], 200)


def test_eight_processes_may_start_on_one_root_that_is_not_there(root: Path) -> None:
    with SPAWN.Pool(8) as pool:
        pool.starmap(append_all, [(str(root / "deep" / "root"), "a/b/c", f"writer{n}", 3, "always") for n in range(8)])
    check_lines((root / "deep" / "root" / "a" / "b" / "c.state").read_bytes(), [f"writer{n}" for n in range(8)], 3)


def test_creations_of_one_log_by_many_have_one_winner(root: Path) -> None:
    stores = [LocalStore(root, sync="never") for _ in range(8)]
    for number in range(60):

        def create(who: int, number: int = number) -> bool:
            try:
                stores[who].append(f"log{number}", b"%d" % who, at=NEW)
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(create, range(8)))
        assert won.count(True) == 1
        assert stores[0].read(f"log{number}") == b"%d" % won.index(True)


def test_more_logs_than_a_store_keeps_open_are_written_and_few_stay_open(root: Path, store: LocalStore) -> None:
    before = len(opened(root))
    tails = {f"log{n}": store.append(f"log{n}", b"1", at=NEW) for n in range(200)}
    assert len(opened(root)) - before <= 64
    for log, tail in tails.items():
        store.append(log, b"2", at=tail)
    assert all(store.read(log) == b"12" for log in tails)
    store.close()
    assert len(opened(root)) == before


def test_threads_over_more_logs_than_a_store_keeps_open_disturb_no_one(store: LocalStore) -> None:
    def work(who: int) -> None:
        for number in range(150):
            log = f"log{(number * 7 + who * 13) % 100}"
            at = NEW
            while True:
                try:
                    store.append(log, b"%d.%d " % (who, number), at=at)
                    break
                except Conflict as error:
                    at = error.found

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    found = b"".join(store.read(info.name) for info in store.list()).split()
    assert sorted(found) == sorted(b"%d.%d" % (who, number) for who in range(6) for number in range(150))


# Closing and forking


def test_a_closed_store_refuses_everything_and_holds_nothing(store: LocalStore, root: Path) -> None:
    tail = store.append("a", b"12", at=NEW)
    store.append("long", bytes(3 << 20), at=NEW)
    hold = store.hold("a")
    hold.__enter__()
    stream, begun = store.stream("a"), store.stream("long")
    next(begun)
    store.close()
    store.close()
    assert LocalStore(root).append("a", b"3", at=tail).size == 3
    for refused in (
        lambda: store.append("a", b"4", at=tail),
        lambda: store.read("a"),
        lambda: store.tail("a"),
        lambda: store.stream("a"),
        lambda: next(stream),
        lambda: next(begun),
        lambda: store.list(),
        lambda: store.copy("a", "b"),
        lambda: store.delete("a"),
        lambda: store.cut("a", 1, at=tail),
        lambda: store.flush("a"),
        lambda: store.hold("a"),
        lambda: store.holder("a"),
        lambda: store.boundary("a", 1),
    ):
        with pytest.raises(Closed):
            refused()
    hold.__exit__(None, None, None)
    assert not (root / ".a.hold").exists()


def test_a_store_object_that_is_forgotten_lets_go(root: Path) -> None:
    store = LocalStore(root, sync="never")
    hold = store.hold("a")
    hold.__enter__()
    del store, hold
    import gc

    gc.collect()
    assert LocalStore(root).append("a", b"1", at=NEW).size == 1


def test_a_forked_child_is_refused_by_its_parents_hold(store: LocalStore) -> None:
    with store.hold("a"):
        tail = store.append("a", b"1", at=NEW)
        answer = in_child(lambda: store.append("a", b"2", at=tail))
        assert answer.startswith("Held")
        assert f"process {os.getpid()} " in answer
        assert "Held" in in_child(lambda: store.hold("a").__enter__())
        assert store.append("a", b"3", at=tail).size == 2
    assert store.read("a") == b"13"


def test_a_forked_child_that_leaves_the_hold_does_not_end_it(store: LocalStore, root: Path) -> None:
    other = LocalStore(root, sync="never")
    hold = store.hold("a")
    hold.__enter__()
    tail = store.append("a", b"1", at=NEW)
    assert in_child(lambda: hold.__exit__(None, None, None)) == "False"
    assert in_child(lambda: store.close()) == "None"
    assert (root / ".a.hold").exists()
    with pytest.raises(Held):
        other.append("a", b"2", at=tail)
    hold.__exit__(None, None, None)


def test_a_forked_child_appends_through_the_store_it_inherited(store: LocalStore) -> None:
    tail = store.append("a", b"1", at=NEW)
    assert in_child(lambda: store.append("a", b"2", at=tail).size) == "2"
    assert store.append("a", b"3", at=Tail(2, tail.run)).size == 3
    assert store.read("a") == b"123"


def test_a_forked_child_uses_the_store_though_its_parents_descriptors_were_closed_behind_it(root: Path) -> None:
    code = """
import os, sys
from statestore.store import NEW
from statestore_local import LocalStore

store = LocalStore(sys.argv[1])
tail = store.append("a", b"1", at=NEW)
os.closerange(3, 64)  # as a program does that goes into the background
child = os.fork()
if child == 0:
    os._exit(store.append("a", b"2", at=tail).size)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os._exit(0)
"""
    answer = subprocess.run([sys.executable, "-c", code, root], capture_output=True, text=True)
    assert (answer.stdout, answer.stderr) == ("2\n", "")


def test_a_hold_ends_with_its_process_even_if_a_forked_child_lives_on(root: Path) -> None:
    program = """
import os, sys
from statestore.store import NEW
from statestore_local import LocalStore
store = LocalStore(sys.argv[1], sync="never")
hold = store.hold("a")
hold.__enter__()
store.append("a", b"1", at=NEW)
child = os.fork()
if child == 0:
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
os.kill(os.getpid(), 9)
"""
    command = [sys.executable, "-c", program, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert process.wait(30) == -signal.SIGKILL
        os.kill(child, 0)  # it lives
        store = LocalStore(root, sync="never")
        assert store.holder("a") is None
        assert store.append("a", b"2", at=store.tail("a")).size == 2


def test_forks_while_threads_append_leave_no_lock_behind(root: Path) -> None:
    store = LocalStore(root, sync="never", lock_timeout=30)
    stop = threading.Event()
    done = []

    def work(log: str) -> None:
        at = NEW
        while not stop.is_set():
            with store.hold(log):
                at = store.append(log, b"x", at=at)
            done.append(log)

    threads = [threading.Thread(target=work, args=(f"log{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            assert in_child(lambda: store.append("child", b"1", at=NEW).size) == "1"
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    for number in range(3):
        with LocalStore(root).hold(f"log{number}"):
            pass
    assert sum(store.tail(f"log{n}").size for n in range(3)) == len(done)


def test_a_repr_shows_the_root_and_nothing_else(store: LocalStore, root: Path) -> None:
    assert repr(store) == f"LocalStore({str(root)!r})"
