"""The catalogue of clauses as a page, made of the registry so that it cannot be out of date unseen."""

from __future__ import annotations

from itertools import groupby

from statestore.conformance.registry import LEVELS, Clause, clauses

__all__ = ["catalogue"]


def catalogue() -> str:
    """Return every clause with its level, its condition and whom it protects, as Markdown."""
    every = clauses()
    per_level = ", ".join(f"{sum(each.level == level for each in every)} {level}" for level in LEVELS)
    lines = [
        "# The clauses",
        "",
        "<!-- Made by `statestore.conformance.catalogue()`; a test compares it with the registry. -->",
        "",
        f"{len(every)} clauses: {per_level}.",
        "A clause is one promise of a store; its sentence says who is hurt by a store that breaks it. *Needs* are",
        "parts of the harness without which the clause is not run; *where* says which stores it binds.",
    ]
    for area, some in groupby(every, key=lambda each: each.area):
        lines += ["", f"## {area.capitalize()}", "", "| clause | level | where | needs |", "| --- | --- | --- | --- |"]
        for each in some:
            needs = ", ".join(f"`{part}`" for part in each.needs)
            cells = (f"**{each.name}**<br>{each.hurts}", each.level, _where(each), needs)
            lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def _where(clause: Clause) -> str:
    on = [*clause.also, *([clause.capability] if clause.capability and clause.on else [])]
    off = [*clause.without, *([clause.capability] if clause.capability and not clause.on else [])]
    return ", ".join([*(f"`{flag}`" for flag in on), *(f"without `{flag}`" for flag in off)]) or "every store"
