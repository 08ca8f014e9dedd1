"""What the protocol asks of the world, one request at a time.

The protocol is a set of generators. They yield these requests, are sent the replies, and do nothing else: no
network, no clock, no randomness. One driver runs them over a real storage; the model checker in the tests runs the
same code over a modelled one, in every order.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple, TypeVar

from statestore_fsspec._layout import Entry

__all__ = [
    "Copy",
    "Fetch",
    "List",
    "NOW",
    "Now",
    "Outcome",
    "Page",
    "Pause",
    "Put",
    "Remove",
    "Span",
    "Steps",
    "TOKEN",
    "every",
]

Result = TypeVar("Result")
Steps = Generator[Any, Any, Result]
"""A piece of the protocol: yields requests, is sent replies, returns its result."""


class Outcome(Enum):
    """What came of a request to create an object."""

    CREATED = "created"
    """The storage said that this request made the object."""

    REFUSED = "refused"
    """The storage said that the object is there already. This request, or its double, may have put it there."""

    UNKNOWN = "unknown"
    """No answer that can be believed: the request may have taken effect, may take effect later, or never."""


class Span(NamedTuple):
    """A part of an object, in bytes; all of it where `stop` is None."""

    key: str
    start: int = 0
    stop: int | None = None

    @property
    def limits(self) -> dict[str, int | None]:
        """The part, as fsspec takes it; nothing where all is wanted."""
        return {"start": self.start, "end": self.stop} if self.start or self.stop is not None else {}


@dataclass(frozen=True, slots=True)
class List:
    """Ask for one page of the objects whose keys begin with `prefix` and come after `after`; reply: `Page`."""

    prefix: str
    after: str = ""


class Page(NamedTuple):
    """One page of a listing, in the order of the keys; `more` says whether others follow."""

    entries: tuple[Entry, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Fetch:
    """Ask for parts of objects, at once; reply: a list of bytes, None where the object is not there."""

    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Put:
    """Create an object, if there is none at that key; reply: `Outcome`."""

    key: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy objects on the storage, whatever is at the new keys; reply: whether all sources were there.

    What a source's key holds has to be the same for ever: the request may be carried out again at any later time.
    """

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove objects, one after another in this order; those that are not there do not count. No reply."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Now:
    """Ask for the seconds that have passed since some moment, counting those asleep; reply: float."""


NOW: Final = Now()


@dataclass(frozen=True, slots=True)
class _Token:
    pass


TOKEN: Final = _Token()
"""Asks for 16 random hexadecimal digits; reply: str."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the n-th repetition, longer each time; no reply."""

    attempt: int


def every(prefix: str) -> Steps[list[Entry]]:
    """Return all objects whose keys begin with a prefix, in the order of the keys; one request a page."""
    entries: list[Entry] = []
    more = True
    while more:
        page: Page = yield List(prefix, entries[-1].key if entries else "")
        entries += page.entries
        more = page.more
    return entries
