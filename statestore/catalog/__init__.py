"""A catalog: answers about many logs, each the fold of a log, without reading them all each time.

What was folded is kept in a local file with the tail that it reflects. A listing with tails says which logs have
grown, and only their new bytes are read; ``docs/catalog.md`` shows it.
"""

from __future__ import annotations

from statestore.catalog._catalog import Catalog, Row
from statestore.catalog._folding import Fold

__all__ = ["Catalog", "Fold", "Row"]
