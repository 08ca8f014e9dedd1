"""``conform``: whether a live store keeps the promises, clause by clause."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from statestore.cli.live import Options, check_file, ended_by_signals, parse_options
from statestore.cli.screen import Screen, emit, plural
from statestore.cli.targets import Json, open_for
from statestore.cli.values import choice, part, whole

if TYPE_CHECKING:
    from statestore.conformance import Clause, Report, Result

__all__ = ["Level", "conform"]

_LEAD: Final = 12  # columns of a line's first word
_SHOWN: Final = 5  # names in one line; the report has all of them


class Level(StrEnum):
    """The levels of the kit, as words of the command line."""

    CORE = "core"
    CONCURRENT = "concurrent"
    DURABLE = "durable"
    SCALE = "scale"
    MODEL = "model"


def conform(
    store: Annotated[
        str | None,
        typer.Argument(metavar="STORE", help="A directory, or a URL such as file:///srv/state.", show_default=False),
    ] = None,
    option: Options = None,
    level: Annotated[
        str | None, choice("--level", "Try all clauses up to this level.", tuple(Level), default="concurrent")
    ] = None,
    clause: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Try this clause, and no others.", show_default=False),
    ] = None,
    sample: Annotated[float, part("--sample", "Run heavy clauses at this part of their size.")] = 1.0,
    seed: Annotated[int | None, whole("--seed", "Draw other random operations.")] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a .html or .json report.", show_default=False)
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Print the clauses, and try nothing.")] = False,
    json: Json = False,
) -> None:
    """Try whether a live store keeps the promises.

    Everything is done in a new folder of the store and cleaned up afterwards; no log of yours is touched. Nothing
    reaches under a live store, so the clauses that need it are not run, and the highest level shown is concurrent.

    The status is 0 where the level asked for is shown and nothing failed, else 1.

    \b
    Examples:
      statestore conform ./sessions
      statestore conform ./sessions --option sync=never --level core
      statestore conform file:///srv/state --report report.html
      statestore conform --list
    """
    from statestore.conformance import LEVELS, clauses, run_url
    from statestore.plugins import redact

    named = set(clause or ())
    unknown = sorted(named - {each.name for each in clauses()})
    if unknown:
        raise typer.BadParameter(f"the kit has no such clause (--list prints all): {', '.join(unknown)}")
    if list_:
        if store is not None:
            raise typer.BadParameter("--list tries nothing: give no store with it")
        _catalogue([each for each in clauses() if not named or each.name in named], json=json)
        return
    if store is None:
        raise typer.BadParameter("name a store, or give --list")
    if report is not None:
        _check_target(report)
    options = parse_options(option)
    asked = str(level or (LEVELS[-1] if named else Level.CONCURRENT))
    open_for(store, options=options).close()  # whoever only asks must not make a store that is missing
    levels = LEVELS[: LEVELS.index(asked) + 1]
    with ended_by_signals(), _progress(shown=not json and sys.stdout.isatty()) as step:
        found = run_url(store, options, levels=levels, only=named or None, sample=sample, seed=seed, progress=step)
    missed = _missed(found, asked, named)
    if json:
        emit(found.to_dict() | {"asked": None if named else asked, "conforms": not missed})
    else:
        _tell(Screen(), found, None if named else asked, missed)
    if report is not None:
        title = redact(store)
        report.write_bytes((found.to_json() if report.suffix == ".json" else found.to_html(title)).encode())
    if missed:
        raise typer.Exit(1)


def _check_target(report: Path) -> None:
    """Refuse now what could not be written when all is done."""
    if report.suffix not in (".html", ".json"):
        raise typer.BadParameter("the report's file ends in .html or .json")
    check_file(report)


@contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[Result, int, int], None] | None]:
    """Show how far it is on a terminal, and nothing of that once it is done."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    console = Console(file=sys.stdout, markup=False, emoji=False, highlight=False)
    failed = 0
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def step(result: Result, number: int, count: int) -> None:
            nonlocal failed
            failed += result.status == "failed"
            told = f"{failed} failed  {result.clause}" if failed else result.clause
            bar.update(task, completed=number, total=count, description=told)

        yield step


