"""A catalog says of each log what a scan of it would, and reads only what is new."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from statestore import NEW, RecordLog, Store, draft, open_store
from statestore.catalog import Catalog
from statestore.errors import Closed, Corrupt, InvalidName, NotFound, Unavailable
from statestore.records import Header, encode
from statestore.store import Snapshot
from statestore.wrappers import Wrapper
from statestore_memory import MemoryStore
from tests.catalog.parts import TIME, Chain, Runless, Shared, add, place, scanned, shown
from tests.sync.stores import Counting


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache directory, which is the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(params=["memory", "shared", "local", "runless"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store that keeps the catalog in memory, one in a file, one whose appends may tear, one without runs."""
    if request.param == "local":
        return open_store(tmp_path / "logs")
    if request.param == "runless":
        return Runless(Shared(str(tmp_path)))
    return MemoryStore() if request.param == "memory" else Shared(str(tmp_path))


def reads(store: Counting) -> int:
    found = store.calls["read"]
    store.calls.clear()
    return found


# What it says


def test_a_refresh_yields_the_fold_of_each_log_in_the_order_of_the_names(store: Store) -> None:
    for log in ("b", "a/b", "a", "c"):
        add(store, log, log.encode(), b"\n{}\n", bytes(range(256)))
    with Catalog(store, Chain()) as catalog:
        rows = list(catalog.refresh())
        assert {row.log: row.value for row in rows} == scanned(store)
        assert [(row.log, row.tail) for row in rows] == [(info.name, store.tail(info.name)) for info in store.list()]


def test_every_refresh_sees_what_was_appended_created_and_deleted_before_it(store: Store) -> None:
    with Catalog(store, Chain()) as catalog:
        assert shown(catalog) == {}
        for number in range(4):
            add(store, "grows", b"%d" % number)
            add(store, f"new-{number}", b"x")
            assert shown(catalog) == shown(catalog) == scanned(store)
            store.delete(f"new-{number}")
            assert shown(catalog) == scanned(store)


def test_a_log_that_was_deleted_and_made_again_with_the_same_size_is_folded_anew(store: Store) -> None:
    with Catalog(store, Chain()) as catalog:
        add(store, "log", b"one", b"two")
        first, size = shown(catalog), store.tail("log").size
        store.delete("log")
        add(store, "log", b"abc", b"def")
        assert store.tail("log").size == size
        assert shown(catalog) == scanned(store) != first
        store.delete("log")
        add(store, "log", b"abc", b"def", b"and more")
        assert shown(catalog) == scanned(store)
        store.delete("log")
        add(store, "log", b"z")
        assert catalog.get("log") == scanned(store)["log"]


def test_a_prefix_is_text_and_leaves_all_other_logs_alone(store: Store) -> None:
    for log in ("a", "ab", "a/b", "b", "a-b"):
        add(store, log, b"x")
    with Catalog(store, Chain()) as catalog:
        shown(catalog)
        assert list(shown(catalog, "a/")) == ["a/b"]
        assert list(shown(catalog, "a")) == ["a", "a-b", "a/b", "ab"]
        assert shown(catalog, "c") == {}
        assert shown(catalog) == scanned(store)


def test_get_returns_the_fold_of_one_log(store: Store) -> None:
    add(store, "log", b"one")
    with Catalog(store, Chain()) as catalog:
        assert catalog.get("log") == scanned(store)["log"]
        add(store, "log", b"two")
        assert catalog.get("log") == catalog.get("log") == scanned(store)["log"]
        store.delete("log")
        for _ in range(2):
            with pytest.raises(NotFound):
                catalog.get("log")


def test_a_large_log_is_folded_in_pieces(store: Store) -> None:
    tail = store.append("log", encode_many(range(1, 4)), at=NEW)
    with Catalog(store, Chain()) as catalog:
        assert shown(catalog) == scanned(store)
        store.append("log", encode_many(range(4, 6)), at=tail)
        assert shown(catalog) == scanned(store)


def encode_many(numbers: range) -> bytes:
    return b"".join(
        encode(Header(n=n, kind="message", id=f"{n:08x}", time=TIME), b"%d" % n * 1_500_000) for n in numbers
    )


# What it reads


def test_a_log_that_has_not_grown_is_not_read_and_one_that_has_is_read_once() -> None:
    store = Counting(MemoryStore())
    for number in range(30):
        add(store, f"log-{number:02}", b"x")
    fold = Chain()
    with Catalog(store, fold) as catalog:
        shown(catalog)
        assert (reads(store), fold.steps) == (30, 30)
        fold.steps = 0
        shown(catalog)
        assert store.calls == {"list": 1}
        assert (reads(store), fold.steps) == (0, 0)
        add(store, "log-07", b"y", b"z")
        reads(store)
        shown(catalog)
        assert (reads(store), fold.steps) == (1, 2)


