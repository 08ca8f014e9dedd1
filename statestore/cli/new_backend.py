"""``new-backend``: the package that the author of a backend begins with."""

from __future__ import annotations

import importlib.util
import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from statestore.cli.screen import Screen, emit
from statestore.cli.targets import Json

__all__ = ["new_backend"]


def new_backend(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The backend: lower-case letters, digits and _, such as shelf.")
    ],
    directory: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Make the package's directory in this one.", show_default=False)
    ] = Path(),
    json: Json = False,
) -> None:
    """Write the package of a new backend.

    It has a store that works at once, the entry point by which statestore finds it, its conformance test and a file
    for continuous integration. Install it, see it pass, then replace the inside of the store by your storage.

    \b
    Examples:
      statestore new-backend shelf
      statestore new-backend shelf --dir ~/projects
    """
    from statestore.conformance import new_backend as write

    _check_free(name)
    try:
        files = write(name, directory)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    except FileExistsError as error:
        raise typer.BadParameter(f"there is something at {error.filename} already: nothing was written") from error
    root = files[0].parent
    if json:
        emit({"directory": os.fspath(root), "files": [os.fspath(file.relative_to(root)) for file in files]})
        return
    _tell(Screen(), root, files, name)


def _check_free(name: str) -> None:
    """Refuse a name that an installed backend has: once installed, neither could be opened."""
    from statestore.plugins import discover

    scheme = name.replace("_", "-")
    for plugin in discover():
        for backend in plugin.backends:
            if scheme == backend.name or scheme in backend.schemes:
                raise typer.BadParameter(f"{name} is taken: {plugin.distribution} has the backend {backend.name}")
    if name.isidentifier() and importlib.util.find_spec(f"statestore_{name}") is not None:
        raise typer.BadParameter(f"{name} is taken: a package statestore_{name} is installed")


def _tell(screen: Screen, root: Path, files: list[Path], name: str) -> None:
    screen.put("written to ", (os.fspath(root), "bold"))
    for file in files:
        screen.put(os.fspath(file.relative_to(root)), lead=["  "])
    screen.put()
    screen.put(("It works as it is. See it:", "bold"))
    steps = (
        f"cd {shlex.quote(os.fspath(root))}",
        "pip install -e '.[test]'",
        "statestore plugins",
        f"statestore conform {name.replace('_', '-')}://try",
        "pytest",
    )
    for step in steps:
        screen.put((step, "cyan"), lead=["  "])
    screen.put()
    screen.put(f"Then replace the dictionary in statestore_{name}/_store.py by your storage, and run pytest again.")
