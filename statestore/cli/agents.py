"""``import`` of the files that coding agents keep: what came over, and what did not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from statestore.cli.progress import progress
from statestore.cli.screen import Screen, complain, describe, emit, plural
from statestore.cli.targets import open_for

if TYPE_CHECKING:
    from statestore.sessions.importing import Report

__all__ = ["bring_in"]


def bring_in(agent: str, source: Path, store: str, prefix: str, *, json: bool) -> None:
    """Bring in an agent's files, tell of each what came over, and fail where one did not."""
    from statestore.errors import StateStoreError
    from statestore.sessions import importing

    found = importing.files(agent, source)
    screen, total = Screen(), importing.Report(source)
    there = failed = 0
    with open_for(store, create=True) as opened:
        for path in progress(found, "import", len(found)):
            try:
                report = importing.bring_in(agent, opened, path, prefix=prefix)
            except (StateStoreError, OSError) as error:
                failed += 1
                complain(f"error: {error if isinstance(error, StateStoreError) else error.strerror} path={path}")
                if json:
                    facts = describe(error) if isinstance(error, StateStoreError) else {"message": error.strerror}
                    emit({"path": str(path), "error": facts})
                continue
            for made in report.sessions:
                if not made.new:
                    there += 1
                    complain(f"error: there is such a session already: it was left alone log={made.log} path={path}")
            if json:
                emit(_describe(report))
            else:
                _tell(screen, report)
            total.lines += report.lines
            total.sessions += report.sessions
            for mine, its in (
                (total.carried, report.carried),
                (total.lost, report.lost),
                (total.parts, report.parts),
            ):
                mine.update(its)
    if not json:
        new = sum(session.new for session in total.sessions)
        _count(screen, f"{plural(new, 'session')} from {plural(len(found) - failed, 'file')}", total)
    if there or failed:
        raise typer.Exit(1)


def _describe(report: Report) -> dict[str, Any]:
    return {
        "path": str(report.path),
        "lines": report.lines,
        "carried": dict(report.carried),
        "lost": dict(report.lost),
        "parts": dict(report.parts),
        "torn": report.torn,
        "sessions": [
            {"log": one.log, "source": one.source, "records": one.records, "size": one.size, "new": one.new}
            for one in report.sessions
        ],
    }


def _tell(screen: Screen, report: Report) -> None:
    for made in report.sessions:
        records = plural(sum(made.records.values()), "record")
        screen.put((made.log, "bold"), f"  {records}" if made.new else "  was there", f"  {report.path.name}")
    if not report.sessions:
        screen.put(("nothing said", "dim"), f"  {report.path.name}")


def _count(screen: Screen, what: str, total: Report) -> None:
    """Say what came over and what did not, the most frequent first."""
    screen.put((what, "bold"))
    for label, counts, style in (
        ("carried", total.carried, "green"),
        ("lost", total.lost, "yellow"),
        ("left out", total.parts, "yellow"),
    ):
        if counts:
            noun = "part" if counts is total.parts else "line"
            words = ", ".join(f"{count:,} {word}" for word, count in Counter(counts).most_common())
            screen.put(f"{plural(sum(counts.values()), noun)}: {words}", lead=[(f"{label:<12}", style)])
