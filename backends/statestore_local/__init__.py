"""The local backend: logs as plain files in a directory, one file a log, with kernel locks and real syncs."""

from __future__ import annotations

from statestore_local._store import LocalStore

__all__ = ["LocalStore"]
