"""Any other file system of fsspec: read by all, written by nobody but a single writer who says so."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install fsspec")
from fsspec.implementations.memory import MemoryFileSystem

from statestore import NEW, open_store
from statestore.errors import NotFound, NotSupported, PluginError, Unavailable
from statestore_fsspec import FsspecStore
from statestore_fsspec._other import OtherDrive
from statestore_fsspec._steps import Outcome


@pytest.fixture
def url() -> str:
    return f"fsspec://memory://{uuid.uuid4().hex}/agents"


def filled(url: str) -> dict[str, bytes]:
    with open_store(url, single_writer=True) as store:
        tail = store.append("a", b"one,", at=NEW)
        store.append("a", b"two", at=tail)
        store.append("b/c", b"three", at=NEW)
    return {"a": b"one,two", "b/c": b"three"}


def test_writing_is_refused_with_the_reason_and_reading_is_not(url: str) -> None:
    with open_store(url) as store:
        assert list(store.list()) == []
        for write in (
            lambda: store.append("a", b"x", at=NEW),
            lambda: store.delete("a"),
            lambda: store.copy("a", "b"),
            lambda: list(store.maintenance.collect(dry_run=False)),
        ):
            with pytest.raises(NotSupported, match=r"does not create exclusively.*single_writer=True") as refused:
                write()
            assert refused.value.facts["files"] == "MemoryFileSystem"
    held = filled(url)
    with open_store(url) as store:
        assert {info.name: store.read(info.name) for info in store.list()} == held
        assert store.tail("a").size == 7
        assert b"".join(store.stream("a", 2)) == b"e,two"
        assert list(store.maintenance.check()) == []
        with pytest.raises(NotFound):
            store.read("c")
        with pytest.raises(NotSupported):
            store.append("a", b"x", at=store.tail("a"))


def test_a_single_writer_writes_deletes_copies_and_collects(url: str) -> None:
    filled(url)
    with open_store(url, single_writer=True) as store:
        assert not store.capabilities.shared
        assert store.copy("a", "d", stop=5).size == 5
        store.delete("a")
        store.append("a", b"again", at=NEW)
        assert [(info.name, info.tail and info.tail.size) for info in store.list(tails=True)] == [
            ("a", 5),
            ("b/c", 5),
            ("d", 5),
        ]
        assert list(store.maintenance.collect(dry_run=False)) == []


def test_threads_of_the_single_writer_do_not_overwrite_each_other(url: str) -> None:
    with open_store(url, single_writer=True) as store, ThreadPoolExecutor(8) as pool:
        drive: Any = store._engine.drive  # type: ignore[attr-defined]
        for turn in range(20):
            came = list(pool.map(lambda n, turn=turn: drive.create(f"k{turn}", b"%d" % n)[0].value, range(8)))
            assert sorted(came) == ["created"] + ["refused"] * 7


def test_a_folder_of_this_machine_and_chained_urls_are_read_alike(tmp_path: Path) -> None:
    held = filled(f"fsspec://file://{tmp_path}/agents")
    for url in (f"fsspec://simplecache::file://{tmp_path}/agents", f"fsspec://file://{tmp_path}/agents/"):
        with open_store(url) as store:
            assert {info.name: store.read(info.name) for info in store.list()} == held


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("fsspec://agents", "a URL of fsspec behind the scheme"),
        ("fsspec://s3://bucket/agents", "needs no fsspec:// before it write=s3://bucket/agents"),
        ("fsspec://ftp://user:hidden@host/agents", "no credentials belong into this URL"),
    ],
)
def test_a_url_that_is_none_is_refused(url: str, words: str) -> None:
    with pytest.raises(PluginError, match=words) as refused:
        open_store(url)
    assert "hidden" not in str(refused.value)


def test_a_protocol_that_nobody_has_is_told(url: str) -> None:
    with (
        open_store("fsspec://nosuch://host/agents") as store,
        pytest.raises(Unavailable, match="can't be opened") as told,
    ):
        store.read("a")
    assert not told.value.retry
    assert "nosuch" in str(told.value.__cause__)


class Liar(OtherDrive):
    """A file system that takes the condition and ignores it."""

    def create(self, key: str, data: bytes) -> Any:
        self.files.pipe_file(self.path(key), data)
        return Outcome.CREATED, None


def test_a_file_system_that_lies_is_refused_by_the_probe() -> None:
    root = uuid.uuid4().hex
    with FsspecStore(lambda: Liar(MemoryFileSystem(), root, writes=True), "liar://") as store:
        with pytest.raises(Unavailable, match="takes the condition of an exclusive create and ignores it"):
            store.append("a", b"x", at=NEW)
        assert list(store.list()) == []


@pytest.mark.parametrize("url", ["ftp://host/agents", "simplecache::ftp://host/agents"])
def test_a_url_of_fsspecs_alone_is_refused_and_the_way_is_told(url: str) -> None:
    with pytest.raises(PluginError, match="before a URL of fsspec's write fsspec://"):
        open_store(url)