def test_only_new_bytes_are_read() -> None:
    class Spans(Wrapper):
        def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
            spans.append(start)
            return super().read(log, start, stop)

        def snapshot(self, log: str) -> Snapshot:
            return Snapshot(self, log, self.tail(log))

    spans: list[int] = []
    store = Spans(MemoryStore())
    add(store, "log", b"one", b"two")
    with Catalog(store, Chain()) as catalog:
        shown(catalog)
        size = store.tail("log").size
        add(store, "log", b"three")
        spans.clear()
        shown(catalog)
        assert spans == [size]


def test_where_runs_are_missing_the_last_record_of_each_log_is_read_and_no_other() -> None:
    store = Counting(Runless(MemoryStore()))
    for log in ("a", "b", "c"):
        add(store, log, b"x", b"y")
    fold = Chain()
    with Catalog(store, fold) as catalog:
        shown(catalog)
        fold.steps = 0
        store.calls.clear()
        answer = shown(catalog)
        assert (reads(store), fold.steps) == (3, 0)
        assert answer == scanned(store)


def test_logs_are_read_by_so_many_threads_as_there_are_workers() -> None:
    meeting = threading.Barrier(3, timeout=30)

    class Met(Wrapper):
        def snapshot(self, log: str) -> Snapshot:
            meeting.wait()
            return super().snapshot(log)

    store = Met(MemoryStore())
    for number in range(6):
        add(store.inner, f"log-{number}", b"x")
    with Catalog(store, Chain(), workers=3) as catalog:
        assert shown(catalog) == scanned(store.inner)


def test_rows_come_while_later_logs_have_not_been_listed() -> None:
    store = Counting(MemoryStore())
    for number in range(500):
        add(store, f"log-{number:03}", b"x")
    store.calls.clear()
    with Catalog(store, Chain(), workers=2) as catalog:
        rows = catalog.refresh()
        assert next(rows).log == "log-000"
        assert store.calls["snapshot"] < 100
        rows.close()
        assert catalog.get("log-499")[0] == 1


def test_what_was_folded_before_a_refresh_was_left_is_kept() -> None:
    store = Counting(MemoryStore())
    for number in range(50):
        add(store, f"log-{number:02}", b"x")
    fold = Chain()
    with Catalog(store, fold, workers=1) as catalog:
        rows = catalog.refresh()
        for _ in range(20):
            next(rows)
        rows.close()
        fold.steps = 0
        assert shown(catalog) == scanned(store)
        assert fold.steps == 30


def test_rebuild_reads_everything_and_clear_forgets(store: Store) -> None:
    add(store, "a", b"x")
    add(store, "b", b"x", b"y")
    fold = Chain()
    with Catalog(store, fold) as catalog:
        shown(catalog)
        fold.steps = 0
        assert {row.log: row.value for row in catalog.rebuild()} == scanned(store)
        assert fold.steps == 3
        catalog.clear()
        shown(catalog)
        assert fold.steps == 6


# What is wrong with a log


def test_a_torn_end_is_left_out_and_what_replaces_it_is_seen_even_with_the_same_size(tmp_path: Path) -> None:
    store = open_store(tmp_path / "logs")
    add(store, "log", b"one", b"two")
    file = tmp_path / "logs" / "log.state"
    whole = file.read_bytes()
    last = len(whole) - RecordLog(store, "log").last(1)[0].offset
    with Catalog(store, Chain(), path=place(tmp_path)) as catalog:
        before = shown(catalog)
        with open(file, "ab") as torn:
            torn.write(whole[-last:-1])
        assert shown(catalog) == shown(catalog) == scanned(store) == before
        size = store.tail("log").size
        add(store, "log", b"wo")
        assert store.tail("log").size == size, "the test is no test otherwise"
        assert shown(catalog) == scanned(store) != before


def test_whole_records_that_were_never_acknowledged_may_be_replaced(tmp_path: Path) -> None:
    store = open_store(tmp_path / "logs")
    add(store, "log", b"one")
    file = tmp_path / "logs" / "log.state"
    before = file.stat().st_size
    add(store, "log", b"taken back")
    with Catalog(store, Chain(), path=place(tmp_path)) as catalog:
        shown(catalog)
        os.truncate(file, before)
        assert shown(catalog) == scanned(store)
    os.truncate(file, before)
    fresh = open_store(tmp_path / "logs")
    add(fresh, "log", b"taken back too")
    with Catalog(store, Chain(), path=place(tmp_path)) as catalog:
        shown(catalog)
        os.truncate(file, before)
        add(open_store(tmp_path / "logs"), "log", b"other, and longer than that", b"more")
        assert shown(catalog) == scanned(store)


