"""The plugin that gives statestore its object-store backends, for URLs such as ``s3://bucket/agents``."""

from __future__ import annotations

from functools import partial
from typing import Any

from statestore.plugins import Backend, hookimpl
from statestore.store import Store
from statestore_fsspec import _options
from statestore_fsspec._settings import CAPABILITIES
from statestore_fsspec._table import OTHERS, ROWS, Row, load

__all__ = ["statestore_backends"]


def _open(row: Row, url: str, options: Any) -> Store:
    # Plugins are imported by whoever opens any store: what only a bucket needs comes with the first one.
    store: Store = load(row.opens)(url, options)
    return store


@hookimpl
def statestore_backends() -> list[Backend]:
    """Return the object-store backends, one for each row of the table."""
    return [
        Backend(
            name=row.name,
            schemes=row.schemes,
            options=getattr(_options, row.options),
            open=partial(_open, row),
            summary=f"logs on {row.title}",
            capabilities=CAPABILITIES if row in ROWS else None,
        )
        for row in (*ROWS, OTHERS)
    ]
