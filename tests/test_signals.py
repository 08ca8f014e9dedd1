"""What a signal handler leaves behind wherever in a call it comes: its exception, as of Ctrl-C, or its own calls.

A hang fails here: an alarm raises where one of these tests takes too long.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import count
from pathlib import Path

import pytest

from statestore import Sessions
from statestore.errors import Closed, Conflict, Held, NotFound, Unavailable
from statestore.store import NEW
from statestore_local import LocalStore
from statestore_memory import MemoryStore
from tests.opened import opened


class Interrupted(BaseException):
    """What the signal handler raises."""


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    def bark(*_: object) -> None:
        raise TimeoutError("this test hangs")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(120)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def handling(act: Callable[[], object]) -> Iterator[None]:
    """Have the signal SIGUSR1 handled by this call."""
    before = signal.signal(signal.SIGUSR1, lambda *_: act() and None)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


@contextmanager
def collecting_on_demand() -> Iterator[None]:
    """Have no garbage collected but by ``gc.collect()``, which looks only at what was made since."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
        gc.collect()


def kill_myself() -> None:
    os.kill(os.getpid(), signal.SIGUSR1)


def raise_interrupted() -> None:
    raise Interrupted


def interrupted_everywhere(
    call: Callable[[], object], interruption: Callable[[], object] = raise_interrupted
) -> Iterator[int]:
    """Make the call again and again, interrupted a moment later each time, and yield until it is over before that.

    CPython runs signal handlers where a Python function begins and where a call of a C function returns. A profiler
    is called at the same places, and what it raises comes out of there as well.
    """
    moments = 0
    fired = True
    while fired:
        moments += 1
        left, fired = moments, False

        def interrupt(frame: object, event: str, argument: object) -> None:
            nonlocal left, fired
            if event in ("call", "c_return"):
                left -= 1
                if left == 0:
                    fired = True
                    sys.setprofile(None)
                    interruption()

        before = sys.getprofile()
        try:
            sys.setprofile(interrupt)
            call()
        except Interrupted:
            pass
        finally:
            sys.setprofile(before)
        yield moments


def append_somewhere(store: LocalStore) -> None:
    """Append at the log's end, or make the log."""
    try:
        at = store.tail("a")
    except NotFound:
        at = NEW
    store.append("a", b"12", at=at)


def copy(store: LocalStore) -> None:
    with suppress(NotFound):
        store.delete("b")
    store.copy("a", "b")


def delete(store: LocalStore) -> None:
    append_somewhere(store)
    store.delete("a")


def hold(store: LocalStore) -> None:
    with store.hold("a"):
        append_somewhere(store)


def close(store: LocalStore) -> None:
    closing = threading.Thread(target=store.close, daemon=True)
    closing.start()
    closing.join(timeout=30)
    assert not closing.is_alive()


@pytest.mark.parametrize("held", [False, True], ids=["free", "held"])
@pytest.mark.parametrize("call", [append_somewhere, copy, delete])
def test_an_interrupted_call_leaves_its_store_as_usable_as_before(
    tmp_path: Path, call: Callable[[LocalStore], None], held: bool
) -> None:
    store = LocalStore(tmp_path, sync="never", lock_timeout=1)
    append_somewhere(store)
    with store.hold("a") if held else nullcontext():
        for _ in interrupted_everywhere(lambda: call(store)):
            append_somewhere(store)
    close(store)


@pytest.mark.parametrize("call", [copy, delete])
def test_what_is_appended_after_an_interrupted_call_on_a_held_log_is_there(
    tmp_path: Path, call: Callable[[LocalStore], None]
) -> None:
    store = LocalStore(tmp_path, sync="never", lock_timeout=1)
    store._handles.trust = 3600.0  # as if all this took no time
    append_somewhere(store)
    with store.hold("a"):
        for _ in interrupted_everywhere(lambda: call(store)):
            before = store.read("a") if list(store.list(tails=True)) else b""
            append_somewhere(store)
            assert store.read("a") == before + b"12"
    close(store)


def test_a_hold_interrupted_on_its_way_to_another_file_goes_there_the_next_time(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, sync="always", lock_timeout=1)
    append_somewhere(store)
    another = tmp_path / "another"
    another.write_bytes(b"34")

    def replace_and_append() -> None:
        os.replace(another, tmp_path / "a.state")
        append_somewhere(store)

    with store.hold("a"):
        for _ in interrupted_everywhere(replace_and_append):
            append_somewhere(store)
            assert store.read("a").endswith(b"12")
            assert store.holder("a")
            another.write_bytes(b"34")
    close(store)
    assert LocalStore(tmp_path).holder("a") is None


