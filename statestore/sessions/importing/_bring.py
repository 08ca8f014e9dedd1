"""Bringing an agent's files in: which they are, and how each becomes sessions of a store."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from statestore.errors import Exists
from statestore.records import RecordLog
from statestore.sessions.importing import _claude_code, _codex
from statestore.sessions.importing._report import Brought, Report
from statestore.sessions.importing._told import Told
from statestore.sessions.sessions import Sessions
from statestore.store import Store

__all__ = ["AGENTS", "bring_in", "files"]

_TRIES: Final = 100


class _Agent(NamedTuple):
    pattern: str  # what its files are called
    tell: Callable[[Report, ExitStack], list[Told]]  # what a file says, as sessions


AGENTS: Final = {
    "claude-code": _Agent("*.jsonl", _claude_code.tell),
    "codex": _Agent("rollout-*.jsonl", _codex.tell),
}
"""The agents whose files are understood, by name."""


def files(agent: str, path: str | os.PathLike[str]) -> list[Path]:
    """Return the files that are brought in: `path`, or those of the agent anywhere below it, by name.

    Raises:
        OSError: `path` cannot be read.
    """
    place = Path(path)
    if not os.path.isdir(place):
        os.stat(place)
        return [place]
    return sorted(found for found in place.rglob(AGENTS[agent].pattern) if not os.path.isdir(found))


def bring_in(agent: str, store: Store, path: Path, *, prefix: str = "") -> Report:
    """Make sessions of one of an agent's files, and return what came over and what did not.

    A session's id comes from the id that the agent gave it, and its bytes from the file alone: the same file becomes
    the same session. One that is there already is left alone, and told in the report.

    Args:
        agent: one of `AGENTS`.
        store: where the sessions come to.
        path: the file.
        prefix: the scope of the sessions; see :class:`Sessions`.

    Raises:
        Unavailable: the storage failed.
        InvalidName: `prefix` is no name.
        OSError: the file cannot be read.
    """
    sessions = Sessions(store, prefix)
    report = Report(path)
    with ExitStack() as logs:
        for told in AGENTS[agent].tell(report, logs):
            told.close()
            report.sessions.append(_make(sessions, told))
    return report


def _make(sessions: Sessions, told: Told) -> Brought:
    for attempt in range(_TRIES):
        id_ = sha256(f"{told.source}\0{attempt}".encode()).hexdigest()[:8]
        log = sessions._log(id_).name
        try:
            told.log.create(sessions.store, log)
        except Exists:
            # Eight digits are few: another session may have the same ones.
            first = next(RecordLog(sessions.store, log).read(before=2), None)
            if first is None or first.header.source != told.source:
                continue
            return Brought(log, told.source, dict(told.kinds), told.log.size, new=False)
        return Brought(log, told.source, dict(told.kinds), told.log.size, new=True)
    raise Exists("all ids that this session could have are taken", source=told.source)
