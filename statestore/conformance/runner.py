"""Runs clauses against a harness, one at a time and each in an empty place, with or without a test framework."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from statestore.conformance import case as _case
from statestore.conformance import check as _check
from statestore.conformance.case import Case, NotRun
from statestore.conformance.check import Failure
from statestore.conformance.harness import Factory, enter
from statestore.conformance.registry import LEVELS, Clause, clauses
from statestore.conformance.report import Report, Result
from statestore.store import Capabilities

__all__ = ["LIMIT", "run", "run_clause"]

LIMIT: Final = 300.0
"""Seconds after which a clause that has not come to an end is a failure."""

_OURS: Final = frozenset(module.__file__ for module in (_case, _check))


def run(
    factory: Factory,
    *,
    levels: Collection[str] = LEVELS,
    only: Collection[str] | None = None,
    sample: float = 1.0,
    seed: int | None = None,
    limit: float = LIMIT,
    progress: Callable[[Result, int, int], None] | None = None,
) -> Report:
    """Try every clause of the kit on the stores of `factory` and return the report.

    Args:
        factory: makes a harness for an empty place; it is called once for each clause.
        levels: the levels to run; clauses of all others are reported as not run.
        only: the names of the clauses to run, of those levels; by default all of them.
        sample: how much of the full size of the heavy clauses to run, from above 0 to 1; less than all shows in
            the report.
        seed: what random operations are drawn from; by default the same ones are tried in every run.
        limit: seconds after which a clause counts as hanging (only in the main thread of a POSIX process).
        progress: called with each result, its number from 1, and how many there will be.

    Raises:
        ValueError: a level, a clause or the sample is none, or a divergence names no clause.
    """
    if not set(levels) <= set(LEVELS) or not 0 < sample <= 1:
        raise ValueError(f"levels are some of {', '.join(LEVELS)}, and a sample is above 0 and at most 1")
    every = clauses()
    unknown = set(only or ()) - {each.name for each in every}
    if unknown:
        raise ValueError(f"the kit has no such clause: {', '.join(sorted(unknown))}")
    results = []
    begun = time.monotonic()
    for number, clause in enumerate(every, 1):
        if clause.level not in levels:
            result = Result(clause.name, "not run", f"level {clause.level} was not asked for")
        elif only is not None and clause.name not in only:
            result = Result(clause.name, "not run", "only other clauses were asked for")
        else:
            result = run_clause(clause, factory, sample=sample, seed=seed, limit=limit)
        results.append(result)
        if progress is not None:
            progress(result, number, len(every))
    return Report.of(results, sample=sample, seconds=time.monotonic() - begun)


def run_clause(
    clause: Clause, factory: Factory, *, sample: float = 1.0, seed: int | None = None, limit: float = LIMIT
) -> Result:
    """Try one clause on a store in an empty place and return what came of it.

    Raises:
        ValueError: a divergence of the harness names no clause.
    """
    begun = time.monotonic()
    with TemporaryDirectory(prefix="statestore-conformance-", ignore_cleanup_errors=True) as place:
        try:
            with enter(factory, Path(place)) as harness:
                status, reason, more = _try(clause, Case(harness, sample, seed), limit)
        except _UnknownDivergence as error:
            raise ValueError(str(error)) from None
        except Exception as error:
            status, reason, more = "failed", f"the harness failed: {_told(error)}", {"where": _where(error, clause)}
    return Result(clause.name, status, reason, seconds=time.monotonic() - begun, **more)


class _UnknownDivergence(Exception):
    pass


def _try(clause: Clause, case: Case, limit: float) -> tuple[str, str, dict[str, Any]]:
    harness = case.harness
    unknown = set(harness.divergences) - {each.name for each in clauses()}
    if unknown:
        raise _UnknownDivergence(f"divergences name no clause of the kit: {', '.join(sorted(unknown))}")
    capabilities: Capabilities | None = None
    try:
        with _at_most(limit):
            try:
                capabilities = case.store.capabilities
                obstacle = clause.obstacle(capabilities)
                if obstacle is not None:
                    return "not applicable", obstacle, {"capabilities": capabilities}
                missing = harness.missing(clause.needs)
                if missing:
                    raise NotRun(f"the harness has no {', '.join(missing)}")
                clause.check(case)
            finally:
                case.close()
    except NotRun as error:
        return "not run", str(error), {"capabilities": capabilities}
    except (Exception, _TooLong) as error:
        told = _told(error)
        reason = harness.divergences.get(clause.name)
        if reason is not None:
            return "diverged", reason, {"capabilities": capabilities, "where": told}
        more = {"where": _where(error, clause), "trace": tuple(case.trace), "calls": case.calls}
        return "failed", told, {"capabilities": capabilities, **more}
    if clause.name in harness.divergences:
        told = f"it passes, but is declared as a divergence ({harness.divergences[clause.name]}): remove the entry"
        return "failed", told, {"capabilities": capabilities}
    return "passed", "", {"capabilities": capabilities}


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, Failure | _TooLong) else f"{type(error).__name__}: {error}"


def _where(error: BaseException, clause: Clause) -> str:
    """Return the traceback from the clause on, without the kit's own frames."""
    told = traceback.TracebackException.from_exception(error)
    frames = told.stack
    file = clause.check.__code__.co_filename
    first = next((number for number, frame in enumerate(frames) if frame.filename == file), 0)
    kept = [frame for frame in frames[first:] if frame.filename not in _OURS]
    told.stack = traceback.StackSummary.from_list(kept)
    return "".join(told.format(chain=True))


class _TooLong(BaseException):
    """What ends a clause that hangs: no `Exception`, which a clause, or Hypothesis under it, may catch and go on."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Break off the block after this time, where the platform and the thread allow it."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise _TooLong(f"it did not come to an end within {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
