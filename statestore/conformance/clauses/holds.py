"""Holds: while one holds a log nobody else changes it, and it is let go whatever happens."""

from __future__ import annotations

import os
from collections.abc import Callable

from statestore.conformance.case import Case
from statestore.conformance.check import Failure, equal, refused, that
from statestore.conformance.others import together
from statestore.conformance.registry import clause
from statestore.errors import Conflict, Held, NotSupported
from statestore.store import NEW, Holder, Store, Tail


def _free(case: Case, log: str, store: Store | None = None) -> None:
    """Fail unless the log can be held."""
    store = store or case.store
    try:
        with store.hold(log):
            pass
    except Held as error:
        raise Failure(f"{log!r} should be held by nobody, but: {error}") from error
    equal(store.holder(log), None, f"holder({log!r}) once it was let go")


def _enter(store: Store, log: str) -> None:
    with store.hold(log):
        pass


def _attempts(case: Case, store: Store, log: str, tail: Tail) -> None:
    """Fail unless this store object is refused every change of a log that another one holds."""
    calls: list[Callable[[], object]] = [
        lambda: store.append(log, b"X", at=tail),
        lambda: _enter(store, log),
        lambda: store.hold(log).__enter__(),
    ]
    if case.store.capabilities.deletes:
        calls += [lambda: store.delete(log), lambda: store.delete(log, at=tail)]
    if case.store.capabilities.cuts:
        calls.append(lambda: store.cut(log, 1, at=tail))
    for call in calls:
        error = refused(Held, call)
        equal(error.facts.get("log"), log, "the error's fact `log`")


@clause("core", capability="holds", needs=("reopen",))
def a_held_log_is_refused_to_others(case: Case) -> None:
    """Two workers drive one session at the same time, and each tool is called twice."""
    tail = case.put("log", b"one")
    other = case.other()
    with case.store.hold("log"):
        _attempts(case, other, "log", tail)
        equal(other.read("log"), b"one", "a read of a held log")
    case.holds("log", b"one", other)
    other.append("log", b"two", at=tail)
    case.holds("log", b"onetwo")


@clause("core", capability="holds")
def the_holder_may_append(case: Case) -> None:
    """A worker that holds its session is locked out of it."""
    tail = case.put("log", b"one")
    with case.store.hold("log"):
        tail = case.store.append("log", b"two", at=tail)
        together(1, lambda _: case.store.append("log", b"three", at=tail))
        case.holds("log", b"onetwothree")
    case.holds("log", b"onetwothree")


@clause("core", capability="holds")
def a_second_hold_is_refused_to_the_holder_too(case: Case) -> None:
    """Two tasks of one program both believe that the session is theirs."""
    case.put("log", b"one")
    with case.store.hold("log"):
        refused(Held, _enter, case.store, "log")
        refused(Held, _enter, case.store, "log")
        that(case.store.holder("log") is not None, "the first hold should outlast a second one that was refused")
    _free(case, "log")


@clause("core", capability="holds", needs=("reopen",))
def a_hold_is_let_go_at_the_end(case: Case) -> None:
    """A session stays locked after its worker has finished."""
    tail = case.put("log", b"one")
    other = case.other()
    for _ in range(3):
        with case.store.hold("log"):
            refused(Held, _enter, other, "log")
        _free(case, "log", other)
        _free(case, "log")
    equal(other.append("log", b"two", at=tail).size, 6, "an append by another store object afterwards")


@clause("core", capability="holds", needs=("reopen",))
def a_hold_is_let_go_on_an_error(case: Case) -> None:
    """A session stays locked after its worker has failed, and nobody can repair it."""
    case.put("log", b"one")
    other = case.other()
    for kind in (RuntimeError, KeyboardInterrupt):
        try:
            with case.store.hold("log"):
                raise kind("in the midst of a hold")
        except kind:
            pass
        _free(case, "log", other)


@clause("core", capability="holds", needs=("reopen",))
def a_hold_outlasts_refused_calls(case: Case) -> None:
    """The hold is lost at the first conflict, and somebody else moves in while the worker still works."""
    tail = case.put("log", b"one")
    other = case.other()
    with case.store.hold("log"):
        refused(Conflict, case.store.append, "log", b"X", at=Tail(1, tail.run))
        refused(ValueError, case.store.append, "log", b"", at=tail)
        refused(Held, _enter, other, "log")
        refused(Held, _enter, case.store, "log")
        refused(Held, other.append, "log", b"X", at=tail)
        tail = case.store.append("log", b"two", at=tail)
        refused(Held, _enter, other, "log")
    case.holds("log", b"onetwo", other)


