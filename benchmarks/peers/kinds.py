"""All peers, ours first."""

from __future__ import annotations

from benchmarks.peers import adk, fsspec_ab, langgraph, lines, objects, openai_agents, ours, sqlite, strands
from benchmarks.peers.peer import Kind

__all__ = ["BASES", "KINDS"]

KINDS: list[Kind] = [
    kind
    for family in (ours, sqlite, lines, fsspec_ab, openai_agents, langgraph, strands, adk, objects)
    for kind in family.KINDS
]

BASES = {kind.durability: kind for kind in reversed(ours.KINDS)}
"""What of ours the others of a durability are compared with."""
