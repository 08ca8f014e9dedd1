"""Logs in buckets: each append is one immutable object, and its exclusive creation is the commit.

``docs/object-storage.md`` describes the layout, the protocol and why it is safe.
"""

from __future__ import annotations

from statestore_fsspec._drive import Answer, Drive
from statestore_fsspec._settings import Settings
from statestore_fsspec._store import FsspecStore

__all__ = ["Answer", "Drive", "FsspecStore", "Settings"]
