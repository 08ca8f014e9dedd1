"""Sidecars: what is derived from a log and kept beside it is no part of the log, and goes with it."""

from __future__ import annotations

from statestore.conformance.case import Case
from statestore.conformance.check import equal
from statestore.conformance.registry import clause


@clause("core", capability="sidecars")
def what_is_beside_a_log_is_no_part_of_it(case: Case) -> None:
    """An index that was kept beside a session shows up as a session, or is taken for part of one."""
    case.put("log", b"one", b"two")
    beside = case.store.sidecar("log")
    assert beside is not None
    equal(beside.read(100), b"", "what is beside a new log")
    beside.append(b"1234")
    beside.append(b"56")
    equal([beside.read(size) for size in (0, 3, 6, 100)], [b"", b"456", b"123456", b"123456"], "its last bytes")
    case.holds("log", b"onetwo")
    equal([info.name for info in case.store.list()], ["log"], "the listing")
    again = case.store.sidecar("log")
    assert again is not None
    again.replace(b"new")
    equal(beside.read(100), b"new", "what was put in its place")
    case.store.copy("log", "copy")
    copied, missing = case.store.sidecar("copy"), case.store.sidecar("missing")
    assert copied is not None
    assert missing is not None
    equal((copied.read(100), missing.read(100)), (b"", b""), "what is beside the copy, and where there is no log")


@clause("core", capability="sidecars")
def what_is_beside_a_log_goes_with_it(case: Case) -> None:
    """An index of a deleted session is read as that of the next one with its name."""
    tail = case.put("log", b"one", b"two")
    beside = case.store.sidecar("log")
    assert beside is not None
    if case.store.capabilities.cuts:
        beside.append(b"cut")
        case.store.cut("log", 3, at=tail)
        equal(beside.read(100), b"", "what is beside a log that was cut")
    if case.store.capabilities.deletes:
        beside.append(b"deleted")
        case.store.delete("log")
        equal(beside.read(100), b"", "what is beside a log that was deleted")
        case.put("log", b"one")
        equal(beside.read(100), b"", "what is beside the log that was made again")


@clause("core", capability="sidecars", on=False)
def a_store_without_a_place_beside_its_logs_says_so(case: Case) -> None:
    """A reader keeps an index where nothing is kept."""
    case.put("log", b"one")
    equal((case.store.sidecar("log"), case.store.sidecar("missing")), (None, None), "the places beside logs")
