"""Which logs there are: names in code-point order, one directory at a time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import repeat
from typing import Final

from statestore import names
from statestore.errors import Unavailable
from statestore.store import LogInfo
from statestore_local._errors import unavailable
from statestore_local._files import SUFFIX, directory_name, open_directory

__all__ = ["list_names", "rows"]

# Files of this kind surely are logs, and one match over all of a directory's names is much cheaper than one for
# each. Where it fails, each name is checked by itself.
_ALL_PLAIN: Final = re.compile(r"(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,199}/)*\Z")


def rows(found: Iterator[str]) -> Iterator[LogInfo]:
    """Return a listing's rows without tails. This skips LogInfo's own constructor, which costs more than a scan."""
    return map(tuple.__new__, repeat(LogInfo), zip(found, repeat(None)))


def list_names(root: str, prefix: str, after: str) -> Iterator[str]:
    """Yield the names that begin with `prefix` and are greater than `after`, in code-point order.

    A directory is read when its turn comes, and no descriptor stays open in between.

    Raises:
        Unavailable: a directory cannot be read. A listing that left out its logs would be a lie.
    """
    base = prefix[: prefix.rfind("/") + 1]
    # The iterators of the directories from the base down to where the listing is.
    stack = [_directory(root, base, prefix, after)]
    while stack:
        for key in stack[-1]:
            if key[-1] == "/":
                stack.append(_directory(root, key, prefix, after))
                break
            yield key
        else:
            stack.pop()


def _directory(root: str, base: str, prefix: str, after: str) -> Iterator[str]:
    """Return one directory's logs as their names, and its directories as their names with a slash, in order.

    A directory's key sorts as the names in it do, since these all begin with it.
    """
    files, below = _scan(root, base)
    room = names.MAX_NAME - len(base)
    if room < names.MAX_SEGMENT or not _ALL_PLAIN.match("/".join(files) + "/"):
        files = [name for name in files if len(name) <= room and names.is_name(name)]
    keys = files
    if below:
        below = [name for name in below if len(name) + 1 < room and names.is_name(name)]
        keys = files + [name + "/" for name in below]
    keys.sort()
    if base:
        keys = [base + key for key in keys]
    if len(prefix) > len(base):
        keys = [key for key in keys if key.startswith(prefix)]
    if after:
        keys = [key for key in keys if key > after or (key[-1] == "/" and after.startswith(key))]
    return iter(keys)


def _scan(root: str, base: str) -> tuple[list[str], list[str]]:
    """Return the segments that plain files, and those that directories, of the directory `base` may stand for."""
    parts = tuple(map(directory_name, base.split("/")[:-1]))
    files: list[str] = []
    below: list[str] = []
    cut = -len(SUFFIX)
    try:
        fd = open_directory(root, parts)
    except (FileNotFoundError, Unavailable) as error:
        if parts and os.path.isdir(root):
            return files, below  # it went meanwhile, or is no directory: no log is in it
        raise Unavailable("the directory that holds the logs is gone: put it back", retry=True, root=root) from error
    except OSError as error:
        raise unavailable(error, "cannot list a directory", prefix=base, root=root) from error
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                name = entry.name
                if name[cut:] == SUFFIX:
                    if entry.is_file(follow_symlinks=False):
                        files.append(name[:cut])
                elif entry.is_dir(follow_symlinks=False):
                    below.append(_segment(name))
    except OSError as error:
        raise unavailable(error, "cannot list a directory", prefix=base, root=root) from error
    finally:
        os.close(fd)
    return files, below


def _segment(name: str) -> str:
    """Return the segment that a directory stands for; one that stands for none comes back as it is, no name."""
    segment = name[:-1]
    return segment if name[-1] == "!" and segment.endswith(SUFFIX) else name
