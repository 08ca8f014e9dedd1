"""SFTP, by fsspec's file system over paramiko: what is created becomes visible by one link, whole.

A file that is opened to be written is there before its bytes are, so an object is written as a temporary file, synced,
and then given its name by a hard link, which no server puts in the place of another file. Servers that offer no hard
links get a rename; the protocol forbids that it replaces a file, and the probe tries it. OpenSSH's own rename is not
used: on a file system without hard links it looks first and renames then.

A ``!`` in a key ends the name of a log. In paths a ``/`` follows it, so that what belongs to one log lies in folders
that hold nothing else: looking for one log costs the same however many there are.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from stat import S_ISDIR, S_ISREG
from typing import Any, Final
from urllib.parse import urlsplit

import paramiko

from statestore.errors import PluginError, Unavailable
from statestore_fsspec._drive import Answer, Drive
from statestore_fsspec._layout import Entry
from statestore_fsspec._options import SftpOptions
from statestore_fsspec._ssh import CHUNK, Client, Files, Stranger
from statestore_fsspec._steps import Outcome, Page
from statestore_fsspec._store import FsspecStore

__all__ = ["SftpDrive", "open_sftp"]

_PAGE: Final = 5000  # entries after which a page ends with the folder that it is in
_AHEAD: Final = 64  # messages that a large read asks for at once
_NEW: Final = ".new"  # where temporary files lie: no key has such a name
_STALE: Final = 86400  # seconds after which a temporary file was left by a crash
_LINK: Final = "hardlink@openssh.com"
_SYNC: Final = "fsync@openssh.com"
_TRIES: Final = 4  # folders that are made, and removed again by others, before that is a failure


def open_sftp(url: str, options: SftpOptions) -> FsspecStore:
    """Open a store in a folder of an SFTP server; nothing is asked of it yet."""
    parts = urlsplit(url)
    if parts.password is not None:
        raise PluginError("no password belongs into a URL: give it as an option, or use a key")
    root = parts.path.strip("/")
    if not parts.hostname or not root or any(part in ("", ".", "..") for part in root.split("/")):
        raise PluginError("a server and an absolute path: sftp://user@host/srv/agents", url=url)
    given = {
        "username": parts.username,
        "port": parts.port or 22,
        **options.told("username", "port", "password", "key_filename", "passphrase", "look_for_keys", "known_hosts"),
        **dict.fromkeys(("timeout", "banner_timeout", "auth_timeout", "channel_timeout"), options.timeout),
        **options.storage_options.get_secret_value(),
    }
    given.setdefault("allow_agent", options.look_for_keys)

    def dial() -> Any:
        return Files(parts.hostname, **given, skip_instance_cache=True)

    def connect() -> SftpDrive:
        return SftpDrive(dial, root, options.parallel)

    where = parts.hostname if given["port"] == 22 else f"{parts.hostname}:{given['port']}"
    return FsspecStore(connect, f"sftp://{where}/{root}", **options.root())


class SftpDrive(Drive):
    """A folder on a server. A connection carries one request at a time, and is used by one thread meanwhile.

    Args:
        dial: makes a file system with a connection of its own.
        root: the folder, an absolute path.
        connections: the most that there are.
    """

    def __init__(self, dial: Callable[[], Any], root: str, connections: int) -> None:
        super().__init__(None, root)
        self._dial = dial
        self._slots = threading.BoundedSemaphore(connections)
        self._lock = threading.Lock()
        self._idle: list[Any] = []
        self._closed = False
        self._swept = False

    def path(self, key: str) -> str:
        """Return where the object at a key lies."""
        return f"/{self.root}/{key.replace('!', '!/')}"

    @contextmanager
    def _connection(self) -> Iterator[Client]:
        with self._slots:
            with self._lock:
                files = self._idle.pop() if self._idle else None
            if files is None:
                files = self._dial()
            whole = False
            try:
                yield files.ftp
                whole = True
            except OSError as error:
                # After an answer of the server the connection is good for the next request; else nobody knows.
                whole = _is_answer(error) and not files.ftp.get_channel().closed
                raise
            finally:
                with self._lock:
                    keep = whole and not self._closed
                    if keep:
                        self._idle.append(files)
                if not keep:
                    files.client.close()

    # ---- listing ----

    def page(self, prefix: str, after: str) -> Page:
        """Return the first keys that begin with `prefix` and come after `after`, in the order of their bytes."""
        folder = prefix[: max(prefix.rfind("/"), prefix.rfind("!")) + 1]
        entries: list[Entry] = []
        try:
            with self._connection() as ftp:
                more = self._gather(ftp, folder, prefix, after, entries)
        except Exception as error:
            self.judged(error, "list", prefix)
            more = False
        return Page(tuple(entries), more)

    def _gather(self, ftp: Client, folder: str, prefix: str, after: str, entries: list[Entry]) -> bool:
        """Add what lies in a folder and below; return whether the page is full before the end."""
        try:
            rows = ftp.listdir_attr(f"/{self.root}/{folder.replace('!', '!/')}")
        except FileNotFoundError:
            return False
        found = sorted((self._key(folder, row), row) for row in rows if not row.filename.startswith("."))
        for number, (key, row) in enumerate(found, start=1):
            if S_ISREG(row.st_mode or 0):
                if key.startswith(prefix) and key > after:
                    entries.append(Entry(key, row.st_size, float(row.st_mtime)))
            elif S_ISDIR(row.st_mode or 0):
                wanted = key.startswith(prefix) or prefix.startswith(key)
                if wanted and (key > after or after.startswith(key)):
                    if self._gather(ftp, key, prefix, after, entries):
                        return True
                    # Never in the midst of a folder's files: the next page would read all of it again.
                    if len(entries) >= _PAGE and number < len(found):
                        return True
        return False

    def _key(self, folder: str, row: Any) -> str:
        """Return the key of a file, or what the keys in a folder begin with."""
        name: str = row.filename
        return folder + (name if not S_ISDIR(row.st_mode or 0) or name.endswith("!") else name + "/")

    # ---- objects ----

    def fetch(self, key: str, start: int = 0, stop: int | None = None) -> bytes | None:
        """Return the bytes of ``[start, stop)`` of an object; None where there is no such object."""
        try:
            with self._connection() as ftp, ftp.open(self.path(key), "rb") as file:
                size = file.stat().st_size or 0
                length = (size if stop is None else min(stop, size)) - start
                if length <= 0:
                    return b""
                if length > CHUNK:
                    return b"".join(file.readv([(start, length)], _AHEAD))
                file.seek(start)
                return bytes(file.read(length))
        except Exception as error:
            self.judged(error, "get", key)
            return None

    def put(self, key: str, data: bytes) -> bool:
        """Create an object by one link; return whether it is this one that is there now."""
        target = self.path(key)
        new = f"/{self.root}/{_NEW}/{secrets.token_hex(16)}"
        with self._connection() as ftp:
            try:
                self._write(ftp, new, data)
                return self._link(ftp, new, target)
            finally:
                with suppress(OSError, EOFError, paramiko.SSHException):
                    ftp.remove(new)

    def _link(self, ftp: Client, new: str, target: str) -> bool:
        """Give a file a name that is free; return False where it is not."""
        for attempt in range(1, _TRIES + 1):
            try:
                if _LINK in ftp.offers:
                    ftp.extended(_LINK, new, target)
                else:
                    ftp.rename(new, target)
            except FileNotFoundError:
                if attempt == _TRIES:
                    raise
                self._make_folders(ftp, target)
            except OSError as error:
                # "Failure" is all that the protocol says; what is there is there for good.
                if not _is_answer(error) or not _is_there(ftp, target):
                    raise
                return False
            else:
                break
        return True

    def _write(self, ftp: Client, new: str, data: bytes) -> None:
        """Write a temporary file, and have it synced, where the server can."""
        try:
            file = ftp.open(new, "wx")
        except FileNotFoundError:
            self._make_folders(ftp, new)
            file = ftp.open(new, "wx")
        with file:
            ftp.write(file.handle, data)
            if _SYNC in ftp.offers:
                ftp.extended(_SYNC, file.handle)
            written = file.stat()
        if written.st_size != len(data):
            raise OSError("the server did not keep all that was written")
        if not self._swept:
            self._swept = True
            self._sweep(ftp, written.st_mtime or 0)

    def _sweep(self, ftp: Client, now: float) -> None:
        """Remove temporary files that a crash has left, once; both times are the server's own."""
        with suppress(OSError):
            for row in ftp.listdir_attr(f"/{self.root}/{_NEW}"):
                if row.st_mtime is not None and now - row.st_mtime > _STALE:
                    with suppress(OSError):
                        ftp.remove(f"/{self.root}/{_NEW}/{row.filename}")

    def _make_folders(self, ftp: Client, path: str) -> None:
        parts = path.split("/")[1:-1]
        for count in range(1, len(parts) + 1):
            folder = "/" + "/".join(parts[:count])
            if not _is_there(ftp, folder):
                try:
                    ftp.mkdir(folder)
                except PermissionError:
                    if not _is_there(ftp, folder):
                        raise
                except OSError:
                    pass  # somebody else may make it at the same time; what needs it will tell

    def copy(self, source: str, target: str) -> bool:
        """Copy an object, by way of the client; return whether it was there."""
        data = self.fetch(source)
        if data is None:
            return False
        outcome, failure = self.create(target, data)
        if outcome is Outcome.UNKNOWN:
            raise Unavailable("the server does not say that it has stored a copy", retry=True, key=target) from failure
        return True

    def remove(self, key: str) -> None:
        """Remove an object, and the folders that are empty then; one that is not there does not count."""
        try:
            with self._connection() as ftp:
                path = self.path(key)
                ftp.remove(path)
                with suppress(OSError):
                    while (path := path.rpartition("/")[0]) != f"/{self.root}":
                        ftp.rmdir(path)
        except Exception as error:
            self.judged(error, "delete", key)

    # ---- errors ----

    def judge(self, error: Exception, right: str, key: str) -> Answer | Unavailable:
        """Return what an exception of paramiko, or of the operating system, means."""
        facts: dict[str, Any] = {"path": self.path(key)}
        if isinstance(error, FileNotFoundError):
            return Answer.MISSING
        if isinstance(error, PermissionError):
            return Unavailable("the account lacks a right there", needs=right, **facts)
        if isinstance(error, paramiko.BadHostKeyException):
            return Unavailable("the server has another key than the file of known hosts says: see the cause", **facts)
        if isinstance(error, Stranger):
            return Unavailable(
                "the server's key is not known: connect once with ssh, or name its file as known_hosts", **facts
            )
        if isinstance(error, paramiko.AuthenticationException):
            return Unavailable("the credentials are not accepted: renew or correct them", **facts)
        if isinstance(error, OSError) and _is_answer(error):
            return Unavailable(
                "the server failed: it may be full, or its file system may have no hard links",
                retry=True,
                said=str(error),
                **facts,
            )
        if isinstance(error, (OSError, EOFError, paramiko.SSHException)):
            return Unavailable("the server does not answer: see the cause", retry=True, **facts)
        return Unavailable("the request could not be made: see the cause", **facts)

    def close(self) -> None:
        """Let go of connections."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for files in idle:
            with suppress(Exception):
                files.client.close()


def _is_answer(error: OSError) -> bool:
    """Say whether the server answered with an error, and the connection did not fail."""
    return isinstance(error, (FileNotFoundError, PermissionError)) or (type(error) is OSError and error.errno is None)


def _is_there(ftp: Client, path: str) -> bool:
    try:
        ftp.lstat(path)
    except FileNotFoundError:
        return False
    return True
