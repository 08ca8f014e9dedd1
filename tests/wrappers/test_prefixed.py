"""A part of a store is a store: names are those below the prefix, in calls, answers and errors alike."""

from __future__ import annotations

import inspect
from unittest.mock import create_autospec

import pytest

from statestore import open_store
from statestore.errors import Closed, Conflict, Corrupt, Exists, Held, InvalidName, NotFound, PluginError, Unavailable
from statestore.names import MAX_NAME
from statestore.store import NEW, Garbage, Maintenance, Problem, Store, Tail
from statestore.wrappers import Faulty, Prefixed
from statestore_memory import MemoryStore
from tests.wrappers.test_wrapper import CALLS

ROOM = MAX_NAME - len("tenants/acme/")


def stand_in():
    return create_autospec(Store, instance=True, capabilities=MemoryStore.capabilities)


@pytest.fixture
def inner():
    return MemoryStore()


@pytest.fixture
def store(inner):
    return Prefixed(inner, "tenants/acme")


def test_a_log_lies_below_the_prefix_in_the_inner_store(store, inner):
    store.append("a/b", b"data", at=NEW)
    assert inner.read("tenants/acme/a/b") == store.read("a/b") == b"data"
    assert store.location("a/b") == inner.location("tenants/acme/a/b")
    assert repr(store) == "Prefixed(MemoryStore(''), 'tenants/acme')"


def test_logs_outside_of_the_prefix_do_not_show_and_are_not_reached(store, inner):
    for log in (
        "a",
        "tenants/acme",
        "tenants/acme.x",
        "tenants/acme0",
        "tenants/acme/b",
        "tenants/b",
        "tenants/acme/c",
    ):
        inner.append(log, log.encode(), at=NEW)
    assert [row.name for row in store.list()] == ["b", "c"]
    assert [row.name for row in store.list(after="b")] == ["c"]
    assert [row.name for row in store.list("tenants")] == []
    for log in ("a", "acme", "tenants/acme/b"):
        with pytest.raises(NotFound) as caught:
            store.read(log)
        assert caught.value.facts == {"log": log}


def test_a_listing_shows_tails_and_goes_on_behind_a_name(store, inner):
    tails = {log: store.append(log, log.encode(), at=NEW) for log in ("b", "a/b", "a", "a-")}
    assert [(row.name, row.tail) for row in store.list(tails=True)] == sorted(tails.items())
    assert [row.name for row in store.list("a", after="a-")] == ["a/b"]


def test_an_error_names_the_log_as_it_is_named_here():
    store = Prefixed(MemoryStore("test-prefixed-errors"), "tenants/acme")
    tail = store.append("log", b"one", at=NEW)
    held = MemoryStore("test-prefixed-errors").hold("tenants/acme/held")
    held.__enter__()
    for kind, call in (
        (Conflict, lambda: store.append("log", b"two", at=Tail(2, tail.run))),
        (NotFound, lambda: store.append("none", b"two", at=tail)),
        (NotFound, lambda: store.snapshot("none")),
        (Exists, lambda: store.copy("log", "log")),
        (Exists, lambda: store.snapshot("log").copy("log")),
        (Held, lambda: store.append("held", b"x", at=NEW)),
        (Held, lambda: store.hold("held").__enter__()),
        (NotFound, lambda: list(store.stream("none"))),
    ):
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.facts["log"] in ("log", "none", "held")
        assert "tenants" not in str(caught.value)
    held.__exit__(None, None, None)


def test_so_does_an_error_of_a_damaged_log_and_its_cause(store, inner):
    cause = Corrupt("damaged", log="tenants/acme/log", record=3, offset=9)
    for call in ("read", "boundary", "snapshot", "stream"):
        error = Corrupt("damaged", log="tenants/acme/log", record=3, offset=9)
        error.__cause__ = cause
        broken = stand_in()
        getattr(broken, call).side_effect = error
        with pytest.raises(Corrupt) as caught:
            getattr(Prefixed(broken, "tenants/acme"), call)("log", *([0] if call == "boundary" else []))
        assert caught.value.facts == {"log": "log", "record": 3, "offset": 9}
    assert cause.facts["log"] == "log"


def test_so_does_one_that_comes_in_the_midst_of_a_listing_or_a_stream(store, inner):
    store.append("log", b"data", at=NEW)
    faulty = Prefixed(Faulty(inner, plan={1: "error", 2: "error", 4: "error", 5: "error"}), "tenants/acme")
    for ask in (lambda: list(faulty.stream("log")), lambda: faulty.read("log")):
        with pytest.raises(Unavailable) as caught:
            ask()
        assert caught.value.facts["log"] == "log"
    snapshot = faulty.snapshot("log")
    for ask in (snapshot.read, lambda: list(snapshot.stream())):
        with pytest.raises(Unavailable) as caught:
            ask()
        assert caught.value.facts["log"] == "log"


def test_an_error_of_the_body_of_a_hold_is_left_alone(store):
    error = Corrupt("of something else", log="tenants/acme/other")
    with pytest.raises(Corrupt), store.hold("log"):
        raise error
    assert error.facts["log"] == "tenants/acme/other"


