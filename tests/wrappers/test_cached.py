"""A cache gives what the inner store would give, asks it for new bytes only, and believes nothing that is damaged."""

from __future__ import annotations

import logging
import os
import random
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from statestore.conformance import Harness, conformance
from statestore.conformance.harness import enter
from statestore.errors import Closed, NotFound, NotSupported
from statestore.store import NEW, Store
from statestore.wrappers import Cached
from statestore.wrappers._keeping import Directory
from statestore_local import LocalStore
from statestore_memory import MemoryStore
from tests.conformance import test_memory
from tests.disks import ROOT_ONLY, read_only, small_disk
from tests.wrappers.places import Far, fill, inner

SAMPLE = 1.0 if os.environ.get("STATESTORE_CONFORM") == "full" else 0.25
BIG = random.Random(5).randbytes(700_000)


def wrapped(opener: Callable[[], Store], place: Path, shared: bool) -> Cached:
    store = opener()
    truth = store.capabilities
    store.capabilities = replace(truth, shared=shared)
    cached = Cached(store, place / "cache", origin="memory", limit=20_000)
    store.capabilities = cached.capabilities = truth
    return cached


def over_memory(place: Path, *, shared: bool) -> Iterator[Harness]:
    """A cache over the memory store; where that says at first that it is shared, what others have kept is read too."""
    with enter(test_memory.harness, place) as inner:
        assert inner.reopen
        assert inner.spawn
        yield replace(
            inner,
            open=partial(wrapped, inner.open, place, shared),
            reopen=partial(wrapped, inner.reopen, place, shared),
            spawn=partial(wrapped, inner.spawn, place, shared),
            crash=lambda store: None,
        )


