"""Run by hand: ``python -m tests.saboteurs.explore [word ...]`` tells which clauses catch the saboteurs so named."""

from __future__ import annotations

import sys
import time

from statestore.conformance import clauses, run_clause
from tests.saboteurs.faults import saboteurs


def main(words: list[str]) -> None:
    every = clauses()
    for saboteur in saboteurs():
        if words and not any(word in (saboteur.name, saboteur.factory.args[0].__module__.split(".")[-1]) for word in words):  # type: ignore[attr-defined]
            continue
        failed = []
        begun = time.monotonic()
        for clause in every:
            sample = saboteur.sample if clause.name == saboteur.first else 0.05
            result = run_clause(clause, saboteur.factory, sample=sample, limit=min(saboteur.limit, 20))
            if result.status == "failed":
                failed.append(clause.name)
                if clause.name == saboteur.first or len(failed) == 1 and clause.name != saboteur.first:
                    why = result.reason
                break
            if clause.name == saboteur.first:
                failed.append(f"nothing up to its own: {result.status} {result.reason}")
                why = ""
                break
        mark = "ok " if failed[:1] == [saboteur.first] else "BAD"
        print(mark, saboteur.name, f"{time.monotonic() - begun:.1f}s", "|", saboteur.first, *([] if mark == "ok " else ["| got", failed[:1]]), "|", why[:150], flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