def longest(room):
    return "/".join("x" * 99 for _ in range(room // 100)) + "/" + "x" * (room % 100)


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"list", "close"}))
def test_a_name_that_is_too_long_or_bad_below_the_prefix_is_refused_before_the_storage_is_asked(name):
    inner = stand_in()
    store = Prefixed(inner, "tenants/acme")
    positional, named = CALLS[name]
    assert len(longest(ROOM)) == ROOM
    for bad in (longest(ROOM) + "x", "../up", "tenants/acme/../up"):
        with pytest.raises(InvalidName) as caught:
            getattr(store, name)(bad, *positional[1:], **named)
        assert caught.value.facts["name"][:70] == bad[:70]
    if name == "copy":
        with pytest.raises(InvalidName):
            store.copy("a", longest(ROOM) + "x")
    assert inner.mock_calls == []
    getattr(store, name)(longest(ROOM), *positional[1:], **named)


def test_a_prefix_of_a_listing_that_is_too_long_or_bad_is_refused_when_it_is_called(inner):
    for bad in (longest(ROOM) + "x", "a//b"):
        with pytest.raises(InvalidName):
            Prefixed(inner, "tenants/acme").list(bad)
    assert list(Prefixed(inner, "tenants/acme").list(longest(ROOM))) == []


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"list", "close"}))
def test_every_call_reaches_the_inner_store_with_the_name_below_the_prefix(name):
    inner = stand_in()
    positional, named = CALLS[name]
    getattr(Prefixed(inner, "p"), name)(*positional, **named)
    (asked,) = [call for call in inner.mock_calls if not call[0].startswith(f"{name}().")]
    bound = inspect.signature(getattr(Store, name)).bind(None, *asked.args, **asked.kwargs).arguments
    meant = inspect.signature(getattr(Store, name)).bind(None, *positional, **named).arguments
    below = {fact: f"p/{meant[fact]}" for fact in ("log", "source", "target") if fact in meant}
    assert {**meant, **below} == bound


def test_maintenance_is_that_of_the_logs_below_the_prefix():
    inner = stand_in()
    inner.maintenance = create_autospec(Maintenance, instance=True)
    inner.maintenance.check.return_value = iter([Problem("p/log", "o/1", "bad"), Problem("", "o/2", "bad")])
    inner.maintenance.collect.return_value = iter([Garbage("o/3", 1, "old")])
    inner.maintenance.compact.side_effect = NotFound("no such log", log="p/log")
    upkeep = Prefixed(inner, "p").maintenance
    assert list(upkeep.check("lo")) == [Problem("log", "o/1", "bad"), Problem("", "o/2", "bad")]
    inner.maintenance.check.assert_called_once_with("p/lo")
    assert list(upkeep.collect(dry_run=False)) == [Garbage("o/3", 1, "old")]
    inner.maintenance.collect.assert_called_once_with("p/", dry_run=False)
    with pytest.raises(NotFound) as caught:
        upkeep.compact("log")
    assert caught.value.facts == {"log": "log"}
    with pytest.raises(InvalidName):
        upkeep.compact("../up")
    assert upkeep.examine() is inner.maintenance.examine.return_value
    upkeep.probe()
    inner.maintenance.probe.assert_called_once_with()
    assert Prefixed(MemoryStore(), "p").maintenance is None


def test_prefixes_of_prefixes_are_joined(store, inner):
    nested = Prefixed(store, "deep")
    nested.append("log", b"data", at=NEW)
    assert [row.name for row in inner.list()] == ["tenants/acme/deep/log"]
    with pytest.raises(Conflict) as caught:
        nested.append("log", b"x", at=NEW)
    assert caught.value.facts["log"] == "log"


def test_a_log_may_be_named_as_the_prefix(inner):
    store = Prefixed(inner, "a")
    store.append("a/log", b"x", at=NEW)
    with pytest.raises(Conflict) as caught:
        store.append("a/log", b"y", at=NEW)
    assert caught.value.facts["log"] == "a/log"
    assert [row.name for row in store.list()] == ["a/log"]


@pytest.mark.parametrize("prefix", ["", "a/", "/a", "..", "a b", longest(ROOM) + "x" * 13])
def test_what_no_name_begins_with_is_no_prefix(prefix):
    with pytest.raises(InvalidName):
        Prefixed(MemoryStore(), prefix)
    with pytest.raises(PluginError) as caught:
        open_store("prefixed::memory://", prefixed_prefix=prefix)
    assert caught.value.facts["option"] == "prefixed_prefix"


def test_it_is_opened_by_url_and_closes_the_inner_store():
    store = open_store("prefixed::memory://test-prefixed?prefixed_prefix=tenants/acme")
    store.append("log", b"data", at=NEW)
    assert open_store("memory://test-prefixed").read("tenants/acme/log") == b"data"
    store.close()
    with pytest.raises(Closed):
        store.inner.read("log")
    with pytest.raises(PluginError, match="prefixed_prefix"):
        open_store("prefixed::memory://")
