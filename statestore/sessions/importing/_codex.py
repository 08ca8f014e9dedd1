"""Codex's rollout files: ``~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl``.

A line is ``{"timestamp": …, "type": …, "payload": …}``; the oldest files have the payloads alone. What was said is in
the lines of type ``response_item``. The ``event_msg`` lines tell it a second time, for a screen, and are lost but for
the tokens of an answer.

No line says where an answer of the model ends. It ends in front of a message, and of the next block once its tokens or
a result have come.
"""

from __future__ import annotations

import json
from base64 import b64decode
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from statestore.records import CALL, MESSAGE, SYSTEM, TEXT, THINKING, Usage
from statestore.sessions.conf import Conf, Worker
from statestore.sessions.importing._report import Report, rows
from statestore.sessions.importing._told import Told, dense, plain, text, tokens, word

__all__ = ["tell"]

_AGENT: Final = "codex"
_JSON: Final = "application/json"
# How texts begin that the program says in the user's place.
_PROGRAM: Final = (
    "<environment_context>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<user_instructions>",
    "# AGENTS.md instructions",
)


def tell(report: Report, logs: ExitStack) -> list[Told]:
    """Return what a file says: one session, where it says anything."""
    reader = _Reader(report)
    logs.enter_context(reader.told.log)
    for row in rows(report):
        reader.read(row)
    return [reader.told] if reader.told.spoken else []