def test_a_damaged_log_is_told_in_its_row_and_the_others_come(tmp_path: Path) -> None:
    store = open_store(tmp_path / "logs")
    for log in ("a", "b", "c"):
        add(store, log, b"one", b"two", b"three")
    file = tmp_path / "logs" / "b.state"
    whole = file.read_bytes()
    middle = whole.index(b'{"n":2,')
    file.write_bytes(whole[:middle] + b"?" + whole[middle + 1 :])
    fold = Chain()
    with Catalog(store, fold, path=place(tmp_path)) as catalog:
        for steps in (7, 0, 0):
            fold.steps = 0
            rows = list(catalog.refresh())
            assert [(row.log, row.value is None, type(row.error)) for row in rows] == [
                ("a", False, type(None)),
                ("b", True, Corrupt),
                ("c", False, type(None)),
            ]
            assert isinstance(rows[1].error, Corrupt)
            assert (rows[1].error.record, rows[1].error.offset) == (2, middle)
            assert fold.steps == steps, "what stands before the damage is not read again"
        with pytest.raises(Corrupt):
            catalog.get("b")
        file.write_bytes(whole)
        assert shown(catalog) == scanned(store)


def test_a_record_that_the_fold_refuses_is_the_error_of_its_log_alone(store: Store) -> None:
    add(store, "a", b"x")
    add(store, "b", b"x")
    with Catalog(store, Chain()) as catalog:
        shown(catalog)
        add(store, "b", b"?", kind="nonsense")
        add(store, "b", b"y")
        for _ in range(3):
            a, b = catalog.refresh()
            assert (a.log, a.error) == ("a", None)
            assert (b.log, b.value, type(b.error)) == ("b", None, Corrupt)
        store.delete("b")
        add(store, "b", b"y")
        assert shown(catalog) == scanned(store)


def test_a_log_that_the_storage_fails_to_read_is_told_and_tried_again() -> None:
    class Failing(Wrapper):
        def snapshot(self, log: str) -> Snapshot:
            if log == failing:
                raise Unavailable("the storage failed", retry=True, log=log)
            return super().snapshot(log)

    failing = "b"
    store = Failing(MemoryStore())
    for log in ("a", "b", "c"):
        add(store.inner, log, b"x")
    with Catalog(store, Chain()) as catalog:
        rows = list(catalog.refresh())
        assert [(row.log, type(row.error)) for row in rows if row.error] == [("b", Unavailable)]
        failing = ""
        assert shown(catalog) == scanned(store)


def test_another_error_of_a_fold_is_the_callers(store: Store) -> None:
    class Broken(Chain):
        def step(self, state, record):
            raise ZeroDivisionError

    add(store, "a", b"x")
    with Catalog(store, Broken()) as catalog:
        with pytest.raises(ZeroDivisionError):
            list(catalog.refresh())
        with pytest.raises(ZeroDivisionError):
            catalog.get("a")


def test_a_log_that_is_made_again_while_it_is_read_is_read_anew() -> None:
    class Swapped(Wrapper):
        def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
            if swaps:
                swaps.pop()
                self.inner.delete(log)
                add(self.inner, log, b"another")
            return super().read(log, start, stop)

        def snapshot(self, log: str) -> Snapshot:
            return Snapshot(self, log, self.tail(log))

    swaps = [1, 2]
    store = Swapped(MemoryStore())
    add(store.inner, "log", b"one", b"two")
    with Catalog(store, Chain()) as catalog:
        assert shown(catalog) == scanned(store.inner)
        assert not swaps


def test_a_torn_end_that_is_cut_and_replaced_while_it_is_read_is_no_damage(tmp_path: Path) -> None:
    class Late(Wrapper):
        def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
            found = super().read(log, start, stop)
            if torn:
                torn.pop()
                add(self.inner, log, b"two", b"three")
            return found

        def snapshot(self, log: str) -> Snapshot:
            return Snapshot(self, log, self.tail(log))

    torn = [encode(Header(n=2, kind="message", id="00000002", time=TIME), b"x" * 1000)[:-100]]
    store = Late(open_store(tmp_path / "logs"))
    add(store.inner, "log", b"one")
    with open(tmp_path / "logs" / "log.state", "ab") as file:
        file.write(torn[0])
    with Catalog(store, Chain(), path=place(tmp_path)) as catalog:
        assert shown(catalog) == scanned(store.inner)
        assert catalog.get("log")[0] == 3


