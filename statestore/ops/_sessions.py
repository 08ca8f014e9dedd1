"""Sessions as a source: a call that waits is an open request, and so is one that a record makes explicitly."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any, Final

from statestore import names
from statestore.companions import RESERVED
from statestore.conversations import _json
from statestore.errors import Corrupt, InvalidName, NotFound
from statestore.ops._digest import Digest, DigestFold
from statestore.ops._events import Call, Event, Part, Request, Requested, Response
from statestore.ops._logs import LogSource
from statestore.ops._markers import read_object, read_time
from statestore.ops._pending import Open
from statestore.ops._source import Key
from statestore.records import (
    CALL,
    CONFIG,
    ERROR,
    MESSAGE,
    RESULT,
    START,
    STEP,
    SYSTEM,
    Draft,
    Record,
    RecordLog,
    draft,
)
from statestore.sessions import valid_id
from statestore.store import Store

__all__ = ["ANSWERED", "REQUESTED", "SessionsSource", "request_input"]

REQUESTED: Final = "input.requested"
"""The kind of a record that asks somebody for input."""

ANSWERED: Final = "input.answered"
"""The kind of a record that answers; its ``for`` is the request's id, its body any JSON."""

_JSON: Final = "application/json"
_USERS: Final = frozenset({MESSAGE, ANSWERED})


def request_input(
    interrupt_id: str, message: str = "", *, response_schema: Any = None, payload: Any = None, author: str = ""
) -> Draft:
    """Return the record by which a session asks for input; append it with ``Session.append_many``.

    Args:
        interrupt_id: what the answer will name.
        message: what to ask the person.
        response_schema: the JSON Schema of the answer; None where any will do.
        payload: any JSON that belongs to the question.
        author: who asks.

    Raises:
        ValueError: `interrupt_id` is empty, or something holds NaN, an infinity or a lone surrogate, or is too deep.
        TypeError: something holds what JSON has not.
    """
    if not interrupt_id:
        raise ValueError("a request has an id: the answer names it")
    given = {
        "interrupt_id": interrupt_id,
        "message": message,
        "author": author,
        "response_schema": response_schema,
        "payload": payload,
    }
    body = {name: value for name, value in given.items() if value is not None}
    return draft(REQUESTED, _json.encode(_json.plain(body)), type=_JSON)


class SessionsSource(LogSource):
    """The sessions of a place in a store: those directly in it, which are nobody's, and each user's below a segment.

    A session is the log ``<prefix>/<id>`` or ``<prefix>/<user>/<id>``, the user quoted, as
    ``Sessions(store, prefix)`` and ``Sessions(store, f"{prefix}/{names.quote(user)}")`` make them. A log that begins
    with another record than a ``start`` is none.

    Args:
        store: the store that holds the logs; it is not closed with the source.
        prefix: the place; also the application's name. ``""`` is the whole store.
        catalog: the local file in which is kept what the sessions have come to; by default one in the user's directory
            of caches.

    Raises:
        InvalidName: `prefix` is no name, or is reserved.
    """

    def __init__(self, store: Store, prefix: str = "", *, catalog: str | os.PathLike[str] | None = None) -> None:
        super().__init__(store, prefix, _SessionFold(), catalog)

    def _key(self, log: str) -> Key | None:
        user, _, id_ = log[len(self._before) :].rpartition("/")
        if not valid_id(id_) or user == RESERVED:
            return None
        try:
            name = names.unquote(user) if user else ""
        except InvalidName:  # what is deeper below belongs to somebody else
            return None
        return Key(self.app_name, name, id_) if name or not user else None  # nobody is called ""

    def _log(self, key: Key) -> str | None:
        try:
            log = f"{self._before}{names.quote(key.user_id) + '/' if key.user_id else ''}{key.id}"
            return log if self._key(names.check(log)) == key else None
        except InvalidName:
            return None

    def _identify(self, key: Key, log: str) -> Key | None:
        # The first record tells; where it is damaged, the name does.
        try:
            first = next(RecordLog(self.store, log).read(before=2), None)
        except NotFound:
            return None
        except Corrupt:
            return key
        return key if first is not None and first.kind == START else None

    def _draft(self, request: Request, response: Any) -> tuple[Draft, dict[str, Any]]:
        kind, type_ = ANSWERED, _JSON
        body = json.dumps(response, allow_nan=False, ensure_ascii=False)
        if request.long_running:
            kind = RESULT
            if isinstance(response, str):
                body, type_ = response, "text/plain"
        record = draft(kind, body.encode(), for_=request.interrupt_id, type=type_)
        return record, {"kind": kind, "for": request.interrupt_id, "type": type_, "body": body}


class _SessionFold(DigestFold):
    """Folds a session's records, and a companion's."""

    name = "ops.sessions"
    version = 1

    def go_on(self, state: Digest, record: Record) -> Digest:
        """Return the state behind a record that is no marker; see `DigestFold`."""
        header = record.header
        if state.records == 0:
            return Digest(records=1, is_session=header.kind == START, created=header.time, updated=header.time)
        state = replace(state, records=state.records + 1)
        if not state.is_session or header.kind in (START, CONFIG):
            return state
        calls: dict[str, list[list[str]]] = state.more or {}
        event = Event(author=_author(record), time=read_time(header.time))
        if header.kind == CALL:
            calls = {**calls, header.step: [*calls.get(header.step, ()), [header.id, *_called(record)]]}
        elif header.kind == STEP and header.id in calls:
            closed = [Call(id_, name, {"message": message}) for id_, name, message in calls[header.id] if id_]
            calls = {step: those for step, those in calls.items() if step != header.id}
            event = replace(
                event, long_running=[call.id for call in closed], parts=[Part(call=call) for call in closed]
            )
        elif header.kind in (RESULT, ANSWERED):
            event = replace(event, parts=[Part(response=Response(header.for_))])
        elif header.kind == REQUESTED:
            event = _requested(record, event)
        opened = Open(state.pending)
        opened.add(event)
        return replace(
            state, updated=header.time, count=state.count + 1, pending=tuple(opened.requests), more=calls or None
        )


def _author(record: Record) -> str:
    header = record.header
    if header.kind in _USERS:
        return "user"
    return header.model or ("" if header.kind in (SYSTEM, ERROR, RESULT) else "model")


def _called(record: Record) -> tuple[str, str]:
    """Return which tool a call's body calls, and with what message, as far as it says."""
    try:
        value = _json.parse(record.body)
    except (TypeError, ValueError):
        value = None
    value = value if isinstance(value, dict) else {}
    name, args = value.get("name"), value.get("arguments")
    message = args.get("message") if isinstance(args, dict) else None
    return name if isinstance(name, str) else "", message if isinstance(message, str) else ""


def _requested(record: Record, event: Event) -> Event:
    """Return the event of an explicit request; one without an id asks for nothing.

    Raises:
        Corrupt: the body is no JSON object.
    """
    body = read_object(record.body, record)
    id_, message, author = (
        value if isinstance(value := body.get(name), str) else "" for name in ("interrupt_id", "message", "author")
    )
    if not id_:
        return event
    asked = Requested(id_, message, body.get("response_schema"), body.get("payload"))
    return replace(event, author=author or "agent", requested_input=asked)
