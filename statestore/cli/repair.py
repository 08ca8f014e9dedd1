"""``repair``: a log ended behind its last whole record, with all that stood there kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statestore import names
from statestore.cli.progress import busy
from statestore.cli.screen import Screen, emit, plural
from statestore.cli.targets import Json, LogArgument, StoreArgument, find, open_for
from statestore.cli.verify import describe_verdict, state_of, tell_verdict

if TYPE_CHECKING:
    from statestore.records.repair import Plan
    from statestore.store import Store

__all__ = ["repair"]


def repair(
    store: StoreArgument,
    log: LogArgument = None,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="FILE", help="Keep what is cut in this new file.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="NEW", help="Cut nothing: copy what is whole to this new log.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """End a damaged log behind its last whole record.

    What will be done is shown first, and asked about. All that stands behind the last whole record is cut, and kept in
    a new file before that; records found behind damage go too, since a body can hold anything that looks like one.
    Where a store cannot cut, as a bucket, and wherever you like, --to copies what is whole to a new log, and the
    damaged one stays as it is.

    A torn end alone needs no repair: the next append cuts it.

    \b
    Examples:
      statestore repair ./sessions 1a2b3c4d --dry-run
      statestore repair ./sessions/1a2b3c4d.state --keep damage.bin
      statestore repair s3://bucket/agents 1a2b3c4d --to 1a2b3c4d-whole --yes
    """
    if keep is not None and to is not None:
        raise typer.BadParameter("give --keep or --to, not both: nothing is cut where a copy is made")
    if to is not None:
        names.check(to)
    asks = not (yes or dry_run)
    if asks and (json or not sys.stdin.isatty()):
        raise typer.BadParameter("nobody can be asked here: give --yes, or --dry-run to see what would be done")
    target = find(store, log)

    from statestore.records import new_id
    from statestore.records.repair import cut, plan, save

    screen = Screen()
    with open_for(target.store) as opened:
        with busy("repair"):
            found = plan(opened, target.log)
        kept = keep or Path(f"{target.log.rpartition('/')[2]}.cut-{found.size}-{new_id()}")
        if not json:
            tell_verdict(screen, found.verdict, target.log)
        if found.surplus:
            _check(opened, found, to)
            if not json:
                _announce(screen, found, kept, to)
            if asks and not typer.confirm("Do it?", err=True):
                raise typer.Exit(1)
            if not dry_run:
                with busy("repair"):
                    save(opened, found, to) if to else cut(opened, found, kept)
    done = found.surplus > 0 and not dry_run
    if json:
        emit(_describe(found, None if to else kept, to, done=done))
    elif not found.surplus:
        screen.put("nothing to repair", lead=[" " * 12])
    elif done:
        screen.put((to or target.log, "bold"), f"  {_whole(found)}", lead=[(f"{'repaired':<12}", "green")])


def _check(store: Store, found: Plan, to: str | None) -> None:
    """Refuse before anybody is asked what could not be done."""
    from statestore.errors import NotFound, NotSupported

    if to is None and not store.capabilities.cuts:
        raise NotSupported("this store cannot cut a log: --to copies what is whole to a new one", log=found.log)
    if to is not None and not found.size:
        raise NotFound("no record is whole, so there is nothing to copy", log=found.log)


def _announce(screen: Screen, found: Plan, kept: Path, to: str | None) -> None:
    if to is not None:
        screen.put((to, "bold"), f"  gets {_whole(found)}; the log itself stays as it is", lead=[_step("copy")])
        return
    gone = "" if found.size else "; no record is whole, so there is no log then"
    screen.put(f"{plural(found.surplus, 'byte')} behind byte {found.size}{gone}", lead=[_step("cut")])
    screen.put(str(kept), lead=[_step("kept in")])


def _step(word: str) -> tuple[str, str]:
    return f"{word:<12}", "bold"


def _whole(found: Plan) -> str:
    return f"{plural(found.verdict.records, 'record')}, {plural(found.size, 'byte')}"


def _describe(found: Plan, kept: Path | None, to: str | None, *, done: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"log": found.log, "state": state_of(found.verdict)} | describe_verdict(found.verdict)
    return row | {
        "surplus": found.surplus,
        "kept": str(kept) if kept and found.surplus else None,
        "to": to,
        "done": done,
    }
