"""Who meets whom: the scenarios that are explored.

No two appends are alike, so that what a log holds tells the whole story. In all of them a request may get stuck, or
have a double that does, and arrive at any later moment: also long after a collector has freed the key it is for.
"""

from __future__ import annotations

import os
from dataclasses import replace

from tests.object_storage.scene import ALL_FAULTS, DOUBLED, LATE, RETRIED, Scenario

__all__ = ["FULL", "LEAST", "SCENARIOS"]

FULL = os.environ.get("STATESTORE_MODEL") == "full"
"""Whether clients may also be slow to look at the clock, and each scenario has one more fault of any kind: minutes."""


def _scene(*, faults: int = 1, ticks: tuple[int, ...] = (3,), page: int = 2, **scripts: str) -> Scenario:
    return Scenario(scripts, ticks=ticks, faults=faults, kinds=frozenset({LATE, DOUBLED, RETRIED}), page=page)


_BOUNDED = {
    "two writers and two faults of any kind": Scenario(
        {"a": "create a | append b, append c", "b": "append d, append e"}, faults=2, kinds=ALL_FAULTS
    ),
    "two writers who keep their proofs, and time": _scene(
        a="create a | append b, append c, append d", b="tail | append e"
    ),
    "a late writer, and merges that are collected": _scene(
        late="create a | append z", other="tail, append b | merge 2, collect"
    ),
    "a late writer who goes on, and merges that are collected": _scene(
        faults=0, late="create a, append b, append c | append z, append y", other="tail | append d, merge 2, collect"
    ),
    "a late writer, and a check of what its request left": _scene(
        page=9, late="create a | append z", other="tail, append b | merge 2, collect, verify"
    ),
    "a late writer, and a verifier of merges that are collected": _scene(
        faults=0, page=9, late="create a | append z", other="tail, append b | merge 2, collect", verifier="verify"
    ),
    "a late writer of four bytes, and a verifier of merges within merges": _scene(
        faults=0,
        ticks=(3, 3),
        page=9,
        late="create a | append zzzz, verify",
        other="tail, append b, append cd, merge 2 | collect, merge 4, collect",
    ),
    "a verifier whose pages are collected as it reads": _scene(
        faults=0, page=1, writer="create a, append b | append c, merge 2, collect", verifier="verify"
    ),
    "a verifier, and a log that is deleted, collected and made again": _scene(
        faults=0, deleter="create a, append b | delete, create c, collect", verifier="verify"
    ),
    "a late writer of two bytes, a reader, and merges that are collected": _scene(
        late="create a | append zz", other="tail, append b | merge 2, collect", reader="read"
    ),
    "a late writer, a snapshot, and merges that are collected": _scene(
        faults=0, late="create a | append z", other="tail, append b | merge 2, collect", reader="snapshot"
    ),
    "a snapshot, and a deleted log that is collected": _scene(
        faults=0, ticks=(1, 2), reader="create a, append b | snapshot", deleter="delete, create c, collect"
    ),
    "a writer, a merger and a reader": _scene(
        ticks=(), writer="create a, append b | append c, append d", merger="merge 2, merge 4", reader="read"
    ),
    "two mergers and a reader": _scene(
        ticks=(),
        writer="create a, append b, append c, append d |",
        merger="merge 2, merge 4",
        other="merge 4",
        reader="read",
    ),
    "a slow merger, a late writer and a collector": _scene(
        faults=0,
        page=9,
        late="create a | append z",
        other="tail, append b, append c | merge 2, collect",
        merger="merge 2",
    ),
    "a reader whose pages are collected as it reads": _scene(
        ticks=(1, 2),
        faults=0,
        writer="create a, append b, append c | append d, merge 2, merge 4, collect",
        reader="read",
    ),
    "a writer, a deleter and a reader": _scene(
        ticks=(), writer="create a | append b, append c", deleter="delete", reader="read"
    ),
    "two deleters and a writer": _scene(
        ticks=(), writer="create a | append b", deleter="delete", other="tail, delete at"
    ),
    "a deleter, and merges that are collected": _scene(
        faults=0, deleter="create a, append b, append c, tail | delete at", writer="tail | append d, merge 2, collect"
    ),
    "a deleter who creates again, and an old writer": _scene(
        faults=2, ticks=(), writer="create a | append b, append c", deleter="delete, create d, append e"
    ),
    "an old writer, and a deleted log that is collected": _scene(
        writer="create a | append b", deleter="delete, create d, collect"
    ),
    "an old reader, and a deleted log that is collected": _scene(
        ticks=(1, 2), reader="create a, append b, read | read, tail", deleter="delete, collect"
    ),
    "two creators and a reader": _scene(
        ticks=(), creator="create a, append b", other="create c, append d", reader="read"
    ),
    "a creator, a deleter and another creator": _scene(
        faults=2, ticks=(), creator="create a, delete", other="create b"
    ),
    "a slow creator, and a collector": _scene(
        faults=0, creator="create a, append b", other="create c, delete, collect"
    ),
    "a slow creator, a collector, and whoever asks for the tail": _scene(
        faults=0, page=9, creator="create a", other="create b, delete, collect", reader="tail"
    ),
    "a copier, a writer and a deleter": _scene(
        ticks=(), writer="create a | append b", copier="copy y, y.read", deleter="delete"
    ),
    "a copier, and merges that are collected": _scene(
        faults=0, late="create a, append b, append c | merge 2, collect", copier="copy y 3, y.read"
    ),
    "a copier whose requests have doubles, and merges within merges": _scene(
        page=9, late="create a, append b, append c, append d, merge 2 | merge 4, collect", copier="copy y 3"
    ),
    "a copier, and a source that is deleted and collected": _scene(
        faults=0, writer="create a | append b, delete, collect", copier="copy y, y.read"
    ),
    "a copier, and a creator of the target who deletes it": _scene(
        ticks=(), writer="create a, append b |", copier="copy y, y.read", creator="y.create c, y.append d, y.delete"
    ),
}

