"""The directory of a cache: a file for each run of a log, made for its owner alone, and a bound on all of them."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import Final

from statestore.caches import make_private
from statestore.wrappers._kept import KeptLog

__all__ = ["Directory"]

_log = logging.getLogger("statestore.wrappers.cached")

_FORMAT: Final = "v1"
_NAME: Final = re.compile(r"[0-9a-f]{32}-[0-9a-f]{32}")


class Directory:
    """A directory of kept logs, and the bound on what they take together.

    Nothing here ever raises for what the disk does: the first problem of each kind is a warning in the log.

    Args:
        path: where it is; made when the first bytes are kept.
        limit: the most bytes that the files take.
    """

    def __init__(self, path: str | os.PathLike[str], limit: int) -> None:
        self.path = os.path.join(os.path.abspath(path), _FORMAT)
        self.limit = limit
        self._room = 0  # bytes that may be added before the files are looked at again
        self._told: set[str] = set()

    def log(self, origin: str, log: str, run: str) -> KeptLog:
        """Return what is kept of a log."""
        key = _digest(origin, log, run, size=32)
        return KeptLog(self, f"{_digest(origin, log).hex()}-{key[:16].hex()}", key)

    def forget(self, origin: str, log: str) -> None:
        """Remove what is kept of a log, in all its runs."""
        prefix = _digest(origin, log).hex()
        with suppress(OSError):
            for name in os.listdir(self.path):
                if name.startswith(prefix) and _NAME.fullmatch(name):
                    self.remove(name)

    def remove(self, name: str) -> bool:
        """Remove a file; say whether it is gone."""
        try:
            os.unlink(os.path.join(self.path, name))
        except FileNotFoundError:
            pass
        except OSError as error:
            self.tell("a file cannot be removed", error)
            return False
        return True

    def make(self) -> None:
        """Make the directory, for its owner alone."""
        make_private(self.path)

    def make_room(self, need: int, keep: str) -> bool:
        """Remove the logs that were used longest ago until `need` more bytes fit; say whether they do.

        Looking at all files is saved while a sixteenth of the limit is added, so each of several processes may add that
        much beyond it.
        """
        if need > self._room:
            files = sorted(self._files())
            total = sum(size for _, _, size in files)
            if total + need > self.limit:
                for _, name, size in files:
                    if total + need <= self.limit - self.limit // 16:
                        break
                    if name != keep and self.remove(name):
                        total -= size
            if total + need > self.limit:
                return False
            self._room = min(self.limit - total, self.limit // 16)
        self._room -= need
        return True

    def _files(self) -> Iterator[tuple[int, str, int]]:
        """Yield our files: when each was used last, its name and its size."""
        with os.scandir(self.path) as entries:
            for entry in entries:
                if _NAME.fullmatch(entry.name):
                    with suppress(FileNotFoundError):
                        status = entry.stat(follow_symlinks=False)
                        yield status.st_mtime_ns, entry.name, status.st_size

    def tell(self, what: str, error: OSError | None = None) -> None:
        """Warn of a problem, once for each kind."""
        if what not in self._told:
            self._told.add(what)
            why = f": {error.strerror}" if error and error.strerror else ""
            _log.warning("%s%s; reading goes on without it directory=%s", what, why, ascii(self.path))


def _digest(*words: str, size: int = 16) -> bytes:
    return blake2b(repr(words).encode("utf-8", "surrogatepass"), digest_size=size).digest()
