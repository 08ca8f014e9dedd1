"""The user's directory of caches: for what may be removed at any time and is made again."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["cache_directory", "make_private"]


def cache_directory(*parts: str) -> Path:
    """Return a place in statestore's part of the user's directory of caches; nothing is made.

    Args:
        parts: names of directories, from the outer to the inner one.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache").joinpath("statestore", *parts)


def make_private(path: str | os.PathLike[str]) -> None:
    """Make a directory, and those above it that are missing, for their owner alone.

    Raises:
        OSError: it cannot be made.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass  # somebody else was first
    except FileNotFoundError:
        make_private(os.path.dirname(path))
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
