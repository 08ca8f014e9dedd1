"""How a session is set up: the body of its config record, written and read as the Go package does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Self

import msgspec

from statestore.records import gojson
from statestore.records.gojson import quote

__all__ = ["Conf", "Worker"]

_CONF: Final = {name: name for name in ("model", "tools", "workers", "context", "input")}
_WORKER: Final = {name: name for name in ("name", "drives")}


class Worker(msgspec.Struct, frozen=True):
    """A machine that runs the session's tools.

    Attributes:
        name: what it is called.
        drives: the directories that it offers; None and an empty list are written alike.
    """

    name: str = ""
    drives: list[str] | None = None


class Conf(msgspec.Struct, frozen=True):
    """How a session is set up.

    Attributes:
        model: the model that answers, such as ``anthropic/claude-opus-4``.
        tools: which tools it may call.
        workers: the machines that run them; None and an empty list are different, and are written so.
        context: how many tokens the model's context holds.
        input: the media types that the model takes; None and an empty list are written alike.
    """

    model: str = ""
    tools: str = ""
    workers: list[Worker] | None = None
    context: int = 0
    input: list[str] | None = None

    def encode(self) -> bytes:
        """Return the JSON of a config record's body, byte for byte as the Go package writes it.

        Raises:
            TypeError: ``context`` is not an int.
            ValueError: ``context`` does not fit into 64 bits.
        """
        if type(self.context) is not int:
            raise TypeError(f"context is int, not {type(self.context).__name__}")
        if not -(2**63) <= self.context < 2**63:
            raise ValueError(f"context does not fit into 64 bits: {self.context}")
        workers = "null" if self.workers is None else _array(self.workers, _spell_worker)
        text = f'{{"model":{quote(self.model)},"tools":{quote(self.tools)},"workers":{workers},"context":{self.context}'
        if self.input:
            text += f',"input":{_array(self.input, quote)}'
        return f"{text}}}".encode()

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """Return the configuration that a config record's body holds, read as the Go package reads it.

        Keys count in any case, unknown ones do not, and a key that comes twice is merged into what came before.

        Raises:
            ValueError: Go refuses it.
        """
        text: dict[str, str] = {}
        workers, inputs = _Slice(), _Slice()
        context = 0
        for name, value in gojson.fields(body, _CONF):
            if name == "workers":
                workers.read(value, _read_worker)
            elif name == "input":
                inputs.read(value, _read_text)
            elif value == b"null":
                continue
            elif name == "context":
                context = gojson.integer(name, value)
            else:
                text[name] = gojson.string(name, value)
        found = workers.items()
        return cls(
            **text,
            workers=None if found is None else [Worker(name, drives.items()) for name, drives in found],
            context=context,
            input=inputs.items(),
        )


def _array(items: list[Any], spell: Callable[[Any], str]) -> str:
    return f"[{','.join(map(spell, items))}]"


def _spell_worker(worker: Worker) -> str:
    drives = f',"drives":{_array(worker.drives, quote)}' if worker.drives else ""
    return f'{{"name":{quote(worker.name)}{drives}}}'


class _Slice:
    """A list as Go reads one: into the elements that it has already, and those behind its end come back with it."""

    def __init__(self) -> None:
        self._elements: list[Any] = []
        self._length: int | None = None

    def items(self) -> list[Any] | None:
        """Return the elements up to the length; None where the last value read was ``null``, or none was."""
        return None if self._length is None else self._elements[: self._length]

    def read(self, value: bytes, read: Callable[[bytes, Any], Any]) -> None:
        """Read an array's bytes, each element with `read` into what stands in its place (None: nothing)."""
        values = [] if value == b"null" else gojson.elements(value)
        self._length = None if value == b"null" else len(values)
        if not values:
            self._elements = []
        for place, element in enumerate(values):
            if place == len(self._elements):
                self._elements.append(None)
            self._elements[place] = read(element, self._elements[place])


def _read_text(value: bytes, before: str | None) -> str:
    return before or "" if value == b"null" else gojson.string("an element", value)


def _read_worker(value: bytes, before: tuple[str, _Slice] | None) -> tuple[str, _Slice]:
    name, drives = before or ("", _Slice())
    for field, member in gojson.fields(value, _WORKER, depth=3):
        if field == "drives":
            drives.read(member, _read_text)
        elif member != b"null":
            name = gojson.string(field, member)
    return name, drives
