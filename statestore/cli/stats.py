"""``stats``: how much there is, of what, and of which day."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from statestore.cli.parallel import JOBS, count_logs, each_log
from statestore.cli.progress import progress
from statestore.cli.screen import Screen, describe, emit, plural
from statestore.cli.targets import Json, LogArgument, StoreArgument, find, is_file, open_for
from statestore.cli.values import whole

if TYPE_CHECKING:
    from statestore.cli.targets import Target
    from statestore.errors import Corrupt, StateStoreError
    from statestore.records import Usage
    from statestore.records.scan import Fetch
    from statestore.store import Store

__all__ = ["stats"]

_KINDS: Final = 1000  # kinds that are counted by name: a log can have as many as records
_SHOWN: Final = 30  # of them for a person
_DAYS: Final = 10_000
_TOKENS: Final = ("input", "output", "cache_read", "cache_write")


def stats(
    store: StoreArgument,
    log: LogArgument = None,
    prefix: Annotated[str, typer.Option("--prefix", help="Only logs whose names begin so.", show_default=False)] = "",
    jobs: Annotated[int | None, whole("--jobs", f"Read so many logs at once; {JOBS} by default.", least=1)] = None,
    json: Json = False,
) -> None:
    """Count records, bytes and tokens, by kind and by day.

    One log is counted, or all of a store. Only headers are looked at, and large bodies are not fetched. Tokens are
    those that steps say they took; days are days in UTC of the times that headers have, which nobody has checked.

    Of a log that is damaged the records before the damage count. It is named, and the command exits with 1.

    \b
    Examples:
      statestore stats ./sessions
      statestore stats ./sessions 1a2b3c4d
      statestore stats s3://bucket/agents --prefix teams/a/ --json
    """
    from statestore.errors import Corrupt

    target = find(store, log) if log is not None or is_file(store) else None
    if target and prefix:
        raise typer.BadParameter("--prefix chooses among all logs: leave LOG out")
    screen, total = Screen(), Count()
    with (
        open_for(target.store if target else store) as opened,
        closing(_counts(opened, target, prefix, jobs or JOBS)) as counts,
    ):
        for name, found in progress(counts, "stats", None if target else count_logs(opened, prefix)):
            damage = found.corrupt if isinstance(found, Count) else found
            if damage:
                _tell_damage(screen, name, damage, json=json)
            if isinstance(found, Count):
                total.add(found)
            else:
                total.unreadable += 1
    if json:
        emit({"summary": _describe(total)})
    else:
        _tell(screen, total)
    bad = {"corrupt": total.corrupted, "unreadable": total.unreadable}
    if any(bad.values()):
        raise Corrupt("not everything was counted: see each log above", **{word: n for word, n in bad.items() if n})


@dataclass(slots=True)
class Part:
    """Some of the records: those of one kind, of one day, or all.

    Attributes:
        records: how many there are.
        size: how many bytes they take.
        steps: how many of them are steps, and `told` how many of these say their tokens.
        tokens: the tokens of these together.
    """

    records: int = 0
    size: int = 0
    steps: int = 0
    told: int = 0
    tokens: list[int] = field(default_factory=lambda: [0] * len(_TOKENS))

    def add_step(self, usage: Usage | None) -> None:
        """Count the tokens of a step."""
        from msgspec.structs import astuple

        self.steps += 1
        if usage is not None:
            self.told += 1
            self._add_tokens(astuple(usage))

    def add(self, other: Part) -> None:
        """Count another part's records too."""
        self.records += other.records
        self.size += other.size
        self.steps += other.steps
        self.told += other.told
        self._add_tokens(other.tokens)

    def _add_tokens(self, tokens: Iterable[int]) -> None:
        self.tokens = [one + more for one, more in zip(self.tokens, tokens, strict=True)]

    def describe(self) -> dict[str, Any]:
        """Return the part for JSON."""
        usage = dict(zip(_TOKENS, self.tokens, strict=True)) if self.told else None
        return {"records": self.records, "size": self.size, "steps": self.steps, "told": self.told, "usage": usage}


@dataclass(slots=True)
class Table:
    """Parts by name, and one for all the records whose names were too many."""

    limit: int
    parts: dict[str, Part] = field(default_factory=dict)
    others: Part = field(default_factory=Part)

    def part(self, name: str) -> Part:
        """Return the part with a name."""
        part = self.parts.get(name)
        if part is None:
            if len(self.parts) >= self.limit:
                return self.others
            part = self.parts[name] = Part()
        return part

    def add(self, other: Table) -> None:
        """Count another table's records too."""
        self.others.add(other.others)
        for name, part in other.parts.items():
            self.part(name).add(part)


@dataclass(slots=True)
class Count:
    """What was counted in one log, or in several.

    Attributes:
        corrupt: the damage in a log, behind what was counted.
    """

    corrupt: Corrupt | None = None
    logs: int = 0
    torn: int = 0
    corrupted: int = 0
    unreadable: int = 0
    all: Part = field(default_factory=Part)
    kinds: Table = field(default_factory=lambda: Table(_KINDS))
    days: Table = field(default_factory=lambda: Table(_DAYS))

    def add(self, other: Count) -> None:
        """Count what was counted elsewhere too."""
        self.logs += other.logs
        self.torn += other.torn
        self.corrupted += other.corrupted
        self.all.add(other.all)
        self.kinds.add(other.kinds)
        self.days.add(other.days)


