"""What the commands share that write to a live store, in a place of their own: options, and an end that cleans up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from statestore.cli.screen import complain

__all__ = ["Options", "check_file", "ended_by_signals", "parse_options"]

Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="An option of the backend.", show_default=False),
]


def parse_options(given: Sequence[str] | None) -> dict[str, str]:
    """Take ``key=value`` apart; the backend's own model says what the values are.

    Raises:
        typer.BadParameter: there is no ``=`` or no key, or a key is given twice.
    """
    pairs = [each.partition("=") for each in given or ()]
    for key, equals, _ in pairs:
        if not key or not equals:
            # What stands there may be a secret whose name was forgotten.
            raise typer.BadParameter(f"an option of a backend is KEY=VALUE{'' if equals else ': there is no ='}")
    keys = [key for key, _, _ in pairs]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise typer.BadParameter(f"an option is given once: {', '.join(twice)}")
    return {key: value for key, _, value in pairs}


def check_file(path: Path) -> None:
    """Refuse now what could not be written when all is done.

    Raises:
        typer.BadParameter: it is a directory, or in none.
    """
    if path.is_dir() or not path.parent.is_dir():
        raise typer.BadParameter("the report is a file in a directory that is there")


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let a signal that ends this process clean up first, and tell what an end before the end leaves behind."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except BaseException as error:
        for note in getattr(error, "__notes__", ()):
            complain(f"note: {note}")
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
