"""``export`` and ``import`` of one log as JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import typer

from statestore import names
from statestore.cli.progress import busy, progress
from statestore.cli.screen import Screen, complain, emit, plural, write
from statestore.cli.targets import Target, find, is_file, open_for

__all__ = ["bring_in", "give_out"]

_STANDARD = Path("-")


def give_out(store: str, log: str | None, to: Path | None, *, json: bool) -> None:
    """Write a log to a new file, or to standard output, and say what was left out."""
    from statestore.records import Scan
    from statestore.records.jsonl import encode_line

    target, to = find(store, log), to or _STANDARD
    with open_for(target.store) as opened:
        records = Scan(opened.snapshot(target.log).read, log=target.log)
        with _new(to) as file:
            for record in progress(records, "export"):
                file.write(encode_line(record)) if file else write(encode_line(record))
    if to == _STANDARD:
        if records.torn:
            complain(f"note: a torn end was left out log={target.log} torn={records.torn}")
        return
    row = {"log": target.log, "path": str(to), "records": records.number - 1, "size": records.end}
    if json:
        emit(row | {"torn": records.torn})
    else:
        cut = f", without {plural(records.torn, 'byte')} of a torn end" if records.torn else ""
        size = plural(records.end, "byte")
        Screen().put((target.log, "bold"), f"  {plural(records.number - 1, 'record')}, {size}{cut}")


@contextmanager
def _new(path: Path) -> Iterator[IO[bytes] | None]:
    """Yield a new file, which goes again where not all of it is written; None for standard output."""
    if path == _STANDARD:
        yield None
        return
    file = open(path, "xb")  # noqa: SIM115 - closed inside of what removes it
    try:
        with file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def bring_in(source: Path, store: str, log: str | None, *, json: bool) -> None:
    """Make a log of a file's lines, or of standard input's."""
    from statestore.errors import Corrupt, StateStoreError
    from statestore.records.jsonl import add_lines
    from statestore.records.making import NewLog

    target = _target(source, store, log)
    with NewLog() as made:
        try:
            with _lines(source) as lines:
                add_lines(progress(lines, "import"), made)
        except Corrupt as error:
            error.facts["path"] = str(source)
            raise
        if not made.count:
            raise StateStoreError("there is no line in it, and a log has at least one record", path=str(source))
        with open_for(target.store, create=True) as opened, busy("import"):
            made.create(opened, target.log)
        row: dict[str, Any] = {"log": target.log, "records": made.count, "size": made.size}
    if json:
        emit(row)
    else:
        Screen().put((target.log, "bold"), f"  {plural(made.count, 'record')}, {plural(made.size, 'byte')}")


def _target(source: Path, store: str, log: str | None) -> Target:
    if log is None and not is_file(store):
        if source == _STANDARD:
            raise typer.BadParameter("name the log behind the store: standard input has no name")
        log = names.check(source.name.removesuffix(".jsonl"))
    return find(store, log)


@contextmanager
def _lines(source: Path) -> Iterator[IO[bytes]]:
    if source == _STANDARD:
        yield sys.stdin.buffer
        return
    with open(source, "rb") as file:
        yield file
