"""One store for many threads and for forked processes; several stores at one place, none of which sees old listings."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

import statestore_fsspec
from statestore import NEW, RecordLog, Tail
from statestore.errors import Closed, Conflict, NotFound
from statestore_fsspec import Settings
from statestore_fsspec import _layout as layout
from statestore_fsspec._s3 import S3Drive
from statestore_fsspec._steps import Outcome
from tests.s3.harness import options
from tests.s3.raw import Place, connection
from tests.servers import Rgw

FORKS = """
import os, sys, threading, warnings
from statestore import NEW, RecordLog, open_store

warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of a fork beside threads
store = open_store({url!r}, **{options!r})
log = RecordLog(store, "log")
log.append("note", b"parent", expect=1)
busy, over = threading.Event(), threading.Event()

def read():
    while not over.is_set():
        store.read("log")
        busy.set()

reader = threading.Thread(target=read)
if {busy}:
    reader.start()
    busy.wait()
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        log.append("note", b"child")
        assert len(list(log)) >= 2
        assert b"".join(store.stream("log")) != b""
        store.append("child-%d" % number, b"x", at=NEW)
        os._exit(0)
    children.append(child)
log.append("note", b"parent")
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
log.append("note", b"parent")
over.set()
if {busy}:
    reader.join()
store.close()
"""


@pytest.fixture(scope="session")
def files(rgw: Rgw) -> Any:
    return connection(rgw)


@pytest.fixture
def spot(rgw: Rgw, place: str) -> Place:
    spot = Place(rgw, place)
    spot.put("statestore.json", Settings().spell())
    return spot


@pytest.mark.parametrize("busy", [False, True], ids=["at rest", "while another thread reads"])
def test_a_store_is_used_on_after_a_fork_by_parent_and_children(rgw, spot, files, busy):
    program = FORKS.format(url=spot.url, options=options(rgw), busy=busy)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
    store = spot.quick(files)
    assert [record.n for record in RecordLog(store, "log")] == [1, 2, 3, 4, 5, 6]
    assert Counter(record.body for record in RecordLog(store, "log")) == {b"parent": 3, b"child": 3}
    assert [info.name for info in store.list("child-")] == ["child-0", "child-1", "child-2"]


def test_many_threads_append_to_one_log_through_one_store(spot, files):
    store = spot.quick(files)
    log = RecordLog(store, "log")
    log.append("note", b"first", expect=1)
    start = Barrier(8)

    def add(number: int) -> list[int]:
        start.wait()
        return [log.append("note", b"%d" % number).n for _ in range(4)]

    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(add, range(8)))
    assert sorted(number for several in numbers for number in several) == list(range(2, 34))
    bodies = [record.body for record in log.read(2)]
    assert [[n for n, body in enumerate(bodies, 2) if body == b"%d" % number] for number in range(8)] == numbers


def test_many_threads_each_with_a_log_of_their_own_share_one_store(spot, files):
    store = spot.quick(files)

    def live(number: int) -> None:
        name = f"log-{number}"
        tail = store.append(name, b"a", at=NEW)
        for _ in range(3):
            tail = store.append(name, b"%d" % number, at=tail)
        assert store.read(name) == b"a" + b"%d" % number * 3
        assert store.copy(name, f"copy-{number}").size == tail.size
        store.delete(name, at=tail)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(live, range(8)))
    assert [info.name for info in store.list()] == [f"copy-{number}" for number in range(8)]


def test_of_many_threads_that_create_one_object_exactly_one_does(spot, files):
    drive = S3Drive(files, f"{spot.bucket}/{spot.prefix}")
    with ThreadPoolExecutor(8) as pool:
        for number in range(30):
            values = [b"%d" % racer for racer in range(8)]
            outcomes = list(pool.map(lambda value, key=f"race/{number}": drive.create(key, value)[0], values))
            assert sorted(outcomes, key=str) == [Outcome.CREATED, *[Outcome.REFUSED] * 7]
            assert drive.fetch(f"race/{number}") == values[outcomes.index(Outcome.CREATED)]


def test_what_one_store_has_listed_never_hides_what_another_one_does_later(spot):
    here, there = spot.open(), spot.open()
    assert list(here.list()) == []
    with pytest.raises(NotFound):
        here.tail("a")
    tail = there.append("a", b"first", at=NEW)
    assert [info.tail for info in here.list(tails=True)] == [tail]
    assert here.tail("a") == tail
    for number in range(3):
        tail = there.append("a", b"%d" % number, at=tail)
        assert here.tail("a") == tail
        assert here.read("a") == there.read("a")
        assert here.snapshot("a").read() == there.read("a")
    tail = here.append("a", b"here", at=tail)
    assert there.read("a")[-4:] == b"here"
    there.delete("a")
    assert list(here.list()) == []
    with pytest.raises(NotFound):
        here.append("a", b"x", at=tail)
    again = there.append("a", b"again", at=NEW)
    assert here.read("a") == b"again"
    with pytest.raises(Conflict) as caught:
        here.append("a", b"x", at=tail)
    assert caught.value.found == again


@pytest.mark.parametrize("moment", ["heads/", "data/"])
def test_a_listing_never_takes_a_creation_that_another_one_forestalled_for_the_log(spot, files, moment):
    store: Any = spot.quick(files)
    store.append("a", b"first", at=NEW)
    slow, quick = layout.new_run(1, "b" * 16), layout.new_run(1, "a" * 16)
    spot.put(layout.single_key("x", slow, 0), layout.segment_object(b"of the slow one"))
    drive, list_page = store._engine.drive, store._engine.drive.page

    def page(prefix: str, after: str) -> Any:
        told = list_page(prefix, after)
        if prefix == moment:
            spot.put(layout.single_key("x", quick, 0), layout.segment_object(b"won"))
            spot.put(layout.head_key("x", 1), layout.spell_live(quick))
        return told

    drive.page = page
    tails = {info.name: info.tail for info in store.list(tails=True)}
    assert tails.pop("x", Tail(3, quick)) == Tail(3, quick)
    assert list(tails) == ["a"]


def test_a_listing_cache_that_the_caller_asks_for_is_not_used_for_logs(spot):
    here, there = spot.open(storage_options={"listings_expiry_time": 3600}), spot.open()
    there.append("a", b"first", at=NEW)
    assert here.read("a") == b"first"
    there.append("a", b"second", at=there.tail("a"))
    there.append("b", b"x", at=NEW)
    assert here.read("a") == b"firstsecond"
    assert [info.name for info in here.list()] == ["a", "b"]


def test_a_closed_store_is_closed_while_others_at_that_place_go_on(spot):
    here, there = spot.open(), spot.open()
    tail = here.append("a", b"first", at=NEW)
    here.close()
    here.close()
    for call in (here.tail, here.read, here.delete, here.snapshot, lambda log: here.append(log, b"x", at=tail)):
        with pytest.raises(Closed):
            call("a")
    assert there.append("a", b"second", at=tail) == Tail(11, tail.run)


def test_what_a_closed_store_has_given_out_is_closed_too(spot):
    store = spot.open()
    tail = store.append("a", bytes(5 << 20), at=NEW)
    for _ in range(4):
        tail = store.append("a", bytes(5 << 20), at=tail)
    stream, maintenance = store.stream("a"), store.maintenance
    next(stream)
    store.close()
    with pytest.raises(Closed):
        list(stream)
    for call in (maintenance.probe, lambda: maintenance.compact("a"), lambda: list(maintenance.check())):
        with pytest.raises(Closed):
            call()


def test_no_file_system_is_asked_to_append():
    """What others offer as appending is overwriting under another name."""
    for module in Path(statestore_fsspec.__file__).parent.glob("*.py"):
        assert not re.search(r"""(?<!b)["']a(b?\+?|\+b)["']""", module.read_text()), module
