"""Writes the package that the author of a backend begins with: it installs, is found, and conforms as it is."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

__all__ = ["new_backend"]

# A scheme has two characters or more, and a distribution's name does not end in a mark.
_NAME = re.compile(r"(?=.{2,40}\Z)[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
_FILES = {
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
    "init.py.txt": "statestore_NAME/__init__.py",
    "store.py.txt": "statestore_NAME/_store.py",
    "plugin.py.txt": "statestore_NAME/plugin.py",
    "test_conformance.py.txt": "tests/test_conformance.py",
    "ci.yml.txt": ".github/workflows/test.yml",
}


def new_backend(name: str, directory: str | Path = ".") -> list[Path]:
    """Write the package ``statestore-<name>`` into a new directory of that name; return the files written.

    The package has an entry point, a store of four methods that works at once, its conformance test and a file for
    continuous integration. Its author replaces the inside of the store, and keeps the test.

    Args:
        name: the backend's name and its URL's scheme: 2 to 40 lower-case letters, digits and single ``_`` between.
        directory: where the package's directory is made.

    Raises:
        ValueError: the name is none.
        FileExistsError: there is such a directory already; nothing was written.
    """
    if not _NAME.match(name):
        raise ValueError(f"a backend's name is 2 to 40 lower-case letters, digits and single _ between: {name!r}")
    scheme = name.replace("_", "-")
    words = {"NAME": name, "SCHEME": scheme, "CLASS": "".join(part.capitalize() for part in name.split("_")) + "Store"}
    root = Path(directory, f"statestore-{scheme}")
    root.mkdir(parents=True)
    texts = files("statestore.conformance") / "template_files"
    written = []
    for source, target in _FILES.items():
        path = root / _fill(target, words)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_fill((texts / source).read_bytes().decode(), words).encode())
        written.append(path)
    typed = root / f"statestore_{name}" / "py.typed"
    typed.touch()
    return [*written, typed]


def _fill(text: str, words: dict[str, str]) -> str:
    return re.sub("|".join(words), lambda match: words[match[0]], text)