def _missed(found: Report, asked: str, named: Collection[str]) -> str:
    """Return in one line why the status is 1, or "" where it is 0."""
    from statestore.conformance import LEVELS

    failed = found.counts["failed"]
    if failed:
        return f"{plural(failed, 'clause')} failed"
    tried = [result.status for result in found.results if result.clause in named]
    if named:
        open_ = sum(status not in ("passed", "not applicable") for status in tried)
        if open_:
            return f"{plural(open_, 'clause')} could not be run"
        return "" if "passed" in tried else "none of these clauses is about such a store"
    shown = -1 if found.level is None else LEVELS.index(found.level)
    if shown < LEVELS.index(asked):
        return f"the level {asked} is not shown: {found.level or 'none'} is"
    return ""


def _tell(screen: Screen, found: Report, asked: str | None, missed: str) -> None:
    """Print the failures with their reproductions, what was not run, and the outcome as the last line."""
    about = _by_name()
    for result in found.results:
        if result.status == "failed":
            _tell_failure(screen, result, about[result.clause])
    absent = [result for result in found.results if result.status == "not run"]
    for reason in dict.fromkeys(result.reason for result in absent if "asked for" not in result.reason):
        some = [result.clause for result in absent if result.reason == reason]
        told = f"{len(some)}, {reason.replace('the harness', 'a live run')}: {', '.join(some[:_SHOWN])}"
        _line(screen, "not run", "yellow", told + (f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else ""))
    for remark in found.remarks:
        _line(screen, "note", "yellow", remark)
    unasked = sum("asked for" in result.reason for result in absent)
    counts = found.counts | {"not run": found.counts["not run"] - unasked, "not asked for": unasked}
    told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    _line(screen, "clauses", "", f"{told}, in {found.seconds:.1f} s")
    if asked is not None:
        _line(screen, "level", "", found.level_told())
    yes = "every clause that was tried is kept" if asked is None else f"it conforms at the level {asked}"
    _line(screen, *(("no", "bold red", missed) if missed else ("yes", "bold green", yes)))


def _tell_failure(screen: Screen, result: Result, clause: Clause) -> None:
    screen.put((result.clause, "bold"), lead=[(f"{'failed':<{_LEAD}}", "bold red")])
    screen.put(clause.hurts, lead=[" " * _LEAD])
    for line in result.reason.split("\n"):
        screen.put((line, "red"), lead=[" " * _LEAD])
    if result.trace:
        left = result.calls - len(result.trace)
        screen.put("the calls that led to it" + (f", without the first {left}:" if left else ":"), lead=[" " * _LEAD])
        for call in result.trace:
            screen.put((call, "dim"), lead=[" " * (_LEAD + 2)])
    screen.put()


def _line(screen: Screen, word: str, style: str, text: str) -> None:
    screen.put(text, lead=[(f"{word:<{_LEAD}}", style)])


def _by_name() -> dict[str, Clause]:
    from statestore.conformance import clauses

    return {each.name: each for each in clauses()}


def _catalogue(some: Collection[Clause], *, json: bool) -> None:
    """Print each clause with whom it protects."""
    screen = Screen()
    area = ""
    for each in some:
        if json:
            emit(
                {
                    "clause": each.name,
                    "level": each.level,
                    "area": each.area,
                    "capability": each.capability,
                    "on": each.on,
                    "also": list(each.also),
                    "without": list(each.without),
                    "needs": list(each.needs),
                    "hurts": each.hurts,
                }
            )
            continue
        if each.area != area:
            if area:
                screen.put()
            area = each.area
            screen.put((area, "bold cyan"))
        flag = f"  {each.capability if each.on else f'without {each.capability}'}" if each.capability else ""
        screen.put((each.name, "bold"), flag, lead=[(f"  {each.level:<{_LEAD}}", "dim")])
        screen.put(each.hurts, lead=[" " * (_LEAD + 2)])
