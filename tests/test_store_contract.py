"""What a store has for nothing: the calls that are made of the four abstract ones, and the refusals."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

from statestore import store as contract
from statestore.errors import Closed, InvalidName, NotFound, NotSupported
from statestore.store import NEW, Capabilities, Holder, LogInfo, Store, Tail, check_data, check_range, check_stop


class Tiny(Store):
    """The four abstract calls over a dict, and a note of what was asked of them."""

    capabilities = Capabilities()

    def __init__(self, **logs: bytes) -> None:
        self.logs = logs
        self.calls: list[tuple[object, ...]] = []

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        raise AssertionError("no default appends")

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        self._check(log)
        self.calls.append(("read", start, stop))
        return self.logs[log][start:stop]

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        raise AssertionError("no default copies")

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        self._check_open()
        self.calls.append(("list", prefix, tails))
        return (
            LogInfo(log, Tail(len(self.logs[log]), "r") if tails else None)
            for log in sorted(self.logs)
            if log.startswith(prefix) and log > after
        )


DEFAULTS = {
    "tail": lambda store, log: store.tail(log),
    "stream": lambda store, log: store.stream(log),
    "wait": lambda store, log: store.wait(log, NEW, 0),
    "boundary": lambda store, log: store.boundary(log, 0),
    "flush": lambda store, log: store.flush(log),
    "delete": lambda store, log: store.delete(log),
    "hold": lambda store, log: store.hold(log),
    "holder": lambda store, log: store.holder(log),
    "cut": lambda store, log: store.cut(log, 0, at=NEW),
}
each_default = pytest.mark.parametrize("call", DEFAULTS.values(), ids=DEFAULTS.keys())


def test_four_calls_are_abstract():
    assert Store.__abstractmethods__ == {"append", "read", "copy", "list"}


def test_a_tail_is_found_in_a_listing_of_one():
    store = Tiny(a=b"123", ab=b"1", a1=b"12")
    assert store.tail("a") == Tail(3, "r")
    assert store.calls == [("list", "a", True)]


@pytest.mark.parametrize("logs", [{}, {"ab": b"1"}, {"b": b"1"}])
def test_a_tail_of_a_log_that_is_not_there_is_not_found(logs):
    with pytest.raises(NotFound, match="log=a"):
        Tiny(**logs).tail("a")


def test_a_listing_that_gives_no_tails_is_not_believed():
    store = Tiny(a=b"1")
    store.list = lambda *_, **__: iter([LogInfo("a")])
    with pytest.raises(NotFound):
        store.tail("a")


@pytest.mark.parametrize(
    ("start", "stop"), [(0, None), (0, 3), (2, 5), (5, 5), (6, 3), (99, None), (0, 0), (0, 99), (9, 10), (10, None)]
)
def test_a_stream_is_the_slice_in_pieces(monkeypatch, start, stop):
    monkeypatch.setattr(contract, "_PIECE", 3)
    store = Tiny(a=b"0123456789")
    pieces = list(store.stream("a", start, stop))
    assert b"".join(pieces) == b"0123456789"[start:stop]
    assert all(1 <= len(piece) <= 3 for piece in pieces)
    assert all(last - first <= 3 for kind, first, last in store.calls if kind == "read")


def test_a_stream_ends_where_the_log_ended_when_it_began(monkeypatch):
    monkeypatch.setattr(contract, "_PIECE", 3)
    store = Tiny(a=b"012345")
    stream = store.stream("a")
    store.logs["a"] += b"6"  # before the first piece: belongs to it
    assert next(stream) == b"012"
    store.logs["a"] += b"789"
    assert b"".join(stream) == b"3456"


def test_a_stream_goes_on_behind_a_piece_that_is_shorter_than_asked(monkeypatch):
    store = Tiny(a=b"0123456789")
    whole = store.read
    store.read = lambda log, start=0, stop=None: whole(log, start, min(stop, start + 4))
    assert b"".join(store.stream("a", 1, 8)) == b"1234567"


def test_a_stream_of_a_log_that_lost_its_end_stops(monkeypatch):
    monkeypatch.setattr(contract, "_PIECE", 3)
    store = Tiny(a=b"012345")
    stream = store.stream("a")
    assert next(stream) == b"012"
    store.logs["a"] = b"012"  # bytes that were never acknowledged may go
    assert list(stream) == []


def test_a_stream_of_a_log_that_is_not_there_says_so_at_its_first_piece():
    with pytest.raises(NotFound):
        next(Tiny().stream("a"))


@pytest.mark.parametrize(("start", "stop"), [(-1, None), (0, -1), (-2, -1)])
def test_a_stream_refuses_offsets_below_zero_when_it_is_called(start, stop):
    store = Tiny(a=b"1")
    with pytest.raises(ValueError, match="below zero"):
        store.stream("a", start, stop)
    assert store.calls == []


def test_a_store_that_knows_no_boundaries_says_the_beginning():
    store = Tiny(a=b"123")
    assert [store.boundary("a", before) for before in (0, 2, 3, 99)] == [0, 0, 0, 0]
    with pytest.raises(NotFound):
        store.boundary("b", 0)
    with pytest.raises(ValueError, match="below zero"):
        store.boundary("a", -1)


def test_a_store_that_is_told_of_no_change_waits_all_the_time_and_asks_nothing(monkeypatch):
    waited = []
    monkeypatch.setattr(contract, "sleep", waited.append)
    store = Tiny(a=b"1")
    assert store.wait("a", NEW, 2.5) is False
    assert store.wait("nosuch", Tail(1, "r"), 0.5) is False
    assert waited == [2.5, 0.5]
    assert store.calls == []


def test_a_flush_of_a_durable_store_only_looks_that_the_log_is_there():
    store = Tiny(a=b"1")
    store.capabilities = Capabilities(durable=True)
    assert store.flush("a") is None
    assert store.calls == [("list", "a", True)]
    with pytest.raises(NotFound):
        store.flush("b")


@pytest.mark.parametrize(
    ("name", "capability"),
    [("flush", "flushes"), ("delete", "deletes"), ("hold", "holds"), ("holder", "holds"), ("cut", "cuts")],
)
def test_a_call_without_its_capability_is_refused_before_anything_happens(name, capability):
    store = Tiny(a=b"1")
    for log in ("a", "nosuch"):
        with pytest.raises(NotSupported) as caught:
            DEFAULTS[name](store, log)
        assert caught.value.facts == {"capability": capability, "store": "Tiny"}
    assert store.calls == []


@each_default
def test_a_bad_name_is_refused_first_even_by_a_closed_store(call):
    store = Tiny(a=b"1")
    store.close()
    with pytest.raises(InvalidName):
        call(store, "../a")
    with pytest.raises(TypeError):
        call(store, None)
    assert store.calls == []


@each_default
def test_a_closed_store_refuses_every_call(call):
    store = Tiny(a=b"1")
    store.close()
    store.close()
    with pytest.raises(Closed, match="store=Tiny"):
        call(store, "a")
    assert store.calls == []


def test_a_store_is_closed_at_the_end_of_its_context():
    with Tiny(a=b"1") as store:
        assert store.tail("a").size == 1
    with pytest.raises(Closed):
        store.tail("a")
    with pytest.raises(ZeroDivisionError), Tiny() as store:
        _ = 1 / 0
    with pytest.raises(Closed):
        store.tail("a")


def test_closing_one_store_leaves_others_open():
    one, two = Tiny(a=b"1"), Tiny(a=b"1")
    one.close()
    assert two.tail("a").size == 1


def test_there_is_nothing_to_maintain_by_default():
    assert Tiny().maintenance is None


def test_capabilities_are_off_by_default_and_frozen_and_documented():
    capabilities = Capabilities()
    assert {getattr(capabilities, name) for name in Capabilities.__slots__} == {False, None}
    with pytest.raises(AttributeError):
        capabilities.durable = True
    documented = re.findall(r"^    (\w+): ", inspect.getdoc(Capabilities), re.MULTILINE)
    assert documented == list(Capabilities.__slots__)


def test_a_tail_and_a_holder_say_what_they_are():
    assert Tail(0, "") == NEW
    assert [str(tail) for tail in (NEW, Tail(3, ""), Tail(3, "r"))] == ["0", "3", "3@r"]
    assert str(Holder(7, "host", "2026-09-28T12:00:00Z")) == "process 7 on host since 2026-09-28T12:00:00Z"


@pytest.mark.parametrize(
    ("data", "at", "kind"),
    [
        (b"", NEW, ValueError),
        (b"x", Tail(-1, ""), ValueError),
        (b"x", Tail(0, "r"), ValueError),
        ("x", NEW, TypeError),
        (bytearray(b"x"), NEW, TypeError),
        (memoryview(b"x"), NEW, TypeError),
        (None, NEW, TypeError),
        (b"x", 0, TypeError),
        (b"x", (0, ""), TypeError),
        (b"x", None, TypeError),
    ],
)
def test_what_no_store_appends_is_refused(data, at, kind):
    with pytest.raises(kind):
        check_data(data, at)


def test_what_a_store_appends_passes():
    for at in (NEW, Tail(1, ""), Tail(1, "r")):
        assert check_data(b"x", at) is None


@pytest.mark.parametrize(("start", "stop"), [(-1, None), (-1, 3), (0, -1)])
def test_offsets_below_zero_are_refused(start, stop):
    with pytest.raises(ValueError, match="below zero"):
        check_range(start, stop)


@pytest.mark.parametrize(("start", "stop"), [(0, None), (0, 0), (3, 1), (1 << 70, None)])
def test_all_other_offsets_are_slices(start, stop):
    assert check_range(start, stop) is None


@pytest.mark.parametrize("stop", [0, -1])
def test_a_copy_of_nothing_is_refused(stop):
    with pytest.raises(ValueError, match="at least one byte"):
        check_stop(stop)


@pytest.mark.parametrize("stop", [None, 1, 1 << 70])
def test_a_copy_of_something_passes(stop):
    assert check_stop(stop) is None
