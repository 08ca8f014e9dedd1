"""A store that fails on purpose, for tests of the programs that use one."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import Event
from typing import Any, Final, Self, TypeVar, cast

from statestore.errors import NotFound, Unavailable
from statestore.store import LogInfo, Snapshot, Store, Tail, check_data, check_range, check_stop
from statestore.wrappers._faults import MOST_SLOW, MOST_STALE, Past, Plan, Schedule, Step
from statestore.wrappers._wrapper import Wrapper

__all__ = ["FAULTS", "Faulty"]

T = TypeVar("T")

FAULTS: Final = ("error", "lost", "paused", "slow", "stale", "throttled", "timeout", "torn")
"""The faults that a plan may have. Rates may have all of them but ``paused``."""

_ANY: Final = {"error": (0, 0), "paused": (0, 0), "slow": (1, MOST_SLOW), "throttled": (1, 1)}
_CHANGE: Final = {"lost": (0, 0), "timeout": (0, 1)}
_CHANGES: Final = ("append", "copy", "cut", "delete", "flush")
_CALLS: Final = (*_CHANGES, "boundary", "hold", "holder", "list", "read", "stream", "tail")
_CAPABILITY: Final = {"delete": ("deletes",), "holder": ("holds",), "cut": ("cuts",), "flush": ("durable", "flushes")}


class Faulty(Wrapper):
    """A store whose calls meet faults: drawn from a seed by `rates`, or just where a `plan` has them.

    The same seed and the same calls give the same faults, and each error tells its ``seed=`` and ``call=``. With
    neither rates nor a plan, it does what the inner store does. A wrong argument, a closed store and a missing
    capability are refused as ever, and count as no call.

    ============= ================================= ===========================================================
    fault         calls                             what happens
    ============= ================================= ===========================================================
    ``error``     all                               nothing, and ``Unavailable(retry=True)``
    ``throttled`` all                               the same, for up to 3 calls one after the other
    ``lost``      append, copy, delete, flush, cut  the effect, and ``Unavailable(retry=True,
                                                    effect_unknown=True)``
    ``timeout``   append, copy, delete, flush, cut  the same error; the effect (amount 1) or none (amount 0)
    ``torn``      append, on a store with ``cuts``  a part of the data is appended, and the process dies: every
                                                    call raises ``Unavailable(retry=False)`` until `revive`
    ``stale``     list                              what was done through this wrapper in the last 1 to 8 calls
                                                    does not show yet
    ``slow``      all                               `sleep` is called with 0.001 to 1 seconds, then the call runs
    ``paused``    all, by a plan or `paused`        the call waits, before its effect, until `resume`
    ============= ================================= ===========================================================

    A stale listing never makes a wrong append pass unseen: where the store has no ``runs``, a stale listing with
    tails only lacks logs, and shows no old tail.

    Args:
        store: the inner store.
        seed: what the faults are drawn from.
        rates: for each fault, how likely a call that can meet it does: ``{"lost": 0.1, "throttled": 0.05}``.
        plan: the faults by number of call, ``{3: "lost"}``, or the steps of a trace.
        sleep: called with seconds by ``slow``; by default nobody sleeps.

    Raises:
        ValueError: a fault is unknown or cannot happen on this store, or the rates are no probabilities.
    """

    def __init__(
        self,
        store: Store,
        *,
        seed: int = 0,
        rates: Mapping[str, float] | None = None,
        plan: Plan | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        super().__init__(store)
        rated = [fault for fault in FAULTS if fault != "paused"]
        self._schedule = Schedule(FAULTS, rated, seed=seed, rates=rates, plan=plan)
        faults = self._schedule.faults
        if "torn" in faults and not store.capabilities.cuts:
            raise ValueError(f"an append is only torn on a store that has the capability cuts, not on {store!r}")
        self._sleep = sleep
        self._past = Past() if "stale" in faults else None
        self._died: Step | None = None
        self._gates: dict[str, Event] = {}
        self._planned_gate = Event()
        self._arrived = Event()

    @classmethod
    def replay(cls, store: Store, trace: Iterable[Step], *, seed: int = 0, **more: Any) -> Self:
        """Return a store that meets the faults of a trace again, at the same calls.

        Args:
            store: the inner store, as it was when the trace began.
            trace: the `trace` of another one.
            seed: only told in the errors.
            more: as for the class.
        """
        return cls(store, seed=seed, plan=trace, **more)

    def __repr__(self) -> str:
        return f"Faulty({self.inner!r}, seed={self.seed})"

    @property
    def seed(self) -> int:
        """The seed that the faults are drawn from."""
        return self._schedule.seed

    @property
    def trace(self) -> tuple[Step, ...]:
        """The faults so far, one step each. Given as a plan, they come again."""
        return tuple(self._schedule.trace)

    def revive(self, store: Store | None = None) -> None:
        """Let calls through again after the process has died.

        Args:
            store: the inner store from now on, as a new process would open it; by default the one before.
        """
        if store is not None:
            self.inner = store
            self.capabilities = store.capabilities
        self._died = None

    @contextmanager
    def paused(self, *calls: str) -> Iterator[None]:
        """Make these calls wait, each before its effect, until the context ends or `resume` is called."""
        if not calls or not set(calls) <= set(_CALLS):
            raise ValueError(f"the calls that can pause are {', '.join(_CALLS)}, not {', '.join(calls) or 'none'}")
        gate = Event()
        self._gates |= dict.fromkeys(calls, gate)
        try:
            yield
        finally:
            self._gates = {call: each for call, each in self._gates.items() if each is not gate}
            self._arrived.clear()
            gate.set()

    def wait_paused(self, timeout: float | None = 60.0) -> None:
        """Wait until a call has arrived at a pause.

        Raises:
            TimeoutError: none has within `timeout` seconds.
        """
        if not self._arrived.wait(timeout):
            raise TimeoutError(f"no call was paused within {timeout} seconds")

    def resume(self) -> None:
        """Let all paused calls go on, and pause none of those that come, but where the plan says so."""
        gates, self._gates = [self._planned_gate, *self._gates.values()], {}
        self._planned_gate = Event()
        self._arrived.clear()
        for gate in gates:
            gate.set()

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        """Add `data` to the end of `log`, if the log ends exactly at `at`; return the new tail."""
        self._check(log)
        check_data(data, at)
        torn = {"torn": (min(1, len(data) - 1), len(data) - 1)} if self.capabilities.cuts else {}
        step = self._meet("append", log, **_CHANGE, **torn)
        if step.fault == "torn":
            if step.amount:
                self._change(step, log, lambda: self.inner.append(log, data[: step.amount], at=at))
            self._died = step
            raise self._error("the process died in an append: call revive", step, log, retry=False, effect_unknown=True)
        return self._change(step, log, lambda: self.inner.append(log, data, at=at))

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the log's end as slices are."""
        self._check(log)
        check_range(start, stop)
        return super().read(log, start, stop)

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to ``source[:stop]``, whole or not at all; return its tail."""
        self._check(source)
        check_stop(stop)
        return super().copy(source, target, stop=stop)

    def boundary(self, log: str, before: int) -> int:
        """Return an offset, at most `before`, where an append began."""
        self._check(log)
        check_range(before, None)
        return super().boundary(log, before)

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        """Yield the logs whose names begin with `prefix` and come after `after`, in code-point order.

        A fault comes with the first row that is asked for.
        """
        return self._list(self.inner.list(prefix, after=after, tails=tails), prefix, after, tails)

    def _list(self, rows: Iterator[LogInfo], prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        step = self._meet("list", prefix, **({"stale": (1, MOST_STALE)} if self._past else {}))
        if step.fault == "stale" and self._past and step.amount:
            before = cast("dict[str, Tail | None]", self._past.before(step.number - step.amount))
            if tails and not self.capabilities.runs:
                # An old tail could be that of a log made since: an append there would pass, in the wrong log.
                before = {name: tail for name, tail in before.items() if tail is None}
            old = (
                LogInfo(name, tail if tails else None)
                for name, tail in sorted(before.items())
                if tail is not None and name.startswith(prefix) and name > after
            )
            rows = heapq.merge((row for row in rows if row.name not in before), old)
        for row in rows:
            yield row
            self._check_alive(prefix)

    def snapshot(self, log: str) -> Snapshot:
        """Return the log as it ends now; taking it is a call, `tail`, and so is all that it is asked."""
        return Snapshot(self, log, self.tail(log))

    def stream(self, log: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces; a fault comes with the first piece that is asked for."""
        return self._stream_pieces(log, self.inner.stream(log, start, stop))

    def _stream_pieces(self, log: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
        self._meet("stream", log)
        for piece in pieces:
            yield piece
            self._check_alive(log)

    def hold(self, log: str) -> AbstractContextManager[None]:
        """Keep everybody else from appending to the log; a fault comes on entering, and never on leaving."""
        return self._hold(log, self.inner.hold(log))

    @contextmanager
    def _hold(self, log: str, inner: AbstractContextManager[None]) -> Iterator[None]:
        self._meet("hold", log)
        with inner:
            yield

    def _run(self, call: str, log: str, act: Callable[[], T]) -> T:
        self._check(log)
        needs = _CAPABILITY.get(call, ())
        if needs and not any(getattr(self.capabilities, need) for need in needs):
            return act()  # which refuses, as ever
        if call not in _CHANGES:
            self._meet(call, log)
            return act()
        return self._change(self._meet(call, log, **_CHANGE), log, act)

    def _meet(self, call: str, log: str, **fits: tuple[int, int]) -> Step:
        """Count a call and let what comes before its effect happen to it; return what it meets."""
        self._check_alive(log)
        step = self._schedule.next(call, {**_ANY, **fits})
        if step.fault == "slow" and self._sleep is not None:
            self._sleep((step.amount or 0) / 1000)
        elif step.fault in ("error", "throttled"):
            what = "the storage is asked too much" if step.fault == "throttled" else "the storage failed"
            raise self._error(f"{what}, and nothing was done: call again", step, log)
        gate = self._planned_gate if step.fault == "paused" else self._gates.get(call)
        if gate is not None:
            self._arrived.set()
            gate.wait()
            self._check_alive(log)
        return step

    def _change(self, step: Step, log: str, act: Callable[[], T]) -> T:
        """Do what changes a log, and keep the answer back where that is the fault."""
        unsure = self._error("no answer came: call again with the same arguments", step, log, effect_unknown=True)
        if step.fault == "timeout" and not step.amount:
            raise unsure
        before = self._tail_or_none(log) if self._past else None
        result = act()
        if self._past:
            self._past.note(step.number, log, before)
        if step.fault in ("lost", "timeout"):
            raise unsure
        return result

    def _tail_or_none(self, log: str) -> Tail | None:
        try:
            return self.inner.tail(log)
        except NotFound:
            return None

    def _check_alive(self, log: str) -> None:
        if self._died is not None:
            raise self._error("the process has died: call revive first", self._died, log, retry=False)

    def _error(
        self, message: str, step: Step, log: str, *, retry: bool = True, effect_unknown: bool = False
    ) -> Unavailable:
        facts = {"log": log or None, "fault": step.fault, "seed": self.seed, "call": step.number}
        return Unavailable(f"{message} (injected)", retry=retry, effect_unknown=effect_unknown, **facts)
