"""Clients of the modelled storage: the protocol's own generators, driven by scripts and replayed from their replies.

A client is deterministic: what it does next depends on the replies it was sent, and on nothing else. So a client in
a state of the model is a `Node`, found from the node before by the reply; the generators behind it are rebuilt by
replaying when they are needed again. Two histories that leave a client with the same local variables, at the same
place of the same functions, are one node: from there on it can only behave alike.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from enum import Enum
from types import GeneratorType
from typing import Any, Final, NamedTuple

from statestore.errors import StateStoreError, Unavailable
from statestore.store import NEW, Tail
from statestore_fsspec import _check, _copying, _reading, _upkeep
from statestore_fsspec._finding import Finder, Found
from statestore_fsspec._layout import Entry, Segment
from statestore_fsspec._steps import NOW, TOKEN, Page, Pause
from statestore_fsspec._writing import Writer

__all__ = ["Begin", "Client", "DONE", "End", "Node", "Nodes", "Raised", "Script", "WARM"]

Script = Callable[["Client"], Generator[Any, Any, None]]


class _Mark(Enum):
    DONE = "done"
    WARM = "warm"


DONE: Final = _Mark.DONE
"""What a client asks for when its script is at its end."""

WARM: Final = _Mark.WARM
"""Yielded by a script that has prepared its scene: what comes before runs alone, without a fault."""


class Begin(NamedTuple):
    """A call begins."""

    kind: str
    log: str
    args: tuple[Any, ...]


class End(NamedTuple):
    """A call has returned, or has raised; `tokens` were drawn for it."""

    result: Any
    error: Exception | None
    tokens: tuple[str, ...] = ()


class Raised(NamedTuple):
    """A reply that is an error: the request failed, without any effect."""

    message: str


class Client:
    """What a script uses: one process with caches of its own. Each method returns its result, or the error."""

    def __init__(self, number: int, grace: float) -> None:
        self.number = number
        self.finder = Finder(grace)
        self.writer = Writer(self.finder)
        self.draws = 0

    def append(self, log: str, data: bytes, at: Any) -> Iterator[Any]:
        return self._call("append", log, self.writer.append(log, data, at), data, at)

    def create(self, log: str, data: bytes) -> Iterator[Any]:
        return self._call("append", log, self.writer.append(log, data, NEW), data, NEW)

    def delete(self, log: str, at: Tail | None = None) -> Iterator[Any]:
        return self._call("delete", log, self.writer.delete(log, at), at)

    def read(self, log: str, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        return self._call("read", log, _reading.read(self.finder, log, start, stop), start, stop)

    def tail(self, log: str) -> Iterator[Any]:
        return self._call("tail", log, self._tail(log))

    def copy(self, source: str, target: str, stop: int | None = None) -> Iterator[Any]:
        return self._call("copy", source, _copying.copy(self.writer, source, target, stop), target, stop)

    def merge(self, log: str, windows: tuple[int, ...]) -> Iterator[Any]:
        return self._call("merge", log, _upkeep.merge(self.finder, log, windows), windows)

    def collect(self, log: str) -> Iterator[Any]:
        return self._call("collect", log, self._collect(log))

    def snapshot(self, log: str) -> Iterator[Any]:
        return self._call("snapshot", log, self._snapshot(log))

    def verify(self, log: str) -> Iterator[Any]:
        return self._call("verify", log, _check.check(self.finder, log))

    def _tail(self, log: str) -> Iterator[Any]:
        found = yield from self.finder.find(log)
        return found.tail if found.walk is not None else None

    def _snapshot(self, log: str) -> Iterator[Any]:
        """Read twice what the log was at first."""
        found = yield from self.finder.find(log)
        if found.walk is None:
            return None
        end = found.walk.size
        found, once = yield from _reading.reread(self.finder, log, found, 0, end)
        _, again = yield from _reading.reread(self.finder, log, found, 0, end)
        assert once == again, f"{once!r} has become {again!r}"
        return once

    def _collect(self, log: str) -> Iterator[Any]:
        now = yield NOW
        yield from _upkeep.collect(self.writer, log, now, dry_run=False)

    def _call(self, kind: str, log: str, steps: Iterator[Any], *args: Any) -> Iterator[Any]:
        yield Begin(kind, log, args)
        try:
            result = yield from steps
        except Exception as error:
            yield End(None, error)
            return error
        yield End(result, None)
        return result


class Node:
    """A client at a request: where it comes from, what it asks, and where each reply leads."""

    __slots__ = ("_live", "after", "begin", "first", "number", "parent", "print", "reply", "request", "shapes")

    def __init__(self, number: int, parent: Node | None, reply: Any, live: _Live, print_: Any) -> None:
        self.number = number
        self.print = print_
        self.shapes: dict[float, int] = {}
        self.parent = parent
        self.reply = reply
        self.request = live.request
        self.begin = live.begin  # the call that it belongs to
        self.first = live.first  # whether it is the first one of that call
        self.after: dict[Any, tuple[tuple[End, ...], Node]] = {}
        self._live: _Live | None = live


class Nodes:
    """All nodes of one client.

    Args:
        script: what the client does.
        number: which client of the scenario it is.
        grace: the root's grace period.
        joined: whether histories that leave the client the same are one node.
    """

    def __init__(self, script: Script, number: int, grace: float, *, joined: bool = True) -> None:
        self._script, self._number, self._grace, self._joined = script, number, grace, joined
        self._nodes: dict[Any, Node] = {}
        self._shapes: dict[Any, int] = {}
        self.start = self._node(None, None, self._begin())

    def send(self, node: Node, reply: Any) -> tuple[tuple[End, ...], Node]:
        """Return what a reply leads to: the calls that end with it, and the node of the next request."""
        if reply in node.after:
            return node.after[reply]
        live, node._live = node._live or self._replay(node), None
        ends = live.send(reply)
        found = node.after[reply] = ends, self._node(node, reply, live)
        return found

    def shape(self, node: Node, now: float) -> int:
        """Return a number that two nodes share only if they behave alike from now on.

        Two moments that are both further back than listings are believed are the same to a client.
        """
        if not self._joined:
            return node.number
        shape = node.shapes.get(now)
        if shape is None:
            aged = _aged(node.print, now - self._grace / 2)
            shape = node.shapes[now] = self._shapes.setdefault(aged, len(self._shapes))
        return shape

    def __len__(self) -> int:
        return len(self._nodes)

    def _begin(self) -> _Live:
        return _Live(self._script, self._number, self._grace)

    def _node(self, parent: Node | None, reply: Any, live: _Live) -> Node:
        key = live.fingerprint() if self._joined else (parent.number if parent else None, reply)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(len(self._nodes), parent, reply, live, key)
        elif node._live is None:
            node._live = live
        return node

    def _replay(self, node: Node) -> _Live:
        replies = []
        while node.parent is not None:
            replies.append(node.reply)
            node = node.parent
        live = self._begin()
        for reply in reversed(replies):
            live.send(reply)
        return live


class _Live:
    """A client's generators, at a request. What needs no storage is answered on the spot."""

    def __init__(self, script: Script, number: int, grace: float) -> None:
        self.client = Client(number, grace)
        self.begin: Begin | None = None
        self.first = False
        self.request: Any = None
        self._tokens: tuple[str, ...] = ()
        self._steps = script(self.client)
        self.send(None)

    def send(self, reply: Any) -> tuple[End, ...]:
        ends = []
        self.first = False
        while True:
            try:
                if isinstance(reply, Raised):
                    error = Unavailable(reply.message, retry=True, effect_unknown=False)
                    self.request = self._steps.throw(error)
                else:
                    self.request = self._steps.send(list(reply) if type(reply) is tuple else reply)
            except StopIteration:
                self.request = DONE
            reply = None
            if isinstance(self.request, Begin):
                self.begin, self.first = self.request, True
            elif isinstance(self.request, End):
                ends.append(self.request._replace(tokens=self._tokens))
                self.begin, self._tokens = None, ()
            elif self.request is TOKEN:
                self.client.draws += 1
                reply = f"{self.client.number:x}{self.client.draws:015x}"
                self._tokens += (reply,)
            elif not isinstance(self.request, Pause):
                return tuple(ends)

    def fingerprint(self) -> Any:
        """Return all that what this client does next can depend on."""
        frames = []
        steps: Any = self._steps
        while isinstance(steps, GeneratorType) and steps.gi_frame is not None:
            frame = steps.gi_frame
            frames.append((frame.f_code, frame.f_lasti, _freeze(frame.f_locals)))
            steps = steps.gi_yieldfrom
        return tuple(frames), self.request, self.begin, self.first, self._tokens


