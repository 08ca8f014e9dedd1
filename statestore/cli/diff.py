"""``diff``: where two logs part, and what each has since."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from statestore.cli.progress import progress
from statestore.cli.screen import Screen, emit, plural
from statestore.cli.targets import Json, Target, complete_log, find, is_file, open_for
from statestore.cli.values import whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statestore.cli.story import Line
    from statestore.errors import Corrupt
    from statestore.records import Record
    from statestore.records.parting import Parting
    from statestore.store import Snapshot

__all__ = ["diff"]

_SHOWN: Final = 10
_MARGIN: Final = " " * 7  # where show has the number of a record


def diff(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="STORE A [OTHER] B", help="Two logs of a store, or of two stores.", autocompletion=complete_log
        ),
    ],
    limit: Annotated[int | None, whole("--limit", "Show at most so many of each; 10 by default.", least=0)] = None,
    json: Json = False,
) -> None:
    """Show where two logs part, and what each has since.

    Records are compared byte by byte, so a fork has all of what it was made of in common with it. A torn end is told
    and does not count. The status is 0 where both hold the same records, and 1 where they do not.

    A log may be given as the path of its .state file.

    \b
    Examples:
      statestore diff ./sessions 1a2b3c4d retry
      statestore diff ./sessions 1a2b3c4d s3://bucket/agents 1a2b3c4d
      statestore diff old/1a2b3c4d.state new/1a2b3c4d.state --json
    """
    from statestore.records.parting import parting

    one, other = _targets(places)
    shown = _SHOWN if limit is None else limit
    with open_for(one.store) as ours, open_for(other.store) as theirs:
        snapshots = ours.snapshot(one.log), theirs.snapshot(other.log)
        streams = [snapshot.stream() for snapshot in snapshots]
        both = parting(snapshots[0].read, progress(streams[0], "diff"), streams[1])
        sides = [_Side("-", one, snapshots[0], both), _Side("+", other, snapshots[1], both)]
        blocks = [_emit(side, shown) if json else _read(side, shown) for side in sides]
    equal = not any(side.records or side.corrupt for side in sides)
    if json:
        same = {"records": both.records, "size": both.size}
        emit({"summary": {"equal": equal, "same": same, "sides": [_describe(side) for side in sides]}})
    else:
        screen, told = Screen(), f"{plural(both.records, 'record')}, {plural(both.size, 'byte')}"
        screen.put((told, "bold"), lead=[("equal  ", "green") if equal else ("same  ", "dim")])
        for side, lines in zip(sides, blocks, strict=True):
            if not equal or side.torn:
                _tell(screen, side, lines)
    if not equal:
        raise typer.Exit(1)


@dataclass(slots=True)
class _Side:
    """One of the two logs, and what it has behind the records that both have."""

    mark: str
    target: Target
    snapshot: Snapshot
    both: Parting
    records: int = 0
    size: int = 0
    shown: int = 0
    torn: int = 0
    corrupt: Corrupt | None = None
    kinds: Counter[str] = field(default_factory=Counter)

    def read(self, bodies: int) -> Iterator[tuple[int, Record]]:
        """Yield the records and their numbers; all are counted, and so many have bodies and are given."""
        from statestore.errors import Corrupt
        from statestore.records import Scan

        log = self.target.log
        with_bodies = Scan(
            self.snapshot.read,
            start=self.both.size,
            number=self.both.records + 1,
            before=self.both.records + 1 + bodies,
            log=log,
        )
        scan = with_bodies
        try:
            for record in with_bodies:
                self.kinds[record.kind] += 1
                self.shown += 1
                yield with_bodies.number - 1, record
            scan = Scan(self.snapshot.read, start=scan.end, number=scan.number, bodies=False, log=log)
            for record in scan:
                self.kinds[record.kind] += 1
        except Corrupt as error:
            self.corrupt = error
        self.records, self.size, self.torn = scan.number - 1 - self.both.records, scan.end - self.both.size, scan.torn


def _targets(places: list[str]) -> tuple[Target, Target]:
    rest = list(places)

    def take() -> Target:
        store = rest.pop(0) if rest else ""
        return find(store, None if is_file(store) or not rest else rest.pop(0))

    one = take()
    other = find(str(one.store), rest.pop()) if len(rest) == 1 and not is_file(rest[0]) else take()
    if rest:
        raise typer.BadParameter("give two logs: STORE A B, or STORE A OTHER B")
    return one, other


def _read(side: _Side, shown: int) -> list[Line]:
    """Return the first of what one of the two has since as `show` tells it, and count the rest."""
    from statestore.cli.story import Story

    story = Story()
    return [line for number, record in side.read(shown) for line in story.tell(record, number) if line.lead]


def _tell(screen: Screen, side: _Side, lines: list[Line]) -> None:
    """Print how much one of the two has since, and the first of it."""
    mark = (f"{side.mark} ", "red" if side.mark == "-" else "green")
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in side.kinds.most_common())
    since = f"{plural(side.records, 'record')}, {plural(side.size, 'byte')} since: {kinds}"
    name = f"{side.target.store} {side.target.log}"
    screen.put((name, "bold"), f"  {since if side.records else 'nothing since'}", lead=[mark])
    for line in lines:
        screen.put(*line.text, lead=[mark, *line.lead])
    if side.records > side.shown:
        screen.put((f"and {side.records - side.shown:,} more: --limit shows more", "dim"), lead=[mark, _MARGIN])
    if side.torn:
        screen.put(f"torn: {plural(side.torn, 'byte')} of an append that a crash cut short", lead=[mark, _MARGIN])
    if side.corrupt:
        damage = f"corrupt: record {side.corrupt.record} at byte {side.corrupt.offset}: {side.corrupt.message}"
        screen.put((damage, "bold red"), lead=[mark, _MARGIN])


def _emit(side: _Side, shown: int) -> list[Line]:
    from statestore.cli.show import described

    for number, record in side.read(shown):
        emit({"side": side.mark, "record": described(record, number)})
    return []


def _describe(side: _Side) -> dict[str, Any]:
    damage = side.corrupt
    return {
        "side": side.mark,
        "store": str(side.target.store),
        "log": side.target.log,
        "records": side.records,
        "size": side.size,
        "kinds": dict(side.kinds),
        "torn": side.torn,
        "corrupt": {"record": damage.record, "offset": damage.offset, "reason": damage.message} if damage else None,
    }
