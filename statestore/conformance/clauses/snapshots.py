"""Snapshots: several reads that all mean the same log."""

from __future__ import annotations

from collections.abc import Callable

from statestore.conformance.case import Case
from statestore.conformance.check import equal, refused
from statestore.conformance.registry import clause
from statestore.errors import Exists, NotFound

_PIECES = (b"one", b"\n", b"two\r\n", b"345")
_WHOLE = b"".join(_PIECES)


@clause("core")
def a_snapshot_is_the_same_slice(case: Case) -> None:
    """A reader that reads in parts gets other bytes than one that reads at once."""
    tail = case.put("log", *_PIECES)
    snapshot = case.store.snapshot("log")
    equal((snapshot.log, snapshot.tail), ("log", tail), "the snapshot's log and tail")
    for start in range(len(_WHOLE) + 3):
        for stop in (None, *range(len(_WHOLE) + 3)):
            equal(snapshot.read(start, stop), _WHOLE[start:stop], f"a snapshot's [{start}, {stop})")
        equal(b"".join(snapshot.stream(start)), _WHOLE[start:], f"a snapshot's stream from {start}")
        equal(snapshot.boundary(start), case.store.boundary("log", start), f"a snapshot's boundary at {start}")
    refused(ValueError, snapshot.read, -1)
    refused(ValueError, snapshot.boundary, -1)


@clause("core")
def a_snapshot_does_not_follow_the_log(case: Case) -> None:
    """A reader counts records that another call of its own has not seen."""
    tail = case.put("log", *_PIECES)
    snapshot = case.store.snapshot("log")
    case.store.append("log", b"more", at=tail)
    equal(snapshot.tail, tail, "the snapshot's tail after the log grew")
    for stop in (None, len(_WHOLE) + 2, 2**62):
        equal(snapshot.read(0, stop), _WHOLE, f"a snapshot's [0, {stop}) after the log grew")
    equal(b"".join(snapshot.stream()), _WHOLE, "a snapshot's stream after the log grew")
    equal(case.store.snapshot("log").read(), _WHOLE + b"more", "a snapshot taken later")


@clause("core")
def a_snapshot_of_a_missing_log_is_not_found(case: Case) -> None:
    """A session that was never there looks like one that is empty."""
    case.put("log/x", b"x")
    case.put("log-", b"x")
    error = refused(NotFound, case.store.snapshot, "log")
    equal(error.facts.get("log"), "log", "the error's fact `log`")


@clause("core")
def a_snapshot_copies_what_it_shows(case: Case) -> None:
    """A fork holds records that whoever forked has not seen."""
    tail = case.put("log", *_PIECES)
    snapshot = case.store.snapshot("log")
    case.store.append("log", b"more", at=tail)
    equal(snapshot.copy("whole").size, len(_WHOLE), "the tail of a snapshot's copy")
    case.holds("whole", _WHOLE)
    snapshot.copy("part", stop=4)
    case.holds("part", _WHOLE[:4])
    refused(Exists, snapshot.copy, "part")
    refused(ValueError, snapshot.copy, "none", stop=0)
    case.holds("log", _WHOLE + b"more")


@clause("core", capability="runs", also=("deletes",))
def a_snapshot_never_shows_another_log(case: Case) -> None:
    """A reader that takes its time puts the beginning of one session and the end of another together."""
    case.put("log", *_PIECES)
    snapshot = case.store.snapshot("log")
    equal(snapshot.read(0, 3), b"one", "what the snapshot shows first")
    case.store.delete("log")
    case.put("log", b"another log, and a longer one")
    # What was there may still be told; nothing else may.
    asked: tuple[Callable[[], bytes], ...] = (lambda: snapshot.read(3), lambda: b"".join(snapshot.stream(3)))
    for ask in asked:
        try:
            equal(ask(), _WHOLE[3:], "what the snapshot shows after another log has taken the name")
        except NotFound:
            continue
