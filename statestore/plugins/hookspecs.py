"""The hooks that a plugin may implement."""

from __future__ import annotations

import pluggy

from statestore.plugins._backend import Backend
from statestore.plugins._wrapping import Wrapping

hookspec = pluggy.HookspecMarker("statestore")


@hookspec
def statestore_backends() -> list[Backend]:  # type: ignore[empty-body]
    """Return the backends that this plugin offers."""


@hookspec
def statestore_wrappers() -> list[Wrapping]:  # type: ignore[empty-body]
    """Return the wrappers that this plugin offers."""
