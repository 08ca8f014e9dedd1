"""A short benchmark of any store: what each operation costs there, checked before it is believed.

:class:`Bench` does the work, below a prefix of its own that is emptied afterwards. ``statestore bench`` is its face;
``docs/bench.md`` says what is measured and how to read it.
"""

from __future__ import annotations

from statestore.bench._bench import Bench
from statestore.bench._measure import Row
from statestore.bench._place import Sizes
from statestore.bench._traffic import Traffic, Watch, watched
from statestore.bench._work import OPERATIONS, Operation

__all__ = ["Bench", "OPERATIONS", "Operation", "Row", "Sizes", "Traffic", "Watch", "watched"]