test_cached_over_memory = conformance(partial(over_memory, shared=False), sample=SAMPLE)
test_cached_over_memory_as_if_shared = conformance(partial(over_memory, shared=True), sample=SAMPLE)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def opened(place: Path, request: pytest.FixtureRequest) -> Callable[..., Cached]:
    """Open one more cache of the same directory over the same logs, as another process would."""
    name = f"{place}"

    def make(*, origin: str = "far://", **more: int) -> Cached:
        return Cached(Far(name), place, origin=origin, **more)

    return make


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return the warnings so far."""
    caplog.set_level(logging.DEBUG)
    return lambda: [record.getMessage() for record in caplog.records if record.name.startswith("statestore")]


def files(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file())


def size(place: Path) -> int:
    return sum(path.stat().st_size for path in files(place))


def test_a_second_read_by_another_store_object_is_one_look_and_no_bytes(opened):
    fill(opened(), "log", *(b"%05d" % number for number in range(100)))
    first = opened().read("log")
    second = opened()
    assert second.read("log") == first == b"".join(b"%05d" % number for number in range(100))
    assert second.read("log", 7, 43) == first[7:43]
    assert b"".join(second.stream("log", 11)) == first[11:]
    assert (inner(second).looks, inner(second).asked()) == (3, [])


def test_after_an_append_only_the_new_bytes_are_fetched(opened):
    fill(opened(), "log", b"0123456789")
    opened().read("log")
    fill(opened(), "log", b"abc")
    third = opened()
    assert third.read("log") == b"0123456789abc"
    assert inner(third).asked() == [(10, 13)]
    assert third.read("log", 9, 12) == b"9ab"
    assert inner(third).asked() == []


def test_a_log_is_kept_as_far_as_it_was_read_without_a_gap(opened):
    fill(opened(), "log", BIG)
    store = opened()
    assert store.read("log", 600_000) == BIG[600_000:]
    assert store.read("log", 0, 300_000) == BIG[:300_000]
    inner(store).asked()
    assert store.read("log", 100_000, 400_000) == BIG[100_000:400_000]
    assert inner(store).asked() == [(300_000, 400_000)]
    stream = store.stream("log")
    assert next(stream) == BIG[:400_000]
    assert next(stream) == BIG[400_000:410_000]
    stream.close()
    inner(store).asked()
    assert store.read("log") == BIG
    assert inner(store).asked() == [(410_000, 700_000)]


def test_a_log_that_is_read_piece_by_piece_is_fetched_once(opened):
    fill(opened(), "log", BIG)
    store = opened()
    snapshot = store.snapshot("log")
    for start in range(0, len(BIG), 9_999):
        assert snapshot.read(start, start + 9_999) == BIG[start : start + 9_999]
    assert [start for start, _ in inner(store).asked()] == list(range(0, len(BIG), 9_999))
    assert b"".join(snapshot.stream()) == BIG
    assert snapshot.read(5, 650_000) == BIG[5:650_000]
    assert (inner(store).looks, inner(store).asked()) == (1, [])


def test_a_deletion_is_noticed_and_another_log_of_the_name_is_never_mistaken_for_it(opened):
    fill(opened(), "log", b"first log")
    reader, other = opened(), opened()
    assert reader.read("log") == b"first log"
    inner(other).delete("log")  # behind the cache's back
    for ask in (reader.read, reader.snapshot, lambda log: next(reader.stream(log))):
        with pytest.raises(NotFound):
            ask("log")
    fill(inner(other), "log", b"other one")
    assert reader.read("log") == b"other one"
    assert b"".join(opened().stream("log")) == b"other one"


def test_a_snapshot_of_a_deleted_log_never_keeps_another_ones_bytes(opened):
    fill(opened(), "log", b"first log")
    store = opened()
    snapshot = store.snapshot("log")
    inner(store).delete("log")
    fill(inner(store), "log", b"other one")
    with pytest.raises(NotFound):
        snapshot.read()
    assert opened().read("log") == b"other one"


def test_what_is_deleted_through_a_cache_is_kept_in_it_no_longer(opened, place):
    fill(opened(), "log", b"a secret")
    fill(opened(), "log-2", b"another")
    store = opened()
    store.read("log"), store.read("log-2")
    assert len(files(place)) == 2
    store.delete("log")
    (left,) = files(place)
    assert b"another" in left.read_bytes()


def test_nothing_beyond_a_snapshots_tail_is_kept(opened, place):
    fill(opened(), "log", b"acknowledged")
    store = opened()
    snapshot = store.snapshot("log")
    fill(opened(), "log", b", and then more")
    assert snapshot.read(0, 100) == b"acknowledged"
    assert b"".join(snapshot.stream()) == b"acknowledged"
    (kept,) = files(place)
    assert b"more" not in kept.read_bytes()
    assert inner(store).asked() == [(0, 12)]


def test_a_cache_that_holds_more_than_a_snapshot_shows_no_more_than_the_snapshot(opened):
    fill(opened(), "log", b"early")
    early = opened().snapshot("log")
    fill(opened(), "log", b", late")
    assert opened().read("log") == b"early, late"
    assert (early.read(), b"".join(early.stream(2)), early.read(3, 9)) == (b"early", b"rly", b"ly")


def test_a_closed_cache_refuses_what_it_has_too(opened):
    fill(opened(), "log", b"data")
    store = opened()
    snapshot = store.snapshot("log")
    snapshot.read()
    store.close()
    for ask in (snapshot.read, snapshot.stream, lambda: store.read("log"), lambda: store.stream("log")):
        with pytest.raises(Closed):
            ask()


def test_two_origins_in_one_directory_know_nothing_of_each_other(place):
    one = Cached(Far(), place, origin="far://one")
    two = Cached(Far(), place, origin="far://two")
    fill(one, "log", b"of one")
    fill(two, "log", b"of two")
    assert one.tail("log") == two.tail("log"), "the runs are the same: only the origins differ"
    for _ in range(2):
        assert (one.read("log"), two.read("log")) == (b"of one", b"of two")
    assert len(files(place)) == 2


def test_words_that_are_joined_otherwise_are_another_log(place):
    for origin, log in (("a", "b/c"), ("a/b", "c"), ("a'", "b"), ("a", "'b")):
        if "'" not in log:
            store = Cached(Far(), place, origin=origin)
            fill(store, log, origin.encode())
            assert store.read(log) == origin.encode()
    assert len(files(place)) == 3


def test_where_the_store_is_not_shared_another_object_reads_nothing_of_it(place):
    stores = [Cached(MemoryStore(), place, origin="memory://") for _ in range(2)]
    for number, store in enumerate(stores):
        fill(store, "log", b"%d" % number)
    assert [store.read("log") for store in stores * 2] == [b"0", b"1"] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_whose_memory_is_another_one_reads_nothing_of_its_parents(place, tmp_path):
    store = Cached(MemoryStore(), place, origin="memory://")
    if (child := os.fork()) == 0:
        try:
            fill(store, "log", b"child")
            (tmp_path / "child").write_bytes(store.read("log") + store.tail("log").run.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    fill(store, "log", b"parent")
    assert (tmp_path / "child").read_bytes() == b"child" + store.tail("log").run.encode()
    assert store.read("log") == b"parent"


@pytest.mark.parametrize("lacking", ["runs", "atomic_append"])
def test_a_store_whose_bytes_may_change_is_refused(place, lacking):
    store = Far()
    store.capabilities = replace(store.capabilities, **{lacking: False})
    with pytest.raises(NotSupported, match="cannot be cached: without") as caught:
        Cached(store, place, origin="far://")
    assert caught.value.facts == {"capability": lacking, "store": "Far"}
    assert not place.exists()


def test_a_local_store_is_refused(place, tmp_path):
    with pytest.raises(NotSupported):
        Cached(LocalStore(tmp_path / "logs"), place, origin="file://")


def test_a_limit_below_one_byte_is_refused(place):
    with pytest.raises(ValueError, match="from 1 on, not 0"):
        Cached(Far(), place, origin="far://", limit=0)


def test_files_and_directories_are_for_their_owner_alone_and_named_for_no_log(opened, tmp_path, place):
    old = os.umask(0)
    try:
        deep = place / "not" / "there"
        store = Cached(Far(f"{place}"), deep, origin="s3://bucket")
        fill(store, "a-log/of/a_name", b"data")
        store.read("a-log/of/a_name")
    finally:
        os.umask(old)
    (kept,) = files(deep)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for parent in kept.relative_to(tmp_path).parents[:-1]:
        assert stat.S_IMODE((tmp_path / parent).stat().st_mode) == 0o700, parent
    text = str(kept.relative_to(deep)).encode() + kept.read_bytes()
    assert not any(word in text for word in (b"a-log", b"a_name", b"bucket"))


def test_the_logs_that_were_not_used_for_longest_make_way(opened, place):
    store = opened(limit=100_000)
    names = [f"log-{number}" for number in range(10)]
    for name in names:
        fill(inner(store), name, BIG[:30_000])
        store.read(name)
        store.read("log-0")  # used again and again
        assert size(place) <= 100_000
    assert len(inner(store).asked()) == 10, "what is used is not fetched again"
    assert store.read("log-0") == store.read("log-9") == BIG[:30_000]
    assert inner(store).asked() == []
    assert store.read("log-1") == BIG[:30_000]
    assert inner(store).asked() == [(0, 30_000)]


def test_a_log_beyond_the_limit_is_read_all_the_same(opened, place):
    fill(opened(), "log", BIG)
    for _ in range(2):
        assert opened(limit=300_000).read("log") == b"".join(opened(limit=300_000).stream("log")) == BIG
        assert opened(limit=1).read("log") == BIG
        assert 0 < size(place) <= 300_000


def test_a_log_that_has_reached_the_limit_does_not_push_others_out_in_vain(opened):
    fill(opened(), "big", BIG)
    fill(opened(), "small", BIG[:10_000])
    store = opened(limit=600_000)
    for log in ("big", "small", "big"):
        store.read(log)
    inner(store).asked()
    assert store.read("small") == BIG[:10_000]
    assert inner(store).asked() == []


def test_the_log_that_is_being_kept_does_not_make_way_for_itself(opened, place):
    fill(opened(), "other", BIG[:30_000])
    fill(opened(), "log", BIG[:30_000])
    store = opened(limit=50_000)
    store.read("other")
    os.utime(files(place)[0], ns=(1 << 62, 1 << 62))
    store.read("log")
    inner(store).asked()
    assert store.read("log") == BIG[:30_000]
    assert inner(store).asked() == []


def test_files_that_are_none_of_the_caches_are_not_counted_and_not_removed(opened, place):
    fill(opened(), "log", BIG[:3000])
    opened().read("log")
    kept = files(place)[0].parent
    (kept / "notes.txt").write_bytes(BIG)
    (kept / "directory").mkdir()
    fill(opened(), "log-2", BIG[:3000])
    assert opened(limit=4000).read("log-2") == BIG[:3000]
    assert sorted(len(path.name) for path in kept.iterdir()) == [9, 9, 65]


def test_each_of_several_processes_adds_at_most_a_sixteenth_more(opened, place):
    stores = [opened(limit=320_000) for _ in range(4)]
    luck = random.Random(1)
    for number in range(200):
        fill(inner(stores[0]), f"log-{number}", BIG[: luck.randrange(1, 30_000)])
        luck.choice(stores).read(f"log-{number}")
        assert size(place) <= 320_000 + 3 * 20_000
    assert size(place) > 200_000


DAMAGE: dict[str, Callable[[Path, random.Random], object]] = {
    "a bit": lambda path, luck: flip(path, luck),
    "the end": lambda path, luck: os.truncate(path, luck.randrange(path.stat().st_size)),
    "all of it": lambda path, luck: path.unlink(),
    "nothing left": lambda path, luck: os.truncate(path, 0),
    "zeros": lambda path, luck: path.write_bytes(bytes(luck.randrange(3000))),
    "zeros at the end": lambda path, luck: path.write_bytes(path.read_bytes() + bytes(luck.randrange(1, 3000))),
    "rubbish": lambda path, luck: path.write_bytes(luck.randbytes(luck.randrange(3000))),
    "twice": lambda path, luck: path.write_bytes(path.read_bytes() * 2),
    "pieces lost": lambda path, luck: path.write_bytes(path.read_bytes()[36 + 1000 :]),
    "writable by others": lambda path, luck: path.chmod(0o666),
}


def flip(path: Path, luck: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[luck.randrange(len(data))] ^= 1 << luck.randrange(8)
        path.write_bytes(data)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("seed", range(8))
def test_damage_of_every_kind_is_noticed_and_repaired_by_fetching_again(opened, place, warned, damage, seed):
    luck = random.Random(seed)
    parts = [BIG[start : start + 1000] for start in range(0, 10_000, 1000)]
    fill(opened(), "log", *parts)
    for stop in range(1000, 10_001, 1000):
        opened().read("log", 0, stop)
    (kept,) = files(place)
    DAMAGE[damage](kept, luck)
    store = opened()
    start, stop = sorted(luck.randrange(10_001) for _ in range(2))
    assert store.read("log", start, stop) == BIG[start:stop]
    assert b"".join(store.stream("log")) == BIG[:10_000]
    assert store.read("log") == BIG[:10_000]
    again = opened()
    assert again.read("log") == BIG[:10_000]
    assert inner(again).asked() == []
    assert len(warned()) <= 1
    fill(again, "log", b"more")
    assert opened().read("log")[10_000:] == opened().read("log", 10_000) == b"more"
    assert opened().read("log") == BIG[:10_000] + b"more"
    assert size(place) == 10_004 + 36 * (size(place) // 36 - 10_004 // 36), "there is nothing but pieces"


def test_damage_before_a_part_that_is_read_is_found_when_it_is_read_itself(opened, place):
    fill(opened(), "log", b"a" * 1000, b"b" * 1000)
    opened().read("log", 0, 1000), opened().read("log")
    (kept,) = files(place)
    data = bytearray(kept.read_bytes())
    data[500] ^= 1
    kept.write_bytes(data)
    store = opened()
    assert store.read("log", 1000) == b"b" * 1000
    assert inner(store).asked() == []
    assert store.read("log", 0, 1000) == b"a" * 1000
    assert inner(store).asked() == [(0, 1000)]


def test_files_that_were_swapped_are_noticed(opened, place, warned):
    fill(opened(), "one", b"1" * 100)
    fill(opened(), "two", b"2" * 100)
    opened().read("one"), opened().read("two")
    first, second = files(place)
    first.rename(place / "aside"), second.rename(first), (place / "aside").rename(second)
    store = opened()
    assert (store.read("one"), store.read("two")) == (b"1" * 100, b"2" * 100)
    assert len(inner(store).asked()) == 2
    assert [message.partition(";")[0] for message in warned()] == ["a kept log was damaged, and is fetched again"]


@pytest.mark.parametrize("other", [("far://two", "log"), ("far://one", "log-2")], ids=["origin", "name"])
def test_files_of_the_same_run_of_another_origin_or_name_are_noticed(place, other):
    stores = []
    for origin, log, data in (("far://one", "log", b"1"), (*other, b"2")):
        store = Cached(Far(), place, origin=origin)
        fill(store, log, data * 100)
        store.read(log)
        stores.append((store, log, data))
    first, second = files(place)
    first.rename(place / "aside"), second.rename(first), (place / "aside").rename(second)
    for store, log, data in stores:
        inner(store).asked()
        assert store.read(log) == data * 100
        assert inner(store).asked() == [(0, 100)]


def test_what_is_no_file_in_the_place_of_one_is_not_waited_for_and_not_followed(opened, place, tmp_path, warned):
    fill(opened(), "log", b"data")
    opened().read("log")
    (kept,) = files(place)
    target = tmp_path / "elsewhere"
    target.write_bytes(kept.read_bytes())
    for make in (os.mkfifo, os.mkdir, lambda path: os.symlink(target, path)):
        kept.unlink()
        make(kept)
        store = opened()
        assert store.read("log") == store.read("log") == b"data"
        if kept.is_dir():
            kept.rmdir()
            opened().read("log")
    assert target.read_bytes().endswith(b"data")
    assert 1 <= len(warned()) <= 6


@ROOT_ONLY
def test_a_file_of_another_user_is_not_believed(opened, place):
    fill(opened(), "log", b"data")
    opened().read("log")
    (kept,) = files(place)
    os.chown(kept, 12345, 12345)
    store = opened()
    assert store.read("log") == b"data"
    assert inner(store).asked() == [(0, 4)]
    assert files(place)[0].stat().st_uid == 0


def test_a_file_that_others_may_write_is_not_believed(opened, place):
    fill(opened(), "log", b"data")
    opened().read("log")
    (kept,) = files(place)
    kept.chmod(0o620)
    store = opened()
    assert store.read("log") == b"data"
    assert inner(store).asked() == [(0, 4)]
    assert stat.S_IMODE(files(place)[0].stat().st_mode) == 0o600


def test_a_damaged_length_never_leads_to_a_piece_that_a_log_holds_as_its_body(opened, place):
    """Whoever writes logs could make a body that looks like a piece, if it were ever looked for there."""
    store = opened()
    fill(store, "other", b"x"), fill(store, "log", b"x" * 100)
    run = store.tail("log").run
    forger = Directory(place, 1 << 20).log("far://", "log", run)
    spot = struct.pack(">QI", 100, 6)
    checked = spot + forger._digest(spot, b"forged", size=16)
    body = checked + forger._digest(checked, size=8) + b"forged"
    fill(store, "log", body)
    whole = store.read("log")
    (kept,) = files(place)
    data = bytearray(kept.read_bytes())
    data[8:12] = struct.pack(">I", 100)
    kept.write_bytes(data)
    assert opened().read("log", 100, 106) == whole[100:106] != b"forged"
    assert opened().read("log") == whole


@pytest.mark.parametrize("reads", [True, False])
def test_a_file_that_was_made_again_with_the_inode_of_the_one_before_is_no_damage(
    opened, place, tmp_path, warned, reads
):
    fill(opened(), "log", BIG[:3000])
    snapshot = opened().snapshot("log")
    other = Cached(inner(opened()), tmp_path / "other", origin="far://")
    for store, stops in ((snapshot, (1000, 2000)), (other.snapshot("log"), (500, 1500, 1980))):
        for stop in stops:
            assert store.read(0, stop) == BIG[:stop]
    (kept,), (again,) = files(place), files(tmp_path / "other")
    inode = kept.stat().st_ino
    kept.write_bytes(again.read_bytes())  # in pieces that begin elsewhere
    assert kept.stat().st_ino == inode
    if reads:
        assert snapshot.read(700, 1800) == BIG[700:1800]
    else:
        snapshot._kept.add(2000, BIG[2000:2500])
    assert kept.read_bytes() == again.read_bytes()
    assert snapshot.read() == BIG[:3000]
    last = opened()
    assert last.read("log") == BIG[:3000]
    assert (inner(last).asked(), warned()) == ([], [])


def test_a_file_that_goes_between_a_read_and_an_addition_is_not_begun_in_the_middle(opened, place, monkeypatch):
    fill(opened(), "log", b"a" * 100, b"b" * 100)
    opened().read("log", 0, 100)
    store = opened()

    def read(log: str, start: int = 0, stop: int | None = None) -> bytes:
        for path in files(place):
            path.unlink()
        return Far.read(inner(store), log, start, stop)

    monkeypatch.setattr(inner(store), "read", read)
    assert store.read("log") == b"a" * 100 + b"b" * 100
    assert opened().read("log") == b"a" * 100 + b"b" * 100


def test_a_directory_that_cannot_be_one_fails_no_read_and_is_told_once(tmp_path, warned):
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nothing/here"), Path("/dev/null")):
        before = len(warned())
        store = Cached(Far(), place, origin="far://user:word@host")
        fill(store, "log", b"data")
        for _ in range(3):
            assert store.read("log") == b"".join(store.stream("log")) == b"data"
            store.snapshot("log").read()
        store.delete("log")
        assert len(warned()) == before + 1
    assert "word" not in "".join(warned())


def test_a_directory_that_somebody_else_makes_at_the_same_time_is_used(opened, place, warned, monkeypatch):
    mkdir = os.mkdir

    def second(path: str, mode: int) -> None:
        try:
            mkdir(path, mode)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), mode), mkdir(path, mode)
            raise

    monkeypatch.setattr("statestore.wrappers._keeping.os.mkdir", second)
    fill(opened(), "log", b"data")
    assert opened().read("log") == b"data"
    assert (len(files(place)), warned()) == (1, [])


def test_a_directory_that_goes_is_made_again(opened, place):
    import shutil

    fill(opened(), "log", b"data")
    store = opened()
    for _ in range(2):
        assert store.read("log") == b"data"
        assert len(files(place)) == 1
        shutil.rmtree(place)


@ROOT_ONLY
@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_disk_that_is_full_or_read_only_fails_no_read_and_is_told_once(how, warned, place):
    with small_disk("512k") as disk:
        space = f"{place}"
        fill(Far(space), "small", b"data")
        fill(Far(space), "big", BIG)
        assert Cached(Far(space), disk, origin="far://").read("small") == b"data"
        if how == "read-only":
            read_only(disk)
        store = Cached(Far(space), disk, origin="far://")
        for _ in range(2):
            assert store.read("big") == b"".join(store.stream("big")) == BIG
        assert len(warned()) == 1
        if how == "full":
            assert os.statvfs(disk).f_bavail > 0, "the part of a piece that went in was not taken back"
        inner(store).asked()
        assert store.read("small") == b"data"
        assert inner(store).asked() == [], "what is there is used all the same"


def test_threads_that_read_the_same_logs_fill_one_cache(opened, place):
    for number in range(3):
        fill(opened(), f"log-{number}", *(BIG[start : start + 7000] for start in range(0, 70_000, 7000)))
    shared = opened()
    begin = threading.Barrier(8)

    def read(number: int) -> None:
        luck = random.Random(number)
        begin.wait()
        for _ in range(60):
            start, stop = sorted(luck.randrange(70_001) for _ in range(2))
            assert shared.read(f"log-{luck.randrange(3)}", luck.choice([0, start]), stop)[-9:] == BIG[:stop][-9:][:stop]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(read, range(8)))
    last = opened()
    assert all(last.read(f"log-{number}") == BIG[:70_000] for number in range(3))
    last = opened()
    assert all(last.read(f"log-{number}") == BIG[:70_000] for number in range(3))
    assert inner(last).asked() == []


FILLER = """
import random, sys
from statestore.wrappers import Cached
from statestore.wrappers._keeping import Directory
from tests.wrappers.places import Far, fill

