"""The catalog's file may be lost, damaged, locked, full, read-only or somebody else's: the answers stay right."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statestore import Store, open_store
from statestore.catalog import Catalog, _file
from statestore.errors import NotFound
from statestore_memory import MemoryStore
from tests.catalog.parts import Chain, Shared, add, place, scanned, shown
from tests.disks import ROOT_ONLY, read_only, small_disk


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache directory, which is the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Shared(str(tmp_path))
    for number in range(40):
        add(store, f"log-{number:02}", b"x" * number, b"y")
    return store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return place(tmp_path)


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    def messages() -> list[str]:
        found = [record.getMessage() for record in caplog.records if record.name == "statestore.catalog"]
        caplog.clear()
        return found

    caplog.set_level(logging.WARNING)
    return messages


def steps(store: Store, **options: object) -> int:
    """See that a new catalog says the truth, and return how many records it has folded."""
    fold = Chain()
    with Catalog(store, fold, **options) as catalog:  # type: ignore[arg-type]
        assert shown(catalog) == scanned(store)
    return fold.steps


# Where it is


def test_what_was_folded_is_kept_for_the_next_process(store: Store, file: Path, warned) -> None:
    assert steps(store, path=file) == 80
    assert steps(store, path=file) == 0
    add(store, "log-07", b"new")
    assert steps(store, path=file) == 1
    assert steps(store, path=file) == 0
    assert warned() == []


def test_by_default_the_file_is_in_the_users_cache_directory_and_nowhere_else(cache: Path, tmp_path: Path) -> None:
    store = open_store(tmp_path / "logs")
    add(store, "log", b"x")
    assert steps(store) == 1
    assert steps(store) == 0
    (kept,) = cache.rglob("*.sqlite3")
    assert kept.parent == cache / "statestore" / "catalog"
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["log.state"]


def test_each_store_and_each_fold_has_a_file_of_its_own(cache: Path, tmp_path: Path) -> None:
    paths = set()
    for root in ("one", "two"):
        for name in ("a", "b"):
            with Catalog(open_store(tmp_path / root), Chain(name)) as catalog:
                paths.add(catalog.path)
    assert len(paths) == 4


def test_a_file_is_for_its_owner_alone_whatever_the_umask_is(store: Store, file: Path) -> None:
    before = os.umask(0)
    try:
        steps(store, path=file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert list(file.parent.iterdir()) == [file]
    finally:
        os.umask(before)


def test_a_store_that_nobody_shares_has_no_file(cache: Path, file: Path) -> None:
    store = MemoryStore()
    add(store, "log", b"x")
    for path in (None, file):
        with Catalog(store, Chain(), path=path) as catalog:
            assert catalog.path is None
            assert shown(catalog) == scanned(store)
    assert not file.exists()
    assert not cache.exists()


def test_a_store_that_does_not_say_where_it_is_has_no_file_but_one_that_is_named(cache: Path, file: Path) -> None:
    class Nowhere(Shared):
        def location(self, log: str) -> str:
            return log

    stores = [Nowhere(f"{file}/{number}") for number in range(2)]
    for number, store in enumerate(stores):
        add(store, "log", b"%d" % number)
        for path in (None, file):
            with Catalog(store, Chain(), path=path) as catalog:
                assert catalog.path is None
                assert shown(catalog) == scanned(store)
    assert [steps(store, path=file, origin=store.name) for store in stores] == [1, 1]
    assert [steps(store, path=file, origin=store.name) for store in stores] == [0, 0]
    assert not cache.exists()


def test_rows_of_deleted_logs_go(store: Store, file: Path) -> None:
    def kept() -> list[str]:
        with closing(sqlite3.connect(file)) as connection:
            return [log for (log,) in connection.execute("SELECT log FROM kept ORDER BY log")]

    steps(store, path=file)
    for number in range(0, 40, 2):
        store.delete(f"log-{number:02}")
    with Catalog(store, Chain(), path=file) as catalog:
        shown(catalog, "log-0")
        assert "log-00" not in kept()
        assert "log-10" in kept()
        with pytest.raises(NotFound):
            catalog.get("log-10")
        assert "log-10" not in kept()
        shown(catalog)
        assert kept() == [info.name for info in store.list()]


def test_a_file_that_was_removed_while_it_is_open_is_made_again_by_the_same_catalog(store, file, warned) -> None:
    with Catalog(store, Chain(), path=file) as catalog:
        shown(catalog)
        file.unlink()
        add(store, "log-07", b"new")
        shown(catalog)
        fold = Chain()
        with Catalog(store, fold, path=file) as other:
            assert other.get("log-07") == scanned(store)["log-07"]
            assert fold.steps == 0
    assert warned() == []


def test_an_interrupt_in_the_midst_of_a_change_lets_go_of_the_file(store: Store, file: Path, warned) -> None:
    def interrupted(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM kept")
        raise KeyboardInterrupt

    with Catalog(store, Chain(), path=file) as catalog:
        shown(catalog)
        with pytest.raises(KeyboardInterrupt):
            catalog._states._run(interrupted, None)
        add(store, "log-07", b"new")
        assert steps(store, path=file) == 1
        assert shown(catalog) == scanned(store)
    assert warned() == []


# Lost, damaged, of another version


@pytest.mark.parametrize("when", ["between", "while it is open"])
@pytest.mark.parametrize(
    "harm",
    [
        lambda file: file.unlink(),
        lambda file: os.truncate(file, 0),
        lambda file: os.truncate(file, 100),
        lambda file: os.truncate(file, file.stat().st_size // 2),
        lambda file: file.write_bytes(b"\0" * file.stat().st_size),
        lambda file: file.write_bytes(file.read_bytes()[:100] + b"\xff" * 5000),
        lambda file: edit(file, "UPDATE kept SET state = x'3939'"),
        lambda file: edit(file, 'UPDATE kept SET size = 1, "end" = 1'),
        lambda file: edit(file, "UPDATE kept SET run = '77'"),
        lambda file: edit(file, "UPDATE kept SET number = 'many'"),
        lambda file: edit(file, "UPDATE kept SET mark = NULL, state = NULL"),
        lambda file: edit(file, "UPDATE kept SET log = log || '0'"),
        lambda file: edit(file, "UPDATE kept SET log = CAST(x'ff' || log AS TEXT)"),
        lambda file: edit(file, "DELETE FROM kept WHERE log LIKE '%1%'"),
        lambda file: edit(file, "DROP TABLE kept"),
        lambda file: edit(file, "ALTER TABLE kept DROP COLUMN mark"),
        lambda file: edit(file, "ALTER TABLE kept ADD COLUMN more TEXT"),
        lambda file: edit(file, "PRAGMA user_version = 99"),
        lambda file: edit(file, "PRAGMA user_version = 0"),
        lambda file: edit(file, "DROP TABLE kept", "CREATE TABLE kept (log TEXT)", "PRAGMA user_version = 2"),
    ],
)
def test_a_file_that_was_lost_or_harmed_changes_no_answer_and_is_made_again(harm, when, cache, store, tmp_path) -> None:
    fold = Chain()
    with Catalog(store, fold) as catalog:
        shown(catalog)
        assert catalog.path
        file = Path(catalog.path)
        if when == "while it is open":
            harm(file)
            assert shown(catalog) == scanned(store)
            for log in ("log-01", "log-39"):
                assert catalog.get(log) == scanned(store)[log]
            assert shown(catalog) == scanned(store)
    if when == "between":
        harm(file)
    steps(store)
    assert steps(store) == 0, "it was made again"


def edit(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@settings(max_examples=150)
@given(data=st.data())
def test_whatever_bytes_of_the_file_change_no_answer_does(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "file"
        store = Shared(place)
        for log in "abcdefgh":
            add(store, log, b"x", log.encode())
        steps(store, path=file)
        whole = file.read_bytes()
        raw = bytearray(whole)
        used = [at for at in range(len(raw)) if raw[at]]  # most of a page is empty
        for at in data.draw(st.lists(st.integers(0, 1 << 20), max_size=8)):
            raw[used[at % len(used)]] = data.draw(st.integers(0, 255))
        cut = data.draw(st.integers(0, 8192) | st.none())
        file.write_bytes(raw[:cut])
        add(store, "c", b"new")
        steps(store, path=file)
        steps(store, path=file)


@pytest.mark.parametrize("content", [b"# notes\n", b"SQLite format 3\0 is how it begins", None])
def test_a_file_that_somebody_else_has_made_is_left_as_it_is_and_told(content, store, tmp_path, warned) -> None:
    file = tmp_path / "notes"
    if content is None:
        edit(file, "CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('dear diary')")
        content = file.read_bytes()
    else:
        file.write_bytes(content)
    for _ in range(2):
        fold = Chain()
        with Catalog(store, fold, path=file) as catalog:
            assert shown(catalog) == shown(catalog) == scanned(store)
            assert fold.steps == 80, "it is kept in memory"
        (said,) = warned()
        assert "it is no catalog" in said
        assert said.endswith(f"path='{file}'")
    assert file.read_bytes() == content


@pytest.mark.parametrize("kind", ["directory", "link", "pipe", "dangling"])
def test_what_is_no_file_is_not_used(kind, store, tmp_path, warned) -> None:
    file = tmp_path / "place"
    if kind == "directory":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        if kind == "link":
            (tmp_path / "other").write_bytes(b"")
        file.symlink_to(tmp_path / "other")
    assert steps(store, path=file) == 80
    assert len(warned()) == 1
    assert not (tmp_path / "other").exists() or not (tmp_path / "other").read_bytes()


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_to_is_not_used(mode, store, file, warned) -> None:
    steps(store, path=file)
    file.chmod(mode)
    assert steps(store, path=file) == 80
    assert len(warned()) == 1


@ROOT_ONLY
def test_a_file_of_another_user_is_not_used(store, file, warned) -> None:
    steps(store, path=file)
    os.chown(file, 65534, 65534)
    assert steps(store, path=file) == 80
    assert len(warned()) == 1


def test_a_journal_that_a_crash_left_is_rolled_back(store, file) -> None:
    assert steps(store, path=file) == 80
    crash = f"""
