"""What a command works on: a store and a log, or one path to a log's file."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from statestore import names

if TYPE_CHECKING:
    from statestore.plugins import Backend
    from statestore.store import Store

__all__ = [
    "Json",
    "LogArgument",
    "SUFFIX",
    "StoreArgument",
    "StoreOnly",
    "Target",
    "complete_log",
    "find",
    "is_file",
    "open_for",
    "serving",
]

SUFFIX: Final = ".state"
_COMPLETED: Final = 200  # names that a shell is given

StoreOnly = Annotated[str, typer.Argument(metavar="STORE", help="A directory, or a URL such as file:///srv/state.")]
StoreArgument = Annotated[
    str,
    typer.Argument(metavar="STORE", help="A directory or a URL; or the path of one log's .state file, without LOG."),
]


def complete_log(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of logs that begin so, for a shell; of a local store only, which answers at once."""
    given = context.params.get("store") or next(iter(context.params.get("places") or ()), "")
    if not given or "://" in given or is_file(given):
        return []
    try:
        with open_for(given) as opened:
            return [info.name for info in islice(opened.list(incomplete), _COMPLETED)]
    except Exception:  # a shell that completes has no use for an error
        return []


LogArgument = Annotated[
    str | None, typer.Argument(metavar="LOG", help="The log's name in the store.", autocompletion=complete_log)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


class Target(NamedTuple):
    """A store, as a path or a URL, and the name of a log in it."""

    store: str | Path
    log: str


def is_file(store: str) -> bool:
    """Say whether this is the path of one log's file, which stands in the place of a store and a log."""
    return "://" not in store and store.endswith(SUFFIX)


def find(store: str, log: str | None) -> Target:
    """Return the log that the arguments name.

    Raises:
        InvalidName: the name, or the file's, cannot be a log's.
        typer.BadParameter: no log is named, or two are.
    """
    if log is not None:
        if store.endswith(SUFFIX) and log.endswith(SUFFIX):
            raise typer.BadParameter(f"give one {SUFFIX} file at a time")
        return Target(store, names.check(log))
    if not is_file(store):
        raise typer.BadParameter(f"name a log after the store, or give the path of one {SUFFIX} file")
    path = Path(store)
    return Target(path.parent, names.check(path.name.removesuffix(SUFFIX)))


def open_for(store: str | Path, *, create: bool = False, options: Mapping[str, str] | None = None) -> Store:
    """Open a store; whoever only looks must not make it where it is missing.

    Raises:
        PluginError: nobody serves it, or an option is wrong.
        Unavailable: it is not there.
    """
    from statestore.plugins import open_store

    given: dict[str, Any] = dict(options or {})
    if create:
        return open_store(store, **given)
    can_make = any("create" in backend.options.model_fields for backend in serving(store))
    return open_store(store, **({"create": False} if can_make else {}) | given)


def serving(store: str | Path) -> list[Backend]:
    """Return the backends that serve a store's scheme: one, unless two claim it or nobody does."""
    from statestore.plugins import discover

    scheme = "file"
    if isinstance(store, str) and "://" in store:
        scheme = store.partition("://")[0].rpartition("::")[2].lower()  # behind the wrappers
    return [backend for plugin in discover() for backend in plugin.backends if scheme in backend.schemes]
