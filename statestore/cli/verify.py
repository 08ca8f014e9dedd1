"""``verify``: whether everything a store holds is whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from statestore.cli.screen import Screen, describe, emit, plural
from statestore.cli.targets import SUFFIX, Json, LogArgument, StoreArgument, find, open_for

if TYPE_CHECKING:
    from statestore.cli.targets import Target
    from statestore.errors import StateStoreError
    from statestore.records import Verdict
    from statestore.store import Problem, Store

__all__ = ["verify"]

_STYLES: Final = {
    "ok": "green",
    "torn": "yellow",
    "corrupt": "bold red",
    "unreadable": "bold red",
    "damaged": "bold red",
}


def verify(store: StoreArgument, log: LogArgument = None, json: Json = False) -> None:
    """Check whether logs are whole, torn or corrupt.

    One log is read, or all of a store, and nothing is changed.

    A torn end is what a crash leaves of an append that was never acknowledged: a warning, cut by the next append.
    Corrupt is what no crash explains: the command goes on to the other logs, and exits with 1. Where a store keeps
    logs in pieces, each piece is read and compared with the others, and damaged is what is wrong with one.

    \b
    Examples:
      statestore verify ./sessions
      statestore verify ./sessions 1a2b3c4d
      statestore verify ./sessions/1a2b3c4d.state --json
    """
    from statestore.errors import Corrupt
    from statestore.store import Problem

    one = log is not None or ("://" not in store and store.endswith(SUFFIX))
    target = find(store, log) if one else None
    counts = dict.fromkeys(_STYLES, 0)
    screen = Screen()
    with open_for(target.store if target else store) as opened:
        for name, found in _verdicts(opened, target):
            state = _state(found)
            counts[state] += 1
            if json:
                emit({"log": name, "state": state} | _describe(found))
            elif isinstance(found, Problem):
                screen.put((name or "no log", "bold"), f"  {found.object}: {found.message}", lead=[_lead(state)])
            else:
                _tell(screen, name, found, state)
    told = ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)
    if not target and not json:
        logs = sum(counts.values()) - counts["damaged"]
        screen.put((f"{plural(logs, 'log')}: " if told else "no logs", "bold"), told)
    bad = {state: counts[state] for state in ("corrupt", "unreadable", "damaged") if counts[state]}
    if bad:
        raise Corrupt("not everything is whole: see each log above", **bad)


def _verdicts(store: Store, target: Target | None) -> Iterator[tuple[str, Verdict | StateStoreError | Problem]]:
    """Yield what is found in the one log, or in each; what cannot be read is told, and the others are still read."""
    from statestore.errors import Corrupt, NotFound, StateStoreError
    from statestore.records import verify as examine

    damaged = set()
    maintenance = store.maintenance
    for problem in maintenance.check(target.log if target else "") if maintenance else ():
        if target is None or problem.log in (target.log, ""):
            damaged.add(problem.log)
            yield problem.log, problem
    if target:
        yield target.log, examine(store, target.log)
        return
    try:
        for info in store.list():
            try:
                yield info.name, examine(store, info.name)
            except NotFound:
                continue  # it was deleted meanwhile, or its creation died
            except StateStoreError as error:
                yield info.name, error
    except Corrupt:
        # What lies in the way of a listing has been told above.
        if not damaged:
            raise


def _lead(state: str) -> tuple[str, str]:
    return f"{state:<12}", _STYLES[state]


def _state(found: Verdict | StateStoreError | Problem) -> str:
    if isinstance(found, Exception):
        return "unreadable"
    if isinstance(found, tuple):
        return "damaged"
    return "corrupt" if found.corrupt else "torn" if found.torn else "ok"


def _describe(found: Verdict | StateStoreError | Problem) -> dict[str, Any]:
    if isinstance(found, Exception):
        return describe(found)
    if isinstance(found, tuple):
        return {"object": found.object, "message": found.message}
    damage = found.corrupt
    return {
        "records": found.records,
        "size": found.size,
        "torn": found.torn,
        "corrupt": {"record": damage.record, "offset": damage.offset, "reason": damage.message} if damage else None,
        "following": found.following,
        "misnumbered": found.misnumbered,
    }


def _tell(screen: Screen, log: str, found: Verdict | StateStoreError, state: str) -> None:
    notes = []
    if isinstance(found, Exception):
        whole = str(found)
    else:
        whole = f"{plural(found.records, 'record')}, {plural(found.size, 'byte')}"
        if found.torn:
            notes.append(f"{plural(found.torn, 'byte')} of an append that a crash cut short; the next append cuts them")
        if found.corrupt:
            notes.append(f"record {found.corrupt.record} at byte {found.corrupt.offset}: {found.corrupt.message}")
            notes.append(f"{plural(found.following, 'whole record')} found behind the damage")
        if found.misnumbered is not None:
            notes.append(f"record {found.misnumbered} is the first whose header has another number than its place")
    screen.put((log, "bold"), "  ", whole, lead=[_lead(state)])
    for note in notes:
        screen.put(note, lead=[" " * 12])
