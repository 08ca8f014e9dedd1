"""The catalogue of clauses: every promise of a store, each one function with a name and a level."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from statestore.conformance.harness import PARTS
from statestore.store import Capabilities

if TYPE_CHECKING:
    from statestore.conformance.case import Case

__all__ = ["AREAS", "Clause", "LEVELS", "clause", "clauses"]

LEVELS: Final = ("core", "concurrent", "durable", "scale", "model")
"""The levels in the order in which a store earns them; a level counts only where all before it are earned."""

AREAS: Final = (
    "appends",
    "reads",
    "copies",
    "listings",
    "naming",
    "bodies",
    "deletions",
    "snapshots",
    "holds",
    "cuts",
    "closing",
    "sidecars",
    "races",
    "handovers",
    "processes",
    "durability",
    "golden",
    "scale",
    "model",
)
"""The modules under ``conformance/clauses``, in the order of the catalogue."""

_FLAGS: Final = frozenset(each.name for each in fields(Capabilities))


@dataclass(frozen=True, slots=True)
class Clause:
    """One promise and the function that tries it.

    Attributes:
        name: what a store that keeps the promise does, in words joined by ``-``.
        hurts: one sentence that says who is hurt by a store that breaks it, and how.
        level: one of `LEVELS`.
        area: one of `AREAS`.
        check: the function. It returns where the promise is kept and raises where it is not.
        capability: the flag of `Capabilities` that the promise belongs to, or None.
        on: whether the clause is for stores that have the capability, or for those that have it not.
        needs: the parts of a harness that it cannot do without.
        also: further capabilities without which the promise makes no sense.
        without: capabilities with which it makes none.
    """

    name: str
    hurts: str
    level: str
    area: str
    check: Callable[[Case], None]
    capability: str | None = None
    on: bool = True
    needs: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def applies(self, capabilities: Capabilities) -> bool:
        """Say whether a store with these capabilities is bound by the clause."""
        return self.obstacle(capabilities) is None

    def obstacle(self, capabilities: Capabilities) -> str | None:
        """Return why a store with these capabilities is not bound by the clause, or None where it is."""
        wanted = dict.fromkeys(self.also, True) | dict.fromkeys(self.without, False)
        wanted |= {self.capability: self.on} if self.capability else {}
        for flag, on in wanted.items():
            if (getattr(capabilities, flag) not in (False, None)) is not on:
                return f"{flag} is {'off' if on else 'on'}"
        return None


_registry: dict[str, Clause] = {}


def clause(
    level: str,
    *,
    capability: str | None = None,
    on: bool = True,
    needs: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> Callable[[Callable[[Case], None]], Callable[[Case], None]]:
    """Register a function of the kit as a clause: its name is the clause's, its docstring says who is hurt.

    Raises:
        ValueError: the level, the capability or a part does not exist, the name is taken, or a docstring is missing.
    """
    flags = {*also, *without, capability} - {None}
    if level not in LEVELS or not flags <= _FLAGS or not set(needs) <= set(PARTS):
        raise ValueError(f"no such level, capability or part: {level}, {capability}, {needs}")

    def register(check: Callable[[Case], None]) -> Callable[[Case], None]:
        name = check.__name__.replace("_", "-")
        hurts = " ".join((inspect.getdoc(check) or "").split())
        if name in _registry or not hurts:
            raise ValueError(f"a clause has a name of its own and says who is hurt: {name}")
        area = check.__module__.rpartition(".")[2]
        _registry[name] = Clause(name, hurts, level, area, check, capability, on, needs, also, without)
        return check

    return register


def clauses() -> tuple[Clause, ...]:
    """Return every clause of the kit, by area and within it as written: the same order each time."""
    for area in AREAS:
        importlib.import_module(f"statestore.conformance.clauses.{area}")
    # Sorting is stable, so what was registered first within an area stays first.
    return tuple(sorted(_registry.values(), key=lambda each: AREAS.index(each.area)))
