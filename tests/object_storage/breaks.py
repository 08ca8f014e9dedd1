"""The protocol with one of its rules taken away: each is an edit of a few words in one function's source."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from statestore_fsspec._finding import Finder
from statestore_fsspec._layout import Segment
from tests.object_storage.scene import Scenario

__all__ = ["Broken", "Edit", "RULES", "edited", "fresh", "narrowest", "read_through", "singles_first"]


@dataclass(frozen=True)
class Edit:
    """A change of one function's text.

    Attributes:
        function: the function.
        old: a part of one line of its source.
        new: what stands there instead; further lines are indented as that line is.
        also: further changes of the same function.
        names: what the new text uses and the function's module does not have.
    """

    function: Callable[..., Any]
    old: str
    new: str
    names: Mapping[str, Any] = field(default_factory=dict)
    also: Mapping[str, str] = field(default_factory=dict)

    def apply(self, source: str) -> str:
        """Return the changed source."""
        for old, new in ((self.old, self.new), *self.also.items()):
            assert source.count(old) == 1, f"{self.function.__qualname__} has {old!r} not once"
            line = source[: source.index(old)].rpartition("\n")[2]
            source = source.replace(old, new.replace("\n", "\n" + " " * (len(line) - len(line.lstrip()))))
        return source


@contextmanager
def edited(*edits: Edit) -> Iterator[None]:
    """Run the protocol with some functions changed, whoever has imported them already."""
    functions: list[Any] = [edit.function for edit in edits]
    before = [function.__code__ for function in functions]
    try:
        for edit, function in zip(edits, functions, strict=True):
            source = edit.apply(textwrap.dedent(inspect.getsource(function)))
            made: dict[str, Any] = {}
            exec(compile(source, "<edited>", "exec", flags=annotations.compiler_flag), {}, made)
            function.__globals__.update(edit.names)
            function.__code__ = made[function.__name__].__code__
        yield
    finally:
        for edit, function, code in zip(edits, functions, before, strict=True):
            function.__code__ = code
            for name in edit.names:
                del function.__globals__[name]


@dataclass(frozen=True)
class Broken:
    """A rule taken away.

    Attributes:
        rule: its number.
        claim: what it says, of which the opposite is done.
        edits: how it is taken away.
        scenario: where that shows.
        why: what there is to say besides.
    """

    rule: int
    claim: str
    edits: tuple[Edit, ...]
    scenario: Scenario
    why: str = ""


RULES = {
    1: "Generations and runs",
    2: "The walk",
    3: "The seen tail",
    4: "Settling",
    5: "Seals",
    6: "Handles",
    7: "Merges",
    8: "Collecting",
}


def fresh(*callers: str) -> Edit:
    """Let one function believe a listing however old it is; further names say on whose behalf."""
    frames = " and ".join(f"sys._getframe({n}).f_code.co_name == {name!r}" for n, name in enumerate(callers, start=1))
    return Edit(Finder.is_fresh, "return now - sent", f"return ({frames}) or now - sent", {"sys": sys})


def singles_first(segments: Iterable[Segment]) -> list[Segment]:
    """Leave out the merges that begin where a single does."""
    singles = {segment.start for segment in segments if not segment.merged}
    return [segment for segment in segments if not segment.merged or segment.start not in singles]


def narrowest(segments: Iterable[Segment]) -> list[Segment]:
    """Leave out the merges that begin where a narrower one does."""
    stops: dict[int, int] = {}
    for segment in segments:
        if segment.merged:
            stops[segment.start] = min(segment.stop, stops.get(segment.start, segment.stop))
    return [segment for segment in segments if not segment.merged or segment.stop == stops[segment.start]]


def read_through(choice: Callable[[Iterable[Segment]], list[Segment]]) -> Edit:
    """Let readers and writers, but not collectors, walk over a choice of what was listed."""
    old = "walked = walk(segments.get(run, ())"
    return Edit(Finder._survey, old, "walked = walk(choice(segments.get(run, ()))", {"choice": choice})
