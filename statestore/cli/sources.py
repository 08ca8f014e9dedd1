"""What the commands for operators work on: a system of sessions, found by what its address begins with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Final

import typer

from statestore.cli.targets import open_for

if TYPE_CHECKING:
    from statestore.ops import Source, SyncOperator

__all__ = ["App", "SourceArgument", "User", "operator"]

# What stands in front of ``+`` and a URL names a system, opened by ``function(url, app_name)``: the URL is what stands
# behind the ``+``, the app is "" where none is named, and what is returned is a Source. It must not make what is
# missing: that is an error which names it.
_SYSTEMS: Final = {"adk": ("statestore.adapters.adk", "open_source", "adk")}
_CONVERSATIONS: Final = "conversations"
_SYSTEM: Final = re.compile(r"([a-z]+)\+(?=[A-Za-z][A-Za-z0-9+.:-]*://)")

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="STORE",
        help="A directory or a URL; conversations+URL for conversations, adk+sqlite:///path for an ADK database.",
    ),
]
App = Annotated[
    str, typer.Option("--app", help="The application: in a store, the place of its sessions.", show_default=False)
]
User = Annotated[str, typer.Option("--user", help="Only this user's.", show_default=False)]


@contextmanager
def operator(address: str, app: str) -> Iterator[SyncOperator]:
    """Open a system of sessions that is there, and what an operator may do about it.

    Raises:
        PluginError: nobody serves the address, or what serves it is not installed.
        Unavailable: it is not there.
    """
    from statestore.ops import ConversationsSource, SessionsSource, SyncOperator

    match = _SYSTEM.match(address)
    system, url = (match[1], address[match.end() :]) if match else ("", address)
    if system in _SYSTEMS:
        with SyncOperator(_open(*_SYSTEMS[system], url, app)) as opened:
            yield opened
        return
    talks = system == _CONVERSATIONS
    with open_for(url if talks else address) as store:
        source = ConversationsSource(store, app or _CONVERSATIONS) if talks else SessionsSource(store, app)
        with SyncOperator(source) as opened:
            yield opened


def _open(module: str, function: str, extra: str, url: str, app: str) -> Source:
    from statestore.errors import PluginError

    try:
        opened = getattr(import_module(module), function)
    except ImportError as error:
        raise PluginError(
            f"what reads this system is not installed: pip install 'statestore[{extra}]'", missing=error.name
        ) from error
    source: Source = opened(url, app)
    return source
