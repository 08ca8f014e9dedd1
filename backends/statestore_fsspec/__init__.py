"""Logs in buckets: each append is one immutable object, and its exclusive creation is the commit.

``docs/object-storage.md`` describes the layout, the protocol and why it is safe.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statestore_fsspec._drive import Answer, Drive
    from statestore_fsspec._settings import Settings
    from statestore_fsspec._store import FsspecStore

__all__ = ["Answer", "Drive", "FsspecStore", "Settings"]

_HOMES = {"Answer": "_drive", "Drive": "_drive", "FsspecStore": "_store", "Settings": "_settings"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