SCENARIOS = {
    name: replace(scenario, slow=True, faults=scenario.faults + 1, kinds=ALL_FAULTS) if FULL else scenario
    for name, scenario in _BOUNDED.items()
}

LEAST = {
    "two writers and two faults of any kind": 8_000,
    "two writers who keep their proofs, and time": 8_000,
    "a late writer, and merges that are collected": 2_000,
    "a late writer who goes on, and merges that are collected": 8_000,
    "a late writer, and a check of what its request left": 4_000,
    "a late writer, and a verifier of merges that are collected": 10_000,
    "a late writer of four bytes, and a verifier of merges within merges": 10_000,
    "a verifier whose pages are collected as it reads": 4_000,
    "a verifier, and a log that is deleted, collected and made again": 4_000,
    "a late writer of two bytes, a reader, and merges that are collected": 20_000,
    "a late writer, a snapshot, and merges that are collected": 4_000,
    "a snapshot, and a deleted log that is collected": 4_000,
    "a writer, a merger and a reader": 8_000,
    "two mergers and a reader": 7_000,
    "a slow merger, a late writer and a collector": 6_000,
    "a reader whose pages are collected as it reads": 30_000,
    "a writer, a deleter and a reader": 28_000,
    "two deleters and a writer": 12_000,
    "a deleter, and merges that are collected": 4_000,
    "a deleter who creates again, and an old writer": 25_000,
    "an old writer, and a deleted log that is collected": 25_000,
    "an old reader, and a deleted log that is collected": 12_000,
    "two creators and a reader": 20_000,
    "a creator, a deleter and another creator": 8_000,
    "a slow creator, and a collector": 8_000,
    "a slow creator, a collector, and whoever asks for the tail": 20_000,
    "a copier, a writer and a deleter": 10_000,
    "a copier, and merges that are collected": 4_000,
    "a copier whose requests have doubles, and merges within merges": 8_000,
    "a copier, and a source that is deleted and collected": 5_000,
    "a copier, and a creator of the target who deletes it": 6_000,
}
"""How many states each scenario has at the least: an exploration that goes nowhere finds nothing."""
