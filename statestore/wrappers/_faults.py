"""Which call meets which fault: drawn from a seed, or planned, and written down so that it can be done again."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from itertools import count
from typing import Final, NamedTuple

__all__ = ["BURST", "MOST_SLOW", "MOST_STALE", "Past", "Plan", "Schedule", "Step"]

BURST: Final = 3
"""The largest number of calls that a drawn burst of throttling refuses."""

MOST_STALE: Final = 8
"""The largest number of calls by which a drawn stale listing is behind."""

MOST_SLOW: Final = 1000
"""The largest number of milliseconds that a drawn slow call waits."""

_PAST: Final = 4096  # changes that are remembered for stale listings


class Step(NamedTuple):
    """One fault at one call. A trace is a list of these, and so is a plan.

    Attributes:
        number: which call, counted from 1.
        fault: the fault's name.
        call: the call that met it, such as ``"append"``; in a plan, ``""`` stands for any.
        amount: how much of it, where the fault has a measure: bytes kept (``torn``, ``truncated``), calls
            (``throttled``, ``stale``, ``delayed``, ``doubled``), milliseconds (``slow``), 1 for an effect and 0 for
            none (``timeout``). In a plan, None lets the seed decide.
    """

    number: int
    fault: str
    call: str = ""
    amount: int | None = None


Plan = Mapping[int, str] | Iterable[Step]
"""Faults by the number of the call, or the steps of a trace."""


class Schedule:
    """Decides for each call whether it meets a fault, and keeps the trace.

    What a call meets depends on the seed, its number and its name alone, so the same calls meet the same faults.
    Where threads take turns in another order, the numbers fall on other calls; the trace then replays the faults
    of one order of calls.

    Args:
        known: the names of all faults there are.
        rated: those that may be drawn.
        seed: what the draws come from.
        rates: for each fault, how likely a call that can meet it does.
        plan: which call meets which fault, instead of rates.

    Raises:
        ValueError: a fault is unknown, the rates are no probabilities, or both rates and a plan are given.
    """

    def __init__(
        self,
        known: Collection[str],
        rated: Collection[str],
        *,
        seed: int,
        rates: Mapping[str, float] | None,
        plan: Plan | None,
    ) -> None:
        if rates is not None and plan is not None:
            raise ValueError("faults come from rates or from a plan, not from both")
        steps = [Step(*each) for each in (plan.items() if isinstance(plan, Mapping) else plan or ())]
        self.seed = seed
        self.rates = {fault: rate for fault, rate in (rates or {}).items() if rate}
        self.trace: list[Step] = []
        # Counting is one call in C that no thread can split, and no lock that a fork could find taken.
        self._numbers = count(1)
        self._refuse(set(rates or ()) - set(rated), "drawn", rated)
        self._refuse({step.fault for step in steps} - set(known), "planned", known)
        if min(self.rates.values(), default=0) < 0 or sum(self.rates.values()) > 1:
            raise ValueError(f"rates are probabilities, and at most 1 together: {dict(self.rates)}")
        if any(step.number < 1 or (step.amount or 0) < 0 for step in steps):
            raise ValueError("calls are counted from 1, and amounts are not below zero")
        self._plan = {step.number: step for step in steps}
        for step in [step for step in steps if step.fault == "throttled"]:
            burst = self._burst(step.number) if step.amount is None else step.amount
            for number in range(step.number + 1, step.number + burst):
                self._plan.setdefault(number, Step(number, "throttled"))

    @property
    def faults(self) -> set[str]:
        """The faults that may come."""
        return {*self.rates, *(step.fault for step in self._plan.values())}

    def next(self, call: str, fits: Mapping[str, tuple[int, int]]) -> Step:
        """Return what the next call meets; its fault is ``""`` where that is nothing.

        Args:
            call: the call's name.
            fits: the faults that this call can meet, each with the least and the largest amount that is drawn.

        Raises:
            ValueError: the plan has a fault here that this call cannot meet.
        """
        number = next(self._numbers)
        planned = self._plan.get(number)
        if planned is not None and (planned.fault not in fits or planned.call not in ("", call)):
            told = f"{planned.call} {planned.fault}".strip()
            raise ValueError(f"the plan has {told!r} at call {number}, which is {call}: these are other calls")
        fault = planned.fault if planned else self._drawn(number)
        if fault not in fits:
            return Step(number, "", call)
        if planned is not None and planned.amount is not None and fault != "throttled":
            amount = planned.amount
        else:
            least, most = fits[fault]
            amount = least + int(self._chance(number, "amount") * (most - least + 1))
        step = Step(number, fault, call, amount)
        self.trace.append(step)
        return step

    def _drawn(self, number: int) -> str:
        # A burst is found by looking back, not remembered: so it is the same whoever makes the calls.
        for back in range(1, BURST if "throttled" in self.rates else 1):
            if number > back and self._draw(number - back) == "throttled" and self._burst(number - back) > back:
                return "throttled"
        return self._draw(number)

    def _draw(self, number: int) -> str:
        chance = self._chance(number, "fault") if self.rates else 1.0
        for fault, rate in sorted(self.rates.items()):
            if chance < rate:
                return fault
            chance -= rate
        return ""

    def _burst(self, number: int) -> int:
        return 1 + int(self._chance(number, "burst") * BURST)

    def _chance(self, number: int, what: str) -> float:
        """Return a number in [0, 1) that belongs to this seed, call and purpose."""
        digest = hashlib.blake2b(f"{self.seed} {number} {what}".encode(), digest_size=6).digest()
        return int.from_bytes(digest) / (1 << 48)

    @staticmethod
    def _refuse(wrong: set[str], what: str, right: Collection[str]) -> None:
        if wrong:
            raise ValueError(f"no fault that can be {what}: {', '.join(sorted(wrong))}; there are {', '.join(right)}")


class Past:
    """What was where before the latest changes, so that a listing can be shown as it was."""

    def __init__(self) -> None:
        self._changes: deque[tuple[int, str, object]] = deque(maxlen=_PAST)

    def note(self, number: int, name: str, before: object) -> None:
        """Remember what `name` was (None: not there) before call `number` changed it."""
        self._changes.append((number, name, before))

    def before(self, number: int) -> dict[str, object]:
        """Return, for each name changed by call `number` or later, what it was before that."""
        return {name: before for at, name, before in reversed(list(self._changes)) if at >= number}
