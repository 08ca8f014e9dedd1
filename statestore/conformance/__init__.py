"""The conformance kit: proves, clause by clause, that a store keeps the promises of the contract.

The author of a backend writes a function that makes a :class:`Harness` for an empty place, and one line::

    test_conformance = conformance(my_harness)

Without pytest, :func:`run` returns a :class:`Report`. The clauses are plain functions in a closed catalogue: there
is nothing to override, and one that was left out shows as not run.
"""

from __future__ import annotations

from statestore.conformance.harness import Harness
from statestore.conformance.pytest_face import conformance
from statestore.conformance.registry import LEVELS, Clause, clauses
from statestore.conformance.report import Report, Result
from statestore.conformance.runner import run, run_clause

__all__ = ["Clause", "Harness", "LEVELS", "Report", "Result", "clauses", "conformance", "run", "run_clause"]
