"""Following a live log: records as they come, in order, each once, and a clear end."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from statestore.errors import Conflict, Corrupt, NotFound
from statestore.records import Following, RecordLog, follow
from statestore.store import NEW, Store, Tail
from statestore_local import LocalStore, _watch
from statestore_memory import MemoryStore


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    opened = LocalStore(tmp_path / "store", sync="never") if request.param == "local" else MemoryStore()
    with opened:
        yield opened


@pytest.fixture
def local(tmp_path):
    with LocalStore(tmp_path / "store", sync="never") as opened:
        yield opened


def bodies(records):
    return [record.body for record in records]


def add(log: RecordLog, *words: str) -> None:
    for word in words:
        log.append("note", word.encode())


@pytest.fixture
def log(store):
    made = RecordLog(store, "a")
    made.append("note", b"one", expect=1)
    return made


def test_what_is_there_comes_first_and_then_what_is_appended_by_whomever(log):
    other = RecordLog(log.store, "a")
    given = []
    for record in log.follow():
        given.append((record.n, record.body))
        if len(given) < 4:
            add(other, f"more {len(given)}")
        else:
            break
    assert given == [(1, b"one"), (2, b"more 1"), (3, b"more 2"), (4, b"more 3")]


def test_a_follower_that_waits_gets_what_another_thread_appends(log):
    given, waiting = [], threading.Event()

    def stop():
        waiting.set()
        return len(given) == 3

    def reader():
        for record in log.follow(stop=stop):
            given.append(record.body)
            waiting.clear()

    thread = threading.Thread(target=reader)
    thread.start()
    for word in ("two", "three"):
        waiting.wait()
        add(log, word)
    thread.join()
    assert given == [b"one", b"two", b"three"]


def test_it_resumes_at_a_record_number_that_need_not_be_there_yet(log):
    add(log, "two", "three")
    assert bodies(log.follow(2, timeout=0)) == [b"two", b"three"]
    place = Following(log.store, "a", first=5)
    assert bodies(place.news()) == []
    add(log, "four", "five", "six")
    assert bodies(place.news()) == [b"five", b"six"]


def test_it_resumes_where_another_one_stood_and_reads_nothing_before(log, monkeypatch):
    add(log, "two")
    place = Following(log.store, "a")
    assert bodies(place.news()) == [b"one", b"two"]
    add(log, "three")
    starts = []
    read = type(log.store).read
    monkeypatch.setattr(
        type(log.store),
        "read",
        lambda self, name, start=0, stop=None: (starts.append(start), read(self, name, start, stop))[1],
    )
    assert bodies(log.follow(place.number, at=place.tail, timeout=0)) == [b"three"]
    assert min(starts) == place.tail.size


@pytest.mark.parametrize(("first", "at"), [(0, None), (-1, None), (1, Tail(5, "")), (2, NEW)])
def test_a_place_that_no_log_has_is_refused_at_once(log, first, at):
    with pytest.raises(ValueError, match=f"first={first}"):
        log.follow(first, at=at)


def test_it_ends_when_nothing_came_for_so_long(log):
    assert bodies(log.follow(timeout=0)) == [b"one"]
    assert bodies(log.follow(timeout=0.01)) == [b"one"]


def test_it_ends_when_it_is_told_to(log):
    add(log, "two")
    event = threading.Event()
    records = log.follow(stop=event.is_set)
    assert next(records).body == b"one"
    event.set()
    assert list(records) == []


def test_a_torn_end_is_waited_for(local):
    log = RecordLog(local, "a")
    log.append("note", b"one", expect=1)
    add(log, "two")
    data = local.read("a")
    end = next(iter(log)).end
    path = Path(local.location("a"))
    path.write_bytes(data[: end + 20])
    place = Following(local, "a")
    assert bodies(place.news()) == [b"one"]
    assert bodies(place.news()) == []
    with path.open("ab") as file:
        file.write(data[end + 20 :])
    assert bodies(place.news()) == [b"two"]


def test_a_torn_end_may_be_cut_and_other_records_take_its_place(local):
    log = RecordLog(local, "a")
    log.append("note", b"one", expect=1)
    with Path(local.location("a")).open("ab") as file:
        file.write(b'{"n":2,"kind":"note","id":"12345678","ti')
    place = Following(local, "a")
    assert bodies(place.news()) == [b"one"]
    add(RecordLog(local, "a"), "2")
    assert bodies(place.news()) == [b"2"]


def test_a_record_that_is_being_written_and_has_records_in_its_body_is_no_damage(local):
    log = RecordLog(local, "a")
    log.append("note", b"one", expect=1)
    start = local.tail("a").size
    inner = b"".join(record.raw.replace(b'"n":1', b'"n":3') for record in log)
    log.append("result", b"\n" + inner + b"rest")
    data = local.read("a")
    path = Path(local.location("a"))
    path.write_bytes(data[:-3])  # all of the inner record is there, and its own end is not
    with pytest.raises(Corrupt):
        list(RecordLog(local, "a"))
    place = Following(local, "a")
    assert bodies(place.news()) == [b"one"]
    with path.open("ab") as file:
        file.write(data[-3:])
    assert [record.offset for record in place.news()] == [start]


def test_the_same_at_rest_is_damage(local):
    test_a_record_that_is_being_written_and_has_records_in_its_body_is_no_damage(local)
    path = Path(local.location("a"))
    path.write_bytes(path.read_bytes()[:-3])
    given = []
    with pytest.raises(Corrupt) as caught:
        given.extend(RecordLog(local, "a").follow())
    assert caught.value.record == 2


def test_damage_raises_after_all_before_it_was_given(local):
    log = RecordLog(local, "a")
    log.append("note", b"one", expect=1)
    add(log, "two", "three")
    path = Path(local.location("a"))
    data = path.read_bytes()
    path.write_bytes(data.replace(b'{"n":3', b'["n":3'))
    given = []
    with pytest.raises(Corrupt) as caught:
        given.extend(record.body for record in log.follow())
    assert given == [b"one", b"two"]
    assert (caught.value.record, caught.value.facts["log"]) == (3, "a")


def test_a_log_that_is_not_there_is_not_found(store):
    with pytest.raises(NotFound):
        next(RecordLog(store, "nosuch").follow())


def test_a_log_that_is_deleted_ends_with_that(log):
    records = log.follow()
    next(records)
    log.store.delete("a")
    with pytest.raises(NotFound, match="deleted while it was followed"):
        next(records)


def test_a_log_that_is_made_anew_is_not_read_as_the_one_before(log):
    records = log.follow()
    next(records)
    log.store.delete("a")
    RecordLog(log.store, "a").append("note", b"x" * 500, expect=1)
    with pytest.raises(Conflict, match="made again"):
        next(records)
    place = Following(log.store, "a", first=2, at=Tail(60, "another"))
    with pytest.raises(Conflict):
        next(place.news())


def test_a_log_that_is_cut_in_front_of_what_was_given_is_told(local):
    log = RecordLog(local, "a")
    log.append("note", b"one", expect=1)
    add(log, "two")
    records = log.follow()
    next(records)
    end = next(records).offset
    local.cut("a", end, at=local.tail("a"))
    with pytest.raises(Conflict, match="cut"):
        next(records)


def test_a_killed_writer_loses_nothing_for_its_follower(tmp_path):
    code = """
