"""Plugins: how backends and wrappers are found, and how a URL becomes a store.

A distribution offers them with one entry point in the group ``statestore``, and in no other way. The entry
point names a module (or any object) with a function marked :data:`hookimpl`::

    [project.entry-points.statestore]
    shelf = "statestore_shelf.plugin"

    @hookimpl
    def statestore_backends() -> list[Backend]:
        return [Backend(name="shelf", schemes=("shelf",), options=ShelfOptions, open=open_shelf, summary="a shelf")]

The hook ``statestore_wrappers`` offers wrappers in the same way. Each entry point is loaded by itself: one that fails
is shown by :func:`discover` with its exception, and stops nothing else. ``docs/plugins.md`` is the page for authors.
"""

from __future__ import annotations

from statestore.plugins._backend import Backend, hookimpl
from statestore.plugins._discovery import Plugin, discover
from statestore.plugins._open import open_store
from statestore.plugins._urls import redact
from statestore.plugins._wrapping import Wrapping

__all__ = ["Backend", "Plugin", "Wrapping", "discover", "hookimpl", "open_store", "redact"]