def _counts(
    store: Store, target: Target | None, prefix: str, jobs: int
) -> Generator[tuple[str, Count | StateStoreError]]:
    if target:
        yield target.log, _count(target.log, store.snapshot(target.log).read)
    else:
        yield from each_log(store, (info.name for info in store.list(prefix)), _count, jobs)


def _count(log: str, fetch: Fetch) -> Count:
    from statestore.errors import Corrupt
    from statestore.records import STEP, Scan
    from statestore.records.times import utc_day

    count = Count(logs=1)
    records, end = Scan(fetch, bodies=False, log=log), 0
    try:
        for record in records:
            header, size, end = record.header, records.end - end, records.end
            for part in (count.all, count.kinds.part(header.kind), count.days.part(utc_day(header.time))):
                part.records += 1
                part.size += size
                if header.kind == STEP:
                    part.add_step(header.usage)
    except Corrupt as damage:
        count.corrupt, count.corrupted = damage, 1
    count.torn = int(records.torn > 0)
    return count


def _tell_damage(screen: Screen, log: str, damage: StateStoreError, *, json: bool) -> None:
    from statestore.errors import Corrupt

    if isinstance(damage, Corrupt) and damage.offset is not None:
        place = {"record": damage.record, "offset": damage.offset, "reason": damage.message}
        row, state = {"corrupt": place}, "corrupt"
        what = f"record {damage.record} at byte {damage.offset}: {damage.message}"
    else:
        row, state, what = describe(damage), "unreadable", str(damage)
    if json:
        emit({"log": log, "state": state} | row)
    else:
        screen.put((log, "bold"), "  ", what, lead=[(f"{state:<12}", "bold red")])


def _describe(total: Count) -> dict[str, Any]:
    logs = {"logs": total.logs + total.unreadable, "torn": total.torn, "corrupt": total.corrupted}
    tables = {
        "kinds": {kind: _describe_kind(part) for kind, part in _largest(total)},
        "other_kinds": _describe_kind(total.kinds.others),
        "days": {day: part.describe() for day, part in sorted(total.days.parts.items())},
        "other_days": total.days.others.describe(),
    }
    return logs | {"unreadable": total.unreadable} | total.all.describe() | tables


def _describe_kind(part: Part) -> dict[str, int]:
    return {"records": part.records, "size": part.size}


def _largest(total: Count) -> list[tuple[str, Part]]:
    return sorted(total.kinds.parts.items(), key=lambda item: (-item[1].records, item[0]))


def _tell(screen: Screen, total: Count) -> None:
    from statestore.cli.story import tokens
    from statestore.records import Usage

    notes = {"corrupt": total.corrupted, "unreadable": total.unreadable, "torn": total.torn}
    told = ", ".join(f"{number:,} {word}" for word, number in notes.items() if number)
    _label(screen, "logs", f"{total.logs + total.unreadable:,}" + (f", {told}" if told else ""))
    _label(screen, "records", f"{total.all.records:,}")
    _label(screen, "bytes", f"{total.all.size:,}")
    if total.all.steps:
        some = f"{total.all.told:,} of " if 0 < total.all.told < total.all.steps else ""
        took = tokens(Usage(*total.all.tokens)) if total.all.told else "unknown"
        _label(screen, "tokens", f"{took} in {some}{plural(total.all.steps, 'step')}")
    if not total.all.records:
        return
    kinds = _largest(total)
    screen.put()
    _row(screen, ["RECORDS", "BYTES"], "KIND", "dim")
    for kind, part in kinds[:_SHOWN]:
        # Text with blanks is ours: a kind, which can be anything, must not pose as it.
        _row(screen, _cells(part), kind if re.fullmatch(r"[^\s\"]+", kind) else dumps(kind, ensure_ascii=False))
    rest = Part()
    for part in [total.kinds.others, *(part for _, part in kinds[_SHOWN:])]:
        rest.add(part)
    if rest.records:
        _row(screen, _cells(rest), "all other kinds", "dim")
    screen.put()
    _row(screen, ["RECORDS", "BYTES", "INPUT", "CACHED", "OUTPUT"], "DAY", "dim")
    for day, part in sorted(total.days.parts.items()):
        _row(screen, _cells(part, tokens=True), day)
    if total.days.others.records:
        _row(screen, _cells(total.days.others, tokens=True), "all other days", "dim")


def _cells(part: Part, *, tokens: bool = False) -> list[str]:
    input_, output, cached, _ = part.tokens
    counts = [input_, cached, output] if tokens and part.told else []
    return [f"{count:,}" for count in (part.records, part.size, *counts)] + ["-"] * (3 * tokens - len(counts))


def _label(screen: Screen, label: str, text: str) -> None:
    screen.put(text, lead=[(f"{label:<12}", "dim")])


def _row(screen: Screen, cells: list[str], name: str, style: str = "") -> None:
    widths = (11, 16, 12, 12, 12)
    line = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=False))
    screen.put((name, style), lead=[(f"{line}  ", style)])