def _aged(print_: Any, oldest: float) -> Any:
    """Return a fingerprint in which all moments before a certain one are the same."""
    if type(print_) is float:
        return print_ if print_ >= oldest else -1.0
    return tuple(_aged(item, oldest) for item in print_) if type(print_) is tuple else print_


def _freeze(value: Any) -> Any:
    """Return something hashable that two values share only if no code can tell them apart."""
    if value is None or type(value) in (int, str, bytes, float, bool):
        return value
    if isinstance(value, dict):
        return "dict", tuple(sorted((key, _freeze(item)) for key, item in value.items()))
    if isinstance(value, (set, frozenset)):
        return "set", frozenset(map(_freeze, value))
    if isinstance(value, (Page, Entry, Segment)):
        return value
    if isinstance(value, (list, tuple)):
        return type(value), tuple(map(_freeze, value))
    if isinstance(value, Found):
        return Found, value.generation, value.run, value.walk, value.sent
    if isinstance(value, Exception):
        flags = sorted((key, _freeze(item)) for key, item in vars(value).items() if key != "facts")
        return type(value), str(value), tuple(flags) if isinstance(value, StateStoreError) else ()
    if isinstance(value, (Finder, Writer, Client)):
        return type(value), _freeze(vars(value))
    if isinstance(value, GeneratorType):
        # One that is run by `yield from` has a frame of its own in the fingerprint; others are never kept across a
        # request but in `for` loops, whose variable says where they are.
        return GeneratorType
    return type(value), value
