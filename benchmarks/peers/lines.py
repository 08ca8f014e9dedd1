"""Files of JSON lines, written by Python alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import IO

from benchmarks.peers.peer import Kind, Threads, read, spell

__all__ = ["KINDS", "Lines", "SUFFIX", "last_lines"]

SUFFIX = ".jsonl"


class Lines(Threads):
    """One file a session, one message a line, the file kept open: written, flushed and, where asked for, synced."""

    def __init__(self, folder: Path, synced: bool) -> None:
        self._folder = folder
        self._synced = synced
        self._open: dict[str, IO[bytes]] = {}
        self._lock = Lock()

    def append(self, session: str, texts: Sequence[str]) -> None:
        with self._lock:
            if session not in self._open:
                self._open[session] = self._create(session)
        file = self._open[session]
        for words in texts:
            file.write(spell(words) + b"\n")
            file.flush()
            if self._synced:
                os.fdatasync(file.fileno())

    def load(self, session: str) -> list[str]:
        with open(self._path(session), "rb") as file:
            return [read(line) for line in file]

    def last(self, session: str, count: int) -> list[str]:
        with open(self._path(session), "rb") as file:
            return last_lines(
                lambda reach: os.pread(file.fileno(), reach, max(os.fstat(file.fileno()).st_size - reach, 0)), count
            )

    def fork(self, session: str, count: int, to: str) -> None:
        with open(self._path(session), "rb") as source, self._create(to) as target:
            for _ in range(count):
                target.write(next(source))
            target.flush()
            if self._synced:
                os.fdatasync(target.fileno())

    def sessions(self) -> list[str]:
        return [name.removesuffix(SUFFIX) for name in os.listdir(self._folder)]

    def close(self) -> None:
        for file in self._open.values():
            file.close()

    def _path(self, session: str) -> Path:
        return self._folder / f"{session}{SUFFIX}"

    def _create(self, session: str) -> IO[bytes]:
        file = open(self._path(session), "ab")  # noqa: SIM115 - kept open
        if self._synced:
            folder = os.open(self._folder, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        return file


def last_lines(tail: Callable[[int], bytes], count: int) -> list[str]:
    """Return the last messages, read backwards: JSON has no bare newline inside."""
    reach, found = 2048 * count, b""
    while True:
        before, found = found, tail(reach)
        lines = found.split(b"\n")[:-1]
        if len(lines) > count or len(found) == len(before):
            return [read(line) for line in lines[-count:]]
        reach *= 2


KINDS = [
    Kind("JSON lines", "never", lambda place: Lines(place.folder, synced=False)),
    Kind("JSON lines", "always", lambda place: Lines(place.folder, synced=True)),
]
