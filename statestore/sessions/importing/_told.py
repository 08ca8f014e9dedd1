"""A session told record by record, in the order in which a session's records have to stand."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

from statestore.records import CONFIG, RESULT, START, STEP, SYSTEM, Usage
from statestore.records.header import ZERO_TIME
from statestore.records.making import NewLog
from statestore.records.record import draft, place
from statestore.records.times import spell_time
from statestore.sessions.conf import Conf

__all__ = ["Told", "dense", "plain", "text", "tokens", "word"]

_JSON: Final = "application/json"
_LONGEST: Final = 400  # characters of a word that a header holds
_MOST: Final = 2**63 - 1


class Told:
    """A session's records as they are told; they go to a log that is to be made.

    An answer of the model is a run of blocks that one step closes. Results that come while it is open wait for the
    step: they answer calls that only the step makes real.

    Args:
        source: what the session was where it comes from.
        via: the program that it comes from.

    Attributes:
        source: the same.
        conf: how the session is set up.
        log: the log that is to be made.
        kinds: how many records of each kind it has.
        step: the answer that is open; None where none is.
        facts: what is known of it: fields of its step, and ``stop_reason``.
        results: what has come since it began.
    """

    def __init__(self, source: str, via: str) -> None:
        self.source = source
        self.conf = Conf()
        self.log = NewLog()
        self.kinds: Counter[str] = Counter()
        self.step: str | None = None
        self.facts: dict[str, Any] = {}
        self.results: list[tuple[bytes, dict[str, Any]]] = []
        self._via = via
        self._time = ZERO_TIME
        self._upto = 0
        self._answered = ZERO_TIME
        self._counted: set[str] = set()

    @property
    def spoken(self) -> bool:
        """Whether anything was told."""
        return self.log.count > 0

    def at(self, time: object) -> None:
        """Say when what follows was; a time that is none leaves the one before."""
        if isinstance(time, str):
            with suppress(ValueError):
                self._time = spell_time(time)

    def say(self, kind: str, body: bytes, media: str = "text/plain", **fields: Any) -> None:
        """Tell what somebody said, or what the program told the model."""
        self.close()
        origin = "source" if kind == SYSTEM else "via"
        self._add(kind, body, **{"type": media, origin: self._via} | fields)

    def answer(self, step: str, kind: str, body: bytes, media: str = "text/plain", **fields: Any) -> None:
        """Tell a block of the answer that is closed by `step`."""
        if step != self.step:
            self.close()
            self._begin()
            self.step, self._upto, self.facts = step, self.log.count, {}
        self._answered = self._time
        self._add(kind, body, type=media, step=step, **fields)

    def learn(self, **facts: Any) -> None:
        """Learn more of the answer that is open; what is empty is nothing new."""
        self.facts |= {name: value for name, value in facts.items() if value}

    def result(self, body: bytes, media: str, **fields: Any) -> None:
        """Tell what a call came to."""
        fields |= {"type": media, "time": self._time}
        if self.step is None:
            self._add(RESULT, body, **fields)
        else:
            self.results.append((body, fields))

    def close(self) -> None:
        """Close the answer that is open, if one is; the results that waited for it follow."""
        if self.step is None:
            return
        step, self.step = self.step, None
        facts, results, self.results = self.facts, self.results, []
        stop = facts.pop("stop_reason", "")
        if step in self._counted:
            # Something was said in the middle of one answer; its tokens were told with the first part.
            facts.pop("usage", None)
        self._counted.add(step)
        facts["time"] = self._answered
        self._add(
            STEP,
            dense({"stop_reason": stop}) if stop else b"",
            id=step,
            type=_JSON if stop else "",
            upto=self._upto,
            **facts,
        )
        for body, fields in results:
            self._add(RESULT, body, **fields)

    def _begin(self) -> None:
        if not self.log.count:
            self._write(START, b"", {"source": self.source, "via": self._via})
            self._write(CONFIG, self.conf.encode(), {"type": _JSON})

    def _add(self, kind: str, body: bytes, **fields: Any) -> None:
        self._begin()
        self._write(kind, body, fields)

    def _write(self, kind: str, body: bytes, fields: dict[str, Any]) -> None:
        number = self.log.count + 1
        # The same file becomes the same bytes, whenever it is brought in.
        name = fields.pop("id", "") or sha256(f"{self.source}\0{number}".encode()).hexdigest()[:8]
        record = draft(kind, body, id=name, time=fields.pop("time", self._time), **fields)
        self.log.add(place([record], number))
        self.kinds[kind] += 1


def text(value: str) -> bytes:
    """Return a text's bytes; a lone surrogate, which JSON can spell, keeps its own."""
    return value.encode("utf-8", "surrogatepass")


def dense(value: Any) -> bytes:
    """Return a value as JSON without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def word(value: object) -> str:
    """Return a text as a header's field takes it: nothing for what is no text, a digest for what is too long."""
    if not isinstance(value, str):
        return ""
    value = value.encode("utf-8", "replace").decode()
    return value if len(value) <= _LONGEST else sha256(value.encode()).hexdigest()


def plain(value: Any) -> dict[str, Any]:
    """Return an object's members; none for what is no object."""
    return value if isinstance(value, dict) else {}


def tokens(counts: Any, *, input: str, output: str, read: str, write: str = "") -> Usage | None:  # noqa: A002
    """Return a step's tokens, by the names that its program gives them; None where it says none."""
    found = {
        ours: plain(counts).get(theirs)
        for ours, theirs in zip(Usage.__struct_fields__, (input, output, read, write), strict=True)
    }
    known = {name: count for name, count in found.items() if type(count) is int and 0 <= count <= _MOST}
    return Usage(**known) if known else None
