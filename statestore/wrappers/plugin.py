"""Tell statestore about the wrappers: the module that the entry point names."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ByteSize, ConfigDict, Field, field_validator

from statestore.caches import cache_directory
from statestore.plugins import Wrapping, hookimpl
from statestore.store import Store

__all__ = ["CachedOptions", "statestore_wrappers"]


class CachedOptions(BaseModel):
    """Where a cache keeps what it has read, and how much of it."""

    model_config = ConfigDict(extra="forbid")

    directory: Path | None = None
    """By default ``statestore`` in the user's directory of caches."""
    limit: ByteSize = Field(default=ByteSize(1 << 30), ge=1)
    """The most bytes, or a text such as ``10GiB``."""

    @field_validator("directory")
    @classmethod
    def _is_whole(cls, directory: Path | None) -> Path | None:
        if directory is not None and directory.parts[:1] and directory.parts[0].startswith("~"):
            raise ValueError("~ is not expanded: write the whole path")
        return directory


def _cached(store: Store, options: CachedOptions, origin: str) -> Store:
    from statestore.wrappers.cached import Cached

    return Cached(store, options.directory or cache_directory(), origin=origin, limit=options.limit)


@hookimpl
def statestore_wrappers() -> list[Wrapping]:
    """Offer the wrappers that come with statestore."""
    return [
        Wrapping(
            name="cached",
            options=CachedOptions,
            wrap=_cached,
            summary="keeps what was read in a local directory, so that known logs are not fetched again",
        )
    ]
