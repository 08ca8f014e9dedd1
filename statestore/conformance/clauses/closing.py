"""The end of a store, its errors, and what it must never say."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable

from statestore.conformance.case import Case, bare
from statestore.conformance.check import equal, refused, that
from statestore.conformance.registry import clause
from statestore.errors import Closed, Conflict, Exists, InvalidName, NotFound, StateStoreError
from statestore.store import NEW, Capabilities, Store, Tail

_CREDENTIAL = re.compile(r"://[^/\s:@]+:[^/\s@]+@|(?i:password|secret|token|signature)=(?!\*|\.\.\.|<)\S+")


def _calls(store: Store, tail: Tail) -> dict[str, Callable[[], object]]:
    return {
        "append": lambda: store.append("log", b"two", at=tail),
        "append at NEW": lambda: store.append("other", b"two", at=NEW),
        "read": lambda: store.read("log"),
        "copy": lambda: store.copy("log", "target"),
        "list": lambda: store.list(),
        "list with tails": lambda: store.list("log", tails=True),
        "tail": lambda: store.tail("log"),
        "snapshot": lambda: store.snapshot("log"),
        "stream": lambda: store.stream("log"),
        "wait": lambda: store.wait("log", tail, 0),
        "boundary": lambda: store.boundary("log", 0),
        "delete": lambda: store.delete("log"),
        "hold": lambda: store.hold("log"),
        "holder": lambda: store.holder("log"),
        "flush": lambda: store.flush("log"),
        "cut": lambda: store.cut("log", 1, at=tail),
    }


@clause("core", needs=("reopen",))
def a_closed_store_refuses_every_call(case: Case) -> None:
    """A program that closed its store writes on into a place that it has let go of."""
    tail = case.put("log", b"one")
    other = case.other()
    other.close()
    for what, call in _calls(other, tail).items():
        error = refused(Closed, call)
        that("close" in str(error), f"{what} of a closed store says what happened: {error}")
    case.holds("log", b"one")
    equal(case.names(), ["log"], "the listing after calls of a closed store")


@clause("core", needs=("reopen",))
def closing_twice_is_nothing(case: Case) -> None:
    """A clean-up that runs twice fails and hides the error that it was to clean up after."""
    other = case.other()
    case.put("log", b"one", store=other)
    other.close()
    other.close()
    other.close()
    refused(Closed, other.read, "log")
    case.holds("log", b"one")


@clause("core", needs=("reopen",))
def closing_one_store_object_closes_no_other(case: Case) -> None:
    """One part of a program that finishes stops all others."""
    other = case.other()
    tail = case.put("log", b"one", store=other)
    other.close()
    equal(case.store.append("log", b"two", at=tail).size, 6, "an append by the other store object")
    case.holds("log", b"onetwo")


@clause("core", needs=("reopen",))
def a_store_closes_at_the_end_of_its_context(case: Case) -> None:
    """A `with` block leaves locks and connections behind, or swallows an error."""
    other = case.other()
    with other as store:
        case.put("log", b"one", store=store)
    refused(Closed, other.read, "log")
    third = case.other()
    raised = False
    try:
        with third:
            raise RuntimeError("inside")
    except RuntimeError:
        raised = True
    that(raised, "an error inside a `with` block of a store should come out of it")
    refused(Closed, third.read, "log")


@clause("core", needs=("reopen",))
def a_bad_name_is_named_before_a_closed_store(case: Case) -> None:
    """The same mistake is another error from one call to the next."""
    other = case.other()
    other.close()
    refused(InvalidName, other.append, "a//b", b"x", at=NEW)
    refused(InvalidName, other.read, "..")
    refused(InvalidName, other.tail, "")


@clause("core")
def capabilities_are_told_and_do_not_change(case: Case) -> None:
    """A program chooses its way by what the store can do, and the store changes its mind."""
    before = case.store.capabilities
    that(isinstance(before, Capabilities), f"capabilities are Capabilities, not {type(before).__name__}")
    for name in ("a", "b"):
        case.put(name, b"x", b"y")
    case.store.copy("a", "c")
    list(case.store.list(tails=True))
    equal(case.store.capabilities, before, "the capabilities after some work")
    that(before.max_append is None or before.max_append > 0, "max_append is None or above 0")


@clause("core")
def errors_are_of_the_tree_and_carry_their_facts(case: Case) -> None:
    """A program that catches the error it was promised crashes on another, and a person is told nothing."""
    case.put("log", b"one")
    case.put("taken", b"x")
    raised: list[tuple[StateStoreError, str]] = [
        (refused(NotFound, case.store.read, "missing"), "missing"),
        (refused(NotFound, case.store.append, "missing", b"x", at=Tail(1, "")), "missing"),
        (refused(Conflict, case.store.append, "log", b"X", at=NEW), "log"),
        (refused(Exists, case.store.copy, "log", "taken"), "taken"),
    ]
    for error, log in raised:
        equal(error.facts.get("log"), log, f"the fact `log` of {type(error).__name__}")
        that(f"log={log}" in str(error), f"the message should tell the log: {error}")
        that("\n" not in str(error), f"a message is one line: {error!r}")
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes, as multiprocessing would send them
        equal((type(again), str(again)), (type(error), str(error)), "the error after a way between processes")


@clause("core")
def no_credential_is_ever_told(case: Case) -> None:
    """The password of a bucket stands in a log file that everybody can read."""
    case.put("log", b"one")
    told = [repr(bare(case.store)), str(bare(case.store)), repr(case.store.capabilities)]
    for kind, call in (
        (NotFound, lambda: case.store.read("missing")),
        (Conflict, lambda: case.store.append("log", b"X", at=NEW)),
        (InvalidName, lambda: case.store.read("..")),
        (Exists, lambda: case.store.copy("log", "log")),
    ):
        error = refused(kind, call)
        told += [str(error), repr(error), repr(error.__cause__), repr(error.facts)]
    bare(case.store).close()
    told.append(str(refused(Closed, case.store.read, "log")))
    for text in told:
        that(not _CREDENTIAL.search(text), f"this looks like a credential: {text[:200]}")
        for secret in case.harness.secrets:
            that(secret not in text, "a secret of the harness shows in a repr or an error")
