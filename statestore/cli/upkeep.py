"""``compact`` and ``gc``: the maintenance of a store that keeps its logs in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from statestore.cli.progress import progress
from statestore.cli.screen import Screen, emit, plural
from statestore.cli.targets import Json, LogArgument, StoreOnly, open_for

if TYPE_CHECKING:
    from statestore.store import Maintenance, Store

__all__ = ["compact", "gc"]

Prefix = Annotated[str, typer.Option("--prefix", help="Only logs whose names begin so.")]


def compact(store: StoreOnly, log: LogArgument = None, prefix: Prefix = "", json: Json = False) -> None:
    """Merge the pieces of logs, so that they are read in fewer requests.

    One log, or all of a store. What the logs hold does not change, and others may read and write meanwhile.

    \b
    Examples:
      statestore compact s3://bucket/agents
      statestore compact s3://bucket/agents 1a2b3c4d --json
    """
    from statestore.errors import NotFound

    screen = Screen()
    merged = 0
    with open_for(store) as opened:
        upkeep = _maintenance(opened)
        logs = [info.name for info in opened.list(prefix)] if log is None else [log]
        for name in progress(logs, "compact", len(logs)):
            try:
                fewer = upkeep.compact(name)
            except NotFound:
                if log is not None:
                    raise
                continue  # deleted meanwhile
            merged += fewer
            if json:
                emit({"log": name, "fewer": fewer})
            elif fewer:
                screen.put((name, "bold"), f"  {plural(fewer, 'piece')} fewer")
        if not json:
            screen.put(f"{plural(len(logs), 'log')}, {plural(merged, 'piece')} fewer to read")


def gc(
    store: StoreOnly,
    prefix: Prefix = "",
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; without, it is only shown.")] = False,
    json: Json = False,
) -> None:
    """Show, or remove, what no log of a store needs any more.

    Pieces that were merged, deleted logs, what crashed creations and deletions left: each only when it has been
    superseded for longer than the store's grace period. Others may read and write meanwhile.

    \b
    Examples:
      statestore gc s3://bucket/agents
      statestore gc s3://bucket/agents --yes
    """
    screen = Screen()
    count = size = 0
    with open_for(store) as opened:
        for item in progress(_maintenance(opened).collect(prefix, dry_run=not yes), "gc"):
            count += 1
            size += item.size
            if json:
                emit({"object": item.object, "size": item.size, "reason": item.reason, "removed": yes})
            else:
                screen.put(item.object, "  ", (item.reason, "dim"), lead=[(f"{item.size:>12,}  ", "")])
    if not json:
        done = "removed" if yes else "would be removed: --yes does it" if count else "would be removed"
        screen.put(f"{plural(count, 'object')}, {plural(size, 'byte')} {done}")


def _maintenance(store: Store) -> Maintenance:
    from statestore.errors import NotSupported

    upkeep = store.maintenance
    if upkeep is None:
        raise NotSupported("this store keeps each log in one piece: there is nothing to maintain")
    return upkeep
