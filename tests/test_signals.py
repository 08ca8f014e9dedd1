"""What a signal handler's exception leaves behind, such as that of Ctrl-C, wherever in a call it comes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from statestore.errors import NotFound
from statestore.store import NEW
from statestore_local import LocalStore
from statestore_memory import MemoryStore


class Interrupted(BaseException):
    """What the signal handler raises."""


def interrupted_everywhere(call: Callable[[], object]) -> Iterator[int]:
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
                    raise Interrupted

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


def test_an_interrupted_hold_keeps_nobody_from_the_log_once_its_store_is_closed(tmp_path: Path) -> None:
    stores = [LocalStore(tmp_path, sync="never", lock_timeout=1)]
    other = LocalStore(tmp_path, sync="never", lock_timeout=1)
    for _ in interrupted_everywhere(lambda: hold(stores[0])):
        append_somewhere(stores[0])
        close(stores[0])
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
