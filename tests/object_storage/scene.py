"""What a scenario is, and what a state of it: everything at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tests.object_storage.clients import End, Node
from tests.object_storage.scripts import later
from tests.object_storage.truth import Stored, Truth

__all__ = [
    "ALL_FAULTS",
    "DOUBLED",
    "FAILED",
    "Flying",
    "GRACE",
    "LATE",
    "LOST",
    "NEVER",
    "PART",
    "RETRIED",
    "Scenario",
    "State",
    "Step",
]

PART: Final = 2
"""The bytes up to which a copy joins segments, so that it also copies some as they are."""

LOST: Final = "takes effect, and the answer is lost"
NEVER: Final = "gets lost on its way, without an answer"
LATE: Final = "is stuck on its way, without an answer"
DOUBLED: Final = "is answered, and a double of it is stuck on its way"
RETRIED: Final = "takes effect, and a repetition of it by the client's library is answered"
FAILED: Final = "fails"
ALL_FAULTS: Final = frozenset({LOST, NEVER, LATE, DOUBLED, RETRIED, FAILED})

GRACE: Final = 2
"""The grace period, in the clock's units; a listing can be believed for half of it."""


Flying = tuple[str, bytes | str]
"""A request on its way: a key and what is to be created there, or the key of what is to be copied there."""


@dataclass(frozen=True)
class Scenario:
    """Who does what on which storage.

    Attributes:
        scripts: what each client does, by name; those that prepare the scene do so in this order.
        ticks: by how much the clock can advance, one after the other, at any moments.
        faults: how many requests have one.
        kinds: which faults there are.
        page: how many entries a page of a listing has.
        slow: whether clients can take their time before they look at the clock. They always can between two calls.
        passing: whether clients remove heads, which the protocol never does.
    """

    scripts: Mapping[str, str]
    ticks: tuple[int, ...] = ()
    faults: int = 0
    kinds: frozenset[str] = frozenset({LOST, LATE, DOUBLED})
    page: int = 3
    slow: bool = False
    passing: bool = False

    def doers(self, *verbs: str) -> frozenset[int]:
        """Return the clients that do something of that kind, once the scene is prepared."""
        scripts = enumerate(self.scripts.values())
        return frozenset(number for number, words in scripts if later(words) & {*verbs})


class State(NamedTuple):
    """Everything at one moment. Nothing in it is ever changed."""

    objects: dict[str, Stored]
    flying: tuple[Flying, ...]
    clock: int  # how many ticks there were
    faults: int  # how many there can still be
    nodes: tuple[Node, ...]
    parts: tuple[tuple[Any, ...], ...]  # what has come of the parts of each client's request
    asleep: frozenset[int]  # clients that look at the clock only after its next tick
    truth: Truth


class Step(NamedTuple):
    """What happened between two states."""

    client: int | None
    request: Any
    answer: Any
    fault: str | None = None
    ends: tuple[End, ...] = ()
    slow: bool = False
