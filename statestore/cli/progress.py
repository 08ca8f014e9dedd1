"""A bar for what takes long, on a terminal and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["progress"]

T = TypeVar("T")


def progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Yield the items, and show on standard error, where that is a terminal, how many there were.

    Args:
        items: what is worked on, one after another.
        what: a word for them.
        total: how many there will be, where that is known.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import Progress

    # It goes when it is done, and so does not stand between the lines of the result.
    with Progress(console=Console(file=sys.stderr), transient=True) as bar:
        yield from bar.track(items, total=total, description=what)
