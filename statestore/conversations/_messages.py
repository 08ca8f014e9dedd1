"""Messages and summaries on their way into a log and out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from statestore.conversations import _json
from statestore.conversations._model import Message, Summary, spell_time
from statestore.errors import Corrupt

__all__ = [
    "GivenMessage",
    "GivenSummary",
    "message_json",
    "read_messages",
    "read_summaries",
    "same",
    "summary_json",
]

GivenMessage: TypeAlias = Message | Mapping[str, Any] | bytes
"""What can be given as a message: a `Message`, a mapping, or its JSON."""

GivenSummary: TypeAlias = Summary | Mapping[str, Any] | bytes
"""What can be given as a summary: a `Summary`, a mapping, or its JSON."""

T = TypeVar("T", bound=BaseModel)

_MESSAGES: Final = TypeAdapter(list[Message]).validate_json
_TEXTS: Final = frozenset({"role", "content", "timestamp", "finish_reason"})
_TEXT: Final = {str}
_SUMMARIES: Final = TypeAdapter(list[Summary]).validate_json


def message_json(message: GivenMessage) -> bytes:
    """Return the JSON that is stored for a message.

    JSON that is given as bytes is stored as it is, byte for byte, but where one of these rules changes it: a tool
    call's `args` that are absent, empty or a text that is no JSON become ``{}``; content that only repeats the text of
    a tool's result is left out; so is ``source``.

    Raises:
        TypeError: it is no message, or holds what JSON has not.
        ValueError: it has no role, a field has another type than its own, or it holds NaN, an infinity or a lone
            surrogate.
    """
    if type(message) is dict and _is_text_alone(message):
        return _json.encode(message)
    given = None
    if isinstance(message, bytes):
        given = message.strip(b" \t\r\n")
        value = _json.parse(given)
        if not isinstance(value, dict):
            raise ValueError("a message is a JSON object")
    elif isinstance(message, Message):
        value = _json.plain(message.model_dump(exclude_unset=True))
    elif isinstance(message, Mapping):
        value = dict(message)
        if isinstance(time := value.get("timestamp"), datetime):
            value["timestamp"] = spell_time(time)
        value = _json.plain(value)
    else:
        raise TypeError(f"a message is a Message, a mapping or JSON in bytes, not {type(message).__name__}")
    if _is_text_alone(value):
        return given if given is not None else _json.encode(value)
    Message.model_validate(value)
    changed = _apply_rules(value)
    return given if given is not None and not changed else _json.encode(value)


def _is_text_alone(value: dict[str, Any]) -> bool:
    """Say whether a message is made of texts alone, as most are: the model and the rules have nothing to say of it."""
    return "role" in value and value.keys() <= _TEXTS and {*map(type, value.values())} == _TEXT


def _apply_rules(value: dict[str, Any]) -> bool:
    """Bring a message into the form in which it is stored; say whether that changed it."""
    changed = value.pop("source", value) is not value
    for call in value.get("tool_calls") or ():
        args = call.get("args", "")
        if isinstance(args, str) and not _json.is_json(args):
            call["args"] = {}
            changed = True
    if value.get("tool_result") is not None and "content" in value:
        content = value["content"]
        if content == "" or content == _text_of(value["tool_result"]):
            del value["content"]
            changed = True
    return changed


def _text_of(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's result: its text parts, one behind the other."""
    parts = result.get("parts")
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "".join(text for text in texts if isinstance(text, str))


def read_messages(stored: Iterable[bytes], log: str) -> list[Message]:
    """Return the messages of their JSON.

    Raises:
        Corrupt: one of them is none.
    """
    found = _read(_MESSAGES, stored, log)
    for message in found:
        if message.tool_result is not None and not message.content:
            message.content = _text_of(message.tool_result)
    return found


def summary_json(summary: GivenSummary) -> bytes:
    """Return the JSON that is stored for a summary; what is given as bytes is stored as it is.

    Raises:
        TypeError: it is no summary.
        ValueError: a field has another type than its own.
    """
    if isinstance(summary, bytes):
        given = summary.strip(b" \t\r\n")
        Summary.model_validate(_json.parse(given))
        return given
    if not isinstance(summary, Summary | Mapping):
        raise TypeError(f"a summary is a Summary, a mapping or JSON in bytes, not {type(summary).__name__}")
    whole = summary if isinstance(summary, Summary) else Summary.model_validate(dict(summary))
    value = whole.model_dump(by_alias=True)
    value["CreatedAt"] = spell_time(whole.created_at)
    return _json.encode(_json.plain(value))


def read_summaries(stored: Iterable[bytes], log: str) -> list[Summary]:
    """Return the summaries of their JSON.

    Raises:
        Corrupt: one of them is none.
    """
    return _read(_SUMMARIES, stored, log)


def _read(read: Callable[[bytes], list[T]], stored: Iterable[bytes], log: str) -> list[T]:
    try:
        return read(b"[" + b",".join(stored) + b"]")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise Corrupt(f"a record holds something else than it should: {first['msg']}", log=log, at=where) from error


def same(stored: bytes, given: bytes) -> bool:
    """Say whether two pieces of JSON mean the same value, whatever the order of keys and the spelling."""
    return stored == given or _canonical(stored) == _canonical(given)


def _canonical(data: bytes) -> bytes:
    return _json.encode(_sorted(_json.loads(data)))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in sorted(value.items())}
    return list(map(_sorted, value)) if isinstance(value, list) else value
