"""The kit is tested by stores that are wrong in one way each: every one must fail, and first where its fault is named.

A saboteur must pass all clauses that come before its own. Those of them that take long (races, processes, scale) are
sampled, another part of them for each saboteur; ``STATESTORE_SABOTEURS=full`` runs them all, and the model.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import takewhile

import pytest

from statestore.conformance import Harness, run_clause
from statestore.conformance.harness import Factory
from statestore.conformance.registry import Clause, clauses
from tests.saboteurs.faults import Saboteur, is_slow, saboteurs
from tests.saboteurs.page import PAGE, page
from tests.saboteurs.processes import Local, local
from tests.saboteurs.stores import Bare, Full, OnFlush, full

EVERY = clauses()
SABOTEURS = saboteurs()
ALL = os.environ.get("STATESTORE_SABOTEURS") == "full"
ONE_IN = 1 if ALL else 12
SAMPLE = 0.05
TRIES = 8  # how often a race or a kill is repeated, to meet a fault that shows only at a certain moment

_by_name = pytest.mark.parametrize("saboteur", SABOTEURS, ids=[each.name for each in SABOTEURS])
_correct = pytest.mark.parametrize(
    "factory",
    [partial(full, Full), partial(full, OnFlush), partial(full, Bare), partial(local, Local)],
    ids=["memory", "memory-on-flush", "memory-bare", "local"],
)


def before(saboteur: Saboteur) -> list[Clause]:
    number = SABOTEURS.index(saboteur)
    earlier = takewhile(lambda clause: clause.name != saboteur.first, EVERY)
    return [clause for place, clause in enumerate(earlier) if not is_slow(clause) or (place + number) % ONE_IN == 0]


@_by_name
def test_a_saboteur_is_caught_first_by_the_clause_that_names_its_fault(saboteur: Saboteur) -> None:
    for clause in before(saboteur):
        result = run_clause(clause, saboteur.factory, sample=SAMPLE)
        assert result.status in ("passed", "not applicable"), f"{clause.name}: {result.reason}\n{result.where}"
    own = next(clause for clause in EVERY if clause.name == saboteur.first)
    if own.level == "model" and not ALL:
        pytest.skip("shrinking what the model finds takes long: STATESTORE_SABOTEURS=full runs it")
    for _ in range(TRIES if own.level in ("concurrent", "durable") else 1):
        result = run_clause(own, saboteur.factory, sample=saboteur.sample, limit=saboteur.limit)
        if result.status == "failed":
            break
    assert result.status == "failed", f"{own.name} is {result.status}: {result.reason}"
    assert not result.reason.startswith("the harness failed"), result.where


def test_no_clause_is_without_a_saboteur() -> None:
    assert {clause.name for clause in EVERY} == {saboteur.first for saboteur in SABOTEURS}


def test_a_saboteur_has_one_fault_of_its_own() -> None:
    assert len({saboteur.fault for saboteur in SABOTEURS}) == len(SABOTEURS)


def of_part(number: int) -> list[Clause]:
    return [clause for place, clause in enumerate(EVERY) if place % 4 == number]


@_correct
@pytest.mark.parametrize("part", range(4))
def test_a_correct_store_is_caught_nowhere(factory: Factory, part: int) -> None:
    for clause in of_part(part):
        result = run_clause(clause, factory, sample=SAMPLE)
        assert result.status != "failed", f"{clause.name}: {result.reason}\n{result.where}"


def test_every_clause_applies_to_one_of_the_correct_stores() -> None:
    applies = set()
    for factory in (partial(full, Full), partial(full, Bare)):
        harness: Harness = factory(None)  # type: ignore[arg-type]
        with harness.open() as store:
            applies |= {clause.name for clause in EVERY if clause.applies(store.capabilities)}
    rest = {clause.name for clause in EVERY} - applies
    assert all("shared" in (c.capability, *c.also) or c.capability == "server_copy" for c in EVERY if c.name in rest)


def test_the_page_of_saboteurs_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.saboteurs.page"
