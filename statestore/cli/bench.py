"""``bench``: what each operation costs on a store of yours, measured in a place that is gone afterwards."""

from __future__ import annotations

import json as spelling
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_origin
from urllib.parse import parse_qsl

import typer

from statestore.cli.live import Options, check_file, ended_by_signals, parse_options
from statestore.cli.progress import progress
from statestore.cli.screen import Screen, complain, emit, plural
from statestore.cli.targets import Json, open_for, serving
from statestore.cli.values import whole

if TYPE_CHECKING:
    from statestore.bench import Bench, Row
    from statestore.plugins import Backend

__all__ = ["bench"]

_NAME: Final = 10  # columns
_WIDTHS: Final = (6, 13, 11, 9, 9, 9, 9)
_WIDE: Final = (12, 16, 16)
_TRAFFIC: Final = (("requests", 2), ("sent", 0), ("received", 0))  # with the digits behind the point
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def bench(
    store: Annotated[
        str | None,
        typer.Argument(
            metavar="STORE", help="A directory or a URL; a temporary directory by default.", show_default=False
        ),
    ] = None,
    option: Options = None,
    records: Annotated[int | None, whole("--records", "Append so many records, 100 by default.", least=1)] = None,
    size: Annotated[int | None, whole("--size", "Bytes of a record's body, 1024 by default.", least=1)] = None,
    logs: Annotated[int | None, whole("--logs", "List and fill so many logs, 20 by default.", least=1)] = None,
    workers: Annotated[int | None, whole("--workers", "By so many threads, 4 by default.", least=1)] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this operation.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the JSON to this file too.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Measure what each operation costs on a store.

    Append to a log, held and not, one record at a time and in batches; scan, load, the last ten, fork; append to many
    logs by several threads; list. What was written is read and compared: where it is not the same, the status is 1.

    All is done below a new prefix, bench- and twelve digits, and removed afterwards. No log of yours is touched.

    The operations are append, held, batch, scan, load, last, fork, many, list and tails.

    \b
    Examples:
      statestore bench
      statestore bench ./sessions --option sync=never --records 10000
      statestore bench s3://bucket/agents --only append --only scan --output s3.json
    """
    from statestore.bench import OPERATIONS, Bench, Sizes, watched

    known = [operation.name for operation in OPERATIONS]
    if wrong := sorted(set(only or ()) - set(known)):
        raise typer.BadParameter(f"--only is one of {', '.join(known)}, not {', '.join(map(repr, wrong))}")
    if output is not None:
        check_file(output)
    options = parse_options(option)
    given = {"records": records, "size": size, "logs": logs, "workers": workers}
    sizes = Sizes(**{name: number for name, number in given.items() if number is not None})
    screen = Screen()
    with ended_by_signals(), _place(store) as place:
        with open_for(place, options=options) as first:
            next(first.list("bench-none/"), None)  # loads what the storage needs: only then can it be watched
        with watched() as watch, open_for(place, options=options) as opened:
            measured = Bench(opened, sizes, only=only or (), watch=watch)
            try:
                with measured:
                    if not json:
                        _tell_head(screen, measured, temporary=store is None)
                    for row in progress(measured.run(), "bench", measured.total):
                        if row and not json:
                            _tell(screen, row)
            finally:
                for remark in measured.left:
                    complain(f"note: {remark}")
    found = _describe(measured, place, options, temporary=store is None)
    if json:
        emit(found)
    else:
        _tell_traffic(screen, measured)
    if output is not None:
        output.write_text(spelling.dumps(found, indent=2) + "\n", encoding="ascii")


@contextmanager
def _place(store: str | None) -> Iterator[str]:
    """Yield the store that was named, or a temporary directory."""
    if store is not None:
        yield store
        return
    with TemporaryDirectory(prefix="statestore-bench-") as directory:
        yield directory


def _describe(measured: Bench, place: str, options: dict[str, str], *, temporary: bool) -> dict[str, Any]:
    """Return all that was found, with where and how that was."""
    from statestore.plugins import redact

    backend = next(iter(serving(place)), None)
    where = {
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "place": redact(place),
        "temporary": temporary,
        "backend": backend.name if backend else None,
        "options": _harmless(backend, place, options) if backend else {},
    }
    return where | measured.describe()


def _harmless(backend: Backend, place: str, options: dict[str, str]) -> dict[str, Any]:
    """Return the options as they were, but for those that could hold a credential: any text but a choice of words."""
    from pydantic import TypeAdapter

    query = dict(parse_qsl(place.partition("?")[2], keep_blank_values=True))
    shown = {}
    for name, field in backend.options.model_fields.items():
        kind: Any = field.annotation
        if get_origin(kind) is Literal or kind in (bool, int, float):
            variable = os.environ.get(f"STATESTORE_{backend.name}_{name}".upper().replace("-", "_"))
            given = options.get(name, query.get(name, variable or None))
            shown[name] = field.default if given is None else TypeAdapter(kind).validate_python(given)
    return shown


def _tell_head(screen: Screen, measured: Bench, *, temporary: bool) -> None:
    sizes, can = measured.sizes, measured.store.capabilities
    where = ", a temporary one, since none was named" if temporary else ""
    _line(screen, "store", f"{measured.store!r}{where}")
    _line(screen, "appends", "durable" if can.durable else "durable once flushed" if can.flushes else "not durable")
    bodies = f"{plural(sizes.size, 'byte')} in a body"
    _line(screen, "sizes", f"{bodies}, {plural(sizes.logs, 'log')}, {plural(sizes.workers, 'thread')}")
    screen.put()
    _cells(screen, "OPERATION", ["TIMES", "EACH", "A SECOND", "MB/S", "MEDIAN", "P10", "P90"], _WIDTHS, "dim")


def _tell(screen: Screen, row: Row) -> None:
    if row.skipped:
        screen.put((f"not done: {row.skipped}", "yellow"), lead=[f"{row.operation:<{_NAME}}"])
        return
    each = plural(row.items // row.times, row.item)
    speed = f"{row.bytes_per_second / 1e6:,.1f}" if row.size else "-"
    times = [_time(seconds) for seconds in (row.median, row.p10, row.p90)]
    _cells(screen, row.operation, [f"{row.times:,}", each, f"{row.items_per_second:,.0f}", speed, *times], _WIDTHS)


def _tell_traffic(screen: Screen, measured: Bench) -> None:
    """Print what one operation sends and gets, or that nobody has counted it."""
    screen.put()
    rows = [(row.operation, row.describe()) for row in measured.rows if row.traffic]
    if not rows:
        _line(screen, "requests", "not counted, nor their bytes: the store sends none by aiohttp")
        return
    _cells(screen, "OF ONE", ["REQUESTS", "BYTES SENT", "BYTES RECEIVED"], _WIDE, "dim")
    for name, row in rows:
        _cells(screen, name, [f"{row[key]:,.{digits}f}" for key, digits in _TRAFFIC], _WIDE)


def _line(screen: Screen, word: str, text: str) -> None:
    screen.put(text, lead=[(f"{word:<{_NAME}}", "dim")])


def _cells(screen: Screen, name: str, cells: list[str], widths: tuple[int, ...], style: str = "") -> None:
    row = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    screen.put((f"{name:<{_NAME}}{row}", style))


def _time(seconds: float) -> str:
    """Return ``305 µs``, ``1.22 ms``, ``2.50 s``: three digits."""
    unit, word = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    number = seconds / unit
    return f"{number:.{0 if number >= 100 else 1 if number >= 10 else 2}f} {word}"
