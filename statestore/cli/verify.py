"""``verify``: whether everything a store holds is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from statestore.cli.screen import Screen, complain, describe, emit, plural
from statestore.cli.targets import SUFFIX, Json, LogArgument, StoreArgument, find, open_for

if TYPE_CHECKING:
    from statestore.records import Verdict

__all__ = ["verify"]


def verify(store: StoreArgument, log: LogArgument = None, json: Json = False) -> None:
    """Check whether logs are whole, torn or corrupt.

    One log is read, or all of a store, and nothing is changed.

    A torn end is what a crash leaves of an append that was never acknowledged: a warning, cut by the next append.
    Corrupt is what no crash explains: the command goes on to the other logs, and exits with 1.

    \b
    Examples:
      statestore verify ./sessions
      statestore verify ./sessions 1a2b3c4d
      statestore verify ./sessions/1a2b3c4d.state --json
    """
    from statestore import records
    from statestore.errors import NotFound, StateStoreError

    one = log is not None or ("://" not in store and store.endswith(SUFFIX))
    target = find(store, log) if one else None
    counts = dict.fromkeys(("ok", "torn", "corrupt", "unreadable"), 0)
    with open_for(target.store if target else store) as opened:
        screen = Screen()
        for name in [target.log] if target else (info.name for info in opened.list()):
            try:
                verdict = records.verify(opened, name)
            except StateStoreError as error:
                if target or (isinstance(error, NotFound) and opened.capabilities.deletes):
                    if target:
                        raise
                    continue  # it was deleted meanwhile
                counts["unreadable"] += 1
                if json:
                    emit({"log": name, "state": "unreadable"} | describe(error))
                else:
                    screen.put((name, "bold"), "  ", str(error), lead=[("unreadable  ", "bold red")])
                continue
            state = "corrupt" if verdict.corrupt else "torn" if verdict.torn else "ok"
            counts[state] += 1
            if json:
                emit(_describe(verdict, state))
            else:
                _tell(screen, verdict, state)
    if not target and not json:
        told = [f"{count:,} {state}" for state, count in counts.items() if count]
        screen.put((plural(sum(counts.values()), "log") + ": " if told else "no logs", "bold"), ", ".join(told))
    if counts["corrupt"] or counts["unreadable"]:
        complain(f"error: {plural(counts['corrupt'], 'log')} corrupt, {counts['unreadable']:,} unreadable")
        raise typer.Exit(1)


def _describe(verdict: Verdict, state: str) -> dict[str, Any]:
    damage = verdict.corrupt
    return {
        "log": verdict.log,
        "state": state,
        "records": verdict.records,
        "size": verdict.size,
        "torn": verdict.torn,
        "corrupt": {"record": damage.record, "offset": damage.offset, "reason": damage.message} if damage else None,
        "following": verdict.following,
        "misnumbered": verdict.misnumbered,
    }


def _tell(screen: Screen, verdict: Verdict, state: str) -> None:
    style = {"ok": "green", "torn": "yellow", "corrupt": "bold red"}[state]
    whole = f"{plural(verdict.records, 'record')}, {plural(verdict.size, 'byte')}"
    screen.put((verdict.log, "bold"), "  ", whole, lead=[(f"{state:<12}", style)])
    notes = []
    if verdict.torn:
        notes.append(f"{plural(verdict.torn, 'byte')} of an append that a crash cut short; the next append cuts them")
    if verdict.corrupt:
        notes.append(f"record {verdict.corrupt.record} at byte {verdict.corrupt.offset}: {verdict.corrupt.message}")
        notes.append(f"{plural(verdict.following, 'whole record')} found behind the damage")
    if verdict.misnumbered is not None:
        notes.append(f"record {verdict.misnumbered} is the first whose header has another number than its place")
    for note in notes:
        screen.put(note, lead=[" " * 12])
