"""Files of JSON lines: written by Python alone, and by fsspec in the mode ``ab``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import IO, Any

from benchmarks.peers.peer import Kind, Peer, Place, Threads, read, spell

__all__ = ["KINDS"]

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
            return _last(
                lambda reach: os.pread(file.fileno(), reach, max(os.fstat(file.fileno()).st_size - reach, 0)), count
            )

    def fork(self, session: str, count: int, to: str) -> None:
        with open(self._path(session), "rb") as source, self._create(to) as target:
            for _ in range(count):
                target.write(next(source))
            target.flush()
            if self._synced:
                os.fdatasync(target.fileno())

    def list(self) -> list[str]:
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


class Appended(Threads):
    """The same over a file system of fsspec, which keeps nothing open: each append opens, writes and closes."""

    def __init__(self, files: Any, root: str) -> None:
        self._files = files
        self._root = root

    def append(self, session: str, texts: Sequence[str]) -> None:
        for words in texts:
            with self._files.open(self._path(session), "ab") as file:
                file.write(spell(words) + b"\n")

    def load(self, session: str) -> list[str]:
        return [read(line) for line in self._files.cat_file(self._path(session)).split(b"\n")[:-1]]

    def last(self, session: str, count: int) -> list[str]:
        return _last(lambda reach: self._files.tail(self._path(session), reach), count)

    def fork(self, session: str, count: int, to: str) -> None:
        lines = self._files.cat_file(self._path(session)).split(b"\n")
        self._files.pipe_file(self._path(to), b"\n".join([*lines[:count], b""]))

    def list(self) -> list[str]:
        self._files.invalidate_cache()
        names = self._files.ls(self._root, detail=False)
        return [name.rpartition("/")[2].removesuffix(SUFFIX) for name in names]

    def close(self) -> None:
        """Nothing is open; fsspec keeps the file system, and with it the connections, for whoever asks next."""

    def _path(self, session: str) -> str:
        return f"{self._root}/{session}{SUFFIX}"


def _last(tail: Callable[[int], bytes], count: int) -> list[str]:
    """Return the last messages, read backwards: JSON has no bare newline inside."""
    reach, found = 2048 * count, b""
    while True:
        before, found = found, tail(reach)
        lines = found.split(b"\n")[:-1]
        if len(lines) > count or len(found) == len(before):
            return [read(line) for line in lines[-count:]]
        reach *= 2


def _file(place: Place) -> Peer:
    import fsspec

    return Appended(fsspec.filesystem("file"), str(place.folder))


def _s3(place: Place) -> Peer:
    import s3fs

    files = s3fs.S3FileSystem(**place.there.storage_options())
    return Appended(files, f"{place.bucket}/{place.prefix}")


_NO_BYTES = "an append reads all that is there and puts it again with what is new"

KINDS = [
    Kind("JSON lines", "never", lambda place: Lines(place.folder, synced=False)),
    Kind("JSON lines", "always", lambda place: Lines(place.folder, synced=True)),
    Kind("fsspec ab", "never", _file, needs={"fsspec": "fsspec"}),
    Kind("fsspec ab, S3", "bucket", _s3, needs={"s3fs": "s3fs"}, items=200, sessions=1000, notes={"append": _NO_BYTES}),
]
