"""Cuts and flushes: dropping what a crash left, and durability on demand, by those stores that have them."""

from __future__ import annotations

from statestore.conformance.case import Case
from statestore.conformance.check import equal, refused
from statestore.conformance.registry import clause
from statestore.errors import Conflict, NotFound, NotSupported
from statestore.store import NEW, Tail


@clause("core", capability="cuts")
def a_cut_drops_exactly_what_is_behind_its_size(case: Case) -> None:
    """Repairing a torn session eats into its last whole record, or leaves a byte of the torn one."""
    pieces = (b"one", b"two\r", b"\x00\xff\n")
    whole = b"".join(pieces)
    for size in range(1, len(whole) + 1):
        log = f"log-{size}"
        tail = case.put(log, *pieces)
        equal(case.store.cut(log, size, at=tail), whole[size:], f"the bytes given back by a cut to {size}")
        case.holds(log, whole[:size])


@clause("core", capability="cuts")
def a_log_goes_on_after_a_cut(case: Case) -> None:
    """A repaired session cannot be gone on with, or begins its next record in the wrong place."""
    tail = case.put("log", b"one", b"torn")
    case.store.cut("log", 3, at=tail)
    after = case.store.tail("log")
    equal(after.size, 3, "the size after a cut")
    refused(Conflict, case.store.append, "log", b"X", at=Tail(7, after.run))
    equal(case.store.append("log", b"two", at=after), case.store.tail("log"), "the tail of an append after a cut")
    case.holds("log", b"onetwo")


@clause("core", capability="cuts")
def a_cut_at_another_tail_is_refused(case: Case) -> None:
    """A repair drops the record that another writer has added meanwhile."""
    first = case.put("log", b"one")
    tail = case.store.append("log", b"two", at=first)
    for wrong in (first, Tail(7, tail.run), Tail(5, tail.run)):
        error = refused(Conflict, case.store.cut, "log", 1, at=wrong)
        equal(error.found, tail, "the tail that the conflict carries")
        case.holds("log", b"onetwo")


@clause("core", capability="cuts", also=("runs", "deletes"))
def a_cut_does_not_reach_into_another_run(case: Case) -> None:
    """A late repair of a deleted session cuts the new one under its id."""
    old = case.put("log", b"one", b"two")
    case.store.delete("log")
    new = case.put("log", b"one", b"two")
    error = refused(Conflict, case.store.cut, "log", 1, at=old)
    equal(error.found, new, "the tail that the conflict carries")
    case.holds("log", b"onetwo")


@clause("core", capability="cuts")
def a_cut_outside_the_log_is_refused(case: Case) -> None:
    """A repair with a wrong size lengthens a session with zeros, or empties it."""
    tail = case.put("log", b"one", b"two")
    for size in (-1, -6, 7, 2**40):
        refused(ValueError, case.store.cut, "log", size, at=tail)
        case.holds("log", b"onetwo")
    refused(NotFound, case.store.cut, "missing", 0, at=Tail(1, ""))
    case.lacks("missing")


@clause("core", capability="cuts")
def a_cut_to_nothing_leaves_no_log(case: Case) -> None:
    """A session of which nothing was ever acknowledged cannot be begun again."""
    tail = case.put("log", b"torn")
    equal(case.store.cut("log", 0, at=tail), b"torn", "the bytes given back")
    case.lacks("log")
    case.put("log", b"one")
    case.holds("log", b"one")


@clause("core", capability="cuts")
def a_cut_touches_no_other_log(case: Case) -> None:
    """Repairing a session damages its fork."""
    tail = case.put("log", b"one", b"torn")
    case.store.copy("log", "copy")
    case.put("log/x", b"one-torn")
    case.store.cut("log", 3, at=tail)
    case.holds("copy", b"onetorn")
    case.holds("log/x", b"one-torn")
    equal(case.names(), ["copy", "log", "log/x"], "the listing after a cut")


@clause("durable", capability="cuts", needs=("raw_aside",))
def what_was_cut_is_kept_aside(case: Case) -> None:
    """What a wrong repair has cut from a session is gone for good."""
    aside = case.harness.raw_aside
    tail = case.put("log", b"one", b"\r\n\x00torn")
    case.store.cut("log", 3, at=tail)
    equal(aside("log") if aside else b"", b"\r\n\x00torn", "the bytes kept aside after a cut")
    tail = case.store.append("log", b"again", at=case.store.tail("log"))
    case.store.cut("log", 5, at=tail)
    equal(aside("log") if aside else b"", b"\r\n\x00tornain", "the bytes kept aside after two cuts")


@clause("core", capability="cuts", on=False)
def a_store_without_cuts_refuses_them(case: Case) -> None:
    """A repair that a store cannot do safely is done all the same."""
    tail = case.put("log", b"one", b"two")
    for log, size, at in (("log", 3, tail), ("log", 6, tail), ("log", 0, tail), ("missing", 0, NEW)):
        error = refused(NotSupported, case.store.cut, log, size, at=at)
        equal(error.facts.get("capability"), "cuts", "the error's fact `capability`")
    case.holds("log", b"onetwo")


@clause("core", capability="durable")
def a_flush_of_a_durable_store_looks_for_the_log(case: Case) -> None:
    """A writer that flushes to be sure is refused by a store that is always sure, or told that nothing is safe."""
    case.put("log", b"one")
    case.store.flush("log")
    case.holds("log", b"one")
    refused(NotFound, case.store.flush, "missing")
    case.lacks("missing")


@clause("core", capability="flushes")
def a_flush_changes_no_byte(case: Case) -> None:
    """Making a session safe changes it."""
    tail = case.put("log", b"one", b"two")
    case.store.flush("log")
    case.store.flush("log")
    equal(case.store.append("log", b"three", at=tail).size, 11, "an append after a flush")
    case.holds("log", b"onetwothree")
    refused(NotFound, case.store.flush, "missing")
    case.lacks("missing")


@clause("core", capability="flushes", on=False, without=("durable",))
def a_store_that_can_make_nothing_durable_says_so(case: Case) -> None:
    """A writer flushes, believes that its session is safe, and loses it with the power."""
    case.put("log", b"one")
    error = refused(NotSupported, case.store.flush, "log")
    equal(error.facts.get("capability"), "flushes", "the error's fact `capability`")
    refused(NotSupported, case.store.flush, "missing")
