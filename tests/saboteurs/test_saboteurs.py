"""Each wrong store is caught, by a clause whose name says what is wrong, and each clause catches one."""

from __future__ import annotations

import pytest

from statestore.conformance import clauses, run_clause
from tests.saboteurs.faults import Saboteur, saboteurs

_EVERY = saboteurs()
_CLAUSES = {each.name: each for each in clauses()}


@pytest.mark.parametrize("saboteur", _EVERY, ids=[each.name for each in _EVERY])
def test_a_saboteur_is_caught_by_the_clause_that_names_its_fault(saboteur: Saboteur) -> None:
    for name in (saboteur.first, *saboteur.also):
        result = run_clause(_CLAUSES[name], saboteur.factory, sample=0.3, limit=15)
        assert (name, result.status) == (name, "failed"), result.reason
        assert result.reason
        assert not result.reason.startswith("the harness failed")


def test_every_clause_catches_a_saboteur() -> None:
    named = {name for each in _EVERY for name in (each.first, *each.also)}
    assert named == set(_CLAUSES)


def test_every_saboteur_tells_its_fault() -> None:
    assert all(each.fault.endswith(".") for each in _EVERY)
