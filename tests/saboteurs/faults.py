"""The register of saboteurs: each a store with one fault, and the clause that must be the first to catch it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TypeVar

from statestore.conformance.harness import Factory
from statestore.conformance.registry import Clause, clauses
from tests.saboteurs.stores import full

_Kind = TypeVar("_Kind", bound=type)

MODULES = (
    "appends", "reads", "copies", "listings", "naming", "bodies", "deletions", "snapshots", "holds", "cuts", "closing",
    "sidecars", "races", "processes", "durability", "golden", "scale",
)  # fmt: skip
SLOW = frozenset({"races", "processes", "scale", "model"})
"""Areas, and levels, whose clauses take longer than all others together."""


@dataclass(frozen=True)
class Saboteur:
    """A store with one fault.

    Attributes:
        name: what the store is called in the table.
        fault: what it does wrong.
        first: the first clause of the catalogue that catches it.
        factory: makes its harness.
        sample: how much of the size of its clause is needed to catch it.
        limit: seconds after which its clause counts as hanging.
    """

    name: str
    fault: str
    first: str
    factory: Factory
    sample: float
    limit: float


_all: dict[str, Saboteur] = {}


def saboteur(
    first: str, *, factory: Callable[..., object] = full, sample: float = 0.1, limit: float = 120
) -> Callable[[_Kind], _Kind]:
    """Register a store class whose docstring tells its fault."""

    def register(kind: _Kind) -> _Kind:
        name = re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()
        fault = " ".join((kind.__doc__ or "").split())
        if name in _all or not fault:
            raise ValueError(f"a saboteur has a name of its own and tells its fault: {name}")
        _all[name] = Saboteur(name, fault, first, partial(factory, kind), sample, limit)
        return kind

    return register


def saboteurs() -> tuple[Saboteur, ...]:
    """Return all saboteurs in the order of the clauses that catch them."""
    for module in MODULES:
        import_module(f"tests.saboteurs.{module}")
    place = {clause.name: number for number, clause in enumerate(clauses())}
    return tuple(sorted(_all.values(), key=lambda each: place.get(each.first, len(place))))


def is_slow(clause: Clause) -> bool:
    return clause.level in SLOW or clause.area in SLOW
