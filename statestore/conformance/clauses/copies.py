"""Copies: a fork of a log, whole or not at all, that shares nothing with its source."""

from __future__ import annotations

from statestore.conformance.case import Case
from statestore.conformance.check import equal, refused, that
from statestore.conformance.registry import clause
from statestore.errors import Conflict, Exists, NotFound
from statestore.store import NEW, Tail

_PIECES = (b"one", b"\r\n", b"three", b"\x00\xff")
_WHOLE = b"".join(_PIECES)


@clause("core")
def a_copy_equals_its_source(case: Case) -> None:
    """A fork of a session tells another story than the session did."""
    source = case.put("source", *_PIECES)
    tail = case.store.copy("source", "target")
    that(isinstance(tail, Tail), f"copy returns a Tail, not {type(tail).__name__}")
    equal(tail, case.store.tail("target"), "the tail returned by a copy")
    case.holds("target", _WHOLE)
    case.holds("source", _WHOLE)
    equal(case.store.tail("source"), source, "the tail of the source after a copy")
    equal(case.names(), ["source", "target"], "the listing after a copy")


@clause("core")
def a_copy_ends_at_its_stop(case: Case) -> None:
    """A session that is reverted to an earlier point keeps a byte of what was reverted, or loses one before it."""
    case.put("source", *_PIECES)
    for stop in [*range(1, len(_WHOLE) + 3), 2**40]:
        tail = case.store.copy("source", f"target-{stop}", stop=stop)
        equal(tail.size, min(stop, len(_WHOLE)), f"the size of a copy to stop={stop}")
        case.holds(f"target-{stop}", _WHOLE[:stop])
    case.holds("source", _WHOLE)


@clause("core")
def a_copy_can_be_appended_to(case: Case) -> None:
    """A forked session cannot be gone on with."""
    case.put("source", *_PIECES)
    for stop in (None, 1, 4):
        target = f"target-{stop}"
        case.store.append(target, b"more", at=case.store.copy("source", target, stop=stop))
        case.holds(target, _WHOLE[:stop] + b"more")


@clause("core")
def what_happens_to_a_copy_never_shows_in_its_source(case: Case) -> None:
    """A fork writes into the session that it was made of."""
    source = case.put("source", *_PIECES)
    target = case.store.copy("source", "target")
    case.store.append("target", b"fork", at=target)
    case.holds("source", _WHOLE)
    equal(case.store.append("source", b"trunk", at=source).size, len(_WHOLE) + 5, "an append to the source")
    case.holds("source", _WHOLE + b"trunk")
    case.holds("target", _WHOLE + b"fork")


@clause("core", capability="deletes")
def a_copy_outlives_its_source(case: Case) -> None:
    """Deleting a session takes its forks with it."""
    case.put("source", *_PIECES)
    case.store.copy("source", "target")
    case.store.copy("target", "second", stop=4)
    case.store.delete("source")
    case.holds("target", _WHOLE)
    case.put("source", b"another story")
    case.holds("target", _WHOLE)
    case.store.delete("target")
    case.holds("second", _WHOLE[:4])


@clause("core")
def a_copy_onto_a_log_is_refused(case: Case) -> None:
    """A fork erases the session that has its name already."""
    case.put("source", *_PIECES)
    tail = case.put("target", b"mine")
    for stop in (None, 4):
        error = refused(Exists, case.store.copy, "source", "target", stop=stop)
        equal(error.facts.get("log"), "target", "the error's fact `log`")
        case.holds("target", b"mine")
    equal(case.store.tail("target"), tail, "the tail of the target after refusals")


@clause("core")
def a_copy_onto_equal_bytes_is_refused_too(case: Case) -> None:
    """Two forks made at the same time are one log without knowing it."""
    case.put("source", *_PIECES)
    case.store.copy("source", "target")
    refused(Exists, case.store.copy, "source", "target")
    case.holds("target", _WHOLE)


@clause("core")
def a_copy_onto_its_source_is_refused(case: Case) -> None:
    """A session copied onto itself is emptied."""
    tail = case.put("source", *_PIECES)
    for stop in (None, 3):
        refused(Exists, case.store.copy, "source", "source", stop=stop)
    case.holds("source", _WHOLE)
    equal(case.store.tail("source"), tail, "the tail after a copy onto itself")


@clause("core")
def a_copy_of_a_missing_log_is_not_found(case: Case) -> None:
    """A fork of a session that is not there looks like a session with nothing in it."""
    case.put("source/x", b"x")
    error = refused(NotFound, case.store.copy, "source", "target")
    equal(error.facts.get("log"), "source", "the error's fact `log`")
    case.lacks("target")
    case.put("target", b"made after the refusal")
    case.holds("target", b"made after the refusal")


@clause("core")
def a_copy_of_nothing_is_refused(case: Case) -> None:
    """A revert to before the first record makes a log that is there for one call and not for another."""
    case.put("source", *_PIECES)
    for stop in (0, -1, -len(_WHOLE)):
        refused(ValueError, case.store.copy, "source", "target", stop=stop)
        case.lacks("target")


@clause("core")
def a_copy_of_a_long_log_is_whole(case: Case) -> None:
    """A fork of a long session stops at the size of somebody's buffer."""
    block = bytes(range(253)) * 5000
    pieces = [block, b"1", block, b"2", block]
    case.put("source", *pieces)
    whole = b"".join(pieces)
    for number, stop in enumerate((None, len(whole) - 1, (1 << 20) + 1, len(block) + 1)):
        case.store.copy("source", f"target-{number}", stop=stop)
        case.holds(f"target-{number}", whole[:stop])


@clause("core")
def a_creation_where_a_copy_was_made_is_refused(case: Case) -> None:
    """A new session continues a fork that happens to have its name."""
    case.put("source", *_PIECES)
    tail = case.store.copy("source", "target")
    error = refused(Conflict, case.store.append, "target", b"other", at=NEW)
    equal(error.found, tail, "the tail that the conflict carries")
    case.holds("target", _WHOLE)


@clause("core", needs=("reopen",))
def a_copy_shows_to_another_store_object(case: Case) -> None:
    """A fork is told to be made while the storage is still at it, and who is to work on it finds nothing."""
    other = case.other()
    pieces = [b"%d" % number * 70_000 for number in range(4)]
    case.put("source", *pieces)
    whole = b"".join(pieces)
    for stop in (None, 70_000, 100_000):
        target = f"target-{stop}"
        tail = case.store.copy("source", target, stop=stop)
        equal(other.tail(target), tail, "tail() of another store object right after a copy")
        case.holds(target, whole[:stop], other)
        refused(Exists, other.copy, "source", target)
