"""The engine: runs the protocol's steps over a drive, with patience, in parallel where that is possible."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from statestore.errors import Closed, Unavailable
from statestore_fsspec._drive import BucketDrive, Drive
from statestore_fsspec._layout import Entry
from statestore_fsspec._steps import NOW, TOKEN, Copy, Fetch, List, Page, Pause, Put, Remove, Span, Steps

__all__ = ["Engine", "entries"]

Result = TypeVar("Result")
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # elsewhere than on Linux the latter counts sleep too
_LONGEST = 5.0  # seconds between two tries
_AHEAD = 4  # pieces that all streams of a store may have under way

_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


class Engine:
    """Runs steps. It may be used from many threads, and in a process that was forked after it was made.

    Args:
        connect: makes a drive; called again in a forked process.
        parallel: how many requests one call may have under way at once.
        tries: how often a request that failed is sent.
        backoff: seconds before the second try; twice as long before each one after.
    """

    def __init__(self, connect: Callable[[], Drive], *, parallel: int, tries: int, backoff: float) -> None:
        self._connect = connect
        self._parallel = parallel
        self._tries = tries
        self._backoff = backoff
        self._inherited: list[Drive | None] = []
        self._closed = False
        self._passed = 0.0  # seconds
        self._clocks = _read_clocks()
        self._begin()
        _engines.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._drive: Drive | None = None
        self._pool = ThreadPoolExecutor(1)  # until there is a drive
        self._users = 0  # calls under way
        self._gate = asyncio.Semaphore(self._parallel)
        self._ahead = ThreadPoolExecutor(_AHEAD, thread_name_prefix="statestore-ahead")

    def forget(self) -> None:
        """Begin anew, in a forked child: its parent may have been in the midst of anything."""
        self._inherited.append(self._drive)  # kept, since it would close the parent's connections if it went
        self._begin()

    @property
    def drive(self) -> Drive:
        """The drive of this process, which is made when it is first asked for."""
        with self._lock:
            self._check_open()
            if self._drive is None:
                self._drive = self._connect()
                threads = min(self._parallel, self._drive.threads)
                self._pool = ThreadPoolExecutor(threads, thread_name_prefix="statestore")
            return self._drive

    def now(self) -> float:
        """Return how many seconds have passed since this engine was made, rather too many than too few.

        A virtual machine that was paused, or restored from a snapshot, is told so by its clock of the day alone, when
        that is set; which of the two clocks has gone further since they were last read is what counts.
        """
        with self._lock:
            before, self._clocks = self._clocks, _read_clocks()
            self._passed += max(new - old for old, new in zip(before, self._clocks, strict=True))
            return self._passed

    def run(self, steps: Steps[Result]) -> Result:
        """Run steps to their end and return their result.

        Raises:
            Unavailable: the storage failed for longer than this engine is patient; the last failure is its cause.
        """
        with self._use() as drive:
            return self._run(drive, steps)

    def _run(self, drive: Drive, steps: Steps[Result]) -> Result:
        failures: list[Exception] = []
        reply: Any = None
        throw: Unavailable | None = None
        while True:
            try:
                request = steps.throw(throw) if throw is not None else steps.send(reply)
            except StopIteration as end:
                result: Result = end.value
                return result
            except Unavailable as error:
                if error.__cause__ is None and failures:
                    raise error from failures[-1]
                raise
            throw = None
            try:
                reply = self._answer(drive, request, failures)
            except Unavailable as error:
                throw = error

    def pages(self, prefix: str, after: str = "") -> Iterator[Page]:
        """Yield the pages of a listing, one request each."""
        more = True
        while more:
            with self._use() as drive:
                page = self._patiently(drive.page, prefix, after)
            more = page.more and bool(page.entries)
            if page.entries:
                after = page.entries[-1].key
            yield page

    def each(self, call: Callable[..., Result], arguments: Iterable[tuple[Any, ...]]) -> list[Result]:
        """Call for each tuple of arguments, several at once, and return the results in order."""
        work = list(arguments)
        if len(work) <= 1:
            return [self._patiently(call, *one) for one in work]
        return list(self._pool.map(lambda one: self._patiently(call, *one), work))

    def begin(self, call: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Begin a call that a stream will want the result of.

        Raises:
            Closed: the store was closed.
        """
        try:
            return self._ahead.submit(call, *arguments)
        except RuntimeError:
            self._check_open()
            raise

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("this store was closed: open another one")

    def _answer(self, drive: Drive, request: object, failures: list[Exception]) -> Any:
        if isinstance(request, Put):
            outcome, failure = drive.create(request.key, request.data)
            if failure is not None:
                failures.append(failure)
            return outcome
        if isinstance(request, List):
            return self._patiently(drive.page, request.prefix, request.after)
        if isinstance(request, Fetch):
            return self._fetch(drive, request.spans)
        if request is NOW:
            return self.now()
        if request is TOKEN:
            return secrets.token_hex(8)
        if isinstance(request, Pause):
            return self._wait(request.attempt)
        if isinstance(request, Copy):
            return all(self.each(drive.copy, request.pairs))
        if isinstance(request, Remove):
            return self.each(drive.remove, ((key,) for key in request.keys))
        raise TypeError(f"the protocol asked for what no storage does: {request!r}")

    def _fetch(self, drive: Drive, spans: Sequence[Span]) -> list[bytes | None]:
        if len(spans) == 1 or not isinstance(drive, BucketDrive):
            return self.each(drive.fetch, spans)
        fetched: dict[Span, bytes | None] = {}

        def fetch_rest() -> None:
            rest = [span for span in spans if span not in fetched]
            failures = []
            for span, answer in zip(rest, drive.fetch_each(rest, self._gate), strict=True):
                if isinstance(answer, Unavailable):
                    failures.append(answer)
                else:
                    fetched[span] = answer
            if failures:
                raise next((failure for failure in failures if not failure.retry), failures[0])

        self._patiently(fetch_rest)
        return [fetched[span] for span in spans]

    def _patiently(self, call: Callable[..., Result], *arguments: Any) -> Result:
        """Send a request that may be sent twice, until it is answered."""
        for attempt in range(1, self._tries):
            try:
                return call(*arguments)
            except Unavailable as error:
                if not error.retry:
                    raise
            self._wait(attempt)
        return call(*arguments)

    def _wait(self, attempt: int) -> None:
        # Not all at the same moment, after a storage has told many clients to slow down.
        limit = min(self._backoff * 2 ** (attempt - 1), _LONGEST)
        time.sleep(random.uniform(limit / 2, limit))  # noqa: S311 - no secret hangs on it

    @contextmanager
    def _use(self) -> Iterator[Drive]:
        """Keep the drive open meanwhile: who closes a store may have threads that are in the midst of a call."""
        with self._lock:
            self._check_open()
            self._users += 1
        try:
            yield self.drive
        finally:
            with self._lock:
                self._users -= 1
            self._let_go()

    def _let_go(self) -> None:
        with self._lock:
            if not self._closed or self._users:
                return
            drive, self._drive = self._drive, None
        for pool in (self._pool, self._ahead):
            pool.shutdown(wait=False, cancel_futures=True)
        if drive is not None:
            drive.close()

    def close(self) -> None:
        """Let go of threads and connections, as soon as no call needs them any more."""
        self._closed = True
        self._let_go()


def _read_clocks() -> tuple[float, float]:
    return time.clock_gettime(_CLOCK), time.time()


def entries(pages: Iterable[Page]) -> Iterator[Entry]:
    """Yield the entries of pages."""
    for page in pages:
        yield from page.entries


def _forget() -> None:
    for engine in list(_engines):
        engine.forget()


os.register_at_fork(after_in_child=_forget)
