"""What came of a run: which level a store has earned, by which clauses, and what failed."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from statestore.conformance.page import page
from statestore.conformance.registry import LEVELS, clauses
from statestore.store import Capabilities

__all__ = ["FORMAT", "Report", "Result", "STATUSES"]

FORMAT: Final = "statestore-conformance/1"
"""The name of the JSON report's format; it changes when a field changes its meaning."""

STATUSES: Final = ("passed", "failed", "diverged", "not run", "not applicable")
"""What can come of a clause. Only *passed* counts for a level; *not applicable* does not count against it."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one clause.

    Attributes:
        clause: the clause's name.
        status: one of `STATUSES`.
        reason: why it is not passed, on one line where possible.
        seconds: how long it took.
        where: the traceback from the clause on, or what a diverged clause met.
        trace: the calls that led to a failure, the last ones where there were many.
        calls: how many calls there were.
        capabilities: what the store said it can, where one could be opened.
    """

    clause: str
    status: str
    reason: str = ""
    seconds: float = 0.0
    where: str = ""
    trace: tuple[str, ...] = ()
    calls: int = 0
    capabilities: Capabilities | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The whole of a run. Make one with :meth:`of`, which adds what was left out.

    Attributes:
        results: one for each clause of the kit, in the order of the catalogue.
        sample: how much of the full size of the heavy clauses was run.
        seconds: how long the run took.
        versions: of Python, statestore and the platform.
        remarks: what else a reader must know, such as what the run left behind.
    """

    results: tuple[Result, ...]
    sample: float
    seconds: float
    versions: dict[str, str]
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, results: Iterable[Result], *, sample: float = 1.0, seconds: float = 0.0) -> Report:
        """Return the report of these results. A clause that is not among them is reported as not run."""
        found = {result.clause: result for result in results}
        absent = "it was deselected, skipped, or the run ended before it"
        complete = (found.get(each.name) or Result(each.name, "not run", absent) for each in clauses())
        return cls(tuple(complete), sample, seconds, _versions())

    @property
    def level(self) -> str | None:
        """The highest level of which, and of all below it, every clause that applies has passed; None: no level.

        A divergence is honest, but it is no proof: it lowers the level like a failure.
        """
        earned = None
        status = {result.clause: result.status for result in self.results}
        for level in LEVELS:
            counted = Counter(status[each.name] for each in clauses() if each.level == level)
            if not counted["passed"] or set(counted) - {"passed", "not applicable"}:
                break
            earned = level
        return earned

    @property
    def counts(self) -> dict[str, int]:
        """How many clauses came to each status."""
        counted = Counter(result.status for result in self.results)
        return {status: counted[status] for status in STATUSES}

    @property
    def ok(self) -> bool:
        """Whether some level was earned and nothing failed: the answer of a command or a build."""
        return self.level is not None and not self.counts["failed"]

    @property
    def capabilities(self) -> Capabilities | None:
        """What the store said it can do; None where no store could be opened."""
        return next((result.capabilities for result in self.results if result.capabilities is not None), None)

    def evidence(self) -> dict[str, dict[str, Any]]:
        """Return for each capability what the store says, and the names of the clauses that have shown it."""
        said = self.capabilities
        if said is None:
            return {}
        passed = {result.clause for result in self.results if result.status == "passed"}
        return {
            flag.name: {
                "declared": getattr(said, flag.name),
                "shown_by": [e.name for e in clauses() if e.capability == flag.name and e.name in passed],
            }
            for flag in fields(Capabilities)
        }

    def failures(self) -> Sequence[Result]:
        """Return the results of the clauses that failed."""
        return [result for result in self.results if result.status == "failed"]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data, as ``docs/conformance.md`` describes it."""
        about = {each.name: each for each in clauses()}
        rows = []
        for result in self.results:
            row = {key: value for key, value in asdict(result).items() if key != "capabilities"}
            of = about[result.clause]
            rows.append({**row, "level": of.level, "area": of.area, "capability": of.capability, "hurts": of.hurts})
        return {
            "format": FORMAT,
            "level": self.level,
            "ok": self.ok,
            "sample": self.sample,
            "seconds": round(self.seconds, 3),
            "counts": self.counts,
            "versions": self.versions,
            "remarks": list(self.remarks),
            "capabilities": self.evidence(),
            "clauses": rows,
        }

    def to_json(self) -> str:
        """Return the report as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=True) + "\n"

    def to_html(self, title: str = "A store") -> str:
        """Return the report as one page of HTML that needs nothing else.

        Args:
            title: what was tried, such as the store's URL without its credentials.
        """
        return page(self, title)

    def to_text(self) -> str:
        """Return the report for a terminal: the failures with their reproductions, then the outcome."""
        lines: list[str] = []
        for result in self.results:
            if result.status == "failed":
                lines += [f"FAILED {result.clause}", f"  {result.reason}", *_reproduction(result), ""]
        lines += [
            f"diverged: {result.clause}: {result.reason}" for result in self.results if result.status == "diverged"
        ]
        absent = [result for result in self.results if result.status == "not run"]
        for reason in dict.fromkeys(result.reason for result in absent):
            some = [result.clause for result in absent if result.reason == reason]
            lines.append(f"not run ({reason}): {', '.join(some[:5])}{f' and {len(some) - 5} more' * (len(some) > 5)}")
        lines += [f"note: {remark}" for remark in self.remarks]
        counts = ", ".join(f"{number} {status}" for status, number in self.counts.items() if number)
        lines.append(f"level: {self.level_told()} ({counts}; {self.seconds:.1f} s)")
        return "\n".join(lines) + "\n"

    def level_told(self) -> str:
        """Return the level in words, with what limits it."""
        if self.level is None:
            return "none: not conforming"
        return self.level + (f", heavy clauses at {self.sample:g} of their size" if self.sample < 1 else "")


def _reproduction(result: Result) -> list[str]:
    left = result.calls - len(result.trace)
    lines = [f"    ... {left} calls before"] if left > 0 else []
    return ["  the calls that led to it:", *lines, *(f"    {call}" for call in result.trace)] if result.trace else []


def _versions() -> dict[str, str]:
    try:
        ours = version("statestore")
    except PackageNotFoundError:
        ours = "unknown"
    return {"statestore": ours, "python": platform.python_version(), "platform": platform.platform()}
