"""A process that changes a conversation until it is killed, and tells which change was acknowledged last.

python -m tests.conversations.victim URL NAME "change" | "add" FIRST
"""

from __future__ import annotations

import sys
from typing import Any

from statestore import open_store
from statestore.conversations import Conversations, ConversationState, Summary, _log


def texts(name: str, number: int) -> list[dict[str, Any]]:
    """Return what one change adds: two messages, now and then long ones."""
    long = "x" * (200_000 if number % 7 == 3 else 20)
    return [{"role": "user", "content": f"{name} {number} {place} {long}"} for place in (0, 1)]


def change(talks: Conversations, name: str, number: int) -> None:
    """Make one change of a sequence of them; which one depends on its number alone."""
    kind = number % 6
    if kind in (0, 3):
        talks.append_messages("c", texts(name, number))
    elif kind == 1:
        talks.merge_metadata("c", {f"{name} {number}": number, name: number})
    elif kind == 2:
        talks.append_list("c", name, [b"%d" % number, b"\n"])
    elif kind == 4:
        talks.save_summary("c", Summary(content=f"{name} {number}"))
    else:
        state = talks.load("c")
        # The history goes on or, each other time, is another one.
        kept = state.messages if number % 12 == 5 else state.messages[1:]
        talks.save(
            ConversationState(**{**dict(state), "messages": [*kept, *texts(name, number)], "token_count": number})
        )


def add(talks: Conversations, name: str, number: int) -> None:
    """Add one thing, named after its number, beside what others add."""
    word = f"{name} {number}"
    if number % 3 == 0:
        talks.append_messages("c", [{"role": "user", "content": word}])
    elif number % 3 == 1:
        talks.merge_metadata("c", {word: number})
    else:
        talks.append_list("c", "l", [word.encode()])


if __name__ == "__main__":
    url, name, what, first = sys.argv[1:]
    setattr(_log, "INTERVAL", 3)  # noqa: B010 - it is final everywhere else
    setattr(_log, "_SHARE", 0)  # noqa: B010
    with open_store(url, sync="never") as store, Conversations(store) as talks:
        print("ready", flush=True)
        for number in range(int(first), 1_000_000):
            {"change": change, "add": add}[what](talks, name, number)
            print(number, flush=True)
