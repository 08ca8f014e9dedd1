"""``ls`` and ``cat``: which logs there are, and the exact bytes of one."""

from __future__ import annotations

import base64
import codecs
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statestore.cli.safe import safe
from statestore.cli.screen import Screen, columns, emit, write
from statestore.cli.targets import Json, LogArgument, StoreArgument, StoreOnly, find, open_for
from statestore.cli.values import whole

if TYPE_CHECKING:
    from statestore.store import LogInfo, Store

__all__ = ["cat", "ls"]


def ls(
    store: StoreOnly,
    prefix: Annotated[str, typer.Option(help="Only names that begin so.", show_default=False)] = "",
    after: Annotated[str, typer.Option(help="Only names greater than this one.", show_default=False)] = "",
    limit: Annotated[int | None, whole("--limit", "At most so many.", least=1)] = None,
    long: Annotated[bool, typer.Option("--long", help="Read each log too: its records and its status.")] = False,
    json: Json = False,
) -> None:
    """List the logs of a store and their sizes in bytes.

    With --long each log is read for its records and its status: open, closed, interrupted, failed or stepping for a
    session; corrupt; torn, where a crash cut the last append short; else a dash.

    Elsewhere than on a terminal there is nothing but the names, one a line; --long adds size, records and status,
    each behind a tab.

    \b
    Examples:
      statestore ls ./sessions
      statestore ls ./sessions --long --prefix teams/a/
      statestore ls ./sessions --limit 100 --after 1a2b3c4d --json
    """
    with open_for(store) as opened:
        rows = opened.list(prefix, after=after, tails=True)
        page = rows if limit is None else islice(rows, limit)
        if json:
            for info in page:
                emit(_row(opened, info, long))
        elif sys.stdout.isatty():
            last = _table(opened, page, long)
            if limit is not None and next(rows, None):
                Screen().put(("there are more: ", "dim"), f"--after {last}")
        else:
            # Whatever a script takes from here is a log: no header, no remark, and no blank in any field.
            for info in page:
                more: list[str] = []
                if long:
                    row = _row(opened, info, long)
                    more = [str(row["size"]), str(row["records"]), ",".join(_state(row))]
                columns(info.name, *more)


def _row(store: Store, info: LogInfo, long: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"log": info.name, "size": info.tail.size if info.tail else None}
    if long:
        from statestore.cli.digest import digest

        found = digest(store, info.name)
        row |= {"records": found.records, "torn": found.torn, "status": "corrupt" if found.corrupt else found.status}
    return row


def _state(row: dict[str, Any]) -> list[str]:
    """Return the words of a log's status."""
    return list(filter(None, [row["status"], "torn" if row["torn"] else None])) or ["-"]


def _table(store: Store, page: Iterable[LogInfo], long: bool) -> str:
    """Print logs for a person, as they are found, and return the last one's name."""
    screen, last = Screen(), ""
    for info in page:
        if not last:
            _put(screen, ["SIZE", "RECORDS", "STATUS"] if long else ["SIZE"], "LOG", "dim")
        row = _row(store, info, long)
        cells = [f"{row['size']:,}"]
        if long:
            cells += [f"{row['records']:,}", ", ".join(_state(row))]
        _put(screen, cells, info.name, "")
        last = info.name
    if not last:
        screen.put("no logs")
    return last


def _put(screen: Screen, cells: list[str], name: str, style: str) -> None:
    size, *rest = cells
    line = f"{size:>16}  "
    if rest:
        line += f"{rest[0]:>10}  {rest[1]:<17}  "
    screen.put((name, style), lead=[(line, style)])


def cat(
    store: StoreArgument,
    log: LogArgument = None,
    record: Annotated[int | None, whole("--record", "Only this record.", least=1)] = None,
    body: Annotated[bool, typer.Option("--body", help="Only the record's body.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Exact bytes on a terminal too.")] = False,
    json: Json = False,
) -> None:
    """Print the exact bytes of a log or of one record.

    Nothing is added, left out or changed, a torn end is part of it, and any size passes in bounded memory. Only on
    a terminal are control characters, which could drive it, shown as escapes; --raw gives them to it all the same.

    \b
    Examples:
      statestore cat ./sessions 1a2b3c4d > copy.state
      statestore cat ./sessions 1a2b3c4d --record 4 --body > picture.png
    """
    if body and record is None:
        raise typer.BadParameter("--body belongs to --record N")
    target = find(store, log)
    with open_for(target.store) as opened:
        start, stop = 0, None
        if record is not None:
            start, stop = _place(opened, target.log, record, body)
        pieces = opened.stream(target.log, start, stop)
        if json:
            for piece in pieces:
                emit({"offset": start, "base64": base64.b64encode(piece).decode("ascii")})
                start += len(piece)
        elif sys.stdout.isatty() and not raw:
            _show(pieces)
        else:
            for piece in pieces:
                write(piece)


def _place(store: Store, log: str, number: int, body: bool) -> tuple[int, int]:
    """Return the offsets between which a record, or its body, stands."""
    from statestore.errors import NotFound
    from statestore.records import Scan

    # The body is not fetched: whoever wants it streams it.
    records = Scan(store.snapshot(log).read, first=number, before=number + 1, bodies=False, log=log)
    for found in records:
        return (found.offset + len(found.line) + 1, found.end - 1) if body else (found.offset, found.end)
    raise NotFound("the log has no such record", log=log, record=number, records=records.number - 1)


def _show(pieces: Iterator[bytes]) -> None:
    """Print bytes on a terminal, line by line, with escapes for what could drive it."""
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    for piece in pieces:
        sys.stdout.write("\n".join(map(safe, decoder.decode(piece).split("\n"))))
    sys.stdout.write("\n".join(map(safe, decoder.decode(b"", final=True).split("\n"))))
