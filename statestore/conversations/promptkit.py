"""Conversations as PromptKit's file store keeps them: a directory each, brought in and given out without loss.

::

    <directory>/conv-<id>/state.json        user, prompt, token count, metadata, time of the last save
                          messages.jsonl    one message a line
                          summaries.jsonl   one summary a line
                          lists/<name>.jsonl  one item a line, its bytes as they are
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from statestore.conversations import _json
from statestore.conversations._changes import MEDIA_TYPE, Saved, encode, kind_of
from statestore.conversations._conversations import Conversations
from statestore.conversations._fold import State, raw_dict, raw_list
from statestore.conversations._messages import message_json, summary_json
from statestore.conversations._model import ConversationState
from statestore.conversations._place import encoded, there
from statestore.errors import Conflict, Corrupt, Exists, NotSupported
from statestore.records import RecordLog, draft, times
from statestore.records.making import NewLog
from statestore.records.record import place
from statestore.store import Store

__all__ = ["Moved", "bring_in", "directories", "give_out"]

_PREFIX: Final = "conv-"
_SUFFIX: Final = ".jsonl"
_FILES: Final = {"state.json", "messages.jsonl", "summaries.jsonl", "lists"}
_NOBODY: Final = {"user_id": "", "system_prompt": "", "token_count": 0}
_HEAD: Final = {"id", *_NOBODY, "last_accessed_at", "metadata"}


@dataclass(frozen=True, slots=True)
class Moved:
    """What of one conversation was moved, counted where it came from and found again where it went to.

    Attributes:
        id: the conversation.
        messages: how many messages.
        summaries: how many summaries.
        lists: how many lists.
        items: how many items are in these.
        left: what was left out, since a conversation has no place for it: files, and members of ``state.json``.
        torn: how many bytes at the ends of files a crash had cut off in the middle of a line; these were left out.
    """

    id: str
    messages: int
    summaries: int
    lists: int
    items: int
    left: tuple[str, ...] = ()
    torn: int = 0


def directories(root: str | os.PathLike[str]) -> list[Path]:
    """Return the directories that hold a conversation each, by name.

    Raises:
        OSError: `root` cannot be read.
    """
    return sorted(Path(entry.path) for entry in os.scandir(root) if entry.name.startswith(_PREFIX) and entry.is_dir())


def bring_in(talks: Conversations, directory: Path) -> Moved:
    """Make a conversation of a directory, as one record, and read it again to see that it is the same.

    It is as old as the directory says, so sorting and sweeping go on as before. A conversation that is there already is
    left alone.

    Args:
        talks: where it comes to.
        directory: one that :func:`directories` has found.

    Raises:
        Exists: there is such a conversation already.
        Corrupt: a file is damaged, or what was written is not what is read; ``error.facts`` say where.
        OSError: a file cannot be read.
    """
    head = _parse(directory / "state.json", (directory / "state.json").read_bytes(), 0)
    if not isinstance(head, dict) or not isinstance(head.get("id"), str):
        raise Corrupt("this is no state of a conversation: it has no id", path=str(directory / "state.json"))
    profile = {name: head[name] for name in _NOBODY if name in head}
    try:
        ConversationState(id=head["id"], **profile)
        time = times.spell_time(head.get("last_accessed_at") or times.now())
        metadata = encoded(head.get("metadata") or {})
    except (TypeError, ValueError) as error:
        raise Corrupt(f"this is no state of a conversation: {error}", path=str(directory / "state.json")) from error
    messages, torn = _lines(directory / f"messages{_SUFFIX}", json=True)
    summaries, more = _lines(directory / f"summaries{_SUFFIX}", json=True)
    lists: dict[str, list[bytes]] = {}
    left = [f"state.json: {name}" for name in head if name not in _HEAD]
    left += sorted(
        entry.name
        for entry in os.scandir(directory)
        if entry.name not in _FILES or entry.is_dir() != (entry.name == "lists")
    )
    if (directory / "lists").is_dir():
        for entry in sorted(os.scandir(directory / "lists"), key=lambda entry: entry.name):
            if entry.name.endswith(_SUFFIX) and entry.is_file():
                lists[entry.name.removesuffix(_SUFFIX)], _ = _lines(Path(entry.path), json=False)
            else:
                left.append(f"lists/{entry.name}")
    given: dict[str, Any] = {
        "profile": {name: bytes(value) for name, value in encoded({**_NOBODY, **profile}).items()},
        "metadata": {name: bytes(value) for name, value in metadata.items()},
        "messages": [_checked(message_json, line, directory, n) for n, line in enumerate(messages, 1)],
        "summaries": [_checked(summary_json, line, directory, n) for n, line in enumerate(summaries, 1)],
        "lists": lists,
    }
    log = talks._log(head["id"])
    _create_log(talks.store, log, given, time, head["id"])
    with talks._use(log) as known:
        state = there(known.refresh(None), head["id"], log)
        for part, value in given.items():
            if getattr(state, part) != value:
                raise Corrupt("what was read again is not what was written", log=log, part=part)
        known.forget()
    items = sum(map(len, lists.values()))
    return Moved(head["id"], len(messages), len(summaries), len(lists), items, tuple(left), torn + more)


def _create_log(store: Store, log: str, given: Mapping[str, Any], time: str, id_: str) -> None:
    """Make a log of one record."""
    change = Saved(
        profile=raw_dict(given["profile"]),
        metadata=raw_dict(given["metadata"]),
        messages=raw_list(given["messages"]),
        summaries=raw_list(given["summaries"]),
        lists=given["lists"],
    )
    kind, body = kind_of(Saved), encode(change)
    try:
        try:
            RecordLog(store, log).append(kind, body, expect=1, time=time, type=MEDIA_TYPE)
        except NotSupported:  # it is larger than one append: it comes in pieces, and is there with the last one
            with NewLog() as new:
                new.add(place([draft(kind, body, time=time, type=MEDIA_TYPE)], 1))
                new.create(store, log)
    except (Conflict, Exists) as error:
        raise Exists("there is such a conversation already: it was left alone", id=id_, log=log) from error


def give_out(talks: Conversations, id: str, root: Path) -> Moved:  # noqa: A002 - what it is called everywhere
    """Make a directory of a conversation, and read its files again to see that they are the same.

    Args:
        talks: where it comes from.
        id: the conversation.
        root: where the new directory is made.

    Raises:
        NotFound: there is no such conversation.
        Exists: there is such a directory already.
        Corrupt: a record is damaged, or what was written is not what is read.
        ValueError: the layout cannot hold it: its id or a list's name is no file name, or an item has a newline.
        OSError: a file cannot be written.
    """
    log = talks._log(id)
    with talks._use(log) as known:
        state = there(known.refresh(None), id, log)
        for name in (f"{_PREFIX}{id}", *(f"{name}{_SUFFIX}" for name in state.lists)):
            _check_file_name(name)
        return _write(id, state, root / f"{_PREFIX}{id}")


def _write(id_: str, state: State, directory: Path) -> Moved:
    messages = state.messages
    items = sum(map(len, state.lists.values()))
    if any(b"\n" in item or item.endswith(b"\r") for one in state.lists.values() for item in one):
        raise ValueError("an item with a newline has no line of its own in this layout")
    try:
        os.mkdir(directory, 0o750)
    except FileExistsError as error:
        raise Exists("there is such a directory already: it was left alone", path=str(directory)) from error
    head: dict[str, Any] = {"id": id_}
    profile = {name: _json.loads(value) for name, value in state.profile.items()}
    head |= {name: value for name, value in profile.items() if value}
    head["last_accessed_at"] = state.updated
    if state.metadata:
        head["metadata"] = {name: _json.loads(value) for name, value in state.metadata.items()}
    files = {directory / f"messages{_SUFFIX}": messages, directory / f"summaries{_SUFFIX}": state.summaries}
    if state.lists:
        os.mkdir(directory / "lists", 0o750)
        files |= {directory / "lists" / f"{name}{_SUFFIX}": one for name, one in state.lists.items()}
    for path, lines in files.items():
        if lines:
            json = path.parent == directory
            lines = [_one_line(line) for line in lines] if json else lines
            _create(path, b"".join(line + b"\n" for line in lines), 0o640)
            _check_again(path, _lines(path, json=json), (lines, 0))
    # Last: a directory without it is no conversation.
    path = directory / "state.json"
    _create(path, _json.encode(head), 0o600)
    _check_again(path, _json.loads(path.read_bytes()), head)
    return Moved(id_, len(messages), len(state.summaries), len(state.lists), items)


def _check_again(path: Path, found: object, written: object) -> None:
    if found != written:
        raise Corrupt("what was read again is not what was written", path=str(path))


def _check_file_name(name: str) -> None:
    if "/" in name or "\0" in name or len(name.encode("utf-8", "surrogatepass")) > 255 or not name.isprintable():
        raise ValueError(f"this is no file name in this layout: {name!a:.100}")


def _create(path: Path, data: bytes, mode: int) -> None:
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)


def _one_line(data: bytes) -> bytes:
    return data if b"\n" not in data else _json.encode(_json.loads(data))


def _lines(path: Path, *, json: bool) -> tuple[list[bytes], int]:
    """Return the lines of a file, none where there is no file, and how many bytes of the last one are torn off."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    *lines, rest = data.split(b"\n")
    if rest and json:
        # A crash has lost the newline alone, or a part of the line too.
        try:
            _json.parse(rest)
        except ValueError:
            return lines, len(rest)
    return ([*lines, rest] if rest else lines), 0


def _parse(path: Path, data: bytes, line: int) -> Any:
    try:
        return _json.parse(data)
    except ValueError as error:
        raise Corrupt(f"this is not JSON: {error}", path=str(path), line=line or None) from error


def _checked(read: Any, line: bytes, directory: Path, n: int) -> bytes:
    try:
        return bytes(read(line))
    except (TypeError, ValueError) as error:
        what = "message" if read is message_json else "summary"
        raise Corrupt(f"this line is no {what}: {error}", path=str(directory), line=n) from error