import sys
from statestore.records import RecordLog
from statestore_local import LocalStore, _watch
log = RecordLog(LocalStore(sys.argv[1], sync="never"), "a")
log.append("note", b"0", expect=1)
print("made", flush=True)
for number in range(1, 1 << 30):
    log.append("note", b"%d" % number)
"""
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with LocalStore(tmp_path) as local:
            log = RecordLog(local, "a")
            given = bodies(itertools.islice(log.follow(), 300))
            writer.kill()
            writer.wait()
            given += bodies(log.follow(301, timeout=0))
            assert given == [b"%d" % number for number in range(len(given))]
            assert len(given) == log.count()


# Waiting.


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(follow, "monotonic", lambda: self.now)
        monkeypatch.setattr(follow, "sleep", self.sleep)

    def sleep(self, seconds):
        self.now += seconds


class Counted(MemoryStore):
    """Counts what is asked of the storage, and what it is told to wait for."""

    clock: Clock

    def __init__(self):
        super().__init__()
        self.asked = 0
        self.told = False
        self.waits: list[float] = []

    def tail(self, log):
        self.asked += 1
        return super().tail(log)

    def read(self, log, start=0, stop=None):
        self.asked += 1
        return super().read(log, start, stop)

    def wait(self, log, at, timeout):
        self.waits.append(timeout)
        if not self.told:
            self.clock.sleep(timeout)
        return self.told


@pytest.fixture
def counted(monkeypatch):
    store = Counted()
    store.clock = Clock(monkeypatch)
    RecordLog(store, "a").append("note", b"one", expect=1)
    store.asked = 0
    return store


def test_an_idle_follower_asks_less_and_less_often(counted):
    records = RecordLog(counted, "a").follow(stop=lambda: counted.clock.now >= 605)
    next(records)
    counted.asked = 0
    assert list(records) == []
    # After 0.2, 0.4, 0.8, 1.6 and 3.2 seconds, and then after every 5.
    assert counted.asked == 5 + (605 - 6) // 5
    assert max(counted.waits) <= 0.25


def test_a_follower_looks_soon_again_after_a_record_has_come(counted):
    log = RecordLog(counted, "a")
    records = log.follow(timeout=60)
    next(records)
    counted.clock.now = 50
    add(log, "two")
    assert next(records).body == b"two"
    counted.waits.clear()
    assert list(records) == []
    assert counted.waits[:5] == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2])
    assert counted.clock.now == pytest.approx(110.2)


def test_a_store_that_is_wrong_about_changes_makes_no_follower_spin(counted):
    counted.told = True
    records = RecordLog(counted, "a").follow(timeout=600)
    next(records)
    counted.asked = 0
    assert list(records) == []
    assert counted.asked < 300


def test_a_local_store_waits_for_the_change_itself(local, monkeypatch):
    monkeypatch.setattr(Store, "wait", lambda *_: pytest.fail("it slept"))
    log = RecordLog(local, "a")
    log.append("note", b"one", expect=1)
    tail = local.tail("a")
    assert local.wait("a", tail, 0.01) is False
    assert local.wait("a", Tail(1, tail.run), 3600) is True

    watched, real = threading.Event(), _watch.Watch.wait
    monkeypatch.setattr(_watch.Watch, "wait", lambda *args: watched.set() or real(*args))

    def meanwhile(act):
        found = []
        watched.clear()
        thread = threading.Thread(target=lambda: found.append(local.wait("a", tail, 3600)))
        thread.start()
        assert watched.wait(60)
        act()
        thread.join()
        return found

    assert meanwhile(lambda: add(log, "two")) == [True]
    tail = local.tail("a")
    other = LocalStore(Path(local.location("a")).parent)
    assert meanwhile(lambda: add(RecordLog(other, "a"), "three")) == [True]
    tail = local.tail("a")
    assert meanwhile(lambda: local.cut("a", tail.size - 1, at=tail)) == [True]
    tail = local.tail("a")
    path = Path(local.location("a"))
    path.with_suffix(".other").write_bytes(b"x" * tail.size)
    assert meanwhile(lambda: path.with_suffix(".other").rename(path)) == [True]
    tail = local.tail("a")
    assert meanwhile(lambda: path.rename(path.with_suffix(".away"))) == [True]
    path.with_suffix(".away").rename(path)
    assert meanwhile(lambda: other.delete("a")) == [True]
    other.close()


def test_a_wait_for_a_log_that_is_not_there_ends_at_once_if_it_was_or_else_in_time(local):
    assert local.wait("a", Tail(5, ""), 3600) is True
    assert local.wait("a", NEW, 0) is False


def test_a_wait_leaves_no_file_open(local):
    RecordLog(local, "a").append("note", b"one", expect=1)
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(20):
        assert local.wait("a", local.tail("a"), 0) is False
    assert sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("lacking", ["inotify_init1", "inotify_add_watch"])
def test_a_system_that_tells_of_no_change_is_waited_for_as_any_storage(local, monkeypatch, lacking):
    import ctypes

    class System:
        def __init__(self, name):
            pass

        def inotify_init1(self, flags):
            return -1 if lacking == "inotify_init1" else os.open(os.devnull, os.O_RDONLY)

        def inotify_add_watch(self, *_):
            return -1

    monkeypatch.setattr(ctypes, "CDLL", System)
    waited = []
    monkeypatch.setattr(Store, "wait", lambda self, log, at, timeout: bool(waited.append(timeout)))
    RecordLog(local, "a").append("note", b"one", expect=1)
    assert local.wait("a", local.tail("a"), 2.5) is False
    assert waited == [2.5]


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_an_idle_follower_is_interrupted_by_a_signal(tmp_path, scheme):
    code = """
import sys
from statestore.plugins import open_store
from statestore.records import RecordLog
log = RecordLog(open_store(sys.argv[1]), "a")
log.append("note", b"one", expect=1)
try:
    for record in log.follow():
        print("given", flush=True)
except KeyboardInterrupt:
    print("interrupted")
"""
    url = f"file://{tmp_path}" if scheme == "file" else "memory://"
    with subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"given\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == b"interrupted\n"
    assert process.returncode == 0
