"""Stores made of a store: each passes every call on, and does one thing more.

:class:`Cached` keeps what it has read in a local directory. :class:`ReadOnly` refuses to change anything, and
:class:`Prefixed` is a part of a store. :class:`Instrumented` tells OpenTelemetry of every call. :class:`Encrypted`
seals the bodies of records. :class:`Faulty` fails on purpose, from a seed, so that what a program does then can be
tested. The same for file systems is in :mod:`statestore.wrappers.faultyfs`, which needs fsspec and is not loaded here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statestore.wrappers._faults import Step
    from statestore.wrappers._sealing import key_id
    from statestore.wrappers._wrapper import Wrapper
    from statestore.wrappers.cached import Cached
    from statestore.wrappers.encrypted import Encrypted
    from statestore.wrappers.faulty import Faulty
    from statestore.wrappers.instrumented import Instrumented
    from statestore.wrappers.prefixed import Prefixed
    from statestore.wrappers.readonly import ReadOnly
    from statestore.wrappers.resealing import reseal

__all__ = [
    "Cached",
    "Encrypted",
    "Faulty",
    "Instrumented",
    "Prefixed",
    "ReadOnly",
    "Step",
    "Wrapper",
    "key_id",
    "reseal",
]

# Loaded when first asked for: whoever opens any store loads the plugin that is in this package.
_LAZY = {
    "Cached": "cached",
    "Encrypted": "encrypted",
    "Faulty": "faulty",
    "Instrumented": "instrumented",
    "Prefixed": "prefixed",
    "ReadOnly": "readonly",
    "Step": "_faults",
    "Wrapper": "_wrapper",
    "key_id": "_sealing",
    "reseal": "resealing",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'statestore.wrappers' has no attribute {name!r}")
    value = getattr(import_module(f"statestore.wrappers.{_LAZY[name]}"), name)
    globals()[name] = value
    return value
