"""Tell statestore about the memory store: the module that the entry point names."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from statestore.plugins import Backend, hookimpl
from statestore_memory import MemoryStore

__all__ = ["MemoryOptions", "statestore_backends"]


class MemoryOptions(BaseModel):
    """The memory store has no options."""

    model_config = ConfigDict(extra="forbid")


def _open(url: str, options: MemoryOptions) -> MemoryStore:
    return MemoryStore(url.removeprefix("memory://"))


@hookimpl
def statestore_backends() -> list[Backend]:
    """Offer the memory store."""
    return [
        Backend(
            name="memory",
            schemes=("memory",),
            options=MemoryOptions,
            open=_open,
            summary="logs in this process's memory, shared by name: memory://name",
            capabilities=MemoryStore.capabilities,
        )
    ]
