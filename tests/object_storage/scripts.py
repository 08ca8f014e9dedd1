"""What clients do, in words: ``"create a, append b | merge 2, collect"``.

Calls follow one another. What stands before ``|`` prepares the scene: it runs alone, without a fault, before anything
else. A call names its log where that is not x: ``"y.read"``.

========== =========================================================================================
create a   create the log from one byte
tail       find the log's tail
append b   append one byte at the tail that is known, or else found; repeat what may have had an effect
read       read all of the log; "read 2" from offset 2 on
snapshot   read twice what the log was at first
delete     delete the log; "delete at" only where it ends at the tail that is known
copy y     copy the log to y; "copy y 2" its first two bytes
merge 2 4  merge the log in windows of four, then of two bytes
collect    remove what no log needs any more
verify     look for what is wrong with the log
========== =========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from statestore.errors import Unavailable
from statestore.store import Tail
from tests.object_storage.clients import WARM, Client, Script

__all__ = ["later", "script"]


def script(words: str) -> Script:
    """Return the script that does what the words say."""
    before, bar, after = words.rpartition("|")

    def run(me: Client) -> Iterator[Any]:
        tail: Any = None
        for call in _calls(before):
            tail = yield from _do(me, *call, tail)
        if bar:
            yield WARM
        for _place, call in enumerate(_calls(after)):  # a fingerprint has to tell two calls alike apart
            tail = yield from _do(me, *call, tail)

    return run


def later(words: str) -> set[str]:
    """Return the verbs of a script, but for those that prepare the scene."""
    return {verb for _, verb, _ in _calls(words.rpartition("|")[2])}


def _calls(words: str) -> list[tuple[str, str, tuple[str, ...]]]:
    calls = []
    for call in filter(None, map(str.split, words.split(","))):
        log, _, verb = call[0].rpartition(".")
        calls.append((log or "x", verb, tuple(call[1:])))
    return calls


def _do(me: Client, log: str, verb: str, words: tuple[str, ...], tail: Any) -> Iterator[Any]:
    """Do one call; return the tail that is known then."""
    if verb == "create":
        made = yield from me.create(log, words[0].encode())
        return made if isinstance(made, Tail) else None
    if verb == "append":
        return (yield from _append(me, log, words[0].encode(), tail))
    if verb == "tail":
        found = yield from me.tail(log)
        return found if isinstance(found, Tail) else None
    if verb == "delete":
        if not words or tail is not None:
            yield from me.delete(log, tail if words else None)
    elif verb == "read":
        yield from me.read(log, *map(int, words))
    elif verb == "copy":
        yield from me.copy(log, words[0], *map(int, words[1:]))
    elif verb == "merge":
        yield from me.merge(log, tuple(map(int, words)))
    elif verb == "snapshot":
        yield from me.snapshot(log)
    elif verb == "verify":
        yield from me.verify(log)
    else:
        assert verb == "collect", verb
        yield from me.collect(log)
    return tail


def _append(me: Client, log: str, byte: bytes, tail: Any) -> Iterator[Any]:
    if tail is None:
        tail = yield from me.tail(log)
    if not isinstance(tail, Tail):
        return None
    made = yield from me.append(log, byte, tail)
    if isinstance(made, Unavailable) and made.effect_unknown:
        made = yield from me.append(log, byte, tail)
    return made if isinstance(made, Tail) else None
