"""``show``: one log told as a story."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statestore.cli.screen import Screen, binary, emit, plural
from statestore.cli.targets import Json, LogArgument, StoreArgument, find, open_for
from statestore.cli.values import whole

if TYPE_CHECKING:
    from statestore.cli.digest import Digest
    from statestore.cli.story import Line, Story
    from statestore.records import Record

__all__ = ["described", "show"]


def show(
    store: StoreArgument,
    log: LogArgument = None,
    full: Annotated[bool, typer.Option("--full", help="Bodies whole, not their first lines.")] = False,
    last: Annotated[int | None, whole("--last", "Only the last N records.", least=1)] = None,
    json: Json = False,
) -> None:
    """Tell a session as a story.

    Who said what, which call got which result, tokens, status, what still waits.
    A log that is no session is shown too, record by record. A torn end and damage are shown where they are; with
    damage the command exits with 1, after what stands before it.

    \b
    Examples:
      statestore show ./sessions 1a2b3c4d
      statestore show ./sessions/1a2b3c4d.state --last 20
      statestore show ./sessions 1a2b3c4d --full | less
      statestore show ./sessions 1a2b3c4d --json
    """
    from statestore.cli.digest import Digest
    from statestore.cli.story import Story

    target = find(store, log)
    with open_for(target.store) as opened:
        found = Digest(opened, target.log)
        if json:
            kept: deque[dict[str, Any]] = deque(maxlen=last)
            for record in found.read():
                row = {"record": described(record, found.records)}
                if last is None:
                    emit(row)
                else:
                    kept.append(row)
            for row in kept:
                emit(row)
            emit({"summary": _summary(found)})
        else:
            screen, story = Screen(), Story(full)
            blocks: deque[list[Line]] = deque(maxlen=last)
            for record in found.read():
                blocks.append(story.tell(record, found.records, stray=found.stray))
                if last is None:
                    _print(screen, blocks.pop())
            for block in blocks:
                _print(screen, block)
            _close(screen, found, story)
    if found.corrupt:
        raise found.corrupt


def _print(screen: Screen, lines: list[Line]) -> None:
    for line in lines:
        screen.put(*line.text, lead=line.lead)


def _close(screen: Screen, found: Digest, story: Story) -> None:
    """Say what it all amounts to."""
    from statestore.cli.story import tokens

    if found.records:
        screen.put()
    if found.corrupt:
        _label(screen, "corrupt", f"record {found.corrupt.record} at byte {found.corrupt.offset}", "bold red")
        _label(screen, "", found.corrupt.message)
    if found.torn:
        what = "behind the last record are what a crash left of an append; the next append cuts them"
        _label(screen, "torn", f"{plural(found.torn, 'byte')} {what}", "yellow")
    _label(screen, "log", f"{found.log}, {plural(found.records, 'record')}, {plural(found.size, 'byte')}")
    if found.status is None:
        return
    _label(screen, "status", found.status + (f", held by {found.holder}" if found.holder else ""))
    names = dict(call for calls in story.calls.values() for call in calls)
    for number in found.waiting:
        _label(screen, "waiting", f"{number} {names.get(number, '')}", "yellow")
    if story.blocks:
        numbers = ", ".join(str(number) for block in story.blocks.values() for number in block)
        _label(screen, "unfinished", f"{numbers}: no step closes them, so no context holds them", "yellow")
    if found.steps:
        some = f"{found.told:,} of " if 0 < found.told < found.steps else ""
        took = tokens(found.usage) if found.usage else "unknown"
        _label(screen, "tokens", f"{took} in {some}{plural(found.steps, 'step')}")
    if found.prompt_tokens is not None:
        _label(screen, "prompt", f"{found.prompt_tokens:,} tokens at the last step")


def _label(screen: Screen, label: str, text: str, style: str = "dim") -> None:
    screen.put(text, lead=[(f"{label:<12}", style)])


def described(record: Record, number: int) -> dict[str, Any]:
    """Return a record for JSON: the fields that its header has, its offset, its body."""
    from msgspec.structs import asdict, fields

    header, row = record.header, dict[str, Any]()
    for spec in fields(header):
        value = getattr(header, spec.name)
        if spec.name == "cache":
            value = binary(bytes(value))
        elif spec.name == "usage" and value is not None:
            value = asdict(value)
        if spec.name in ("kind", "id", "time", "len") or value not in (None, "", 0, False) or spec.name == "exit":
            row[spec.encode_name] = value
    if header.exit is None:
        del row["exit"]
    return row | {"n": number, "offset": record.offset, "body": binary(record.body)}


def _summary(found: Digest) -> dict[str, Any]:
    from msgspec.structs import asdict

    damage = found.corrupt
    return {
        "log": found.log,
        "records": found.records,
        "size": found.size,
        "torn": found.torn,
        "corrupt": {"record": damage.record, "offset": damage.offset, "reason": damage.message} if damage else None,
        "status": found.status,
        "waiting": found.waiting,
        "steps": found.steps,
        "usage": asdict(found.usage) if found.usage else None,
        "prompt_tokens": found.prompt_tokens,
    }
