"""Files of JSON lines, appended to by fsspec in the mode ``ab``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.peers.lines import SUFFIX, last_lines
from benchmarks.peers.peer import Kind, Peer, Place, Threads, read, spell

__all__ = ["KINDS"]


class Appended(Threads):
    """One file a session, one message a line; nothing is kept open: each append opens, writes and closes."""

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
        return last_lines(lambda reach: self._files.tail(self._path(session), reach), count)

    def fork(self, session: str, count: int, to: str) -> None:
        lines = self._files.cat_file(self._path(session)).split(b"\n")
        self._files.pipe_file(self._path(to), b"\n".join([*lines[:count], b""]))

    def sessions(self) -> list[str]:
        self._files.invalidate_cache()
        names = self._files.ls(self._root, detail=False)
        return [name.rpartition("/")[2].removesuffix(SUFFIX) for name in names]

    def close(self) -> None:
        """Nothing is open; fsspec keeps the file system, and with it the connections, for whoever asks next."""

    def _path(self, session: str) -> str:
        return f"{self._root}/{session}{SUFFIX}"


def _file(place: Place) -> Peer:
    import fsspec

    return Appended(fsspec.filesystem("file"), str(place.folder))


def _s3(place: Place) -> Peer:
    import s3fs

    files = s3fs.S3FileSystem(**place.there.storage_options())
    return Appended(files, f"{place.bucket}/{place.prefix}")


KINDS = [
    Kind("fsspec ab", "never", _file, needs={"fsspec": "fsspec"}),
    Kind(
        "fsspec ab, S3",
        "bucket",
        _s3,
        needs={"s3fs": "s3fs"},
        items=200,
        sessions=1000,
        notes={"append": "an append reads all that is there and puts it again with what is new"},
    ),
]
