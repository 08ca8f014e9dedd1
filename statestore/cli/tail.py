"""``tail``: the last records of a log, and those to come."""

from __future__ import annotations

import select
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from statestore.cli.screen import Screen, emit
from statestore.cli.show import described
from statestore.cli.targets import Json, LogArgument, StoreArgument, find, open_for
from statestore.cli.values import whole

if TYPE_CHECKING:
    from statestore.errors import Corrupt
    from statestore.records import Record, RecordLog

__all__ = ["tail"]

_LAST = 10


def tail(
    store: StoreArgument,
    log: LogArgument = None,
    last: Annotated[int | None, whole("--last", "The last N records; 10 by default.", least=0, short="-n")] = None,
    start: Annotated[int | None, whole("--from", "All records from number N on.", least=1)] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more, until interrupted.")] = False,
    json: Json = False,
) -> None:
    """Show the last records of a log, and with -f those to come.

    With -f each record is printed as it is appended, whoever does it. A log on this machine tells when it changes;
    elsewhere its end is looked at soon after a record has come, and every 5 seconds while none does. A torn end is
    waited for: it may be an append that goes on. A log that is deleted or made anew ends the command.

    \b
    Examples:
      statestore tail ./sessions 1a2b3c4d -f
      statestore tail s3://bucket/agents 1a2b3c4d -n 3
      statestore tail ./sessions/1a2b3c4d.state -f --from 120 --json
    """
    if last is not None and start is not None:
        raise typer.BadParameter("give --last or --from, not both")
    target = find(store, log)

    from statestore.records import RecordLog
    from statestore.store import Tail

    with open_for(target.store) as opened:
        records, put = RecordLog(opened, target.log), _printer(as_json=json)
        at, number = None, start or 1
        if start is None:
            run = opened.tail(target.log).run
            latest, damage = _latest(records, max(_LAST if last is None else last, 1))
            for record in latest if last != 0 else ():
                put(record, record.n)
            if damage:
                raise damage
            if latest:
                # Found from the end, they are numbered as their headers say, which could be anything.
                end = latest[-1].end
                at, number = Tail(end, run), min(max(latest[-1].n, 1), end) + 1
        if follow:
            stop = _reader_has_gone()
            for place, record in enumerate(records.follow(number, at=at, stop=stop), number):
                put(record, place)
            if stop():
                raise BrokenPipeError
        elif start is not None:
            for place, record in enumerate(records.read(start), start):
                put(record, place)


def _latest(log: RecordLog, count: int) -> tuple[list[Record], Corrupt | None]:
    """Return the last records, and the damage behind them."""
    from statestore.errors import Corrupt

    try:
        return log.last(count), None
    except Corrupt:
        kept: deque[Record] = deque(maxlen=count)
        try:
            kept.extend(log)
        except Corrupt as damage:
            return list(kept), damage
        return list(kept), None


def _printer(*, as_json: bool) -> Callable[[Record, int], None]:
    """Return what prints a record at once."""
    from statestore.cli.story import Story

    screen, story = Screen(), Story()

    def put(record: Record, number: int) -> None:
        if as_json:
            emit({"record": described(record, number)})
        else:
            for line in story.tell(record, number):
                screen.put(*line.text, lead=line.lead)
        sys.stdout.flush()

    return put


def _reader_has_gone() -> Callable[[], bool]:
    """Return what says whether nobody reads the output any more: a log that is silent would not tell."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return lambda: False
    gone = select.poll()
    gone.register(descriptor, 0)
    return lambda: bool(gone.poll(0))
