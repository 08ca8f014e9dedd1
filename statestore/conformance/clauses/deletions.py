"""Deletions: a log goes at once and for all, and what is made again under its name is another log."""

from __future__ import annotations

from typing import Any

from statestore.conformance.case import Case
from statestore.conformance.check import equal, refused, that
from statestore.conformance.registry import clause
from statestore.errors import Conflict, NotFound, NotSupported
from statestore.store import NEW, Tail


@clause("core", capability="deletes")
def a_deleted_log_is_gone(case: Case) -> None:
    """Somebody who asked for their data to be deleted finds it still there."""
    tail = case.put("log", b"one", b"two")
    case.store.delete("log")
    case.lacks("log")
    refused(NotFound, lambda: list(case.store.stream("log")))
    refused(NotFound, case.store.boundary, "log", 0)
    refused(NotFound, case.store.append, "log", b"three", at=tail)
    refused(NotFound, case.store.copy, "log", "target")
    case.lacks("log")


@clause("core", capability="deletes")
def a_deletion_takes_no_other_log(case: Case) -> None:
    """Deleting one session deletes another whose id begins alike."""
    others = ("a", "a/b/c", "a/bc", "a/b.c", "ab", "a/a")
    for name in (*others, "a/b"):
        case.put(name, name.encode())
    case.store.delete("a/b")
    case.lacks("a/b")
    for name in others:
        case.holds(name, name.encode())


@clause("core", capability="deletes")
def a_deletion_of_a_missing_log_is_not_found(case: Case) -> None:
    """A typing error in a deletion looks like success."""
    case.put("log/x", b"x")
    error = refused(NotFound, case.store.delete, "log")
    equal(error.facts.get("log"), "log", "the error's fact `log`")
    refused(NotFound, case.store.delete, "log", at=Tail(3, ""))
    case.put("log", b"x")
    case.store.delete("log")
    refused(NotFound, case.store.delete, "log")


@clause("core", capability="deletes")
def a_deletion_at_another_tail_is_refused(case: Case) -> None:
    """A clean-up deletes the message that came in while it decided."""
    first = case.put("log", b"one")
    tail = case.store.append("log", b"two", at=first)
    for wrong in (first, Tail(5, tail.run), Tail(7, tail.run), NEW):
        error = refused(Conflict, case.store.delete, "log", at=wrong)
        equal(error.found, tail, "the tail that the conflict carries")
        case.holds("log", b"onetwo")
    case.store.delete("log", at=tail)
    case.lacks("log")


@clause("core", capability="deletes")
def a_log_made_again_begins_at_nothing(case: Case) -> None:
    """A new session under an old id begins with the old one's story."""
    for number in range(4):
        data = b"story %d" % number
        tail = case.put("log", data, b"!")
        equal(tail.size, len(data) + 1, "the size of a log that was made again")
        case.holds("log", data + b"!")
        equal(case.names(), ["log"], "the listing")
        case.store.delete("log")
        case.lacks("log")


@clause("core", capability="deletes")
def a_creation_repeated_after_a_deletion_creates_again(case: Case) -> None:
    """A session that was deleted cannot be begun again with the same words."""
    case.store.append("log", b"one", at=NEW)
    case.store.delete("log")
    tail = case.store.append("log", b"one", at=NEW)
    equal(tail, case.store.tail("log"), "the tail of the second creation")
    case.holds("log", b"one")


@clause("core", capability="deletes")
def a_copy_may_take_a_deleted_name(case: Case) -> None:
    """A session cannot be restored from a fork of it."""
    case.put("log", b"one", b"two")
    case.store.copy("log", "kept", stop=3)
    case.store.delete("log")
    tail = case.store.copy("kept", "log")
    equal(tail, case.store.tail("log"), "the tail of the copy")
    case.holds("log", b"one")


@clause("core", capability="deletes", needs=("reopen",))
def a_deletion_shows_to_another_store_object(case: Case) -> None:
    """A process that had the session open goes on showing what was deleted."""
    other = case.other()
    tail = case.put("log", b"one")
    case.holds("log", b"one", other)
    case.store.delete("log")
    case.lacks("log", other)
    refused(NotFound, other.append, "log", b"two", at=tail)
    case.lacks("log")


def _again(case: Case, *pieces: bytes) -> tuple[Tail, Tail]:
    """Make a log, delete it, make it again of the same pieces; return the old tail and the new one."""
    old = case.put("log", *pieces)
    case.store.delete("log")
    return old, case.put("log", *pieces)


@clause("core", capability="runs", also=("deletes",))
def a_log_made_again_is_another_run(case: Case) -> None:
    """Nobody can tell a session from the one that had its id before."""
    seen = set()
    for _ in range(5):
        seen.add(case.put("log", b"same").run)
        case.store.delete("log")
    seen.add(case.put("log", b"same").run)
    equal(len(seen), 6, "the number of different runs of a log that was made six times")
    that("" not in seen, "a store that tells runs gives each log one")


@clause("core", capability="runs", also=("deletes",))
def an_old_writer_is_refused_by_a_log_made_again(case: Case) -> None:
    """A writer of the deleted session writes its next record into somebody else's new one."""
    old, new = _again(case, b"one", b"two")
    equal(new.size, old.size, "the size of both logs")
    error = refused(Conflict, case.store.append, "log", b"three", at=old)
    equal(error.found, new, "the tail that the conflict carries")
    case.holds("log", b"onetwo")


@clause("core", capability="runs", also=("deletes",))
def a_repetition_does_not_reach_into_another_run(case: Case) -> None:
    """A writer is told that its record is kept, although the session that it was kept in is deleted."""
    start = case.put("log", b"one")
    case.store.append("log", b"two", at=start)
    case.store.delete("log")
    new = case.put("log", b"one", b"two")
    error = refused(Conflict, case.store.append, "log", b"two", at=start)
    equal(error.found, new, "the tail that the conflict carries")
    case.holds("log", b"onetwo")


@clause("core", capability="runs", also=("deletes",))
def an_old_tail_does_not_delete_a_log_made_again(case: Case) -> None:
    """A late clean-up deletes the new session under the old id."""
    old, new = _again(case, b"one")
    error = refused(Conflict, case.store.delete, "log", at=old)
    equal(error.found, new, "the tail that the conflict carries")
    case.holds("log", b"one")


@clause("core", capability="runs")
def a_tail_without_its_run_is_refused(case: Case) -> None:
    """A position that lost its run on the way is taken for a position in whatever log has the name now."""
    tail = case.put("log", b"one")
    for run in ("", tail.run + "x", "other"):
        error = refused(Conflict, case.store.append, "log", b"two", at=Tail(tail.size, run))
        equal(error.found, tail, "the tail that the conflict carries")
    case.holds("log", b"one")


@clause("core", capability="deletes", on=False)
def a_store_without_deletions_refuses_them(case: Case) -> None:
    """A deletion that does nothing, or half of it, is believed."""
    tail = case.put("log", b"one")
    attempts: list[tuple[str, dict[str, Any]]] = [("log", {}), ("log", {"at": tail}), ("other", {})]
    for log, more in attempts:
        error = refused(NotSupported, case.store.delete, log, **more)
        equal(error.facts.get("capability"), "deletes", "the error's fact `capability`")
    case.holds("log", b"one")
    equal(case.store.append("log", b"two", at=tail).size, 6, "an append after the refusals")
