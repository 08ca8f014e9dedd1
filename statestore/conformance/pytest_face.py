"""The kit as pytest tests: one for each clause, made by one call, with nothing to override."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict
from typing import Any

from statestore.conformance.harness import Factory
from statestore.conformance.registry import LEVELS, Clause, clauses
from statestore.conformance.runner import LIMIT, run_clause

__all__ = ["PROPERTY", "conformance"]

PROPERTY = "statestore_conformance"
"""The name of the property under which a test's result travels to the report of the session."""


def conformance(
    factory: Factory, *, levels: Collection[str] = LEVELS, sample: float = 1.0, limit: float = LIMIT
) -> Callable[..., None]:
    """Return a pytest test that tries every clause of the kit, each as a test of its own.

    Give it a name that pytest collects: ``test_conformance = conformance(my_harness)``. A clause that cannot run
    is a skip with its reason, a declared divergence is an expected failure, and one that passes fails.

    Args:
        factory: makes a harness for an empty place; it is called once for each clause.
        levels: the levels to run; there is no test of any other.
        sample: how much of the full size of the heavy clauses to run, from above 0 to 1.
        limit: seconds after which a clause counts as hanging.
    """
    import pytest  # not needed by anybody who only runs the kit

    every = [clause for clause in clauses() if clause.level in levels]

    def test(clause: Clause, record_property: Callable[[str, Any], None]) -> None:
        result = run_clause(clause, factory, sample=sample, limit=limit)
        record_property(PROPERTY, {**asdict(result), "sample": sample})
        if result.status == "failed":
            calls = "".join(f"\n    {call}" for call in result.trace)
            pytest.fail(f"{result.reason}\n\n{clause.hurts}\n\n{result.where}\ncalls:{calls}", pytrace=False)
        if result.status == "diverged":
            pytest.xfail(result.reason)
        if result.status in ("not run", "not applicable"):
            pytest.skip(f"{result.status}: {result.reason}")

    parametrized: Callable[..., None] = pytest.mark.parametrize("clause", every, ids=[e.name for e in every])(test)
    return parametrized
