"""Ids and scopes: what is no id never reaches the storage, and two scopes never meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from statestore.errors import InvalidName, NotFound
from statestore.records import RecordLog, draft
from statestore.sessions import Conf, Sessions
from statestore.store import Store

GOOD = "0a1b2c3d"
HOSTILE = [
    "",
    " ",
    " 0a1b2c3d",
    "0a1b2c3d ",
    "0a1b2c3d\n",
    "0a1b2c3",
    "0a1b2c3d4",
    "0A1B2C3G",
    ".",
    "..",
    "../0a1b2",
    "../../..",
    "/etc/pas",
    "a/b/c/d/",
    "0a1b/c3d",
    "0a1b\\c3d",
    "0a1b.c3d",
    "0a1b2c3d.state",
    "0a1b2c3\x00",
    "\x00" * 8,
    "0a1b2c3%",
    "%30a1b2c",
    "０a1b2c3d",
    "１２３４５６７８",
    "٠١٢٣٤٥٦٧",
    "0a1b2c3²",
    "ｄeadbeef",
    "日本語でのお名前",
    "\ud800" * 8,
    "+1234567",
    "-1234567",
    "0x1b2c3d",
    "0a_1b2c3",
    "a" * 300,
    "0a1b2c3d" * 38,
    "~" * 8,
    "*" * 8,
]

# Every public method and how an id reaches it. Each must refuse; one that is missing here fails a test.
DOORS: dict[str, list[Callable[[Sessions, str], Any]]] = {
    "start": [lambda sessions, id_: sessions.start(id=id_), lambda sessions, id_: sessions.start(Conf(), id=id_)],
    "open": [lambda sessions, id_: sessions.open(id_)],
    "load": [lambda sessions, id_: sessions.load(id_), lambda sessions, id_: sessions.load(id_, before=2)],
    "list": [lambda sessions, id_: sessions.list(after=id_ or "\x00")],  # "" begins at the beginning
    "fork": [
        lambda sessions, id_: sessions.fork(id_),
        lambda sessions, id_: sessions.fork(id_, before=2),
        lambda sessions, id_: sessions.fork(GOOD, to=id_),
    ],
    "path": [lambda sessions, id_: sessions.path(id_)],
    "status": [lambda sessions, id_: sessions.status(id_)],
}


class Untouchable:
    """A store that must not be touched."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"the storage was touched: {name}")


def test_every_public_method_is_a_door_that_is_tested() -> None:
    assert set(DOORS) == {name for name in vars(Sessions) if not name.startswith("_")}


@pytest.mark.parametrize("method", DOORS)
def test_what_is_no_id_is_refused_before_the_storage_is_touched(method: str) -> None:
    sessions = Sessions(cast(Store, Untouchable()), "teams/a")
    for id_ in HOSTILE:
        for door in DOORS[method]:
            with pytest.raises(InvalidName) as caught:
                door(sessions, id_)
            assert str(caught.value).isascii()
            assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("id_", [None, 12345678, b"0a1b2c3d"])
def test_what_is_no_text_is_no_id(id_: Any) -> None:
    with pytest.raises(TypeError):
        Sessions(cast(Store, Untouchable())).load(id_)


def test_ids_are_taken_as_they_are_and_never_folded(store: Store) -> None:
    sessions = Sessions(store)
    for id_, word in (("abcdef12", b"lower"), ("ABCDEF12", b"upper"), ("AbCdEf12", b"both")):
        with sessions.start(id=id_) as session:
            session.append("message", word)
    assert list(sessions.list()) == ["ABCDEF12", "AbCdEf12", "abcdef12"]
    assert [sessions.load(id_).records[-1].body for id_ in sessions.list()] == [b"upper", b"both", b"lower"]


@pytest.mark.parametrize("prefix", ["/a", "a/", "a//b", "..", "a/../b", ".a", "a b", "a\x00", "é", "a" * 201])
def test_a_prefix_that_is_no_name_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidName):
        Sessions(cast(Store, Untouchable()), prefix)


@pytest.mark.parametrize("prefix", [None, 5, b"a"])
def test_what_is_no_text_is_no_prefix(prefix: Any) -> None:
    with pytest.raises(TypeError):
        Sessions(cast(Store, Untouchable()), prefix)


def test_a_prefix_that_leaves_no_room_for_an_id_is_refused() -> None:
    room = "/".join(["a" * 172] * 4)  # 691 characters, and an id with its slash takes 9
    assert Sessions(cast(Store, Untouchable()), room).prefix == room
    with pytest.raises(InvalidName):
        Sessions(cast(Store, Untouchable()), room + "a")


@pytest.mark.parametrize(
    ("one", "other"), [("a", "b"), ("a", "ab"), ("a", "a/b"), ("", "a"), ("a", GOOD), (GOOD, ""), ("A", "a")]
)
def test_two_scopes_with_the_same_ids_never_meet(store: Store, one: str, other: str) -> None:
    mine, theirs = Sessions(store, one), Sessions(store, other)
    with theirs.start(id=GOOD) as session:
        session.append("message", b"theirs")
    theirs.start(id="99999999").close()

    assert list(mine.list()) == []
    for ask in (mine.load, mine.open, mine.status, mine.fork):
        with pytest.raises(NotFound):
            ask(GOOD)

    with mine.start(id=GOOD) as session:
        session.append("message", b"mine")
        assert theirs.status(GOOD) == "open"
    assert mine.fork(GOOD, to="77777777") == "77777777"
    assert list(mine.list()) == [GOOD, "77777777"]
    assert list(theirs.list()) == [GOOD, "99999999"]
    assert [record.body for record in mine.load(GOOD)] == [b"", b"mine"]
    assert [record.body for record in theirs.load(GOOD)] == [b"", b"theirs"]


def test_a_listing_shows_sessions_only_and_goes_on_behind_the_last_id(store: Store) -> None:
    sessions = Sessions(store, "a")
    for name in (
        "a/00000001",
        "a/00000002",
        "a/0000000g",
        "a/00000003.ops",
        "a/00000003/x",
        "a/0000000",
        "ab/00000009",
        "ax00000008",
    ):
        RecordLog(store, name).append_many([draft("start")], expect=1)
    assert list(sessions.list()) == ["00000001", "00000002"]
    assert list(sessions.list(after="00000001")) == ["00000002"]
    assert list(sessions.list(after="00000002")) == []
    assert list(sessions.list(after="00000000")) == ["00000001", "00000002"]
