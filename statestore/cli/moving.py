"""``import`` and ``export``: conversations from another system's files, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statestore.cli.conversations import Prefix, conversations
from statestore.cli.progress import progress
from statestore.cli.screen import Screen, complain, describe, emit, plural
from statestore.cli.targets import Json, StoreOnly

if TYPE_CHECKING:
    from statestore.conversations import Conversations
    from statestore.conversations.promptkit import Moved

__all__ = ["export", "import_"]

Format = Annotated[str, typer.Argument(metavar="FORMAT", help="The other system: promptkit.")]


def import_(
    form: Format,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The other system's directory.")],
    store: StoreOnly,
    prefix: Prefix = "conversations",
    json: Json = False,
) -> None:
    """Bring conversations in from another system's files.

    Each becomes one conversation as old as it was, and is read again and counted. One that is there already, or is
    damaged, is left alone and told; the others still come, and the status is 1.

    \b
    Examples:
      statestore import promptkit /srv/promptkit ./state
    """
    _check(form)
    from statestore.conversations import promptkit

    with conversations(store, prefix, create=True) as talks:
        found = promptkit.directories(directory)
        _move(found, "import", lambda one: promptkit.bring_in(talks, one), lambda one: one.name, json=json)


def export(
    form: Format,
    store: StoreOnly,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to make a directory for each.")],
    prefix: Prefix = "conversations",
    json: Json = False,
) -> None:
    """Give conversations out as another system's files.

    Each is written, read again and counted. One that the files cannot hold, or that is there already, is told; the
    others still go, and the status is 1.

    \b
    Examples:
      statestore export promptkit ./state /srv/promptkit
    """
    _check(form)
    from statestore.conversations import promptkit

    with conversations(store, prefix) as talks:
        directory.mkdir(parents=True, exist_ok=True)
        _move(_all(talks), "export", lambda one: promptkit.give_out(talks, one, directory), lambda one: one, json=json)


def _check(form: str) -> None:
    if form != "promptkit":
        raise typer.BadParameter(f"FORMAT is promptkit, not '{form}'")


def _all(talks: Conversations) -> list[str]:
    ids: list[str] = []
    while page := talks.list(offset=len(ids), limit=10_000):
        ids += page
    return ids


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
            emit({field: getattr(row, field) for field in ("id", "messages", "summaries", "lists", "items", "torn")})
        else:
            cut = f", {plural(row.torn, 'byte')} that a crash had cut off" if row.torn else ""
            screen.put((row.id, "bold"), f"  {plural(row.messages, 'message')}{cut}")
    if not json:
        counted = f"{plural(messages, 'message')}, {summaries:,} summaries, {plural(items, 'list item')}"
        screen.put(f"{moved:,} of {plural(len(found), 'conversation')}, written and read again: {counted}")
    if moved < len(found):
        raise typer.Exit(1)
