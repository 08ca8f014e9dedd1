"""Who meets whom: the scenarios that are explored.

Each append is one byte, and no two are alike, so that what a log holds tells the whole story.
"""

from __future__ import annotations

from tests.object_storage.model import ALL_FAULTS, Scenario

__all__ = ["SCENARIOS"]

SCENARIOS = {
    "two writers, two faults": Scenario(
        {"a": "create a | append b, append c", "b": "append d, append e"}, faults=2, kinds=ALL_FAULTS
    ),
    "two writers with proofs, and time": Scenario(
        {"a": "create a | append b, append c, append d", "b": "tail | append e, append f"}, faults=1, ticks=(3,)
    ),
    "a writer, and a collector after a merge": Scenario(
        {
            "a": "create a, append b, append c | append d, append e",
            "b": "tail | append f",
            "c": "merge 2 | collect",
        },
        faults=1,
        ticks=(3,),
    ),
    "a writer, a merger and a reader": Scenario(
        {"a": "create a, append b, append c | append d, append e", "m": "merge 2 4", "r": "read"}, faults=1, page=2
    ),
    "two mergers and a reader": Scenario(
        {"a": "create a, append b, append c, append d, append e |", "m": "merge 2 4", "n": "merge 4", "r": "read"},
        faults=1,
    ),
    "a reader, and a collector after a merge": Scenario(
        {
            "a": "create a, append b, append c, append d, append e | append f",
            "c": "merge 2 4 | collect",
            "r": "read",
        },
        ticks=(1, 2),
        page=2,
    ),
    "a writer and a deleter": Scenario(
        {"a": "create a | append b, append c", "d": "delete", "r": "read"}, faults=1
    ),
    "two deleters and a writer": Scenario(
        {"a": "create a | append b", "d": "delete", "e": "tail, delete at"}, faults=1
    ),
    "a deleter that creates again, and an old writer": Scenario(
        {"a": "create a | append b, append c", "d": "delete, create d, append e"}, faults=2
    ),
    "the same, and a collector": Scenario(
        {"a": "create a | append b", "d": "delete, create d", "c": "collect"}, faults=1, ticks=(3,)
    ),
    "an old reader and a collector of deleted logs": Scenario(
        {"a": "create a, append b | delete", "r": "read | read, read", "c": "collect"}, ticks=(1, 3), page=2
    ),
    "two creators": Scenario({"a": "create a, append b", "b": "create c, append d", "r": "read"}, faults=1),
    "a creator, a deleter and another creator": Scenario(
        {"a": "create a, delete", "b": "create b, append c"}, faults=2
    ),
    "a slow creator and a collector": Scenario(
        {"a": "create a, append b", "b": "create c, delete", "c": "collect"}, faults=1, ticks=(3,)
    ),
    "a copier, a writer and a deleter": Scenario(
        {"a": "create a | append b", "k": "copy y, y.read", "d": "delete"}, faults=1
    ),
    "a copier, and a collector after a merge": Scenario(
        {"a": "create a, append b, append c, append d | append e", "k": "copy y 3", "c": "merge 2 | collect"},
        faults=1,
        ticks=(3,),
    ),
    "a copier and a creator of the target": Scenario(
        {"a": "create a, append b |", "k": "copy y, y.read", "b": "y.create c, y.append d, y.delete"}, faults=1
    ),
}
