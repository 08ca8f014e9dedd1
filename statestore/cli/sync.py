"""``sync``: one store copied to another, and what became of each log."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import unquote

import typer

from statestore.cli.progress import progress
from statestore.cli.screen import Screen, complain, describe, emit, plural
from statestore.cli.targets import Json, open_for
from statestore.cli.values import whole

if TYPE_CHECKING:
    from statestore.store import Store
    from statestore.sync import Known, Row

__all__ = ["sync"]

_STYLES: Final = {"equal": "green", "copied": "green", "extra": "yellow", "diverged": "bold red", "failed": "bold red"}


def sync(
    source: Annotated[str, typer.Argument(metavar="SRC", help="The store to copy: a directory or a URL.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="The store to copy to; a directory is made.")],
    prefix: Annotated[str, typer.Option("--prefix", help="Only logs whose names begin so.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing; show what would be copied.")] = False,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Do not read back what was written.")] = False,
    workers: Annotated[int | None, whole("--workers", "Work on so many logs at once; 8 by default.", least=1)] = None,
    state: Annotated[
        Path | None, typer.Option("--state", metavar="FILE", help="Remember in this file what is equal.")
    ] = None,
    no_state: Annotated[bool, typer.Option("--no-state", help="Remember nothing, and compare every byte.")] = False,
    json: Json = False,
) -> None:
    """Copy what is new in a store to another one.

    Each log of the target must be a beginning of the source's; what follows is appended, read back and compared.
    A log that is no such beginning has diverged: it is told, never touched, and the command exits with 1, as it does
    where a log failed. Nothing is deleted. Whatever ends a sync, the next one goes on where it stood.

    What was equal is remembered in the user's cache directory, and not compared again.

    \b
    Examples:
      statestore sync ./sessions s3://bucket/agents
      statestore sync s3://bucket/agents /backup/agents --json
      statestore sync ./sessions s3://bucket/agents --dry-run --prefix teams/a/
    """
    if state is not None and no_state:
        raise typer.BadParameter("give --state or --no-state, not both")
    _refuse_itself(source, target)

    from statestore.errors import Conflict, Unavailable
    from statestore.sync import sync as copy

    screen = Screen()
    counts = dict.fromkeys(_STYLES, 0)
    copied = 0
    with (
        open_for(source) as ours,
        _open_target(target, dry_run) as theirs,
        _known(
            source, target, state, ours.capabilities.shared and theirs.capabilities.shared and not no_state
        ) as known,
        # Whatever ends the command, its threads end before the stores are closed.
        closing(
            copy(ours, theirs, prefix=prefix, workers=workers or 8, known=known, verify=not no_verify, dry_run=dry_run)
        ) as rows,
    ):
        # Only a bar needs to know how many there will be.
        total = sum(1 for _ in ours.list(prefix)) if sys.stderr.isatty() else None
        for row in progress(rows, "sync", total):
            counts[row.state] += 1
            copied += row.copied
            if json:
                emit(_describe(row))
            else:
                _tell(screen, row, dry_run)
    if json:
        emit({"summary": {"logs": sum(counts.values()), **counts, "bytes": copied, "dry_run": dry_run}})
    else:
        told = ", ".join(f"{count:,} {_word(state, dry_run)}" for state, count in counts.items() if count)
        size = f", {plural(copied, 'byte')}" if copied else ""
        screen.put((f"{plural(sum(counts.values()), 'log')}: {told}{size}" if told else "no logs", "bold"))
    if counts["diverged"]:
        failed = counts["failed"] or None
        raise Conflict("not every log is equal: see each above", diverged=counts["diverged"], failed=failed)
    if counts["failed"]:
        raise Unavailable("not every log was copied: see each above, then sync again", failed=counts["failed"])


def _word(state: str, dry_run: bool) -> str:
    return "to copy" if dry_run and state == "copied" else state


def _describe(row: Row) -> dict[str, Any]:
    return {
        "log": row.log,
        "state": row.state,
        "size": row.size,
        "copied": row.copied,
        "torn": row.torn,
        "offset": row.offset,
        "error": describe(row.error) if row.error else None,
    }


def _tell(screen: Screen, row: Row, dry_run: bool) -> None:
    if row.state == "equal" and not row.torn:
        return
    if row.state == "diverged":
        what = f"the target holds something else from byte {row.offset} on; it was not touched"
    elif row.error:
        what = str(row.error)
    elif row.state == "extra":
        what = f"{plural(row.size, 'byte')}; the source has no such log"
    elif 0 < row.copied < row.size:
        what = f"{row.copied:,} of {plural(row.size, 'byte')}"
    else:
        what = plural(row.size, "byte")
    lead = (f"{_word(row.state, dry_run):<12}", _STYLES[row.state])
    screen.put((row.log, "bold"), "  ", what, lead=[lead])
    if row.torn:
        cut = f"without {plural(row.torn, 'byte')} at its end, of an append that a crash cut short or that goes on"
        screen.put(cut, lead=[" " * 12])


def _open_target(target: str, dry_run: bool) -> Store:
    from statestore.plugins import open_store

    if not dry_run:
        return open_for(target, create=True)
    path = _path(target)
    missing = path is not None and not os.path.lexists(path)
    return open_store("memory://") if missing else open_for(target)


@contextmanager
def _known(source: str, target: str, state: Path | None, wanted: bool) -> Iterator[Known | None]:
    """Yield what is known of the two stores; None where a later process could not rely on it, or nobody wants it."""
    from statestore.caches import cache_directory, make_private
    from statestore.sync import Known

    if not wanted:
        yield None
        return
    pair = hashlib.sha256("\0".join(map(_identity, (source, target))).encode("utf-8", "surrogateescape")).hexdigest()
    path = state or cache_directory("sync") / f"{pair[:32]}.jsonl"
    if state is None:
        try:
            make_private(path.parent)
        except OSError as error:
            complain(
                f"note: what is equal is not remembered: {(error.strerror or str(error)).lower()} path={path.parent}"
            )
            yield None
            return
    known = Known(path, pair)
    try:
        yield known
    finally:
        known.close()
        if known.problem:
            complain(f"note: what is equal is not remembered: {known.problem.lower()} path={path}")


def _identity(where: str) -> str:
    """Return a text for the place: its options, credentials among them, are left out."""
    return _path(where) or where.partition("?")[0].rstrip("/")


def _path(where: str) -> str | None:
    """Return the real path of a directory that a path or a file URL names; None for other URLs."""
    if "://" not in where:
        return os.path.realpath(where)
    if where[:7].lower() != "file://":
        return None
    place = where[7:].partition("?")[0]
    return os.path.realpath(unquote("/" + place.partition("/")[2], errors="surrogateescape"))


def _refuse_itself(source: str, target: str) -> None:
    ours, theirs = _path(source), _path(target)
    if ours is not None and theirs is not None:
        same = os.path.commonpath([ours, theirs]) == ours
    else:
        same = source.rstrip("/") == target.rstrip("/")
    if same:
        raise typer.BadParameter("a store cannot be copied into itself: DST is SRC, or a directory in it")
