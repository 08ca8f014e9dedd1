"""Running coroutines as asyncio's debug mode does, and stores that say on which thread they are called, and wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

import pytest

from statestore.store import Store
from statestore.wrappers import Wrapper

T = TypeVar("T")

GIVE_UP = 60.0  # seconds after which a test that hangs fails instead


def go(coroutine: Coroutine[Any, Any, T], *, debug: bool = True, within: float = GIVE_UP) -> T:
    """Run to the end in a loop of its own; whatever is lost there is an error. The debug mode is ten times slower."""
    lost: list[dict[str, Any]] = []

    async def main() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
        async with asyncio.timeout(within):
            return await coroutine

    with asyncio.Runner(debug=debug) as runner:
        result = runner.run(main())
    assert not lost
    return result


@coroutine
def stepping(work: Coroutine[Any, Any, T], waiting: Callable[[Any], None]) -> Generator[Any, Any, T]:
    """Await `work`, and tell of each place where it waits, and for which future."""
    step: Callable[[Any], Any] = work.send
    value: Any = None
    while True:
        try:
            future = step(value)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        waiting(future)
        try:
            step, value = work.send, (yield future)
        except BaseException as error:
            step, value = work.throw, error


class Gate(Wrapper):
    """A store whose calls wait at a gate while it is shut, and that knows which threads have called it.

    Attributes:
        threads: the names of the threads.
        most: how many calls were under way at a time.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.threads: set[str] = set()
        self.calls: list[str] = []
        self.most = 0
        self._under_way = 0
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._open.set()
        self._arrived = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def arrived(self) -> None:
        """Return when one more call has come to the gate."""
        assert await asyncio.to_thread(self._arrived.acquire, timeout=GIVE_UP)

    def _run(self, call: str, log: str, act: Callable[[], T]) -> T:
        with self._lock:
            self.threads.add(threading.current_thread().name)
            self.calls.append(call)
            self._under_way += 1
            self.most = max(self.most, self._under_way)
        self._arrived.release()
        assert self._open.wait(GIVE_UP)
        try:
            return act()
        finally:
            with self._lock:
                self._under_way -= 1


def ours() -> list[str]:
    """Return the threads of pools that are alive."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("statestore-aio")]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Any:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("statestore-aio"):
            thread.join(GIVE_UP)
            assert not thread.is_alive(), thread
