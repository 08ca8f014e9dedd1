"""What earlier syncs have seen to be equal: a small file that may be lost, damaged or removed at any time."""

from __future__ import annotations

import json
import os
import stat
import zlib
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple
from uuid import uuid4

__all__ = ["Equal", "Known"]

_ROOM: Final = 1000  # lines that a file may have more than twice the logs, before it is written anew


class Equal(NamedTuple):
    """Up to where a log was the same on both sides.

    Attributes:
        source_run: which incarnation of the log it was in the source.
        target_run: and in the target.
        size: how many bytes were the same.
        mark: a digest of the last of them, where those of the source may yet vanish and others take their place.
    """

    source_run: str
    target_run: str
    size: int
    mark: str = ""


class Known:
    """For each log, up to where it was seen to be equal; kept in a file, where one is given.

    A line that is damaged is ignored, and its log is compared anew. Several syncs may use one file at once. A file
    that is something else, or belongs to another pair of stores, is left as it is and not used.

    Args:
        path: the file; None keeps everything in memory.
        pair: a text that stands for the two stores.

    Attributes:
        problem: why the file is not used; None where it is.
    """

    def __init__(self, path: Path | None = None, pair: str = "") -> None:
        self.problem: str | None = None
        self._logs: dict[str, Equal] = {}
        self._fd: int | None = None
        self._lock = Lock()  # a descriptor that one thread closes is never written to by another
        self._header = json.dumps({"statestore_sync": 1, "pair": pair}).encode()
        if path is not None:
            try:
                self._open(path)
            except OSError as error:
                self._fail(error.strerror or str(error))

    def get(self, log: str) -> Equal | None:
        """Return what is known of a log; None where that is nothing."""
        return self._logs.get(log)

    def remember(self, log: str, equal: Equal) -> None:
        """Note up to where a log was seen to be equal."""
        with self._lock:
            if self._logs.get(log) != equal:
                self._logs[log] = equal
                if self._fd is not None:
                    try:
                        os.write(self._fd, _line(log, equal))
                    except OSError as error:
                        self._fail(error.strerror or str(error))

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _fail(self, why: str) -> None:
        self.problem = why
        self._let_go()

    def _open(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            return self._fail("it is no file")
        with os.fdopen(os.dup(self._fd), "rb") as file:
            lines = file.read().split(b"\n")
        if lines == [b""]:
            os.write(self._fd, self._header)
        elif lines[0] != self._header:
            return self._fail("it is no state of a sync of these two stores")
        self._logs = dict(filter(None, map(_parse, lines[1:])))
        if len(lines) > 2 * len(self._logs) + _ROOM:
            self._shorten(path)
        return None

    def _shorten(self, path: Path) -> None:
        """Write the file anew. What another sync adds to the old one meanwhile is lost, and compared again."""
        new = path.with_name(f"{path.name}.{uuid4().hex}")
        fd = os.open(new, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(os.dup(fd), "wb") as file:
                file.writelines([self._header, *(_line(*item) for item in self._logs.items())])
            os.replace(new, path)
        except OSError:
            os.close(fd)
            with suppress(OSError):
                os.unlink(new)
            raise
        self._let_go()
        self._fd = fd


def _line(log: str, equal: Equal) -> bytes:
    """Return a line, with its newline in front: behind one that a crash cut short it stands for itself."""
    data = json.dumps([log, *equal]).encode()
    return b"\n%08x %s" % (zlib.crc32(data), data)


def _parse(line: bytes) -> tuple[str, Equal] | None:
    crc, _, data = line.partition(b" ")
    if crc != b"%08x" % zlib.crc32(data):
        return None
    log, *equal = json.loads(data)
    return log, Equal(*equal)
