"""Claude Code's session files: ``~/.claude/projects/<project>/<session>.jsonl``.

A line is an event. One answer of the model is several lines with one ``message.id``, a block or more each, and the
results of its first calls may stand between them. Lines name the one that they follow, so a file is a tree:

* a prompt that follows the same line as a later prompt was taken back, and all that followed it with it;
* lines of a side chain are another agent's, and become a session of their own.
"""

from __future__ import annotations

from base64 import b64decode
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from statestore.records import CALL, ERROR, MESSAGE, SYSTEM, TEXT, THINKING
from statestore.sessions.conf import Conf, Worker
from statestore.sessions.importing._report import Report, rows
from statestore.sessions.importing._told import Told, dense, plain, text, tokens, word

__all__ = ["tell"]

_AGENT: Final = "claude-code"
_PROVIDER: Final = "anthropic"
_SPEAKERS: Final = ("user", "assistant")
_NOBODY: Final = "<synthetic>"  # the model of what the program says in the model's place: its errors


@dataclass(slots=True)
class _Tree:
    """What has to be known of a whole file before its first line is told."""

    back: set[str] = field(default_factory=set)  # the lines that were taken back
    side: dict[str, str] = field(default_factory=dict)  # the first line of a side chain, for each line of it
    main: bool = False  # whether there is anything but side chains
    session: str = ""
    cwd: str = ""
    model: str = ""


def tell(report: Report, logs: ExitStack) -> list[Told]:
    """Return what a file says: a session of its main chain, and one of each side chain, where they say anything."""
    tree = _look(report.path)
    chains: dict[str, Told] = {}
    seen: set[str] = set()
    for row in rows(report):
        what, uuid = _what(row), word(row.get("uuid"))
        if row.get("type") not in _SPEAKERS:
            report.lose(what)
        elif uuid in seen:
            report.lose(f"{what} said before")
        elif uuid in tree.back:
            report.lose(f"{what} taken back")
        else:
            seen |= {uuid} - {""}
            chain = _chain(row, tree)
            if chain not in chains:
                chains[chain] = _begin(report.path.stem, tree, chain)
                logs.enter_context(chains[chain].log)
            told = chains[chain]
            told.at(row.get("timestamp"))
            if _answer(row, told, report) if row["type"] == "assistant" else _said(row, told, report):
                report.carry(f"{what} of a side chain" if chain else what)
            else:
                report.lose(f"{what} with nothing in it")
    return [told for told in chains.values() if told.spoken]


def _what(row: dict[str, Any]) -> str:
    """Return what a line is, for the report."""
    kind, subtype = row.get("type"), row.get("subtype")
    if not isinstance(kind, str):
        return "no type"
    return f"{kind} {subtype}" if kind == "system" and isinstance(subtype, str) else kind


def _look(path: Path) -> _Tree:
    """Read a file for what its lines follow and for what they are about."""
    tree = _Tree()
    parents: dict[str, str] = {}
    latest: dict[str, str] = {}  # the latest prompt behind each line
    roots: set[str] = set()
    for row in rows(Report(path)):
        uuid, parent = word(row.get("uuid")), word(row.get("parentUuid"))
        parents.setdefault(uuid, parent)
        if row.get("type") not in _SPEAKERS:
            continue
        tree.session = tree.session or word(row.get("sessionId"))
        tree.cwd = tree.cwd or word(row.get("cwd"))
        model = word(plain(row.get("message")).get("model"))
        tree.model = tree.model or (model if model != _NOBODY else "")
        if row.get("isSidechain") is True:
            tree.side.setdefault(uuid, tree.side.get(parent, uuid))
            continue
        tree.main = True
        if uuid and parent and _is_prompt(row):
            if (before := latest.get(parent, uuid)) != uuid:
                roots.add(before)
            latest[parent] = uuid
    for uuid, parent in parents.items():
        # A line stands behind the one that it follows.
        if uuid in roots or parent in tree.back:
            tree.back.add(uuid)
    return tree


def _is_prompt(row: dict[str, Any]) -> bool:
    """Say whether a line is what a person said: no result, and nothing that the program told the model."""
    if row["type"] != "user" or row.get("isMeta") is True or row.get("isCompactSummary") is True:
        return False
    return not any(block.get("type") == "tool_result" for block in _blocks(row))


def _blocks(row: dict[str, Any]) -> list[dict[str, Any]]:
    content = plain(row.get("message")).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [plain(block) for block in content] if isinstance(content, list) else []


