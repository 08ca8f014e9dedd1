"""A bar for what takes long, on a terminal and nowhere else, that no line of output ever meets."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from stat import S_ISFIFO
from threading import Event, RLock, Thread
from time import monotonic
from typing import Final, TypeVar

__all__ = ["aside", "busy", "end", "progress"]

T = TypeVar("T")

_AFTER: Final = 1.0  # seconds without output, after which the bar is shown


class _Bar:
    """Shows itself when nothing has been printed for a while, and goes before anything is."""

    def __init__(self, what: str, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import Progress

        # What is printed keeps clear of the bar by itself: rich need not stand in for the streams.
        self._bar = Progress(
            console=Console(file=sys.stderr), transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._task = self._bar.add_task(what, total=total)
        self._lock = RLock()
        self._visible = False
        self._printed = monotonic()
        self._ended = Event()
        Thread(target=self._watch, daemon=True).start()

    def advance(self) -> None:
        """Count one more."""
        self._bar.advance(self._task)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Stay away while something is printed."""
        with self._lock:
            self._hide()
            try:
                yield
            finally:
                self._printed = monotonic()

    def end(self) -> None:
        """Go for good."""
        with self._lock:
            self._ended.set()
            self._hide()

    def _watch(self) -> None:
        while not self._ended.wait(_AFTER / 5):
            with self._lock:
                if not self._visible and not self._ended.is_set() and monotonic() - self._printed >= _AFTER:
                    self._visible = True
                    self._bar.start()

    def _hide(self) -> None:
        if self._visible:
            self._visible = False
            self._bar.stop()


_shown: _Bar | None = None


def progress(items: Iterable[T], what: str, total: int | None = None) -> Generator[T]:
    """Yield the items; where that takes long, show on standard error, if it is a terminal, how many there were.

    Args:
        items: what is worked on, one after another.
        what: a word for them.
        total: how many there will be, where that is known.
    """
    global _shown
    if not sys.stderr.isatty() or _is_piped():
        yield from items
        return
    bar = _shown = _Bar(what, total)
    try:
        for item in items:
            yield item
            bar.advance()
    finally:
        bar.end()
        _shown = None


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show, where it takes long, that something goes on that cannot be counted."""
    once = progress([None], what)
    next(once)
    try:
        yield
    finally:
        once.close()


def _is_piped() -> bool:
    """Say whether another program gets the output, which may have the terminal for itself, as a pager has."""
    try:
        return S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        return False


@contextmanager
def aside() -> Iterator[None]:
    """Keep the bar away while something is printed, so that they never share a line."""
    if _shown is None:
        yield
        return
    with _shown.aside():
        yield


def end() -> None:
    """Let the bar go for good, whatever has become of what it counts."""
    if _shown is not None:
        _shown.end()
