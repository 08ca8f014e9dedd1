"""google-adk over our stores, and the operator's surface over any of its session services: the extra ``[adk]``.

:class:`StateStoreSessionService` keeps ADK's sessions in a store; :class:`AdkSource` shows the sessions of any service
to an operator, and :func:`open_source` those of a SQLite file or of a store, by their address, for a look that changes
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statestore.adapters.adk._opening import open_source
    from statestore.adapters.adk._service import StateStoreSessionService
    from statestore.adapters.adk._source import AdkSource

__all__ = ["AdkSource", "StateStoreSessionService", "open_source"]

# Loaded when first asked for: google-adk takes seconds.
_LAZY = {
    "AdkSource": "_source",
    "StateStoreSessionService": "_service",
    "open_source": "_opening",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