@clause("core", capability="holds", needs=("reopen",))
def a_hold_is_let_go_when_the_store_is_closed(case: Case) -> None:
    """A program that closed its store keeps sessions locked until it ends."""
    case.put("log", b"one")
    other = case.other()
    third = case.other()
    context = third.hold("log")
    context.__enter__()
    refused(Held, _enter, other, "log")
    third.close()
    _free(case, "log", other)
    with other.hold("log"):
        context.__exit__(None, None, None)  # the end of a hold that is over takes nobody else's
        refused(Held, _enter, case.store, "log")


@clause("core", capability="holds", needs=("reopen",))
def a_hold_is_of_one_log(case: Case) -> None:
    """Work on one session stops the work on others."""
    names = ("a", "ab", "a/b", "a.b", "A/b")
    tails = {name: case.put(name, b"x") for name in names}
    other = case.other()
    with case.store.hold("a"):
        for name in names[1:]:
            equal(other.append(name, b"y", at=tails[name]).size, 2, f"an append to {name!r} while `a` is held")
            _free(case, name, other)
        with other.hold("ab"), case.store.hold("a/b"):
            refused(Held, _enter, case.store, "ab")
            refused(Held, _enter, other, "a/b")
        refused(Held, _enter, other, "a")


@clause("core", capability="holds", needs=("reopen",))
def a_log_may_be_held_before_it_is_made(case: Case) -> None:
    """Two workers begin the same session, each sure to be the first."""
    other = case.other()
    with case.store.hold("log"):
        refused(Held, other.append, "log", b"X", at=NEW)
        refused(Held, _enter, other, "log")
        case.lacks("log")
        case.lacks("log", other)
        equal(case.store.append("log", b"one", at=NEW).size, 3, "the creation by the holder")
    case.holds("log", b"one", other)


@clause("core", capability="holds")
def a_hold_alone_makes_no_log(case: Case) -> None:
    """A session that was looked after but never begun shows in the list."""
    with case.store.hold("log"):
        case.lacks("log")
    case.lacks("log")
    equal(case.names(), [], "the listing after a hold")


@clause("core", capability="holds", needs=("reopen",))
def a_copy_onto_a_held_name_is_refused(case: Case) -> None:
    """A fork takes the name that a worker has just secured for its session."""
    case.put("source", b"one")
    other = case.other()
    with case.store.hold("target"):
        refused(Held, other.copy, "source", "target")
        case.lacks("target")
    with case.store.hold("source"):
        other.copy("source", "target")
    case.holds("target", b"one")


@clause("core", capability="holds", needs=("reopen",))
def the_holder_is_told(case: Case) -> None:
    """At three in the morning nobody can find out which process keeps the session."""
    case.put("log", b"one")
    other = case.other()
    for store in (case.store, other):
        equal(store.holder("log"), None, "the holder of a log that nobody holds")
        equal(store.holder("missing"), None, "the holder of a log that is not there")
    with case.store.hold("log"):
        error = refused(Held, _enter, other, "log")
        for holder in (error.holder, other.holder("log"), case.store.holder("log")):
            if not isinstance(holder, Holder):
                raise Failure(f"a holder is a Holder, not {type(holder).__name__}")
            equal(holder.pid, os.getpid(), "the holder's process id")
            that(holder.host and holder.since.endswith("Z"), f"a holder tells its host and since when: {holder}")
        refused(Held, _enter, other, "log")
    equal(other.holder("log"), None, "the holder after the hold")


@clause("core", capability="holds")
def a_hold_begins_when_it_is_entered(case: Case) -> None:
    """A hold that was only prepared locks a session for good."""
    case.put("log", b"one")
    context = case.store.hold("log")
    equal(case.store.holder("log"), None, "the holder before the context is entered")
    _free(case, "log")
    with context:
        that(case.store.holder("log") is not None, "the log should be held inside the context")
    _free(case, "log")


@clause("core", capability="holds", on=False)
def a_store_without_holds_refuses_them(case: Case) -> None:
    """A worker believes that a session is its own, and nothing keeps it so."""
    tail = case.put("log", b"one")
    for log in ("log", "missing"):
        for call in (case.store.hold, case.store.holder):
            error = refused(NotSupported, call, log)
            equal(error.facts.get("capability"), "holds", "the error's fact `capability`")
    case.lacks("missing")
    equal(case.store.append("log", b"two", at=tail).size, 6, "an append after the refusals")