def test_a_log_that_is_deleted_while_it_is_read_has_no_row() -> None:
    class Deleted(Wrapper):
        def snapshot(self, log: str) -> Snapshot:
            self.inner.delete(log)
            return super().snapshot(log)

    store = Deleted(MemoryStore())
    add(store.inner, "log", b"one")
    with Catalog(store, Chain()) as catalog:
        assert shown(catalog) == {}


# Versions, and what it refuses


def test_another_version_of_a_fold_believes_nothing_that_was_kept(tmp_path: Path) -> None:
    store = Shared(str(tmp_path))
    add(store, "log", b"one")
    for version in (1, 2, 1, 1):
        with Catalog(store, Chain(version=version), path=place(tmp_path)) as catalog:
            assert shown(catalog) == scanned(store, version)


def test_bytes_that_a_fold_cannot_load_are_folded_anew(tmp_path: Path) -> None:
    class Picky(Chain):
        def load(self, data: bytes) -> tuple[int, str]:
            raise KeyError(data)

    store = Shared(str(tmp_path))
    add(store, "log", b"one")
    with Catalog(store, Picky(), path=place(tmp_path)) as catalog:
        assert shown(catalog) == shown(catalog) == scanned(store)
        assert catalog.get("log") == scanned(store)["log"]


def test_two_stores_and_two_folds_that_share_a_file_never_mix(tmp_path: Path) -> None:
    stores = [Shared(f"{tmp_path}/{number}") for number in range(2)]
    for number, store in enumerate(stores):
        add(store, "log", b"%d" % number)
    assert stores[0].tail("log") == stores[1].tail("log"), "the test is no test otherwise"
    catalogs = [
        (store, Catalog(store, Chain(name, version), path=place(tmp_path)), version)
        for store in stores
        for name, version in (("one", 1), ("other", 2))
    ]
    for _ in range(2):
        for store, catalog, version in catalogs:
            assert shown(catalog) == scanned(store, version)
    catalogs[0][1].clear()
    for store, catalog, version in catalogs:
        assert shown(catalog) == scanned(store, version)
        catalog.close()


def test_bad_arguments_are_refused_at_once() -> None:
    catalog = Catalog(MemoryStore(), Chain())
    with pytest.raises(InvalidName):
        catalog.refresh("/")
    with pytest.raises(InvalidName):
        catalog.get("../x")
    with pytest.raises(ValueError, match="workers=0"):
        Catalog(MemoryStore(), Chain(), workers=0)


def test_a_closed_catalog_refuses_and_leaves_its_store_open() -> None:
    store = MemoryStore()
    add(store, "log", b"x")
    catalog = Catalog(store, Chain())
    rows = catalog.refresh()
    next(rows)
    catalog.close()
    catalog.close()
    for call in (catalog.refresh, catalog.rebuild, catalog.clear, lambda: catalog.get("log")):
        with pytest.raises(Closed):
            call()
    assert list(rows) == []
    assert store.tail("log").size


def test_a_closed_store_is_no_damage_of_its_logs() -> None:
    store = MemoryStore()
    add(store, "log", b"x")
    with Catalog(store, Chain()) as catalog:
        store.close()
        with pytest.raises(Closed):
            list(catalog.refresh())


def test_one_catalog_serves_many_threads(store: Store) -> None:
    for number in range(20):
        add(store, f"log-{number:02}", b"x")
    with Catalog(store, Chain(), workers=2) as catalog, ThreadPoolExecutor(6) as pool:
        answers = [pool.submit(shown, catalog) for _ in range(6)]
        answers += [pool.submit(lambda log: {log: catalog.get(log)}, f"log-{number:02}") for number in range(20)]
        truth = scanned(store)
        for answer in answers:
            assert answer.result().items() <= truth.items()


def test_a_log_of_a_torn_record_alone_is_the_fold_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "log.state").write_bytes(b'{"n":1,"kind":"mess')
    store = open_store(tmp_path / "logs")
    with Catalog(store, Chain(), path=place(tmp_path)) as catalog:
        for _ in range(2):
            (row,) = catalog.refresh()
            assert (row.value, row.tail and row.tail.size, row.error) == (Chain().initial(), 19, None)


def test_a_batch_of_records_is_seen_whole(store: Store) -> None:
    RecordLog(store, "log").append_many([draft("message", b"%d" % number) for number in range(100)], expect=1)
    with Catalog(store, Chain()) as catalog:
        assert catalog.get("log")[0] == 100
