"""``conversations``: look at conversations, fork them, remove them, sweep those that nobody has written for long."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from statestore.cli.progress import progress
from statestore.cli.safe import safe
from statestore.cli.screen import Screen, complain, describe, emit, plural
from statestore.cli.targets import Json, StoreOnly, open_for
from statestore.cli.values import choice, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statestore.conversations import Conversations, Message

__all__ = ["app", "conversations"]

app = typer.Typer(
    help="Look at conversations, fork them, remove them.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SORTED: Final = ["id", "created", "updated"]

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The conversation's id.")]
Prefix = Annotated[str, typer.Option("--prefix", help="Where the conversations are.", show_default=True)]


@contextmanager
def conversations(store: str, prefix: str, *, create: bool = False) -> Iterator[Conversations]:
    """Open the conversations of a store."""
    from statestore.conversations import Conversations

    with open_for(store, create=create) as opened, Conversations(opened, prefix) as talks:
        yield talks


@app.command()
def ls(
    store: StoreOnly,
    user: Annotated[str | None, typer.Option("--user", help="Only this user's.", show_default=False)] = None,
    sort: Annotated[str, choice("--sort", "By what to sort.", _SORTED, default="id")] = "id",
    reverse: Annotated[bool, typer.Option("--reverse", help="Last first; times are newest first without.")] = False,
    limit: Annotated[int | None, whole("--limit", "At most so many; 100 by default.", least=1)] = None,
    offset: Annotated[int | None, whole("--offset", "Leave out so many first.", least=0)] = None,
    prefix: Prefix = "conversations",
    json: Json = False,
) -> None:
    """List conversations, one id a line.

    \b
    Examples:
      statestore conversations ls ./state
      statestore conversations ls ./state --user alice --sort updated
    """
    from statestore.conversations import ListOptions

    if user == "":
        raise typer.BadParameter("--user is the name of one user: leave it out for all")
    by = {"sort_by": "" if sort == "id" else f"{sort}_at", "sort_order": "asc" if reverse == (sort != "id") else "desc"}
    options = ListOptions.model_validate({"user_id": user or "", "limit": limit or 0, "offset": offset or 0, **by})
    with conversations(store, prefix) as talks:
        for id_ in talks.list(options):
            if json:
                emit({"id": id_})
            else:
                sys.stdout.write(safe(id_) + "\n")


@app.command()
def show(
    store: StoreOnly,
    id: IdArgument,  # noqa: A002 - what it is called everywhere
    last: Annotated[int | None, whole("--last", "Only the last N messages.", least=0)] = None,
    prefix: Prefix = "conversations",
    json: Json = False,
) -> None:
    """Show a conversation: whose it is, its summaries and metadata, and what was said.

    \b
    Examples:
      statestore conversations show ./state 'trip to Oslo'
      statestore conversations show ./state 'trip to Oslo' --last 5 --json
    """
    screen = Screen()
    with conversations(store, prefix) as talks:
        state = talks.load(id)
        if last is not None:
            state.messages = state.messages[len(state.messages) - min(last, len(state.messages)) :]
        if json:
            emit(state.model_dump(mode="json", exclude_unset=True, by_alias=True))
            return
        about = {"user": state.user_id, "prompt": state.system_prompt, "tokens": state.token_count or ""}
        screen.put((id, "bold"), "".join(f"  {name} {value}" for name, value in about.items() if value))
        for name, value in state.metadata.items():
            screen.put(f"{name}: {value!r}", lead=[("  ", "")])
        for summary in state.summaries:
            screen.put(summary.content, lead=[(f"  summary {summary.start_turn}-{summary.end_turn}  ", "dim")])
        for message in state.messages:
            screen.put(_said(message), lead=[(f"{message.role:>10}  ", "bold")])
        written = f"{state.last_accessed_at:%Y-%m-%d %H:%M:%S %Z}"
        screen.put((f"{plural(talks.message_count(id), 'message')}, last written {written}", "dim"))


def _said(message: Message) -> str:
    calls = [f"calls {call.get('name', '?')}" for call in message.tool_calls or ()]
    content = message.content if isinstance(message.content, str) else repr(message.content or "")
    return "  ".join([content.replace("\n", " "), *calls]).strip() or "-"


@app.command()
def fork(
    store: StoreOnly,
    id: IdArgument,  # noqa: A002
    to: Annotated[str, typer.Argument(metavar="TO", help="The new conversation's id.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace TO where it is there.")] = False,
    prefix: Prefix = "conversations",
    json: Json = False,
) -> None:
    """Make a new conversation that goes on from another one.

    \b
    Examples:
      statestore conversations fork ./state 'trip to Oslo' 'another plan'
    """
    with conversations(store, prefix) as talks:
        talks.fork(id, to, overwrite=overwrite)
        count = talks.message_count(to)
    if json:
        emit({"id": to, "source": id, "messages": count})
    else:
        Screen().put((to, "bold"), f"  {plural(count, 'message')}")


@app.command()
def rm(
    store: StoreOnly,
    id: IdArgument,  # noqa: A002
    prefix: Prefix = "conversations",
    json: Json = False,
) -> None:
    """Remove a conversation with all that belongs to it.

    \b
    Examples:
      statestore conversations rm ./state 'trip to Oslo'
    """
    with conversations(store, prefix) as talks:
        talks.delete(id, missing_ok=False)
    if json:
        emit({"id": id})
    else:
        Screen().put((id, "bold"), "  removed")


@app.command()
def sweep(
    store: StoreOnly,
    ttl: Annotated[str, typer.Argument(metavar="AGE", help="A number and s, m, h or d, such as 90d.")],
    yes: Annotated[bool, typer.Option("--yes", help="Remove them; without, they are only shown.")] = False,
    prefix: Prefix = "conversations",
    json: Json = False,
) -> None:
    """Show, or remove, the conversations that nobody has written for longer than AGE.

    \b
    Examples:
      statestore conversations sweep ./state 90d
      statestore conversations sweep ./state 90d --yes
    """
    found = re.fullmatch(r"([0-9]{1,9})([smhd])", ttl)
    if found is None or not int(found[1]):
        raise typer.BadParameter(f"AGE is a number above 0 and s, m, h or d, such as 90d, not '{ttl}'")
    screen, count = Screen(), 0
    with conversations(store, prefix) as talks:
        for id_, written in progress(talks.sweep(int(found[1]) * _UNITS[found[2]], dry_run=not yes), "sweep"):
            count += 1
            if json:
                emit({"id": id_, "written": written.isoformat(), "removed": yes})
            else:
                screen.put((id_, "bold"), lead=[(f"{written:%Y-%m-%d %H:%M:%S}  ", "")])
    if not json:
        done = "removed" if yes else "would be removed: --yes does it" if count else "would be removed"
        screen.put(f"{plural(count, 'conversation')} {done}")


@app.command()
def rebuild(
    store: StoreOnly,
    prefix: Prefix = "conversations",
    json: Json = False,
) -> None:
    """Make anew what is kept for ls and sweep, from the first record of each conversation.

    They notice what has changed by themselves, and a file that is lost or damaged. This is for whoever doubts what they
    say. Conversations that are damaged are told, and the status is 1.

    \b
    Examples:
      statestore conversations rebuild ./state
      statestore conversations rebuild ./state --json
    """
    count, damaged = 0, []
    with conversations(store, prefix) as talks:
        total = sum(1 for _ in talks.store.list(f"{prefix}/"))
        for id_, damage in progress(talks.rebuild(), "rebuild", total):
            count += 1
            if damage is not None:
                complain(f"error: {damage} conversation={id_}")
                damaged.append({"id": id_, "error": describe(damage)})
    if json:
        emit({"conversations": count, "damaged": damaged})
    else:
        Screen().put(f"{plural(count, 'conversation')} read again, {len(damaged):,} damaged")
    if damaged:
        raise typer.Exit(1)
