"""Conversations as a source: a tool call without a result is an open request; so is one that a message makes itself."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from msgspec import Raw

from statestore import names
from statestore.conversations import _ids
from statestore.conversations._changes import (
    MEDIA_TYPE,
    Messages,
    Metadata,
    Saved,
    Snapshot,
    decode_record,
    encode,
    kind_of,
)
from statestore.errors import InvalidName
from statestore.ops._digest import Digest, DigestFold
from statestore.ops._events import Call, Event, Part, Request, Requested, Response
from statestore.ops._logs import LogSource
from statestore.ops._markers import read_json, read_object, read_time
from statestore.ops._pending import Open
from statestore.ops._source import Key
from statestore.records import Draft, Record, draft
from statestore.store import Store

__all__ = ["ConversationsSource"]

_KEYS: Final = ("mast_abort_reason", "mast_abort_time", "mast_interrupted_reason", "mast_interrupted_time")


class ConversationsSource(LogSource):
    """The conversations of a place in a store, as sessions: whose they are says each itself.

    A message that calls tools waits until messages with their results follow. A message whose ``meta`` has
    ``requested_input`` (``interrupt_id``, ``message``, ``response_schema``, ``payload``) asks for input, and one whose
    ``meta`` has ``answered_input`` (``interrupt_id``, ``response``) answers.

    Args:
        store: the store that holds the logs; it is not closed with the source.
        prefix: the place; also the application's name.
        catalog: the local file in which is kept what the conversations have come to; by default one in the user's
            directory of caches.

    Raises:
        InvalidName: `prefix` is no name, or is reserved.
    """

    def __init__(
        self, store: Store, prefix: str = "conversations", *, catalog: str | os.PathLike[str] | None = None
    ) -> None:
        super().__init__(store, names.check(prefix), _ConversationFold(), catalog)

    def _key(self, log: str) -> Key | None:
        id_ = _ids.unquote(log[len(self._before) :])
        return None if id_ is None else Key(self.app_name, "", id_)

    def _log(self, key: Key) -> str | None:
        try:
            return names.check(self._before + _ids.quote(_ids.check_id(key.id)))
        except InvalidName:
            return None

    def _logs(self, id_: str) -> Iterator[str]:
        log = self._log(Key(self.app_name, "", id_))
        return iter(() if log is None else (log,))

    def _draft(self, request: Request, response: Any) -> tuple[Draft, dict[str, Any]]:
        text = response if isinstance(response, str) else json.dumps(response, allow_nan=False, ensure_ascii=False)
        message: dict[str, Any]
        if request.long_running:
            parts = [{"type": "text", "text": text}]
            result = {"id": request.interrupt_id, "name": request.tool_name, "parts": parts}
            message = {"role": "tool", "tool_result": result}
        else:
            answered = {"interrupt_id": request.interrupt_id, "response": response}
            message = {"role": "user", "content": text, "meta": {"answered_input": answered}}
        body = encode(Messages([Raw(json.dumps(message, allow_nan=False).encode())]))
        return draft(kind_of(Messages), body, type=MEDIA_TYPE), message


class _ConversationFold(DigestFold):
    """Folds a conversation's records, and a companion's.

    A save may go back to an earlier message, so ``more`` has those that raise or close anything, each with its place.
    """

    name = "ops.conversations"
    version = 1

    def go_on(self, state: Digest, record: Record) -> Digest:
        """Return the state behind a record that is no marker; see `DigestFold`."""
        time = record.header.time
        change = decode_record(record)
        if isinstance(change, Snapshot):
            return replace(state, records=state.records + 1)
        state = replace(
            state,
            records=state.records + 1,
            is_session=True,
            created=state.created or time,
            updated=time,
        )
        if isinstance(change, Metadata):
            return replace(state, state=_own(state.state, change.metadata, record))
        if isinstance(change, Saved):
            user = read_json(bytes(change.profile.get("user_id", b'""')), record)
            journal = [entry for entry in state.more or () if entry[0] < change.keep]
            state = replace(
                state,
                user_id=user if isinstance(user, str) else "",
                created=change.created or state.created,
                count=change.keep,
                state=_own({}, change.metadata, record),
                pending=_replay(journal),
                more=journal,
            )
        if isinstance(change, Messages | Saved):
            return _say(state, [read_object(bytes(each), record) for each in change.messages], time)
        return state


def _own(state: Mapping[str, Any], metadata: Mapping[str, bytes], record: Record) -> dict[str, Any]:
    """Return what of the metadata may be a marker of old."""
    return {**state, **{key: read_json(bytes(metadata[key]), record) for key in _KEYS if key in metadata}}


def _say(state: Digest, messages: list[dict[str, Any]], time: str) -> Digest:
    """Return the state behind more messages."""
    opened, journal = Open(state.pending), list(state.more or ())
    for place, message in enumerate(messages, state.count):
        short = _short(message, time)
        if short.keys() & {"calls", "answers", "asks"}:
            journal.append([place, short])
            opened.add(_event(short))
    return replace(state, count=state.count + len(messages), pending=tuple(opened.requests), more=journal or None)


def _replay(journal: list[Any]) -> tuple[Request, ...]:
    """Return what is open behind the entries of a journal."""
    opened = Open()
    for _, short in journal:
        opened.add(_event(short))
    return tuple(opened.requests)


def _short(message: dict[str, Any], time: str) -> dict[str, Any]:
    """Return what of a message an operator needs to know."""
    stamp = message.get("timestamp")
    short: dict[str, Any] = {"role": _text(message.get("role")), "timestamp": stamp if read_time(stamp) else time}
    calls, meta = message.get("tool_calls"), _dict(message.get("meta"))
    short["calls"] = [
        [_text(each.get("id")), _text(each.get("name")), _text(_dict(each.get("args")).get("message"))]
        for each in (calls if isinstance(calls, list) else ())
        if isinstance(each, dict)
    ]
    ids = _dict(message.get("tool_result")).get("id"), _dict(meta.get("answered_input")).get("interrupt_id")
    short["answers"] = [id_ for id_ in map(_text, ids) if id_]
    short["asks"] = _dict(meta.get("requested_input"))
    return {key: value for key, value in short.items() if value}


def _event(short: dict[str, Any]) -> Event:
    """Return the event that a shortened message is."""
    asked = short.get("asks", {})
    calls = [Call(id_, name, {"message": message}) for id_, name, message in short.get("calls", ())]
    return Event(
        author=_text(asked.get("author")) or short.get("role", ""),
        time=read_time(short["timestamp"]),
        parts=[
            *(Part(call=call) for call in calls),
            *(Part(response=Response(id_)) for id_ in short.get("answers", ())),
        ],
        requested_input=Requested(
            _text(asked.get("interrupt_id")),
            _text(asked.get("message")),
            asked.get("response_schema"),
            asked.get("payload"),
        ),
        long_running=[call.id for call in calls],
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
