"""What was folded, in an SQLite file that may be lost, damaged, locked or full at any time: then it is not there.

A row is believed only where its checksum is right, which is of all that it holds and of what it is about. So damage
that SQLite does not notice costs a log's being read again, and nothing else.

The file is opened by nobody but SQLite: to close another descriptor of it would let go of all locks of the process.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

from statestore.caches import make_private
from statestore.catalog._folding import Folded
from statestore.store import Tail

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["States"]

_log = logging.getLogger("statestore.catalog")

T = TypeVar("T")

_APPLICATION: Final = 0x53744361  # "StCa": what tells our files from others' databases
_SCHEMA: Final = 1
_TABLE: Final = """
CREATE TABLE kept (
    place BLOB, log TEXT, run TEXT, size INTEGER, "end" INTEGER, number INTEGER, last INTEGER, mark BLOB, state BLOB,
    digest BLOB, PRIMARY KEY (place, log)
) WITHOUT ROWID
"""
_COLUMNS: Final = 'log, run, size, "end", number, last, mark, state, digest'
_WAIT: Final = 5000  # milliseconds for others to let go of the file
_PAGE: Final = 1 << 20  # bytes of states that are read at a time
_PAGE_ROWS: Final = 1000
# No fault of the file's contents: PERM, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL, TOOBIG, NOLFS
# and AUTH.
_REFUSED: Final = {3, 7, 8, 9, 10, 13, 14, 15, 18, 22, 23}
_LOCKED: Final = {5, 6}  # BUSY and LOCKED
_MOVED: Final = 1032  # READONLY_DBMOVED: the file was removed, or another one put in its place

_abandoned: list[Any] = []  # connections that a fork has left behind: to close one would harm the parent's


class _NotOurs(Exception):
    """The file is something else than a catalog."""


class States:
    """What was folded of the logs of one place: a store and a fold.

    Nothing here ever raises for what the disk does: the first problem of each kind is a warning in the log. It may be
    used from several threads, and in a process that was forked.

    Args:
        path: the file; None keeps everything in memory.
        place: a text that stands for the store and the fold.
        version: the fold's; what another version has left is not believed.
        own: whether whatever is at `path` may be removed. Otherwise only what is known to be a catalog is.
    """

    def __init__(self, path: str | None, place: str, version: int, *, own: bool) -> None:
        self.path = path
        self._own = own
        self._place = blake2b(place.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        self._version = version
        self._told: set[str] = set()
        self._closed = False
        self._connection: Connection | None = None
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._wait = _WAIT

    def get(self, log: str) -> Folded | None:
        """Return what is kept of a log; None where that is nothing."""

        def act(connection: Connection) -> Folded | None:
            ask = f"SELECT {_COLUMNS} FROM kept WHERE place = ? AND log = ?"  # noqa: S608 - of our own words
            row = connection.execute(ask, (self._place, log)).fetchone()
            return self._check(row)

        return self._run(act, None)

    def walk(self, prefix: str) -> Iterator[tuple[str, Folded | None]]:
        """Yield the logs whose names begin so, in code-point order, and what is kept of each.

        The file is read a page at a time, and not locked meanwhile. What cannot be believed is None.
        """
        after, first = prefix, True
        nothing: Sequence[tuple[str, Folded | None]] = ()
        while page := self._run(partial(self._page, after=after, first=first), nothing):
            for log, folded in page:
                if not log.startswith(prefix) or (log <= after and not first):
                    return
                yield log, folded
                after, first = log, False

    def _page(self, connection: Connection, after: str, first: bool) -> Sequence[tuple[str, Folded | None]]:
        sign = ">=" if first else ">"
        ask = f"SELECT {_COLUMNS} FROM kept WHERE place = ? AND log {sign} ? ORDER BY log LIMIT {_PAGE_ROWS}"  # noqa: S608
        page, size = [], 0
        rows = connection.execute(ask, (self._place, after))
        try:
            for row in rows:
                folded = self._check(row)
                page.append((str(row[0]), folded))
                size += len(folded.state) if folded else 0
                if size > _PAGE:
                    break
        finally:
            rows.close()
        return page

    def change(self, put: Mapping[str, Folded], drop: Iterable[str] = ()) -> None:
        """Keep what was folded of some logs, and forget others, all at once."""
        rows = [self._row(log, folded) for log, folded in put.items()]
        gone = [(self._place, log) for log in drop]

        def act(connection: Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("DELETE FROM kept WHERE place = ? AND log = ?", gone)
            connection.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            connection.execute("COMMIT")

        if rows or gone:
            self._run(act, None)

    def clear(self) -> None:
        """Forget everything about the place."""
        self._run(lambda connection: connection.execute("DELETE FROM kept WHERE place = ?", (self._place,)), None)

    def close(self) -> None:
        """Let go of the file; from then on nothing is kept."""
        with self._mine():
            self._closed = True
            self._let_go()

    def _row(self, log: str, folded: Folded) -> tuple[object, ...]:
        tail = folded.tail
        values = (log, tail.run, tail.size, folded.end, folded.number, folded.last, folded.mark, folded.state)
        return (self._place, *values, self._digest(values))

    def _check(self, row: tuple[Any, ...] | None) -> Folded | None:
        """Return what a row says; None where it was damaged, or was made by another version of the fold."""
        if row is None or row[-1] != self._digest(row[:-1]):
            return None
        _, run, size, end, number, last, mark, state, _ = row
        return Folded(Tail(size, run), end, number, last, mark, state)

    def _digest(self, values: tuple[object, ...]) -> bytes:
        digest = blake2b(repr((self._version, *values[:-1])).encode("utf-8", "surrogatepass"), digest_size=16)
        digest.update(self._place)
        if isinstance(values[-1], bytes):
            digest.update(values[-1])
        return digest.digest()

    def _mine(self) -> threading.Lock:
        """Return the lock; in a forked child, begin anew first."""
        if self._pid != os.getpid():
            if self._connection is not None:
                _abandoned.append(self._connection)
                self._connection = None
            self._begin()
        return self._lock

    def _run(self, act: Callable[[Connection], T], otherwise: T) -> T:
        """Do something with the file; where that cannot be, answer as if nothing were kept."""
        with self._mine():
            for _ in range(3):
                if self._closed:
                    break
                try:
                    if self._connection is None:
                        self._connection = self._open()
                    result = act(self._connection)
                    self._set_wait(_WAIT)
                except Exception as error:
                    if not self._mend(error):
                        break
                except BaseException:
                    self._let_go()  # and so of locks, wherever an interrupt came
                    raise
                else:
                    return result
        return otherwise

    def _mend(self, error: Exception) -> bool:
        """Do about a failure what can be done; say whether to try again."""
        import sqlite3

        # A ValueError is a text in the file, or about it, that is not UTF-8.
        if not isinstance(error, sqlite3.Error | OSError | ValueError | _NotOurs):
            raise error
        code = getattr(error, "sqlite_errorcode", 0)
        if code & 255 in _LOCKED:
            # Whoever holds it that long may hold it longer: wait no more, until it was free once.
            self._set_wait(0)
            self._tell("others hold it, and it is not used meanwhile", error)
            if self._connection is not None and self._connection.in_transaction:
                self._let_go()
            return False
        opened = self._connection is not None
        self._let_go()
        if code == _MOVED:
            return True
        if isinstance(error, OSError) or code & 255 in _REFUSED or self.path is None:
            self._tell("it cannot be used", error)
        elif self._own or opened or _looks_ours(self.path):
            self._tell("it was damaged, and is made again", error)
            if self._remove(self.path):
                return True
        else:
            self._tell("it is no catalog, and is not used: remove it, or give another path")
        if opened or self.path is None:
            return False
        self.path = None
        return True

    def _set_wait(self, wait: int) -> None:
        if self._wait != wait:
            self._wait = wait
            if self._connection is not None:
                self._connection.execute(f"PRAGMA busy_timeout = {wait}")

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _remove(self, path: str) -> bool:
        """Remove the file and what SQLite has put beside it; say whether it is gone."""
        try:
            for end in ("", "-journal", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.unlink(path + end)
        except OSError as error:
            self._tell("it cannot be removed", error)
            return False
        return True

    def _open(self) -> Connection:
        import sqlite3

        if self.path is not None:
            self._make(self.path)
        connection = sqlite3.connect(
            self.path or ":memory:", timeout=self._wait / 1000, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make(self, path: str) -> None:
        """See that there is a file, ours alone; an empty one is a database without tables."""
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            # SQLite would let others read it. It is linked, since whoever sees it may open it at once.
            make_private(os.path.dirname(path))
            new = f"{path}.{uuid4().hex}"
            os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            try:
                with suppress(FileExistsError):
                    os.link(new, path)
            finally:
                os.unlink(new)
            status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise PermissionError(1, "it is no file that this user alone writes to", path)

    def _prepare(self, connection: Connection) -> None:
        # What a loss of power leaves is told by the checksums.
        for pragma in ("synchronous = OFF", "trusted_schema = OFF", "cell_size_check = ON"):
            connection.execute(f"PRAGMA {pragma}")
        if self._is_ours(connection):
            return
        connection.execute("BEGIN IMMEDIATE")
        if not self._is_ours(connection):
            connection.execute("DROP TABLE IF EXISTS kept")
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_SCHEMA}")
        connection.execute("COMMIT")

    def _is_ours(self, connection: Connection) -> bool:
        """Say whether the file has our table in this version; refuse what others have made."""
        application, version, tables = (
            connection.execute(ask).fetchone()[0]
            for ask in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema")
        )
        if application != _APPLICATION and tables:
            raise _NotOurs
        return bool(application == _APPLICATION and version == _SCHEMA)

    def _tell(self, what: str, error: Exception | None = None) -> None:
        """Warn of a problem, once for each kind."""
        if what not in self._told:
            self._told.add(what)
            why = f": {getattr(error, 'strerror', None) or error}" if error else ""
            _log.warning("the file of a catalog: %s%s path=%s", what, why, ascii(self.path))


def _looks_ours(path: str) -> bool:
    """Say whether a file that SQLite cannot read begins like a catalog."""
    with suppress(OSError), open(path, "rb") as file:
        head = file.read(100)
        return head.startswith(b"SQLite format 3\0") and head[68:72] == _APPLICATION.to_bytes(4, "big")
    return False
