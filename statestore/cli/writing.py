"""``append`` and ``fork``: the two commands that write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from statestore.cli.progress import busy
from statestore.cli.screen import Screen, emit, plural
from statestore.cli.targets import SUFFIX, Json, LogArgument, StoreArgument, find, open_for
from statestore.cli.values import whole
from statestore.companions import check_free

__all__ = ["append", "fork"]


def _text(help_text: str, flag: str | None = None) -> Any:
    return typer.Option(*((flag,) if flag else ()), help=help_text, show_default=False)


Text = str | None


def append(
    store: StoreArgument,
    log: LogArgument = None,
    kind: Annotated[str, _text("What the record is: message, result, any other word.")] = "message",
    body: Annotated[Text, _text("Its body, as text.")] = None,
    file: Annotated[Path | None, _text("A file whose bytes are its body.")] = None,
    expect: Annotated[int | None, whole("--expect", "Only as this number.", least=1)] = None,
    create: Annotated[bool, typer.Option("--create", help="Make the log: the record is its first.")] = False,
    type_: Annotated[Text, _text("The body's media type.", "--type")] = None,
    for_: Annotated[Text, _text("The call or message that it answers.", "--for")] = None,
    step: Annotated[Text, _text("The step that a block belongs to.")] = None,
    exit_: Annotated[int | None, whole("--exit", "A tool's exit status.")] = None,
    via: Annotated[Text, _text("How a message came in.")] = None,
    source: Annotated[Text, _text("Where instructions came from.")] = None,
    provider: Annotated[Text, _text("Who served the model.")] = None,
    model: Annotated[Text, _text("The model that answered.")] = None,
    upto: Annotated[int | None, whole("--upto", "On a step, the last record seen.")] = None,
    harness: Annotated[Text, _text("The version of the program.")] = None,
    request: Annotated[Text, _text("A digest of the request.")] = None,
    usage: Annotated[Text, _text("The tokens of a step, as JSON: input, output, cache_read, cache_write.")] = None,
    truncated: Annotated[bool, typer.Option("--truncated", help="The body was cut short.")] = False,
    full_output: Annotated[Text, _text("Where all of a truncated body is.")] = None,
    cache: Annotated[Text, _text("Any JSON, kept as it is.")] = None,
    id_: Annotated[Text, _text("Its id; random by default.", "--id")] = None,
    time: Annotated[Text, _text("When it was made, in RFC 3339; now by default.")] = None,
    json: Json = False,
) -> None:
    """Add one record and print its number, id and offset.

    Its body comes from standard input, --body or --file. Where nothing comes on standard input nothing is added: what
    stood before the pipe may have failed.
    With --expect N it is added only if it becomes record N, so that of two writers who have read the same log one
    wins and the other is told. A torn end, which a crash has left, is cut first and kept aside.

    \b
    Examples:
      statestore append ./sessions 1a2b3c4d --via ops --body 'please stop'
      run-tests | statestore append ./sessions 1a2b3c4d --kind result --for toolu_01 --exit 1
      statestore append ./sessions notes --create --kind note --file note.md --type text/markdown
    """
    if body is not None and file is not None:
        raise typer.BadParameter("give the body with --body or with --file, not with both")
    if not kind:
        raise typer.BadParameter("--kind is a word, such as message, and here it is empty")
    if create and expect not in (None, 1):
        raise typer.BadParameter("--create makes record 1, so --expect is 1 or left out")
    target = find(store, log)
    check_free(target.log)

    from statestore.errors import Conflict, Exists, NotFound, StateStoreError
    from statestore.records import RecordLog, draft

    fields: dict[str, Any] = {
        "type": type_, "for_": for_, "step": step, "exit": exit_, "via": via, "source": source, "provider": provider,
        "model": model, "upto": upto, "harness": harness, "request": request, "usage": _usage(usage),
        "truncated": truncated or None, "full_output": full_output, "cache": None if cache is None else _bytes(cache),
        "id": id_, "time": time,
    }  # fmt: skip
    fields = {name: value for name, value in fields.items() if value is not None}
    data = _body(body, file)
    try:
        # Made once only to be checked: what cannot be written is wrong usage, told before any store is touched.
        draft(kind, data, **fields)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(str(error)) from error
    if not data and body is None and file is None:
        hint = "nothing came on standard input: give --body '' to append an empty body"
        raise StateStoreError(hint, log=target.log)
    with open_for(target.store, create=create) as opened:
        try:
            record = RecordLog(opened, target.log).append(kind, data, expect=1 if create else expect, **fields)
        except NotFound as error:
            raise NotFound("no such log: --create makes it", **error.facts) from error
        except Conflict as error:
            if not create:
                raise
            raise Exists("there is such a log already: without --create it is added to", log=target.log) from error
    if json:
        emit({"log": target.log, "n": record.n, "id": record.id, "offset": record.offset, "end": record.end})
    else:
        Screen().put((f"record {record.n}", "bold"), f"  id {record.id}  at byte {record.offset}")


def _bytes(argument: str) -> bytes:
    """Return an argument's bytes as the shell gave them."""
    return argument.encode("utf-8", "surrogateescape")


def _usage(text: str | None) -> Any:
    if text is None:
        return None
    from msgspec import ValidationError, json

    from statestore.records import Usage

    try:
        return json.decode(_bytes(text), type=Usage)
    except (ValidationError, ValueError) as error:
        named = ", ".join(Usage.__struct_fields__)
        example = '{"input": 301, "output": 714}'
        raise typer.BadParameter(f"--usage is a JSON object such as {example}: whole numbers for {named}") from error


def _body(body: str | None, file: Path | None) -> bytes:
    if body is not None:
        return _bytes(body)
    if file is not None:
        return file.read_bytes()
    return sys.stdin.buffer.read() if sys.stdin else b""  # it may be closed


def fork(
    store: StoreArgument,
    log: LogArgument = None,
    to: Annotated[str | None, typer.Argument(metavar="TO", help="The new log's name; a new id by default.")] = None,
    before: Annotated[int | None, whole("--before", "Copy the records in front of this one.", least=2)] = None,
    json: Json = False,
) -> None:
    """Copy a log, or its first records, to a new one.

    The copy is made byte for byte, its name is printed, and the first log is not touched.
    With --before N it holds the records 1 to N-1: going back is forking from before what went wrong.

    \b
    Examples:
      statestore fork ./sessions 1a2b3c4d
      statestore fork ./sessions 1a2b3c4d experiment --before 12
      statestore fork ./sessions/1a2b3c4d.state experiment
    """
    if to is None and "://" not in store and store.endswith(SUFFIX):
        log, to = None, log
    target = find(store, log)

    from statestore import names
    from statestore.records import RecordLog, new_id

    name = new_id() if to is None else check_free(names.check(to))
    with open_for(target.store) as opened:
        with busy("fork"):
            copy = RecordLog(opened, target.log).copy(name, before=before)
        size = opened.tail(copy.name).size
        place = opened.location(copy.name)
    if json:
        emit({"log": name, "source": target.log, "before": before, "size": size, "location": place})
    elif sys.stdout.isatty():
        Screen().put((name, "bold"), f"  {plural(size, 'byte')}  {place}")
    else:
        Screen().put(name)