class _Reader:
    """One file, line by line."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.told = Told(f"{_AGENT}:{word(report.path.stem)}", _AGENT)
        self.model = ""
        self.provider = "openai"
        self.version = ""
        self.known = False  # whether the session has said what it is
        self.steps = 0

    def read(self, row: dict[str, Any]) -> None:
        kind, item = row.get("type"), row
        if "payload" in row:
            item = plain(row["payload"])
        elif "record_type" in row:
            kind = "state"
        else:
            kind = "response_item" if isinstance(kind, str) else "session_meta"
        what = kind if isinstance(kind, str) else "no type"
        if what in ("response_item", "event_msg"):
            what = f"{what} {item.get('type')}"
        self.told.at(row.get("timestamp"))
        if kind == "response_item":
            carried = self._item(item)
        elif kind == "event_msg":
            carried = item.get("type") == "token_count" and self._tokens(item)
        elif kind == "session_meta":
            carried = self._meta(item)
        elif kind == "turn_context":
            carried = self._context(item)
        else:
            carried = kind == "compacted" and self._compacted(item)
        if carried:
            self.report.carry(what)
        else:
            self.report.lose(what)

    def _meta(self, meta: dict[str, Any]) -> bool:
        """Take over what the session is. A fork has its parent's line as well, which says nothing new."""
        if self.known or self.told.spoken:
            return False
        self.known = True
        self.provider = word(meta.get("model_provider")) or self.provider
        self.version = word(meta.get("cli_version"))
        if name := word(meta.get("id")):
            self.told.source = f"{_AGENT}:{name}"
        cwd = word(meta.get("cwd"))
        model = _model(self.report.path)
        self.told.conf = Conf(
            model=f"{self.provider}/{model}" if model else "",
            tools=_AGENT,
            workers=[Worker("local", [cwd])] if cwd else None,
        )
        said = plain(meta.get("base_instructions")).get("text") or meta.get("instructions")
        if isinstance(said, str) and said:
            self.told.say(SYSTEM, text(said))
        return True

    def _context(self, context: dict[str, Any]) -> bool:
        self.model = word(context.get("model")) or self.model
        return bool(context.get("model"))

    def _compacted(self, item: dict[str, Any]) -> bool:
        if "replacement_history" in item:
            self.report.leave("replacement_history")
        said = item.get("message")
        if isinstance(said, str) and said:
            self.told.say(SYSTEM, text(said), source=f"{_AGENT} compaction")
            return True
        return False

    def _tokens(self, event: dict[str, Any]) -> bool:
        """Take over what the answer that is open took; it is told more than once."""
        last = plain(plain(event.get("info")).get("last_token_usage"))
        found = tokens(last, input="input_tokens", output="output_tokens", read="cached_input_tokens")
        if found is None or self.told.step is None or "usage" in self.told.facts:
            return False
        # Here the tokens that a cache had are counted among the others.
        self.told.learn(usage=Usage(max(found.input - found.cache_read, 0), found.output, found.cache_read))
        return True

    def _item(self, item: dict[str, Any]) -> bool:
        """Tell one item; say whether it was one that can be told."""
        kind = item.get("type")
        call = word(item.get("call_id")) or word(item.get("id"))
        if kind == "message":
            return self._message(item)
        if kind == "reasoning":
            return self._reasoning(item)
        if kind == "function_call":
            return self._call(call, item.get("name"), _arguments(item.get("arguments")))
        if kind == "custom_tool_call":
            return self._call(call, item.get("name"), {"input": item.get("input")})
        if kind == "local_shell_call":
            return self._call(call, "local_shell", item.get("action"))
        if kind in ("function_call_output", "custom_tool_call_output"):
            return self._result(call, item.get("output"))
        return False

    def _message(self, item: dict[str, Any]) -> bool:
        some, name = False, word(item.get("id"))
        content = item.get("content")
        for part in map(plain, content if isinstance(content, list) else [{"text": content}]):
            said, data = part.get("text"), _image(part.get("image_url"))
            if isinstance(said, str) and said:
                if item.get("role") == "assistant":
                    self._block(TEXT, text(said), "text/plain", id=name)
                elif item.get("role") == "user" and not said.startswith(_PROGRAM):
                    self.told.say(MESSAGE, text(said), id=name)
                else:
                    self.told.say(SYSTEM, text(said), id=name)
            elif data is not None and item.get("role") == "user":
                self.told.say(MESSAGE, data[0], data[1], id=name)
            else:
                self.report.leave(f"content {part.get('type')}")
                continue
            some, name = True, ""
        return some

    def _reasoning(self, item: dict[str, Any]) -> bool:
        """Tell what the model thought; what is sealed comes along, so that its maker can go on with it."""
        said = [
            part["text"]
            for name in ("summary", "content")
            for part in map(plain, item[name] if isinstance(item.get(name), list) else [])
            if isinstance(part.get("text"), str)
        ]
        sealed = item.get("encrypted_content")
        if not said and not isinstance(sealed, str):
            return False
        body = {"thinking": "\n\n".join(said)} | ({"encrypted_content": sealed} if isinstance(sealed, str) else {})
        self._block(THINKING, dense(body), _JSON, id=word(item.get("id")))
        return True

    def _call(self, call: str, name: Any, arguments: Any) -> bool:
        self._block(CALL, dense({"name": name, "arguments": arguments}), _JSON, id=call)
        return True

    def _block(self, kind: str, body: bytes, media: str, **fields: Any) -> None:
        if self.told.step is None or self.told.results or "usage" in self.told.facts:
            self.steps += 1
        fields |= {} if kind == CALL else {"provider": self.provider}
        self.told.answer(f"step-{self.steps}", kind, body, media, **fields)
        self.told.learn(model=self.model, provider=self.provider, harness=self.version)

    def _result(self, call: str, output: Any) -> bool:
        if isinstance(output, dict) and isinstance(output.get("content"), str):
            output = output["content"]
        if not isinstance(output, str):
            self.told.result(dense(output), _JSON, for_=call)
            return True
        exit_ = plain(plain(_arguments(output)).get("metadata")).get("exit_code") if output[:1] == "{" else None
        some = {"exit": exit_} if type(exit_) is int and -(2**63) <= exit_ < 2**63 else {}
        self.told.result(text(output), "text/plain", for_=call, **some)
        return True


def _model(path: Path) -> str:
    """Return the first model that a file names; it stands behind what is said first."""
    contexts = (plain(row.get("payload")) for row in rows(Report(path)) if row.get("type") == "turn_context")
    return next((name for context in contexts if (name := word(context.get("model")))), "")


def _arguments(value: Any) -> Any:
    """Return the JSON that a text holds, or the text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _image(url: Any) -> tuple[bytes, str] | None:
    """Return the bytes and the media type of an image that its address holds; None where they are elsewhere."""
    if not isinstance(url, str) or not url.startswith("data:") or ";base64," not in url:
        return None
    media, _, data = url[len("data:") :].partition(";base64,")
    try:
        return b64decode(data, validate=True), word(media)
    except ValueError:
        return None
