"""The operator's calls for programs that do not run a loop, and for those that do and cannot wait."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

from statestore.errors import Closed
from statestore.ops._model import Detail, State, Summary
from statestore.ops._operator import DEFAULT_REASON, Operator
from statestore.ops._source import Answer, Source

__all__ = ["SyncOperator"]

T = TypeVar("T")


class SyncOperator:
    """An `Operator` whose calls return what the asynchronous ones give; close it, or use it as a context.

    All of them run on one loop in a thread of its own, so it works from any thread, also where a loop is running.

    Args:
        source: the system of sessions; closing the operator closes it.
    """

    def __init__(self, source: Source) -> None:
        self._operator = Operator(source)
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="operator", daemon=True)
        self._thread.start()

    def scan_interrupted(self) -> list[Detail]:
        """Return the sessions that are interrupted; see :meth:`Operator.scan_interrupted`."""
        return self._run(self._operator.scan_interrupted())

    def list(self, user_id: str = "", *, state: State | str = "", scan: bool = False) -> list[Summary]:
        """Return all sessions; see :meth:`Operator.list`."""
        return self._run(self._operator.list(user_id, state=state, scan=scan))

    def get(self, id: str, *, user_id: str = "") -> Detail:  # noqa: A002 - what it is called everywhere
        """Return one session; see :meth:`Operator.get`."""
        return self._run(self._operator.get(id, user_id=user_id))

    def abort(self, id: str, reason: str = DEFAULT_REASON, *, user_id: str = "") -> None:  # noqa: A002
        """End a session for good; see :meth:`Operator.abort`."""
        self._run(self._operator.abort(id, reason, user_id=user_id))

    def mark_interrupted(self, id: str, reason: str, *, user_id: str = "") -> None:  # noqa: A002
        """Say that a turn was cut short; see :meth:`Operator.mark_interrupted`."""
        self._run(self._operator.mark_interrupted(id, reason, user_id=user_id))

    def clear_interrupted(self, id: str, *, user_id: str = "") -> None:  # noqa: A002
        """Take an interruption back; see :meth:`Operator.clear_interrupted`."""
        self._run(self._operator.clear_interrupted(id, user_id=user_id))

    def resume(
        self,
        id: str,  # noqa: A002
        interrupt_id: str,
        response: Any,
        *,
        user_id: str = "",
        check: bool = True,
    ) -> Answer:
        """Answer an open request; see :meth:`Operator.resume`."""
        return self._run(self._operator.resume(id, interrupt_id, response, user_id=user_id, check=check))

    def close(self) -> None:
        """Close the source and end the thread; closing twice is nothing."""
        if self._loop.is_closed():
            return
        if os.getpid() != self._pid:
            return  # the thread is the parent's
        try:
            self._run(self._operator.aclose())
            self._run(self._loop.shutdown_default_executor())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed() or os.getpid() != self._pid:
            call.close()
            raise Closed("this operator was closed, or made in another process: make another one")
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # an interrupt came while it ran
            raise