def _chain(row: dict[str, Any], tree: _Tree) -> str:
    """Return which side chain a line belongs to; nothing for the main one, and where there is no main one."""
    if not tree.main or row.get("isSidechain") is not True:
        return ""
    return word(row.get("agentId")) or tree.side[word(row.get("uuid"))] or "side"


def _begin(stem: str, tree: _Tree, chain: str) -> Told:
    session, name = tree.session, word(stem)
    # The file of a side chain alone names the session that it belongs to, and not itself.
    told = Told(":".join(filter(None, (_AGENT, session, name if name != session else "", chain))), _AGENT)
    told.conf = Conf(
        model=f"{_PROVIDER}/{tree.model}" if tree.model else "",
        tools=_AGENT,
        workers=[Worker("local", [tree.cwd])] if tree.cwd else None,
    )
    return told


def _answer(row: dict[str, Any], told: Told, report: Report) -> bool:
    """Tell a part of an answer; say whether there was anything in it."""
    message, blocks = plain(row.get("message")), _blocks(row)
    if row.get("isApiErrorMessage") is True:
        said = "\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))
        told.say(ERROR, text(said), id=word(row.get("uuid")))
        return True
    step, some = word(message.get("id")) or word(row.get("uuid")) or f"step-{report.lines}", False
    for block in blocks:
        kind, content = block.get("type"), block.get("text")
        if kind == "text" and isinstance(content, str):
            if not content:
                continue
            told.answer(step, TEXT, text(content), provider=_PROVIDER)
        elif kind in ("thinking", "redacted_thinking"):
            rest = {name: value for name, value in block.items() if name != "type"}
            told.answer(step, THINKING, dense(rest), "application/json", provider=_PROVIDER)
        elif kind == "tool_use":
            call = {"name": block.get("name"), "arguments": block.get("input")}
            told.answer(step, CALL, dense(call), "application/json", id=word(block.get("id")))
        else:
            report.leave(f"block {kind}")
            continue
        some = True
    if told.step == step:
        # Each line says what the answer took so far.
        told.learn(
            model=word(message.get("model")),
            provider=_PROVIDER,
            harness=word(row.get("version")),
            stop_reason=word(message.get("stop_reason")),
            usage=tokens(
                message.get("usage"),
                input="input_tokens",
                output="output_tokens",
                read="cache_read_input_tokens",
                write="cache_creation_input_tokens",
            ),
        )
        some = True
    return some


def _said(row: dict[str, Any], told: Told, report: Report) -> bool:
    """Tell what was said to the model; say whether there was anything in it."""
    compact = row.get("isCompactSummary") is True
    meta = compact or row.get("isMeta") is True
    name, some = word(row.get("uuid")), False
    for block in _blocks(row):
        kind, said = block.get("type"), block.get("text")
        if kind == "tool_result":
            body, media = _output(block.get("content"))
            failed = {"exit": 1} if block.get("is_error") is True else {}
            told.result(body, media, for_=word(block.get("tool_use_id")), id=name, **failed)
        elif kind == "text" and isinstance(said, str):
            if not said:
                continue
            if meta:
                told.say(SYSTEM, text(said), id=name, source=f"{_AGENT} compaction" if compact else _AGENT)
            else:
                told.say(MESSAGE, text(said), id=name)
        elif (data := _data(block)) is not None:
            told.say(MESSAGE, data, word(plain(block.get("source")).get("media_type")), id=name)
        else:
            report.leave(f"block {kind}")
            continue
        # An id names one record.
        name, some = "", True
    if some and "toolUseResult" in row:
        report.leave("toolUseResult")
    return some


def _output(content: Any) -> tuple[bytes, str]:
    """Return a result's body and its media type: text where it is that alone, else its blocks as they are."""
    if content is None or isinstance(content, str):
        return text(content or ""), "text/plain"
    if isinstance(content, list) and len(content) == 1 and isinstance(plain(content[0]).get("text"), str):
        return text(content[0]["text"]), "text/plain"
    return dense(content), "application/json"


def _data(block: dict[str, Any]) -> bytes | None:
    """Return an image's or a document's bytes; None where they are elsewhere."""
    source = plain(block.get("source"))
    if source.get("type") != "base64" or not isinstance(source.get("data"), str):
        return None
    try:
        return b64decode(source["data"], validate=True)
    except ValueError:
        return None
