"""What is particular to the memory store; the contract itself is the conformance kit's."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable

import pytest

from statestore.errors import Closed, Conflict, Exists, Held, InvalidName, NotFound, NotSupported
from statestore.store import NEW, Capabilities, LogInfo, Store, Tail
from statestore_memory import MemoryStore


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Return a name that no other test uses."""
    return request.node.nodeid


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def in_child(check: Callable[[], bool]) -> bool:
    """Run a check in a forked child; a child that hangs is killed."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(30)
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def test_stores_of_one_name_share_their_logs_and_outlive_each_other(name):
    one, two = MemoryStore(name), MemoryStore(name)
    tail = one.append("log", b"one", at=NEW)
    assert two.append("log", b"two", at=tail) == Tail(6, tail.run)
    one.close()
    assert two.read("log") == b"onetwo"
    two.close()
    assert MemoryStore(name).read("log") == b"onetwo"


def test_stores_without_a_name_and_of_other_names_share_nothing(name):
    MemoryStore(name).append("log", b"x", at=NEW)
    for other in (MemoryStore(), MemoryStore(""), MemoryStore(name + "2")):
        assert list(other.list()) == []


def test_it_says_what_it_can_do_and_what_not(store):
    assert store.capabilities == Capabilities(atomic_append=True, runs=True, holds=True, deletes=True, cheap_tails=True)
    tail = store.append("log", b"x", at=NEW)
    for call in (lambda: store.flush("log"), lambda: store.cut("log", 0, at=tail)):
        with pytest.raises(NotSupported):
            call()
    assert store.boundary("log", 1) == 0
    assert store.maintenance is None
    assert repr(store) == "MemoryStore('')"


def test_an_append_wins_its_place_once_and_may_be_repeated(store):
    first = store.append("log", b"aa", at=NEW)
    second = store.append("log", b"bb", at=first)
    assert store.append("log", b"aa", at=NEW) == first
    assert store.append("log", b"bb", at=first) == second
    third = store.append("log", b"cc", at=second)
    assert store.append("log", b"bb", at=first) == second
    assert store.append("log", b"aabb", at=NEW) == second
    assert store.read("log") == b"aabbcc"
    for data, at in [(b"x", NEW), (b"bx", first), (b"c", Tail(4, "")), (b"cc", Tail(4, "9")), (b"x", Tail(9, "1"))]:
        with pytest.raises(Conflict) as caught:
            store.append("log", data, at=at)
        assert (caught.value.found, caught.value.expected) == (third, at)
    # What runs over the end is more than is there.
    with pytest.raises(Conflict):
        store.append("log", b"ccd", at=second)
    assert store.read("log") == b"aabbcc"


def test_a_log_made_again_has_a_run_that_was_never_used(store):
    runs = set()
    for _ in range(3):
        tail = store.append("log", b"x", at=NEW)
        copied = store.copy("log", "copy")
        runs |= {tail.run, copied.run}
        store.delete("log", at=tail)
        store.delete("copy")
        with pytest.raises(NotFound):
            store.append("log", b"y", at=tail)
    assert len(runs) == 6
    new = store.append("log", b"x", at=NEW)
    with pytest.raises(Conflict):
        store.append("log", b"y", at=tail)
    with pytest.raises(Conflict):
        store.delete("log", at=tail)
    assert store.tail("log") == new


def test_what_is_read_and_copied_does_not_change_with_the_log(store):
    tail = store.append("log", b"abc", at=NEW)
    data = store.read("log")
    assert store.copy("log", "copy", stop=2) == store.tail("copy")
    store.append("log", b"def", at=tail)
    assert type(data) is bytes
    assert (data, store.read("copy"), store.read("log", 1, 4)) == (b"abc", b"ab", b"bcd")
    for target in ("log", "copy"):
        with pytest.raises(Exists):
            store.copy("log", target)
    with pytest.raises(NotFound):
        store.copy("nosuch", "nosuch")


def test_a_listing_is_sorted_and_lazy_and_bears_changes_meanwhile(store):
    for log in ("c", "a", "b/x", "b", "b~", "b-"):
        store.append(log, b"x", at=NEW)
    assert [row.name for row in store.list()] == ["a", "b", "b-", "b/x", "b~", "c"]
    assert [row.name for row in store.list("b")] == ["b", "b-", "b/x", "b~"]
    assert [row.name for row in store.list("b", after="b-")] == ["b/x", "b~"]
    assert [row.name for row in store.list("b", after="a")] == ["b", "b-", "b/x", "b~"]
    assert list(store.list("b", after="c")) == []
    rows = store.list(tails=True)
    assert next(rows) == LogInfo("a", store.tail("a"))
    store.append("aa", b"x", at=NEW)  # behind the row shown: shows
    store.append("0", b"x", at=NEW)  # before it: does not
    store.delete("a")  # the row shown
    store.delete("b")
    assert [row.name for row in rows] == ["aa", "b-", "b/x", "b~", "c"]
    with pytest.raises(InvalidName):
        store.list("../")


def test_listings_go_on_while_others_make_and_delete_logs(store):
    for number in range(0, 400, 2):
        store.append(f"{number:03}", b"x", at=NEW)
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            for number in range(1, 400, 2):
                store.append(f"{number:03}", b"x", at=NEW)
            for number in range(1, 400, 2):
                store.delete(f"{number:03}")

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(20):
            names = [row.name for row in store.list()]
            assert names == sorted(set(names))
            assert {f"{number:03}" for number in range(0, 400, 2)} <= set(names)
    finally:
        stop.set()
        thread.join()


def test_threads_that_append_at_one_place_have_one_winner_each_time(store):
    workers, rounds = 8, 50
    barrier = threading.Barrier(workers)
    won = []

    def work(number: int) -> None:
        barrier.wait()
        for turn in range(rounds):
            data, tail = b"%d:%03d\n" % (number, turn), None
            while True:
                try:
                    store.append("log", data, at=tail or NEW)
                except Conflict as error:
                    tail = error.found
                else:
                    won.append(data)
                    break

    threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == workers * rounds
    whole = store.read("log")
    assert sorted(whole[at : at + 6] for at in range(0, len(whole), 6)) == sorted(won)


def test_a_hold_keeps_everybody_else_out_and_names_its_holder(name):
    mine, other = MemoryStore(name), MemoryStore(name)
    tail = mine.append("log", b"x", at=NEW)
    waiting = mine.hold("log")
    assert mine.holder("log") is None  # not before it is entered
    with waiting:
        tail = mine.append("log", b"y", at=tail)
        other_calls = [
            lambda: other.append("log", b"z", at=tail),
            lambda: other.append("log", b"x", at=NEW),
            lambda: other.delete("log"),
            lambda: other.hold("log").__enter__(),
            lambda: mine.hold("log").__enter__(),
        ]
        for call in other_calls:
            with pytest.raises(Held) as caught:
                call()
            assert caught.value.holder == other.holder("log")
            assert caught.value.holder.pid == os.getpid()
            assert str(caught.value.holder).endswith("Z")
        assert other.read("log") == b"xy"
    assert other.holder("log") is None
    other.append("log", b"z", at=tail)


def test_a_hold_on_a_log_that_is_not_there_keeps_others_from_making_it(name):
    mine, other = MemoryStore(name), MemoryStore(name)
    other.append("source", b"x", at=NEW)
    with mine.hold("log"):
        for call in (lambda: other.append("log", b"x", at=NEW), lambda: other.copy("source", "log")):
            with pytest.raises(Held):
                call()
        mine.copy("source", "log")
    assert other.read("log") == b"x"


def test_a_hold_ends_with_an_error_with_its_store_and_when_it_is_forgotten(name):
    mine, other = MemoryStore(name), MemoryStore(name)
    with pytest.raises(ZeroDivisionError), mine.hold("log"):
        _ = 1 / 0
    assert other.holder("log") is None
    with mine.hold("log"):
        mine.close()
        with other.hold("log"):
            pass
    forgotten = MemoryStore(name).hold("log")
    forgotten.__enter__()
    assert other.holder("log") is not None
    del forgotten
    gc.collect()
    assert other.holder("log") is None


def test_the_end_of_a_hold_of_a_closed_store_leaves_the_next_holder_alone(name):
    mine, other = MemoryStore(name), MemoryStore(name)
    first = mine.hold("log")
    first.__enter__()
    mine.close()
    with other.hold("log"):
        first.__exit__(None, None, None)
        assert other.holder("log") is not None


def test_the_end_of_a_hold_may_come_in_the_midst_of_a_call_of_the_same_thread(name):
    # The garbage collector ends abandoned holds whenever it likes, also while the lock is taken.
    from statestore_memory import _store

    def child() -> bool:
        hold = MemoryStore(name).hold("log")
        hold.__enter__()
        with _store._lock:
            hold.__exit__(None, None, None)
        return MemoryStore(name).holder("log") is None

    assert in_child(child)


CALLS: dict[str, Callable[[Store], object]] = {
    "append": lambda store: store.append("log", b"x", at=NEW),
    "read": lambda store: store.read("log"),
    "copy": lambda store: store.copy("log", "copy"),
    "list": lambda store: store.list(),
    "tail": lambda store: store.tail("log"),
    "stream": lambda store: store.stream("log"),
    "boundary": lambda store: store.boundary("log", 0),
    "delete": lambda store: store.delete("log"),
    "hold": lambda store: store.hold("log"),
    "holder": lambda store: store.holder("log"),
    "flush": lambda store: store.flush("log"),
    "cut": lambda store: store.cut("log", 0, at=NEW),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_closed_store_refuses_every_call(store, call):
    store.append("log", b"x", at=NEW)
    store.close()
    store.close()
    with pytest.raises(Closed):
        call(store)


def test_what_was_begun_before_a_close_ends_with_it(store):
    for log in ("a", "b"):
        store.append(log, b"x", at=NEW)
    rows, hold, pieces = store.list(), store.hold("a"), store.stream("a")
    next(rows)
    store.close()
    for call in (lambda: next(rows), hold.__enter__, lambda: next(pieces)):
        with pytest.raises(Closed):
            call()


def test_a_child_has_its_own_copy(name):
    store = MemoryStore(name)
    tail = store.append("log", b"x", at=NEW)

    def child() -> bool:
        store.append("log", b"child", at=tail)
        store.append("other", b"child", at=NEW)
        return MemoryStore(name).read("log") == b"xchild"

    assert in_child(child)
    assert store.read("log") == b"x"
    assert [row.name for row in store.list()] == ["log"]


def test_nothing_is_held_in_a_child(name):
    store = MemoryStore(name)
    hold = store.hold("log")
    with hold:

        def child() -> bool:
            other = MemoryStore(name)
            free = other.holder("log") is None
            with other.hold("log"):
                hold.__exit__(None, None, None)  # the parent's: nothing to end here
                return free and other.holder("log").pid == os.getpid()

        assert in_child(child)
        assert store.holder("log").pid == os.getpid()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_while_a_thread_works_is_never_locked_out(store):
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            store.append("log", b"x", at=NEW)
            store.delete("log")

    def whole() -> bool:
        names = [row.name for row in store.list(tails=True)]
        return names == sorted(names) and store.append("child", b"x", at=NEW).size == 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert all(in_child(whole) for _ in range(20))
    finally:
        stop.set()
        thread.join()
