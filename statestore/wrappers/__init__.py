"""Stores made of a store: each passes every call on, and does one thing more.

:class:`Faulty` fails on purpose, from a seed, so that what a program does then can be tested. The same for file
systems is in :mod:`statestore.wrappers.faultyfs`, which needs fsspec and is not loaded here.
"""

from __future__ import annotations

from statestore.wrappers._faults import Step
from statestore.wrappers._wrapper import Wrapper
from statestore.wrappers.faulty import Faulty

__all__ = ["Faulty", "Step", "Wrapper"]
