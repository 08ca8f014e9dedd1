"""The plugin that gives statestore the local backend, for URLs such as ``file:///var/lib/agent?sync=on_flush``."""

from __future__ import annotations

import os
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel, ConfigDict, Field

from statestore.errors import PluginError
from statestore.plugins import Backend, hookimpl
from statestore_local._store import LocalStore

__all__ = ["LocalOptions", "statestore_backends"]


class LocalOptions(BaseModel):
    """What can be said about a local store beside where it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sync: Literal["always", "on_flush", "never"] = Field(
        "always", description="when appends go to the disk: before each returns, when flush is called, or never"
    )
    create: bool = Field(True, description="make the directory where it is missing")
    lock_timeout: float = Field(10.0, ge=0, description="seconds to wait for others' appends to the same log")


def _open(url: str, options: Any) -> LocalStore:
    """Open the directory that a ``file:`` URL names."""
    scheme, colon, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    if scheme != "file" or not colon or host not in ("", "localhost") or not slash:
        raise PluginError("write the whole path of a directory here, as in file:///var/lib/agent", url=url)
    root = os.fsdecode(unquote_to_bytes("/" + path))
    if "\0" in root:
        raise PluginError("no path of a directory holds a zero byte", url=url)
    return LocalStore(root, sync=options.sync, create=options.create, lock_timeout=options.lock_timeout)


@hookimpl
def statestore_backends() -> list[Backend]:
    """Return the local backend."""
    return [
        Backend(
            name="local",
            schemes=("file",),
            options=LocalOptions,
            open=_open,
            summary="plain files in a directory, one file a log, with kernel locks",
        )
    ]
