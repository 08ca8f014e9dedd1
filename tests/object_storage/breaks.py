"""The protocol with one of its rules taken away: each is an edit of a few words in one function's source."""

from __future__ import annotations

import __future__

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Edit", "edited"]


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


@contextmanager
def edited(*edits: Edit) -> Iterator[None]:
    """Run the protocol with some functions changed, whoever has imported them already."""
    before = [(edit, edit.function.__code__) for edit in edits]  # type: ignore[attr-defined]
    try:
        for edit in edits:
            source = textwrap.dedent(inspect.getsource(edit.function))
            for old, new in ((edit.old, edit.new), *edit.also.items()):
                assert source.count(old) == 1, f"{edit.function.__qualname__} has {old!r} not once"
                line = source[: source.index(old)].rpartition("\n")[2]
                indent = "\n" + " " * (len(line) - len(line.lstrip()))
                source = source.replace(old, new.replace("\n", indent))
            made: dict[str, Any] = {}
            exec(compile(source, "<edited>", "exec", flags=__future__.annotations.compiler_flag), {}, made)
            edit.function.__globals__.update(edit.names)  # type: ignore[attr-defined]
            edit.function.__code__ = made[edit.function.__name__].__code__  # type: ignore[attr-defined]
        yield
    finally:
        for edit, code in before:
            edit.function.__code__ = code  # type: ignore[attr-defined]
            for name in edit.names:
                del edit.function.__globals__[name]  # type: ignore[attr-defined]
