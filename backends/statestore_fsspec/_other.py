"""Any other file system of fsspec, chained ones too: to read, or for a single writer at his own risk.

None of these creates exclusively by one atomic act: two writers would overwrite each other's appends, and both would be
told that all is well. So what writes is refused, unless the caller says that there is never more than one process
that writes. Threads of that process are kept apart by a lock. What a crash in the midst of a write leaves is up to
the file system.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from statestore.errors import NotSupported, PluginError, Unavailable
from statestore_fsspec._drive import Answer, Drive, guarded
from statestore_fsspec._layout import Entry
from statestore_fsspec._options import AnyOptions
from statestore_fsspec._settings import CAPABILITIES
from statestore_fsspec._steps import Outcome, Page
from statestore_fsspec._store import FsspecStore
from statestore_fsspec._table import ROWS

__all__ = ["OtherDrive", "OtherStore", "open_other"]


class OtherStore(FsspecStore):
    """A store on a file system that makes no promise."""

    capabilities = replace(CAPABILITIES, durable=False, shared=False)


def open_other(url: str, options: AnyOptions) -> FsspecStore:
    """Open a store at ``fsspec://`` and a URL of fsspec, such as ``fsspec://simplecache::ftp://host/agents``."""
    from fsspec.core import split_protocol, url_to_fs

    inner = url.partition("://")[2]
    if "@" in inner:
        raise PluginError("no credentials belong into this URL: give them in storage_options")
    if "://" not in inner:
        raise PluginError("a URL of fsspec behind the scheme: fsspec://ftp://host/agents", url=url)
    protocol = split_protocol(inner)[0]
    for row in ROWS:
        if protocol in row.schemes and "::" not in inner:
            raise PluginError("this file system needs no fsspec:// before it", write=inner)

    def connect() -> OtherDrive:
        files, root = url_to_fs(
            inner, **options.storage_options.get_secret_value(), skip_instance_cache=True, use_listings_cache=False
        )
        return OtherDrive(files, root, writes=options.single_writer)

    # What the probe would find is known, and was agreed to.
    return OtherStore(guarded(connect), url.rstrip("/"), **{**options.root(), "probe": False})


class OtherDrive(Drive):
    """A place on any file system.

    Args:
        files: the file system.
        root: the place, as the file system spells paths.
        writes: whether this is the single writer.
    """

    def __init__(self, files: Any, root: str, *, writes: bool) -> None:
        super().__init__(files, root)
        self.root = root.rstrip("/")
        self._writes = writes
        self._lock = threading.Lock()

    def page(self, prefix: str, after: str) -> Page:
        """Return all keys that begin with `prefix` and come after `after`, in the order of their bytes."""
        folder = self.path(prefix.rpartition("/")[0]).rstrip("/")
        try:
            self.files.invalidate_cache()
            rows = self.files.find(folder, detail=True)
        except Exception as error:
            self.judged(error, "list", prefix)
            rows = {}
        return Page(tuple(sorted(entry for entry in self._entries(rows, prefix) if entry.key > after)), False)

    def _entries(self, rows: dict[str, dict[str, Any]], prefix: str) -> Iterator[Entry]:
        root = self.root.strip("/") + "/"
        for path, row in rows.items():
            key = path.lstrip("/").removeprefix(root.lstrip("/"))
            if key.startswith(prefix):
                yield Entry(key, int(row["size"]), _time(row))

    def put(self, key: str, data: bytes) -> bool:
        """Look whether there is such an object, and write it if there is none; return whether it was written.

        Raises:
            NotSupported: this is not the single writer.
        """
        self._check()
        path = self.path(key)
        with self._lock:
            if self.files.exists(path):
                return False
            self.files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self.files.pipe_file(path, data)
        return True

    def copy(self, source: str, target: str) -> bool:
        """Copy an object by way of the client; return whether it was there."""
        data = self.fetch(source)
        return data is not None and self.create(target, data)[0] is not Outcome.UNKNOWN

    def remove(self, key: str) -> None:
        """Remove an object; one that is not there does not count."""
        self._check()
        super().remove(key)

    def _check(self) -> None:
        if not self._writes:
            raise NotSupported(
                "this file system does not create exclusively, so two writers would overwrite each other's records:"
                " it is only read; where there is never more than one process that writes, say single_writer=True",
                files=type(self.files).__name__,
                root=self.root,
            )

    def judge(self, error: Exception, right: str, key: str) -> Answer | Unavailable:
        """Return what an exception means; of most file systems nobody knows more than the common ones."""
        facts: dict[str, Any] = {"path": self.path(key)}
        if isinstance(error, FileNotFoundError):
            return Answer.MISSING
        if isinstance(error, FileExistsError):
            return Answer.REFUSED
        if isinstance(error, PermissionError):
            return Unavailable("a right is missing there", needs=right, **facts)
        if isinstance(error, (NotImplementedError, TypeError, ValueError)):
            return Unavailable("the file system does not do this: see the cause", needs=right, **facts)
        return Unavailable("the file system failed: see the cause", retry=True, **facts)

    def close(self) -> None:
        """Do nothing: fsspec has no common way to let go of connections."""


def _time(row: dict[str, Any]) -> float:
    """Return when an object was made; 0 where the file system does not tell, so that nothing is ever collected."""
    for name in ("created", "mtime", "LastModified", "last_modified", "modified"):
        value = row.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, (int, float)):
            return float(value)
    return 0.0