import os, sqlite3
connection = sqlite3.connect({str(file)!r}, isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE kept SET state = zeroblob(5000)")
assert os.path.exists({str(file)!r} + "-journal")
os.abort()
"""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    assert subprocess.run([sys.executable, "-c", limit + crash]).returncode < 0
    assert Path(f"{file}-journal").exists()
    assert steps(store, path=file) == 0


# Locked, full, read-only


@contextmanager
def held(file: Path) -> Iterator[None]:
    """Hold the file as a process does that is in the midst of a commit."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield


def test_a_file_that_others_hold_is_done_without(store, file, warned, monkeypatch) -> None:
    monkeypatch.setattr(_file, "_WAIT", 50)
    steps(store, path=file)
    fold = Chain()
    with Catalog(store, fold, path=file) as catalog:
        with held(file):
            for _ in range(2):
                assert shown(catalog) == scanned(store)
                assert catalog.get("log-00") == scanned(store)["log-00"]
            assert fold.steps > 80
            assert steps(store, path=file) == 80
            fold.steps = 0
            assert {row.log: row.value for row in catalog.rebuild()} == scanned(store)
            assert fold.steps == 80
        told = warned()
        assert {message.partition(": database")[0] for message in told} == {
            "the file of a catalog: others hold it, and it is not used meanwhile"
        }
        assert len(told) == 2, "once for each catalog"
        fold.steps = 0
        assert shown(catalog) == scanned(store)
        assert fold.steps == 0


def test_a_file_that_others_hold_for_a_moment_is_waited_for(store, file, warned) -> None:
    steps(store, path=file)
    with held(file):
        answers: list[int] = []
        waiting = threading.Thread(target=lambda: answers.append(steps(store, path=file)))
        waiting.start()
    waiting.join()
    assert answers == [0]
    assert warned() == []


@ROOT_ONLY
@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_disk_that_is_full_or_read_only_changes_no_answer_and_is_told_once(how, store, warned) -> None:
    with small_disk("64k") as disk:
        file = disk / "file"
        assert steps(store, path=file) == 80
        if how == "read-only":
            read_only(disk)
            add(store, "log-00", b"new")
        else:
            for number in range(2000):
                add(store, f"new-{number:04}", b"x")
        with Catalog(store, fold := Chain(), path=file) as catalog:
            for _ in range(2):
                assert shown(catalog) == scanned(store)
            assert len(warned()) == 1
            if how == "full":
                fold.steps = 0
                assert shown(catalog, "log-") == scanned(store, prefix="log-")
                assert fold.steps == 0, "what is there is used all the same"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_to_changes_no_answer(store, tmp_path, warned) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    assert steps(store, path=tmp_path / "closed" / "file") == 80
    assert len(warned()) == 1


def test_a_directory_that_is_a_file_changes_no_answer(store, tmp_path, warned) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert steps(store, path=tmp_path / "file" / "catalog") == 80
    assert len(warned()) == 1
