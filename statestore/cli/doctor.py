"""``doctor``: what a live storage really does, and what is safe to do there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statestore.cli.screen import Screen, emit
from statestore.cli.targets import Json, StoreOnly, open_for

if TYPE_CHECKING:
    from statestore.store import Capabilities

__all__ = ["doctor"]


def doctor(store: StoreOnly, json: Json = False) -> None:
    """Try what a live storage really does, and say what is safe to do there.

    Each right, exclusive creation by several writers at once, fresh listings, ranges, copies, any bytes as data,
    large and small appends, clocks. All is done in a scratch place in the store, which is emptied afterwards.

    \b
    Examples:
      statestore doctor s3://bucket/agents
      statestore doctor s3://bucket/agents --json
    """
    from statestore.errors import Unavailable

    screen = Screen()
    failed = []
    tried = 0
    with open_for(store) as opened:
        upkeep = opened.maintenance
        for finding in upkeep.examine() if upkeep is not None else ():
            tried += 1
            failed += [] if finding.ok else [finding.check]
            if json:
                emit({"check": finding.check, "ok": finding.ok, "message": finding.message})
            else:
                lead = ("ok   ", "green") if finding.ok else ("fails", "bold red")
                screen.put(finding.message, lead=[lead, f"  {finding.check:<20}"])
        if not json:
            screen.put("" if tried else "Nothing was tried: this is what such a store promises on a disk that works.")
            if tried and len(failed) == tried:
                screen.put("Nothing works there yet: mend what fails above.")
            else:
                for line in _advice(opened.capabilities, failed):
                    screen.put(line)
    if failed:
        raise Unavailable("not everything is as it should be: see above", checks=", ".join(failed))


def _advice(can: Capabilities, failed: list[str]) -> list[str]:
    """Return what is safe to do in a store, in plain words."""
    writable = not failed or set(failed) <= {"right to delete", "clock"}
    lines = [
        "Safe: several writers, in several processes, of one log: each append wins its own place."
        if can.shared and writable
        else "Not safe: writing by several processes."
        if not can.shared
        else "Not safe: writing. Mend what fails above first; reading may work.",
        "An acknowledged append survives the loss of power, if the storage keeps what it has acknowledged."
        if can.durable
        else "An acknowledged append need not survive the loss of power: see the option sync."
        if can.flushes
        else "Nothing survives the end of the process.",
        "A crash leaves an append whole or not at all."
        if can.atomic_append
        else "A crash may leave a part of an append, which was never acknowledged and is cut by the next one.",
    ]
    if can.holds:
        lines.append("One writer can keep the others out for a while (hold).")
    if can.max_append is not None:
        lines.append(
            f"One append takes at most {can.max_append:,} bytes, and is one write request to the storage; a million of"
            " them are a million such requests, whatever the provider asks for those. compact makes reading cheaper."
        )
    return lines
