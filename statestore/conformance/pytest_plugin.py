"""The pytest plugin that joins the results of a session into reports, one for each ``conformance(...)`` of it.

It adds one line for each to the end of the session, and writes them to files with ``--conformance-report=PATH``.
A clause whose test was deselected, skipped or lost with its worker has no result, and so is *not run* in the report.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from statestore.conformance.report import Report

__all__ = ["pytest_addoption", "pytest_terminal_summary"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the report."""
    parser.getgroup("statestore").addoption(
        "--conformance-report",
        metavar="PATH",
        help="write what the conformance kit has found, as HTML or, where PATH ends in .json, as JSON",
    )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show the level of each store that was tried, and write the reports that were asked for."""
    path = config.getoption("--conformance-report", None)
    reports = _reports(terminalreporter.stats)
    for name, report in reports.items():
        counts = ", ".join(f"{number} {status}" for status, number in report.counts.items() if number)
        terminalreporter.write_line(f"conformance of {name}: level {report.level_told()} ({counts})")
        if path:
            target = _target(Path(path), name, alone=len(reports) == 1)
            target.write_text(report.to_json() if target.suffix == ".json" else report.to_html(name), encoding="utf-8")
            terminalreporter.write_line(f"conformance report: {target}")
    if path and not reports:
        terminalreporter.write_line("no conformance report: no clause was run")


def _reports(stats: dict[str, list[Any]]) -> dict[str, Report]:
    from statestore.conformance.pytest_face import PROPERTY
    from statestore.conformance.report import Report, Result
    from statestore.store import Capabilities

    suites: dict[str, list[dict[str, Any]]] = {}
    for outcome in [each for some in stats.values() for each in some]:
        for key, value in getattr(outcome, "user_properties", ()):
            if key == PROPERTY and outcome.when == "call":
                suites.setdefault(outcome.nodeid.partition("[")[0], []).append(dict(value))
    reports = {}
    for name, rows in suites.items():
        sample = min(row.pop("sample") for row in rows)
        seconds = sum(row["seconds"] for row in rows)
        for row in rows:
            row["trace"] = tuple(row["trace"])
            row["capabilities"] = Capabilities(**row["capabilities"]) if row["capabilities"] else None
        reports[name] = Report.of([Result(**row) for row in rows], sample=sample, seconds=seconds)
    return reports


def _target(path: Path, name: str, *, alone: bool) -> Path:
    return path if alone else path.with_name(f"{path.stem}-{name.rpartition('::')[2]}{path.suffix}")
