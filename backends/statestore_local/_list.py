"""Which logs there are: names in code-point order, one directory at a time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, repeat
from typing import Final

from statestore import names
from statestore.errors import Unavailable
from statestore.store import LogInfo
from statestore_local._errors import unavailable
from statestore_local._files import SUFFIX, directory_name, open_directory

__all__ = ["list_runs", "rows"]

# Files of this kind surely are logs, and none is a helper file. One match over all the names of a directory is much
# cheaper than one for each; where it fails, each is checked by itself.
_ALL_PLAIN: Final = re.compile(r"(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,199}\.state/)*\Z")


def rows(runs: Iterator[list[str]]) -> Iterator[LogInfo]:
    """Return a listing's rows without tails. This skips LogInfo's own constructor, which costs more than a scan."""
    return map(tuple.__new__, repeat(LogInfo), zip(chain.from_iterable(runs), repeat(None)))


def list_runs(root: str, prefix: str, after: str) -> Iterator[list[str]]:
    """Yield the names that begin with `prefix` and are greater than `after`, in code-point order, a run at a time.

    A directory is read when its turn comes, and no descriptor stays open in between.

    Raises:
        Unavailable: a directory cannot be read. A listing that left out its logs would be a lie.
    """
    # What is still to come, of the base directory first and of the deepest last.
    stack = [_directory(root, prefix[: prefix.rfind("/") + 1], prefix, after)]
    while stack:
        run, below = next(stack[-1], (None, ""))
        if run is None:
            stack.pop()
            continue
        yield run
        if below:
            stack.append(_directory(root, below, prefix, after))


def _directory(root: str, base: str, prefix: str, after: str) -> Iterator[tuple[list[str], str]]:
    """Yield runs of a directory's own logs, each with the directory that comes next, which is "" after the last.

    A directory sorts as the names in it do, and these begin with its own name and a slash.
    """
    keys, below = _scan(root, base)
    if below:
        room = names.MAX_NAME - len(base)
        keys += [name + "/" for name in map(_segment, below) if len(name) + 1 < room and names.is_name(name)]
    keys.sort()
    if base:
        keys = [base + key for key in keys]
    if len(prefix) > len(base):
        keys = [key for key in keys if key.startswith(prefix)]
    if after:
        keys = [key for key in keys if key > after or (key[-1] == "/" and after.startswith(key))]
    start = 0
    if below:
        for place, key in enumerate(keys):
            if key[-1] == "/":
                yield keys[start:place], key
                start = place + 1
    yield keys[start:], ""


def _segments(files: list[str], above: int, room: int) -> list[str]:
    """Return the segments of at most `room` characters for which plain files of the directory `above` stand."""
    mark = SUFFIX + "/"
    whole = "/".join(files) + "/"
    plain = _ALL_PLAIN.match(whole)
    if not plain:
        unborn = set(_unborn(above, files))
        files = [name for name in files if name[0] != "." and name.endswith(SUFFIX) and name not in unborn]
        whole = "/".join(files) + "/"
        plain = _ALL_PLAIN.match(whole)
    if plain and room >= names.MAX_SEGMENT:
        return whole.split(mark)[:-1]  # the mark ends each name, and is nowhere else
    bare = (name[: -len(SUFFIX)] for name in files)
    return [segment for segment in bare if len(segment) <= room and names.is_name(segment)]


def _scan(root: str, base: str) -> tuple[list[str], list[str]]:
    """Return the segments of the logs, and the names of the directories, in the directory that stands for `base`."""
    parts = tuple(map(directory_name, base.split("/")[:-1]))
    try:
        fd = open_directory(root, parts)
    except (FileNotFoundError, Unavailable) as error:
        if parts and os.path.isdir(root):
            return [], []  # it went meanwhile, or is no directory: no log is in it
        raise Unavailable("the directory that holds the logs is gone: put it back", retry=True, root=root) from error
    except OSError as error:
        raise unavailable(error, "cannot list a directory", prefix=base, root=root) from error
    try:
        with os.scandir(fd) as found:
            entries = list(found)
        files = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        below: list[str] = []
        if len(files) != len(entries):
            below = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        return _segments(files, fd, names.MAX_NAME - len(base)), below
    except OSError as error:
        raise unavailable(error, "cannot list a directory", prefix=base, root=root) from error
    finally:
        os.close(fd)


def _unborn(fd: int, files: list[str]) -> Iterator[str]:
    """Yield the files that are no logs yet: empty, and held or about to be replaced, as a helper file tells."""
    for helper in files:
        segment, _, kind = helper[1:].rpartition(".")
        if helper[0] == "." and kind in ("hold", "new"):
            with suppress(OSError):
                if os.stat(segment + SUFFIX, dir_fd=fd, follow_symlinks=False).st_size == 0:
                    yield segment + SUFFIX


def _segment(name: str) -> str:
    """Return the segment for which a directory stands, or "" where it stands for none."""
    segment = name[:-1]
    if name[-1] == "!":
        return segment if segment.endswith(SUFFIX) else ""
    return "" if name.endswith(SUFFIX) else name
