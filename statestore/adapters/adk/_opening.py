"""Sessions of google-adk by their address: in a SQLite file as its own service writes it, or in a store of ours."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from google.adk.sessions import DatabaseSessionService

from statestore import names
from statestore.adapters.adk._service import StateStoreSessionService
from statestore.adapters.adk._source import AdkSource
from statestore.errors import NotFound, PluginError, Unavailable
from statestore.ops import Key, Marker
from statestore.plugins import open_store
from statestore.store import Store

__all__ = ["open_source"]

_WAL: Final = 2  # what a database says in its 19th byte that keeps a log beside it
_HEADER: Final = b"SQLite format 3\0"
_PREFIX: Final = "adk"
_URL: Final = "sqlite+aiosqlite:///sessions"  # a file; which one, its connections say


def open_source(url: str, app_name: str = "") -> AdkSource:
    """Open the sessions of an application. Nothing is made where nothing is, and looking changes nothing.

    Args:
        url: ``sqlite:///relative/path`` or ``sqlite:////absolute/path``, the file of google-adk's database service;
            any other is the URL of a store, with the sessions of `StateStoreSessionService`.
        app_name: the application; where there is one only, it need not be named.

    Raises:
        PluginError: it is not an address, or what it needs is not installed.
        Unavailable: nothing is there, or it is no database.
        NotFound: no application is named, and there are several.
    """
    if url.split(":", 1)[0] == "sqlite":
        path = _path(url)
        app = _choose(app_name, _apps(path), str(path))
        try:
            return _FileSource(path, app)
        except ImportError as error:
            raise PluginError(
                "what reads a SQLite database is not installed: pip install 'google-adk[db]' aiosqlite", path=str(path)
            ) from error
    try:
        store = open_store(url, create=False)
    except PluginError:  # or its backend never makes anything
        store = open_store(url)
    try:
        app = app_name or _choose("", _apps_of(store), url)
    except BaseException:
        store.close()
        raise
    return _StoreSource(store, app)


class _StoreSource(AdkSource):
    """The sessions of a store that was opened for this."""

    def __init__(self, store: Store, app_name: str) -> None:
        super().__init__(StateStoreSessionService(store, prefix=_PREFIX), app_name, own=True)
        self._store = store

    async def aclose(self) -> None:
        await super().aclose()
        self._store.close()


class _FileSource(AdkSource):
    """The sessions of a file, which is opened to be written only for the first marker, and read so from then on."""

    def __init__(self, path: Path, app_name: str) -> None:
        super().__init__(_Untouched(path), app_name, own=True)
        self._path = path

    async def mark(self, key: Key, marker: Marker, at: Any) -> None:
        if isinstance(self.service, _Untouched):
            untouched, self.service = (
                self.service,
                DatabaseSessionService(_URL, **_opened(self._path, lambda _: "mode=rw")),
            )
            await untouched.close()
        await super().mark(key, marker, at)


class _Untouched(DatabaseSessionService):
    """google-adk's service over a file that it can't change: it makes no tables and no indexes."""

    def __init__(self, path: Path) -> None:
        super().__init__(_URL, **_opened(path, _reading))

    async def prepare_tables(self) -> None:
        """Look which schema the file has, and nothing else."""
        if self._db_schema_version is None:
            from google.adk.sessions.migration._schema_check_utils import get_db_schema_version_from_connection

            async with self.db_engine.connect() as connection:
                self._db_schema_version = await connection.run_sync(get_db_schema_version_from_connection)


def _path(url: str) -> Path:
    """Return the file that a URL names.

    Raises:
        PluginError: it names none.
        Unavailable: it is not there, or is no database.
    """
    parts = urlsplit(url)
    text = unquote(parts.path)[1:]
    if parts.netloc or not text or parts.query or parts.fragment:
        raise PluginError("a database's address is sqlite:///relative/path or sqlite:////absolute/path", url=url)
    path = Path(text)
    try:
        with path.open("rb") as file:
            header = file.read(len(_HEADER))
    except OSError as error:
        raise Unavailable(f"the database cannot be opened: {error.strerror}", path=str(path)) from error
    if header != _HEADER:
        raise Unavailable("this file is no SQLite database", path=str(path))
    return path


def _reading(path: Path) -> str:
    """Return how a file is opened to be read, so that neither it nor its directory changes.

    A reader of a database in WAL mode makes files beside it. Where there is no log beside it, nobody is writing, and
    all is in the file itself.
    """
    with path.open("rb") as file:
        wal = file.read(20)[18:] == bytes([_WAL, _WAL])
    log = Path(f"{path}-wal")
    return "immutable=1" if wal and not (log.exists() and log.stat().st_size) else "mode=ro"


def _uri(path: Path, how: str) -> str:
    return f"file:{quote(os.path.abspath(path))}?{how}"


def _opened(path: Path, how: Callable[[Path], str]) -> dict[str, Any]:
    """Return how SQLAlchemy connects to a file, anew each time; an address of its own could not name every file."""
    import aiosqlite
    from sqlalchemy import NullPool

    return {"async_creator": lambda: aiosqlite.connect(_uri(path, how(path)), uri=True), "poolclass": NullPool}


def _apps(path: Path) -> list[str]:
    """Return the applications that have sessions in a file.

    Raises:
        Unavailable: it has no sessions of google-adk's, or cannot be read.
    """
    try:
        with closing(sqlite3.connect(_uri(path, _reading(path)), uri=True)) as connection:
            return [app for (app,) in connection.execute("SELECT DISTINCT app_name FROM sessions ORDER BY app_name")]
    except sqlite3.Error as error:
        raise Unavailable(f"the database has no sessions that can be read: {error}", path=str(path)) from error


def _apps_of(store: Store) -> list[str]:
    """Return the applications that have sessions in a store: a few steps for each, however many logs it has."""
    apps: list[str] = []
    after = ""
    while info := next(store.list(f"{_PREFIX}/", after=after), None):
        app = info.name.split("/")[1]
        apps.append(names.unquote(app))
        after = f"{_PREFIX}/{app}/~"  # behind all that an application has
    return apps


def _choose(app_name: str, apps: list[str], where: str) -> str:
    """Return the application that is meant; ``""`` where there is none.

    Raises:
        NotFound: none is named, and there are several.
    """
    if not app_name and len(apps) > 1:
        raise NotFound(
            "there are sessions of several applications: say which is meant", where=where, apps=",".join(apps)
        )
    return app_name or "".join(apps)