def test_an_interrupted_hold_keeps_nobody_from_the_log_once_its_store_is_closed(tmp_path: Path) -> None:
    stores = [LocalStore(tmp_path, sync="never", lock_timeout=1)]
    other = LocalStore(tmp_path, sync="never", lock_timeout=1)
    for _ in interrupted_everywhere(lambda: hold(stores[0])):
        append_somewhere(stores[0])
        close(stores[0])
        assert other.holder("a") is None
        append_somewhere(other)
        with other.hold("a"):
            append_somewhere(other)
        stores[0] = LocalStore(tmp_path, sync="never", lock_timeout=1)


def test_an_interrupted_hold_in_memory_is_over() -> None:
    store = MemoryStore()

    def hold_alone() -> None:
        with store.hold("a"):
            pass

    for _ in interrupted_everywhere(hold_alone):
        assert store.holder("a") is None


@pytest.mark.parametrize("held", [False, True], ids=["free", "held"])
@pytest.mark.parametrize("call", [append_somewhere, delete])
def test_a_handler_that_appends_to_the_log_in_use_is_answered_at_once(
    tmp_path: Path, call: Callable[[LocalStore], None], held: bool
) -> None:
    store = LocalStore(tmp_path, sync="never", lock_timeout=86400)  # who waits for itself, waits too long
    append_somewhere(store)
    answers = []

    def append() -> None:
        try:
            append_somewhere(store)
            answers.append("done")
        except Unavailable as error:
            answers.append(f"{error.retry} {error.effect_unknown} {error.message[:23]}")

    def call_and_be_overtaken() -> None:
        with suppress(Conflict):
            call(store)

    with store.hold("a") if held else nullcontext(), handling(append):
        for _ in interrupted_everywhere(call_and_be_overtaken, kill_myself):
            append_somewhere(store)
    assert set(answers) == {"done", "True False this very thread is in "}
    close(store)


def test_a_timer_that_appends_to_the_log_in_use_loses_and_doubles_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, sync="never", lock_timeout=86400)
    append_somewhere(store)
    numbers = count()
    appended = []

    def append() -> None:
        data = b"%08d" % next(numbers)
        with suppress(Conflict, Unavailable):
            store.append("a", data, at=store.tail("a"))
            appended.append(data)

    with store.hold("a"), handling(append):
        for _ in range(300):
            timer = threading.Timer(random.uniform(0, 0.0005), kill_myself)
            timer.start()
            while timer.is_alive():
                append()
            timer.join()
    there = store.read("a", start=2)
    assert sorted(there[at : at + 8] for at in range(0, len(there), 8)) == sorted(appended)


@pytest.mark.parametrize("raises", [False, True], ids=["returns", "raises"])
@pytest.mark.parametrize("held", [False, True], ids=["free", "held"])
@pytest.mark.parametrize("call", [append_somewhere, copy, delete])
def test_a_store_that_a_handler_closes_lets_go_of_everything_once_the_call_in_hand_is_over(
    tmp_path: Path, call: Callable[[LocalStore], None], held: bool, raises: bool
) -> None:
    def new() -> LocalStore:
        store = LocalStore(tmp_path, sync="never", lock_timeout=86400)
        append_somewhere(store)
        holds[0] = store.hold("a") if held else nullcontext()
        holds[0].__enter__()
        return store

    def end() -> None:
        holds[0].__exit__(None, None, None)
        stores[0].close()
        with pytest.raises(Closed):
            append_somewhere(stores[0])
        if raises:
            raise Interrupted

    def call_and_be_closed() -> None:
        with suppress(Closed):
            call(stores[0])

    other = LocalStore(tmp_path, sync="never", lock_timeout=1)
    append_somewhere(other)
    before = len(opened(tmp_path))
    holds = [nullcontext()]
    stores = [new()]
    with handling(end):
        for _ in interrupted_everywhere(call_and_be_closed, kill_myself):
            with suppress(Interrupted):  # the last time, the call was over before that
                end()
            append_somewhere(other)
            assert other.holder("a") is None
            assert not (tmp_path / ".a.hold").exists()
            if not raises:  # an exception may lose a descriptor that was opened that very moment
                assert len(opened(tmp_path)) == before
            stores[0] = new()
    stores[0].close()


def test_a_session_closed_by_a_handler_is_everybodys_once_its_append_is_over(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, sync="never", lock_timeout=86400)
    other = Sessions(LocalStore(tmp_path, sync="never", lock_timeout=1))
    sessions = [Sessions(store).start()]

    def append_and_be_closed() -> None:
        with suppress(Closed):
            sessions[0].append("message", b"1")

    with handling(lambda: sessions[0].close()):
        for _ in interrupted_everywhere(append_and_be_closed, kill_myself):
            sessions[0].close()
            with other.open(sessions[0].id) as session:
                session.append("message", b"2")
            sessions[0] = Sessions(store).start()


def test_an_abandoned_hold_that_is_collected_amid_a_call_ends_when_that_is_over(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, sync="never", lock_timeout=86400)
    other = LocalStore(tmp_path, sync="never", lock_timeout=1)
    append_somewhere(store)

    def abandon() -> None:
        hold = store.hold("a")
        hold.__enter__()
        ring: list[object] = [hold]
        ring.append(ring)

    with collecting_on_demand():
        abandon()
        for _ in interrupted_everywhere(lambda: append_somewhere(store), gc.collect):
            gc.collect()  # the last time, the call is over before it is interrupted
            append_somewhere(other)
            abandon()


