"""Where logs lie, and what else may lie there."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statestore import names
from statestore.errors import InvalidName, NotFound, Unavailable
from statestore.store import NEW, Tail
from statestore_local import LocalStore
from statestore_local._files import locate

AWKWARD = ("x", "X", "x.state", "x.state/y", "x.state.state", "x/y", "x-", "x.", "x~", "%2F", "x.state/y.state/z", "~")


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "root", sync="never")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_awkward_neighbours_are_distinct_logs_and_list_in_order(store: LocalStore) -> None:
    for name in AWKWARD:
        store.append(name, name.encode(), at=NEW)
    assert [info.name for info in store.list()] == sorted(AWKWARD)
    assert {name: store.read(name) for name in AWKWARD} == {name: name.encode() for name in AWKWARD}


def test_each_log_is_the_file_that_the_documentation_names(store: LocalStore, tmp_path: Path) -> None:
    for name, path in {"a": "a.state", "a/b": "a/b.state", "a.state/b": "a.state!/b.state"}.items():
        store.append(name, b"1", at=NEW)
        assert (tmp_path / "root" / path).read_bytes() == b"1"


SEGMENT = st.from_regex(r"\A(?:[A-Za-z0-9_~-]|%[0-9A-F]{2})(?:[A-Za-z.!_~-]|%2E|\.state){0,6}\Z").filter(names.is_name)
NAME = st.lists(SEGMENT, min_size=1, max_size=4).map("/".join)


@given(st.lists(NAME, min_size=2, max_size=2, unique=True))
def test_no_two_names_share_a_file_or_a_directory(pair: list[str]) -> None:
    one, other = (locate("/root", name) for name in pair)
    assert one.path != other.path
    assert not one.path.startswith(other.path + "/")
    assert one.file != other.beside("hold")


ENTRY = st.one_of(
    st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=12),
    st.binary(min_size=1, max_size=12).map(lambda raw: os.fsdecode(raw.replace(b"/", b"_").replace(b"\0", b"_"))),
    SEGMENT,
    SEGMENT.map(lambda text: text + ".state"),
    SEGMENT.map(lambda text: f".{text}.hold"),
    SEGMENT.map(lambda text: text + ".state!"),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.lists(ENTRY, min_size=1, max_size=3), st.sampled_from("fdle")), max_size=12))
def test_a_listing_survives_any_tree_and_shows_exactly_the_logs(tree: list[tuple[list[str], str]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        for parts, kind in tree:
            path = os.path.join(place, *parts)
            try:
                if kind == "d":
                    os.makedirs(path, exist_ok=True)
                    continue
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if kind == "l":
                    os.symlink("nowhere", path)
                else:
                    with open(path, "wb") as file:
                        file.write(b"1" if kind == "f" else b"")
            except OSError:
                continue  # taken by another entry, or too long
        store = LocalStore(place, sync="never")
        shown = [info.name for info in store.list(tails=True)]
        assert shown == sorted(set(shown))
        assert set(shown) <= {info.name for info in store.list()}
        expected = set()
        for above, _, files in os.walk(place):
            for file in files:
                path = os.path.join(above, file)
                if not os.path.islink(path) and os.path.getsize(path):
                    parts = os.path.relpath(path, place).split("/")
                    segments = [part[:-1] if part.endswith(".state!") else part for part in parts[:-1]]
                    name = "/".join([*segments, parts[-1].removesuffix(".state")])
                    if names.is_name(name) and locate(place, name).path == path:
                        expected.add(name)
        assert set(shown) == expected


@pytest.mark.parametrize("prefix", ["", "a", "a/", "a/b", "a.state/", "b", "nothing/"])
def test_a_prefix_and_a_place_to_continue_select_what_they_say(store: LocalStore, prefix: str) -> None:
    every = ["a", "a-b", "a.state/x", "a/a", "a/b", "a/b/c", "a/bc", "ab", "b/a/a", "b/b"]
    for name in every:
        store.append(name, b"1", at=NEW)
    for after in ["", *every, "a/", "a/b/", "zz"]:
        shown = [info.name for info in store.list(prefix, after=after)]
        assert shown == [name for name in sorted(every) if name.startswith(prefix) and name > after]


def test_helper_files_and_strangers_are_not_listed(store: LocalStore, tmp_path: Path) -> None:
    root = tmp_path / "root"
    tail = store.append("a", b"12", at=NEW)
    store.cut("a", 1, at=tail)
    for stranger in (".hidden.state", "é.state", "note.txt", ".a.new", "a b.state", ".state"):
        (root / stranger).write_bytes(b"1")
    (root / "b.state").mkdir()
    (root / "b.state" / "c.state").write_bytes(b"1")
    (root / "d!").mkdir()
    (root / "d!" / "c.state").write_bytes(b"1")
    with store.hold("a"):
        assert [info.name for info in store.list()] == ["a"]


def test_an_empty_file_is_no_log_and_may_become_one(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "root" / "a.state").touch()
    for refused in (lambda: store.read("a"), lambda: store.tail("a"), lambda: store.delete("a")):
        with pytest.raises(NotFound):
            refused()
    with pytest.raises(NotFound):
        store.append("a", b"1", at=Tail(1, "x"))
    assert list(store.list(tails=True)) == []
    store.append("a", b"1", at=NEW)
    assert store.read("a") == b"1"


def test_a_directory_of_another_programs_files_opens_as_it_is() -> None:
    vectors = Path(__file__).parents[1] / "vectors" / "statefile"
    with LocalStore(vectors, create=False) as store:
        assert [info.name for info in store.list("session-")] == ["session-12", "session-200", "session-2000"]
        assert store.read("session-12") == (vectors / "session-12.state").read_bytes()
        assert (
            b"".join(store.stream("session-2000", 5, 3_000_000))
            == ((vectors / "session-2000.state").read_bytes()[5:3_000_000])
        )


def test_files_and_directories_belong_to_their_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = LocalStore(tmp_path / "new" / "root", sync="never")
        tail = store.append("a/b", b"12", at=NEW)
        store.copy("a/b", "c/copy")
        store.cut("a/b", 1, at=tail)
        with store.hold("a/b"):
            made = [tmp_path / "new", *(tmp_path / "new").rglob("*")]
            assert {mode(path) for path in made if path.is_dir()} == {0o700}
            assert {mode(path) for path in made if path.is_file()} == {0o600}
            assert len([path for path in made if path.is_file()]) == 4
    finally:
        os.umask(before)


CALLS: dict[str, Callable[[LocalStore, str], Any]] = {
    "append": lambda store, log: store.append(log, b"1", at=NEW),
    "append later": lambda store, log: store.append(log, b"1", at=Tail(1, "x")),
    "read": lambda store, log: store.read(log),
    "stream": lambda store, log: list(store.stream(log)),
    "tail": lambda store, log: store.tail(log),
    "copy from": lambda store, log: store.copy(log, "other"),
    "copy to": lambda store, log: store.copy("real", log),
    "delete": lambda store, log: store.delete(log),
    "cut": lambda store, log: store.cut(log, 0, at=Tail(1, "x")),
    "hold": lambda store, log: store.hold(log).__enter__(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["directory", "FIFO", "socket", "symbolic link", "dangling link"])
def test_what_is_no_plain_file_is_named_and_neither_followed_nor_waited_for(
    store: LocalStore, tmp_path: Path, call: str, kind: str
) -> None:
    store.append("real", b"real", at=NEW)
    place = tmp_path / "root" / "a.state"
    outside = tmp_path / "outside"
    outside.write_bytes(b"secret")
    if kind == "directory":
        place.mkdir()
    elif kind == "FIFO":
        os.mkfifo(place)
    elif kind == "socket":
        before = os.getcwd()
        os.chdir(place.parent)
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(place.name)
        finally:
            os.chdir(before)
    else:
        place.symlink_to(outside if kind == "symbolic link" else tmp_path / "nowhere")
    with pytest.raises(Unavailable, match="symbolic link" if "link" in kind else kind) as caught:
        CALLS[call](store, "a")
    assert not caught.value.retry
    assert caught.value.facts["log"] == "a"
    assert outside.read_bytes() == b"secret"
    assert not (tmp_path / "nowhere").exists()
    assert [info.name for info in store.list()] == ["real"]


@pytest.mark.parametrize("call", CALLS)
def test_no_symbolic_link_on_the_way_is_followed(store: LocalStore, tmp_path: Path, call: str) -> None:
    store.append("real", b"real", at=NEW)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.state").write_bytes(b"secret")
    (tmp_path / "root" / "a").symlink_to(outside)
    with pytest.raises(Unavailable, match="symbolic link"):
        CALLS[call](store, "a/b")
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"b.state": b"secret"}
    assert [info.name for info in store.list()] == ["real"]
    assert list(store.list("a/")) == []


def test_a_directory_swapped_for_a_link_is_not_followed_by_an_open_store(store: LocalStore, tmp_path: Path) -> None:
    tail = store.append("a/b", b"1", at=NEW)
    outside = tmp_path / "outside"
    (tmp_path / "root" / "a").rename(tmp_path / "moved")
    outside.mkdir()
    (outside / "b.state").write_bytes(b"1")
    (tmp_path / "root" / "a").symlink_to(outside)
    with pytest.raises(Unavailable, match="symbolic link"):
        store.append("a/b", b"2", at=tail)
    assert (outside / "b.state").read_bytes() == b"1"


def test_the_root_itself_may_be_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    LocalStore(tmp_path / "link", sync="never").append("a", b"1", at=NEW)
    assert (tmp_path / "real" / "a.state").read_bytes() == b"1"


def test_a_file_in_a_directorys_place_is_named(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "root" / "a").write_bytes(b"1")
    with pytest.raises(Unavailable, match="a file is in the place of a directory"):
        store.append("a/b", b"1", at=NEW)


@pytest.mark.parametrize(
    "name",
    ["..", "../a", "a/../b", "a\0", "a" * 201, "a//b", "/a", "a/", "", ".a", "a/.b", "é", "a!", "a b", "a/" * 400],
)
def test_a_hostile_name_never_reaches_the_file_system(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    store.append("real", b"real", at=NEW)
    reached: list[str] = []

    def spy(what: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: reached.append(what)

    for function in ("open", "stat", "lstat", "mkdir", "unlink", "rename", "link", "scandir", "write"):
        monkeypatch.setattr(os, function, spy(function))
    more: dict[str, Callable[[LocalStore, str], Any]] = {
        **CALLS,
        "flush": lambda store, log: store.flush(log),
        "holder": lambda store, log: store.holder(log),
        "boundary": lambda store, log: store.boundary(log, 0),
    }
    refused = {}
    for call, function in more.items():
        try:
            function(store, name)
        except InvalidName:
            refused[call] = True
    monkeypatch.undo()
    assert refused == dict.fromkeys(more, True)
    assert reached == []


def test_a_root_that_is_missing_is_refused_where_it_is_not_to_be_made(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="there is no such directory") as caught:
        LocalStore(tmp_path / "missing", create=False)
    assert not caught.value.retry
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("root", ["file", "file/below"])
def test_a_root_that_is_no_directory_is_refused(tmp_path: Path, root: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match="this is none"):
        LocalStore(tmp_path / root)


def test_a_root_that_goes_away_is_not_an_empty_store(store: LocalStore, tmp_path: Path) -> None:
    tail = store.append("a", b"1", at=NEW)
    (tmp_path / "root").rename(tmp_path / "moved")
    for call in (
        lambda: list(store.list()),
        lambda: store.read("a"),
        lambda: store.append("a", b"2", at=tail),
        lambda: store.append("b", b"2", at=NEW),
    ):
        with pytest.raises(Unavailable, match="gone"):
            call()
    (tmp_path / "root").mkdir()
    with pytest.raises(NotFound):
        store.append("a", b"2", at=tail)
    assert store.append("a", b"3", at=NEW).size == 1
    assert (tmp_path / "moved" / "a.state").read_bytes() == b"1"


def test_a_stop_beyond_the_end_allocates_nothing(store: LocalStore) -> None:
    store.append("a", b"123", at=NEW)
    assert store.read("a", 1, 2**62) == b"23"
    assert store.read("a", 2**62, 2**63) == b""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_log_that_this_user_may_not_read_or_write_is_refused_with_advice() -> None:
    with tempfile.TemporaryDirectory() as place:  # tmp_path lies in a directory that others may not enter
        os.chmod(place, 0o755)
        refuse_what_is_not_allowed(Path(place) / "root")


def refuse_what_is_not_allowed(root: Path) -> None:
    with LocalStore(root, sync="never") as store:
        store.append("a", b"1", at=NEW)
        store.append("b", b"1", at=NEW)
    (root / "a.state").chmod(0)
    (root / "b.state").chmod(0o444)
    root.chmod(0o755)
    program = """
import os, sys
from statestore.errors import Unavailable
from statestore.store import NEW
from statestore_local import LocalStore
store = LocalStore(sys.argv[1], create=False)
os.setgid(65534); os.setuid(65534)
def says(call):
    try:
        call()
    except Unavailable as error:
        assert not error.retry and isinstance(error.__cause__, PermissionError)
        assert "give this user access" in str(error), error
        return "refused"
    return "done"
print(says(lambda: store.read("a")), says(lambda: store.read("b")), [info.name for info in store.list()],
      says(lambda: store.append("b", b"2", at=store.tail("b"))), says(lambda: store.append("c", b"2", at=NEW)),
      says(lambda: store.hold("b").__enter__()), says(lambda: list(store.list(tails=True))))
"""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", program, str(root)], capture_output=True, text=True, timeout=60, env=environment
    )
    assert ran.stderr == ""
    assert ran.stdout == "refused done ['a', 'b'] refused refused refused refused\n"
    assert sorted(os.listdir(root)) == ["a.state", "b.state"]


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no writable /dev/shm here")
def test_a_store_says_that_it_has_runs_exactly_where_its_tails_show_them() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place, LocalStore(place) as store:
        assert (store.append("a", b"1", at=NEW).run != "") is store.capabilities.runs
