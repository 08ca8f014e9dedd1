"""Each rule is needed: without it, a promise is broken, in the way that the documentation shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.object_storage.breaks import RULES, Broken
from tests.object_storage.rules import BROKEN, HARMLESS
from tests.object_storage.traces import heading, report, section

PAGE = Path(__file__).parents[2] / "docs" / "object-storage-traces.md"
RENDER = "python -m tests.object_storage.traces > docs/object-storage-traces.md"


def _name(broken: Broken) -> str:
    return f"{broken.rule}: {broken.claim}"


@pytest.mark.parametrize("broken", BROKEN, ids=_name)
def test_without_the_rule_a_promise_is_broken_as_the_page_shows(broken: Broken) -> None:
    found = report(broken)
    assert found.violation is not None
    assert section(broken, found) in PAGE.read_text(encoding="utf-8"), RENDER


@pytest.mark.parametrize("broken", HARMLESS, ids=_name)
def test_without_what_only_widens_a_margin_no_promise_is_broken(broken: Broken) -> None:
    found = report(broken)
    assert found.violation is None
    assert found.states > 1000
    assert section(broken, found) in PAGE.read_text(encoding="utf-8"), RENDER


def test_the_page_shows_each_rule_once_and_nothing_else() -> None:
    shown = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("### ")]
    ordered = [broken for rule in RULES for broken in BROKEN if broken.rule == rule]
    assert shown == [heading(broken) for broken in (*ordered, *HARMLESS)]


def test_every_rule_is_taken_away_at_least_once() -> None:
    assert {broken.rule for broken in BROKEN} == set(RULES)
