"""``sessions``: which sessions there are and which wait for an answer; answer one, abort one, mark interruptions."""

from __future__ import annotations

import json as spelling
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from statestore.cli.safe import safe
from statestore.cli.screen import Screen, emit
from statestore.cli.shell import quoted, word
from statestore.cli.sources import App, SourceArgument, User, operator
from statestore.cli.targets import Json
from statestore.cli.values import choice, whole

if TYPE_CHECKING:
    from datetime import datetime

    from statestore.ops import Detail, Summary, SyncOperator

__all__ = ["app"]

app = typer.Typer(
    help="See which sessions wait; answer, abort or mark them.",
    no_args_is_help=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_STATES: Final = ["paused", "aborted", "interrupted", "idle"]
_HEAD: Final = ("SESSION", "USER", "APP", "LAST EVENT", "STATE", "PENDING")
_STYLES: Final = {"paused": "bold yellow", "aborted": "red", "interrupted": "magenta", "unreadable": "bold red"}

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The session's id.")]
Whose = Annotated[str, typer.Option("--user", help="Whose session, where several have this id.", show_default=False)]


@app.command()
def ls(
    store: SourceArgument,
    app: App = "",
    user: User = "",
    state: Annotated[str | None, choice("--state", "Only those with this state.", _STATES, default="all")] = None,
    scan: Annotated[bool, typer.Option("--scan", help="Believe nothing that was kept: read every session.")] = False,
    watch: Annotated[int | None, whole("--watch", "Show them again every N seconds.", least=1)] = None,
    times: Annotated[int | None, whole("--times", "With --watch, only so often.", least=1)] = None,
    json: Json = False,
) -> None:
    """List sessions with their states, the newest first.

    A session is aborted, paused (it waits for an answer), interrupted or idle, the first that holds; unreadable where
    it is damaged.

    \b
    Examples:
      statestore sessions ls ./state
      statestore sessions ls ./state --state paused --json
      statestore sessions ls ./state --watch 5
      statestore sessions ls adk+sqlite:///sessions.db --app shop
    """
    if times is not None and watch is None:
        raise typer.BadParameter("--times belongs to --watch")
    with operator(store, app) as opened:
        for _ in _turns(watch, times):
            rows = opened.list(user, state=state or "", scan=scan)
            if json:
                _print([row.model_dump(mode="json") for row in rows])
            else:
                if watch is not None and sys.stdout.isatty():
                    sys.stdout.write("\x1b[H\x1b[2J")
                _table(rows)
            sys.stdout.flush()


def _turns(watch: int | None, times: int | None) -> Iterator[int]:
    """Yield once, or again and again with a pause between."""
    if watch is None:
        yield 0
        return
    for turn in count() if times is None else range(times):
        if turn:
            time.sleep(watch)
        yield turn


@app.command()
def show(store: SourceArgument, id: IdArgument, app: App = "", user: Whose = "", json: Json = False) -> None:  # noqa: A002
    """Show one session: its state, and what it asks.

    \b
    Examples:
      statestore sessions show ./state 1a2b3c4d
      statestore sessions show ./state 1a2b3c4d --user alice --json
    """
    with operator(store, app) as opened:
        seen = opened.get(id, user_id=user)
    if json:
        emit(seen.model_dump(mode="json"))
    else:
        _tell(seen, store, app)


@app.command()
def abort(
    store: SourceArgument,
    id: IdArgument,  # noqa: A002
    reason: Annotated[str, typer.Option("--reason", help="Why.", show_default=True)] = "operator abort",
    app: App = "",
    user: Whose = "",
    json: Json = False,
) -> None:
    """End a session for good: it takes no more answers.

    A turn that is running is not stopped. The session itself is not touched.

    \b
    Examples:
      statestore sessions abort ./state 1a2b3c4d --reason 'wrong customer'
    """
    with operator(store, app) as opened:
        opened.abort(id, reason, user_id=user)
    _done(json, id, "aborted", reason=reason)


@app.command()
def resume(
    store: SourceArgument,
    id: IdArgument,  # noqa: A002
    interrupt: Annotated[str, typer.Option("--interrupt", help="The request to answer.", show_default=False)],
    response: Annotated[str, typer.Option("--response", help="The answer, as JSON.", show_default=False)],
    app: App = "",
    user: Whose = "",
    check: Annotated[bool, typer.Option("--check/--no-check", help="Whether to look at the request's schema.")] = True,
    json: Json = False,
) -> None:
    """Answer a request that is open, if the answer is what it asks for.

    Where only the program that runs the session can write to it, nothing is written, and what to give to it is printed.

    \b
    Examples:
      statestore sessions resume ./state 1a2b3c4d --interrupt approve-1 --response '{"approved": true}'
    """
    try:
        answer = spelling.loads(response, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"--response is JSON, not '{response[:60]}'") from error
    with operator(store, app) as opened:
        done = opened.resume(id, interrupt, answer, user_id=user, check=check)
    if json:
        emit({"id": id, "interrupt_id": interrupt, "written": done.written, "content": done.content})
    elif done.written:
        Screen().put((id, "bold"), f"  {interrupt} answered")
    else:
        emit(done.content)


@app.command()
def interrupted(
    store: SourceArgument,
    id: Annotated[str | None, typer.Argument(metavar="ID", help="The session to mark or clear.")] = None,  # noqa: A002
    reason: Annotated[str, typer.Option("--reason", help="Mark it: why its turn was cut short.")] = "",
    clear: Annotated[bool, typer.Option("--clear", help="Take the mark back.")] = False,
    app: App = "",
    user: Whose = "",
    json: Json = False,
) -> None:
    """List the sessions whose turn was cut short, the oldest first; mark one, clear one.

    With --user a session may be marked before it is there.

    \b
    Examples:
      statestore sessions interrupted ./state
      statestore sessions interrupted ./state 1a2b3c4d --reason 'shutdown of host-7'
      statestore sessions interrupted ./state 1a2b3c4d --clear
    """
    if id is None and (reason or clear):
        raise typer.BadParameter("--reason and --clear belong to one session: name it")
    if id is not None and bool(reason) == clear:
        raise typer.BadParameter("say with --reason why its turn was cut short, or take that back with --clear")
    with operator(store, app) as opened:
        if id is None:
            _list_interrupted(opened, user, json)
        elif clear:
            opened.clear_interrupted(id, user_id=user)
            _done(json, id, "cleared")
        else:
            opened.mark_interrupted(id, reason, user_id=user)
            _done(json, id, "interrupted", reason=reason)


def _list_interrupted(opened: SyncOperator, user: str, json: bool) -> None:
    rows = [row for row in opened.scan_interrupted() if user in ("", row.user_id)]
    if json:
        _print([row.model_dump(mode="json") for row in rows])
    else:
        _table(rows)


def _refuse(word: str) -> None:
    raise ValueError(f"JSON has no {word}")


def _print(rows: Sequence[Any]) -> None:
    """Print rows as one array on one line, in ASCII."""
    sys.stdout.write(spelling.dumps(rows, ensure_ascii=True, allow_nan=False) + "\n")


def _done(json: bool, id_: str, what: str, **more: str) -> None:
    if json:
        emit({"id": id_, "done": what, **more})
    else:
        Screen().put((id_, "bold"), f"  {what}")


def _table(rows: Sequence[Summary]) -> None:
    """Print rows for a person: all columns but the last are as wide as they must be."""
    cells = [_HEAD, *map(_cells, rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(_HEAD) - 1)]
    screen = Screen()
    for number, row in enumerate(cells):
        lead = [
            (f"{cell:<{width}}  ", ("dim" if not number else _STYLES.get(cell, "") if place == 4 else ""))
            for place, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        screen.put((row[-1], "" if number else "dim"), lead=lead)
    if not rows:
        screen.put("(no sessions)")


def _cells(row: Summary) -> tuple[str, ...]:
    pending = ",".join(map(word, row.pending_interrupt_ids)) or "-"
    if row.error:
        pending = f"(error: {safe(row.error)})"
    elif row.abort_reason:
        pending = f"(aborted: {safe(row.abort_reason)})"
    elif row.interrupt_reason:
        pending = f"(interrupted: {safe(row.interrupt_reason)})"
    names = (word(row.id), word(row.user_id), word(row.app_name))
    return (*names, _spell(row.last_event_time), row.state or "unreadable", pending)


def _spell(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else "-"


def _tell(seen: Detail, store: str, app: str) -> None:
    """Print one session for a person."""
    screen = Screen()

    def line(name: str, value: str, indent: str = "") -> None:
        screen.put(value, lead=[(f"{indent}{name + ':':<12}", "dim")])

    line("Session", seen.id)
    line("App", seen.app_name or "-")
    line("User", seen.user_id or "-")
    line("State", seen.state or "unreadable")
    line("Last event", _spell(seen.last_event_time))
    line("Events", f"{seen.event_count:,}")
    if seen.abort_reason:
        line("Aborted", seen.abort_reason)
    if seen.interrupt_reason:
        line("Interrupted", seen.interrupt_reason)
    for request in seen.pending:
        screen.put()
        screen.put(("Pending input:", "bold"))
        line("Interrupt", request.interrupt_id, "  ")
        line("Author", request.author or "-", "  ")
        line("Raised", _spell(request.raised_at), "  ")
        if request.tool_name:
            line("Tool", request.tool_name, "  ")
        line("Message", request.message or "-", "  ")
        if request.response_schema is not None:
            line("Schema", spelling.dumps(request.response_schema, separators=(",", ":")), "  ")
        if request.payload is not None:
            line("Payload", spelling.dumps(request.payload, separators=(",", ":")), "  ")
        line("Resume", _hint(seen, request.interrupt_id, store, app), "  ")


def _hint(seen: Detail, interrupt: str, store: str, app: str) -> str:
    """Return the command that answers: safe to paste, and refused until somebody has written the answer into it."""
    from statestore.plugins import redact

    options = [("app", app), ("user", seen.user_id), ("interrupt", interrupt)]
    words = [f"--{name}={quoted(value)}" for name, value in options if value]
    place = store if redact(store) == store else "STORE"
    dashes = ["--"] if place.startswith("-") or seen.id.startswith("-") else []  # what follows is no option
    return " ".join(["statestore sessions resume", *words, "--response=JSON", *dashes, quoted(place), quoted(seen.id)])
