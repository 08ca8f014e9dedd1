"""The table of saboteurs, as a page. ``python -m tests.saboteurs.page`` writes it anew."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from statestore.conformance.registry import clauses
from tests.saboteurs.faults import saboteurs

PAGE = Path(__file__).parents[2] / "docs" / "saboteurs.md"


def page() -> str:
    """Return every saboteur with its fault and the clause that is the first to catch it, as Markdown."""
    every = saboteurs()
    areas = {clause.name: clause.area for clause in clauses()}
    lines = [
        "# The saboteurs",
        "",
        "<!-- Made by `tests.saboteurs.page`; a test compares it with the register. -->",
        "",
        "The conformance kit is itself tested. Each store below is the memory or the local store with one fault, and",
        "the clause beside it is the first in the catalogue to fail. No clause is without such a store.",
        "",
        f"{len(every)} saboteurs for {len(areas)} clauses.",
    ]
    for area, some in groupby(every, key=lambda each: areas[each.first]):
        lines += ["", f"## {area.capitalize()}", "", "| saboteur | what is wrong | the first clause that fails |"]
        lines += ["| --- | --- | --- |"]
        lines += [f"| {each.name} | {each.fault} | {each.first} |" for each in some]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
