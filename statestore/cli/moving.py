"""``import`` and ``export``: sessions and conversations from other files, and back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from statestore.cli.conversations import conversations
from statestore.cli.progress import progress
from statestore.cli.screen import Screen, complain, describe, emit, plural
from statestore.cli.targets import Json, LogArgument, StoreArgument, StoreOnly, complete_log, is_file

if TYPE_CHECKING:
    from statestore.conversations.promptkit import Moved

__all__ = ["export", "import_"]

_AGENTS: Final = ("claude-code", "codex")
_CONVERSATIONS: Final = "conversations"

Prefix = Annotated[
    str | None,
    typer.Option("--prefix", help="Where they are in the store; conversations for promptkit.", show_default=False),
]


def import_(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="jsonl, claude-code, codex or promptkit.")],
    source: Annotated[Path, typer.Argument(metavar="FROM", help="A file or a directory; - is standard input.")],
    store: StoreArgument,
    log: LogArgument = None,
    prefix: Prefix = None,
    json: Json = False,
) -> None:
    """Bring sessions and conversations in from other files.

    jsonl is a log that export gave out: the same bytes, as LOG or under the file's name. claude-code and codex are
    the session files of these agents: each becomes a session, and what came over and what did not is counted.
    promptkit is a directory of conversations, each read again and compared.

    What is there already is left alone and told; the others still come, and the status is 1.

    \b
    Examples:
      statestore import jsonl session.jsonl ./state 1a2b3c4d
      statestore import claude-code ~/.claude/projects ./state
      statestore import codex ~/.codex/sessions ./state --json
      statestore import promptkit /srv/promptkit ./state
    """
    if log is not None and form != "jsonl":
        raise typer.BadParameter("LOG belongs to jsonl: the others name what they make themselves")
    if form == "jsonl":
        from statestore.cli import lines

        if prefix is not None:
            raise typer.BadParameter("--prefix does not belong to jsonl: LOG is the whole name")
        lines.bring_in(source, store, log, json=json)
    elif form in _AGENTS:
        from statestore.cli import agents

        agents.bring_in(form, source, store, prefix or "", json=json)
    elif form == "promptkit":
        from statestore.conversations import promptkit

        with conversations(store, prefix or _CONVERSATIONS, create=True) as talks:
            found = promptkit.directories(source)
            _move(found, "import", lambda one: promptkit.bring_in(talks, one), lambda one: one.name, json=json)
    else:
        raise typer.BadParameter(f"FORMAT is jsonl, claude-code, codex or promptkit, not '{form}'")


def export(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="jsonl or promptkit.")],
    store: StoreOnly,
    log: Annotated[
        str | None, typer.Argument(metavar="LOG", help="The log, for jsonl.", autocompletion=complete_log)
    ] = None,
    to: Annotated[Path | None, typer.Argument(metavar="TO", help="A new file, or promptkit's directory.")] = None,
    prefix: Prefix = None,
    json: Json = False,
) -> None:
    """Give a log, or conversations, out as other files.

    jsonl is one log, a record a line, byte for byte, to a new file or to standard output; a torn end is left out and
    told. promptkit is a directory for each conversation: each is written, read again and compared. One that the files
    cannot hold, or that is there already, is told; the others still go, and the status is 1.

    \b
    Examples:
      statestore export jsonl ./state 1a2b3c4d session.jsonl
      statestore export jsonl ./state 1a2b3c4d | gzip > session.jsonl.gz
      statestore export promptkit ./state /srv/promptkit
    """
    if form == "jsonl":
        from statestore.cli import lines

        if prefix is not None:
            raise typer.BadParameter("--prefix does not belong to jsonl: LOG is the whole name")
        if is_file(store):
            if to is not None:
                raise typer.BadParameter("the path of one log's file stands without LOG")
            to, log = Path(log) if log else None, None
        lines.give_out(store, log, to, json=json)
    elif form == "promptkit":
        from statestore.conversations import promptkit

        if log is None or to is not None:
            raise typer.BadParameter("promptkit takes a store and one directory")
        directory = Path(log)
        with conversations(store, prefix or _CONVERSATIONS) as talks:
            directory.mkdir(parents=True, exist_ok=True)
            _move(
                talks.list(limit=sys.maxsize),
                "export",
                lambda one: promptkit.give_out(talks, one, directory),
                lambda one: one,
                json=json,
            )
    else:
        raise typer.BadParameter(f"FORMAT is jsonl or promptkit, not '{form}'")


def _move(
    found: Iterable[Any],
    what: str,
    move: Callable[[Any], Moved],
    name: Callable[[Any], str],
    *,
    json: bool,
) -> None:
    """Move each, tell what was moved and what was not, and fail where something was not."""
    from statestore.errors import StateStoreError

    screen, found = Screen(), list(found)
    moved = messages = summaries = items = 0
    for one in progress(found, what, len(found)):
        try:
            row = move(one)
        except (StateStoreError, OSError, ValueError) as error:
            complain(f"error: {error} conversation={name(one)}")
            if json:
                facts = describe(error) if isinstance(error, StateStoreError) else {"message": str(error)}
                emit({"conversation": name(one), "error": facts})
            continue
        moved += 1
        messages, summaries, items = messages + row.messages, summaries + row.summaries, items + row.items
        if json:
            emit(asdict(row))
        else:
            cut = f", {plural(row.torn, 'byte')} that a crash had cut off" if row.torn else ""
            cut += f", left out: {', '.join(row.left)}" if row.left else ""
            screen.put((row.id, "bold"), f"  {plural(row.messages, 'message')}{cut}")
    if not json:
        counted = f"{plural(messages, 'message')}, {summaries:,} summaries, {plural(items, 'list item')}"
        screen.put(f"{moved:,} of {plural(len(found), 'conversation')}, read again and the same: {counted}")
    if moved < len(found):
        raise typer.Exit(1)
