"""``verify``: whether everything a store holds is whole."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

from statestore.cli.parallel import JOBS, count_logs, each_log
from statestore.cli.progress import progress
from statestore.cli.screen import Screen, describe, emit, plural
from statestore.cli.targets import Json, LogArgument, StoreArgument, find, is_file, open_for
from statestore.cli.values import whole

if TYPE_CHECKING:
    from statestore.cli.targets import Target
    from statestore.errors import StateStoreError
    from statestore.records import Verdict
    from statestore.store import Problem, Store

__all__ = ["describe_verdict", "state_of", "tell_verdict", "verify"]

_STYLES: Final = {  # the worst first
    "damaged": "bold red",
    "unreadable": "bold red",
    "corrupt": "bold red",
    "torn": "yellow",
    "ok": "green",
}
_NAMED: Final = 10  # logs that are named again at the end, for each state


def verify(
    store: StoreArgument,
    log: LogArgument = None,
    jobs: Annotated[int | None, whole("--jobs", f"Read so many logs at once; {JOBS} by default.", least=1)] = None,
    json: Json = False,
) -> None:
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

    target = find(store, log) if log is not None or is_file(store) else None
    screen, report = Screen(), _Report()
    with (
        open_for(target.store if target else store) as opened,
        closing(_verdicts(opened, target, jobs or JOBS)) as verdicts,
    ):
        for name, found in progress(verdicts, "verify", None if target or opened.maintenance else count_logs(opened)):
            state = state_of(found)
            report.add(state, name, found)
            if json:
                emit({"log": name, "state": state} | describe_verdict(found))
            else:
                tell_verdict(screen, found, name)
    if not target:
        if json:
            emit({"summary": report.describe()})
        else:
            report.tell(screen)
    bad = {state: report.counts[state] for state in ("corrupt", "unreadable", "damaged") if report.counts[state]}
    if bad:
        raise Corrupt("not everything is whole: see each log above", **bad)


@dataclass
class _Report:
    """What all logs of a store amount to, in bounded memory."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_STYLES, 0))
    named: dict[str, list[str]] = field(default_factory=lambda: {state: [] for state in _STYLES})
    records: int = 0
    size: int = 0
    torn: int = 0

    @property
    def logs(self) -> int:
        return sum(self.counts.values()) - self.counts["damaged"]

    def add(self, state: str, name: str, found: Verdict | StateStoreError | Problem) -> None:
        from statestore.records import Verdict

        self.counts[state] += 1
        if len(self.named[state]) < _NAMED:
            self.named[state].append(name)
        if isinstance(found, Verdict):
            self.records += found.records
            self.size += found.size
            self.torn += found.torn

    def describe(self) -> dict[str, int]:
        sums = {"records": self.records, "size": self.size, "torn_bytes": self.torn}
        return {"logs": self.logs, **self.counts, **sums}

    def tell(self, screen: Screen) -> None:
        """Print the sums, and again, the worst first, which logs are not whole: their lines may be far above."""
        told = ", ".join(f"{count:,} {state}" for state, count in self.counts.items() if count)
        if not told:
            screen.put(("no logs", "bold"))
            return
        sums = ", ".join([plural(self.logs, "log"), plural(self.records, "record"), plural(self.size, "byte")])
        screen.put((f"{sums}: ", "bold"), told)
        for state, names in self.named.items():
            if names and state != "ok":
                more = self.counts[state] - len(names)
                screen.put(
                    ", ".join(name or "no log" for name in names),
                    f" and {more:,} more" if more else "",
                    lead=[_lead(state)],
                )


def _verdicts(
    store: Store, target: Target | None, jobs: int
) -> Generator[tuple[str, Verdict | StateStoreError | Problem]]:
    """Yield what is found in the one log, or in each; what cannot be read is told, and the others are still read."""
    from statestore.errors import Corrupt
    from statestore.records.verify import examine

    damaged = set()
    maintenance = store.maintenance
    for problem in maintenance.check(target.log if target else "") if maintenance else ():
        if target is None or problem.log in (target.log, ""):
            damaged.add(problem.log)
            yield problem.log, problem
    if target:
        yield target.log, examine(target.log, store.snapshot(target.log).read)
        return
    try:
        yield from each_log(store, (info.name for info in store.list()), examine, jobs)
    except Corrupt:
        # What lies in the way of a listing has been told above.
        if not damaged:
            raise


def _lead(state: str) -> tuple[str, str]:
    return f"{state:<12}", _STYLES[state]


def state_of(found: Verdict | StateStoreError | Problem) -> str:
    """Return the one word for what was found."""
    if isinstance(found, Exception):
        return "unreadable"
    if isinstance(found, tuple):
        return "damaged"
    return "corrupt" if found.corrupt else "torn" if found.torn else "ok"


def describe_verdict(found: Verdict | StateStoreError | Problem) -> dict[str, Any]:
    """Return what was found for JSON."""
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


def tell_verdict(screen: Screen, found: Verdict | StateStoreError | Problem, log: str) -> None:
    """Print what was found for a person."""
    lead, notes = [_lead(state_of(found))], list[str]()
    if isinstance(found, tuple):
        whole = f"{found.object}: {found.message}"
    elif isinstance(found, Exception):
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
    screen.put((log or "no log", "bold"), "  ", whole, lead=lead)
    for note in notes:
        screen.put(note, lead=[" " * 12])