def test_a_store_collected_amid_a_call_of_another_one_lets_go(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, sync="never", lock_timeout=1)
    append_somewhere(store)

    def abandon() -> None:
        forgotten = LocalStore(tmp_path, sync="never", lock_timeout=86400)
        hold = forgotten.hold("b")
        hold.__enter__()
        ring: list[object] = [hold, forgotten]
        ring.append(ring)

    with collecting_on_demand():
        abandon()
        for _ in interrupted_everywhere(lambda: append_somewhere(store), gc.collect):
            gc.collect()
            with store.hold("b"):
                pass
            abandon()


@pytest.mark.parametrize("held", [False, True], ids=["free", "held"])
def test_a_child_that_a_handler_forks_amid_a_call_may_use_the_store_and_return(tmp_path: Path, held: bool) -> None:
    store = LocalStore(tmp_path, sync="never", lock_timeout=1)
    append_somewhere(store)
    children: list[int] = []

    def fork() -> None:
        children.append(os.fork())
        if children[-1] == 0:
            try:
                store.append(f"child{os.getpid()}", b"1", at=NEW)
            except BaseException:
                os._exit(2)

    def call() -> None:
        try:
            append_somewhere(store)
        except BaseException as error:
            if children[-1] == 0:  # the call may fail here: its files were the parent's
                os._exit(0 if isinstance(error, (OSError, Unavailable, Held, Conflict)) else 1)
            raise
        finally:
            if children[-1] == 0:
                os._exit(0)

    def call_alone() -> None:
        try:
            call()
        finally:
            if children[-1] == 0:  # it was forked where `call` was over
                os._exit(0)

    with store.hold("a") if held else nullcontext(), handling(fork):
        for _ in interrupted_everywhere(call_alone, kill_myself):
            append_somewhere(store)
    assert len(children) > 10
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
        assert store.read(f"child{child}") == b"1"


class Halfway:
    """A thread that stops in the middle of an append, until it is let go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store: LocalStore) -> None:
        self.there, self.go_on = threading.Event(), threading.Event()
        write = os.write

        def stop(fd: int, data: bytes) -> int:
            if threading.current_thread() is self.thread:
                self.there.set()
                assert self.go_on.wait(60)
            return write(fd, data)

        self.thread = threading.Thread(target=append_somewhere, args=(store,))
        monkeypatch.setattr(os, "write", stop)
        self.thread.start()
        assert self.there.wait(60)

    def finish(self) -> None:
        self.go_on.set()
        self.thread.join(60)
        assert not self.thread.is_alive()


@pytest.mark.parametrize("held", [False, True], ids=["free", "held"])
def test_an_append_waits_for_another_threads_no_longer_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    store = LocalStore(tmp_path, sync="never", lock_timeout=0.02)
    append_somewhere(store)
    with store.hold("a") if held else nullcontext():
        other = Halfway(monkeypatch, store)
        try:
            with pytest.raises(Unavailable, match="lock_timeout") as caught:
                append_somewhere(store)
            assert caught.value.retry
        finally:
            other.finish()
        append_somewhere(store)
    assert store.tail("a").size == 6


def test_a_hold_that_ends_amid_a_long_append_is_over_with_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path, sync="never", lock_timeout=0.02)
    append_somewhere(store)
    with store.hold("a"):
        other = Halfway(monkeypatch, store)
    try:
        assert store.holder("a") is not None
    finally:
        other.finish()
    assert store.holder("a") is None
    with store.hold("a"):
        append_somewhere(store)
    append_somewhere(LocalStore(tmp_path, sync="never", lock_timeout=1))


def test_the_garbage_collector_does_not_wait_for_another_threads_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path, sync="never", lock_timeout=86400)
    append_somewhere(store)
    holds = [store.hold("a")]
    holds[0].__enter__()
    other = Halfway(monkeypatch, store)
    try:
        holds.clear()
    finally:
        other.finish()
    assert store.holder("a") is None


@pytest.mark.parametrize("held", [False, True], ids=["free", "held"])
def test_a_store_closed_amid_a_long_append_lets_go_when_that_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    before = len(opened(tmp_path))
    store = LocalStore(tmp_path, sync="never", lock_timeout=0.02)
    append_somewhere(store)
    with store.hold("a") if held else nullcontext():
        other = Halfway(monkeypatch, store)
        try:
            store.close()
            with pytest.raises(Closed):
                store.append("a", b"12", at=NEW)
        finally:
            other.finish()
        assert len(opened(tmp_path)) == before
        again = LocalStore(tmp_path, sync="never", lock_timeout=1)
        assert again.tail("a").size == 4
        append_somewhere(again)
