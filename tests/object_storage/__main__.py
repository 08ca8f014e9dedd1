"""Explore all scenarios, or those whose names hold a word, and say how large they are."""

from __future__ import annotations

import sys

from tests.object_storage.model import Model
from tests.object_storage.scenarios import SCENARIOS

for name, scenario in SCENARIOS.items():
    if all(word in name for word in sys.argv[1:]):
        found = Model(scenario).explore()
        print(f"{found.states:>9,} states {found.transitions:>10,} steps {found.seconds:>7.1f} s  {name}", flush=True)
        if found.violation is not None:
            sys.exit(f"broken: {found.violation}\n" + "\n".join(map(str, found.trace)))
