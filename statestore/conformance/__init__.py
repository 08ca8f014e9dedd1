"""The conformance kit: proves, clause by clause, that a store keeps the promises of the contract.

The author of a backend writes a function that makes a :class:`Harness` for an empty place, and one line::

    test_conformance = conformance(my_harness)

Without pytest, :func:`run` returns a :class:`Report`. The clauses are plain functions in a closed catalogue: there
is nothing to override, and one that was left out shows as not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# Its first import binds the name `clauses`, which is the function's: so it comes before.
import statestore.conformance.clauses  # noqa: F401
from statestore.conformance.catalogue import catalogue
from statestore.conformance.harness import Harness
from statestore.conformance.pytest_face import conformance
from statestore.conformance.registry import LEVELS, Clause, clauses
from statestore.conformance.report import Report, Result
from statestore.conformance.runner import run, run_clause
from statestore.conformance.template import new_backend

if TYPE_CHECKING:
    from statestore.conformance.live import run_url

__all__ = [
    "Clause",
    "Harness",
    "LEVELS",
    "Report",
    "Result",
    "catalogue",
    "clauses",
    "conformance",
    "new_backend",
    "run",
    "run_clause",
    "run_url",
]


def __getattr__(name: str) -> Any:
    if name == "run_url":  # only this one needs the plugins, and what they import
        from statestore.conformance.live import run_url

        return run_url
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