place, seed = sys.argv[1:]
far = Far("filler")
data = random.Random(5).randbytes(300_000)
for log in ("one", "two", "three"):
    fill(far, log, data)
luck = random.Random(seed)
print("ready", flush=True)
while True:
    for log in ("one", "two", "three"):
        at = 0
        snapshot = Cached(far, place, origin="far://", limit=700_000).snapshot(log)
        while at < len(data):
            to = min(at + luck.randrange(1, 40_000), len(data))
            assert snapshot.read(at, to) == data[at:to], (log, at, to)
            at = to
"""


def test_processes_that_are_killed_while_they_fill_a_cache_leave_nothing_wrong(place):
    """Two fill it at once, over and over, with a limit that evicts; both are killed, at a moment of their own."""
    far = Far(f"{place}")
    data = random.Random(5).randbytes(300_000)
    for log in ("one", "two", "three"):
        fill(far, log, data)
    luck = random.Random(9)
    torn = 0
    for turn in range(6):
        command = [sys.executable, "-c", FILLER, place]
        fillers = [
            subprocess.Popen([*command, str(2 * turn + k)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for k in range(2)
        ]
        for filler in fillers:
            assert filler.stdout
            assert filler.stdout.readline() == b"ready\n", filler.stderr and filler.stderr.read()
        goal = luck.randrange(1, 600_000)
        while size_or_zero(place) < goal and all(filler.poll() is None for filler in fillers):
            pass
        for filler in fillers:
            filler.kill()
            _, complaint = filler.communicate()
            assert (filler.returncode, complaint) == (-9, b"")
        store = Cached(far, place, origin="far://", limit=2_000_000)
        far.asked()
        for log in ("one", "two", "three"):
            assert store.read(log) == data
        torn += len(far.asked())
        for log in ("one", "two", "three"):
            assert store.read(log) == data
        assert far.asked() == []
    assert torn, "they were never killed in time"


def size_or_zero(place: Path) -> int:
    try:
        return size(place)
    except FileNotFoundError:  # evicted while we looked
        return 0


def test_a_piece_that_a_dead_process_left_unfinished_is_cut_by_the_next(opened, place):
    fill(opened(), "log", b"a" * 100, b"b" * 100)
    opened().read("log", 0, 100)
    (kept,) = files(place)
    whole = kept.read_bytes()
    opened().read("log")
    torn = kept.read_bytes()[:-7]
    assert len(torn) > len(whole)
    kept.write_bytes(torn)
    store = opened()
    assert store.read("log") == b"a" * 100 + b"b" * 100
    assert inner(store).asked() == [(100, 200)]
    assert opened().read("log") == b"a" * 100 + b"b" * 100
    assert kept.stat().st_size == len(torn) + 7


def test_while_somebody_else_is_adding_a_read_does_not_wait(opened, place):
    import fcntl

    fill(opened(), "log", b"a" * 100, b"b" * 100)
    opened().read("log", 0, 100)
    (kept,) = files(place)
    with kept.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)  # the least that whoever adds alone must wait for
        before = kept.stat().st_size
        assert opened().read("log") == b"a" * 100 + b"b" * 100
        assert kept.stat().st_size == before
    opened().read("log")
    assert kept.stat().st_size > before


def test_an_append_of_a_cached_store_is_the_inner_ones(opened):
    store = opened()
    tail = store.append("log", b"data", at=NEW)
    assert inner(store).tail("log") == tail
    assert store.capabilities is inner(store).capabilities
    assert store.copy("log", "copy").size == 4
    assert store.snapshot("log").copy("part", stop=2).size == 2
    assert [row.name for row in store.list()] == ["copy", "log", "part"]
