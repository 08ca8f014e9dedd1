"""Handovers: writers that were overtaken, slept, were closed, or never heard an answer."""

from __future__ import annotations

import threading

from statestore.conformance.case import Case
from statestore.conformance.check import Failure, equal, refused
from statestore.conformance.clauses.races import MANY, Kept, one_each, win
from statestore.conformance.others import together
from statestore.conformance.registry import clause
from statestore.errors import Closed, Conflict, NotFound
from statestore.store import NEW, Store


@clause("concurrent", needs=("reopen",))
def threads_on_logs_of_their_own_do_not_meet(case: Case) -> None:
    """A busy server mixes up the sessions that it serves at the same time."""

    def work(number: int) -> bytes:
        log, tail, whole = f"log-{number}", NEW, b""
        for turn in range(case.sized(30, 5)):
            data = b"%d:%d\n" % (number, turn)
            tail = case.store.append(log, data, at=tail)
            whole += data
            equal(case.store.read(log), whole, f"read({log!r}) while others write theirs")
        return whole

    for number, whole in enumerate(together(MANY, work)):
        case.holds(f"log-{number}", whole, case.other())


@clause("concurrent", needs=("reopen",))
def a_store_that_is_closed_under_its_users_loses_nothing(case: Case) -> None:
    """A program that shuts down while it writes loses a record that it was told is kept."""
    for turn in range(case.sized(10, 2)):
        other = case.other()
        log = f"log-{turn}"
        case.put(log, b"begin\n")
        begun = threading.Semaphore(0)

        def work(number: int, store: Store = other, log: str = log, begun: threading.Semaphore = begun) -> Kept:
            kept: Kept = []
            if number == 3:
                for _ in range(6):
                    begun.acquire(timeout=60)
                store.close()
                return kept
            try:
                for step in range(1000):
                    data = b"%d:%d\n" % (number, step)
                    kept.append((data, win(store, log, data)))
                    begun.release()
            except Closed:
                return kept
            finally:
                begun.release(10)
            raise Failure("a store goes on after it was closed")

        acknowledged = [each for some in together(4, work) for each in some]
        one_each(case, log, b"begin\n", acknowledged)


@clause("concurrent", needs=("reopen",))
def a_writer_that_was_overtaken_is_refused(case: Case) -> None:
    """A worker that slept while another took over wakes up and writes into the other's session."""
    sleeper = case.other()
    start = case.put("log", b"one", store=sleeper)
    tail = case.store.append("log", b"two", at=start)
    error = refused(Conflict, sleeper.append, "log", b"stale", at=start)
    equal(error.found, tail, "the tail that the sleeper is told")
    case.holds("log", b"onetwo")
    case.holds("log", b"onetwo", sleeper)
    equal(sleeper.append("log", b"three", at=error.found).size, 11, "the tail of an append where it was told")
    case.holds("log", b"onetwothree")


@clause("concurrent", capability="runs", also=("deletes",), needs=("reopen",))
def a_writer_that_slept_through_a_deletion_is_refused(case: Case) -> None:
    """A worker wakes up and writes into the session that was made under its old session's id."""
    sleeper = case.other()
    start = case.put("log", b"one", store=sleeper)
    case.store.delete("log")
    refused(NotFound, sleeper.append, "log", b"stale", at=start)
    case.put("log", b"one")
    refused(Conflict, sleeper.append, "log", b"stale", at=start)
    equal(sleeper.tail("log"), case.store.tail("log"), "the tail as the sleeper sees it")
    case.holds("log", b"one")
    case.holds("log", b"one", sleeper)


@clause("concurrent", needs=("reopen",))
def a_lost_answer_is_healed_by_another_store_object(case: Case) -> None:
    """A worker that is restarted after a lost answer writes its record a second time."""
    start = case.put("log", b"one")
    tail = case.store.append("log", b"two", at=start)
    other = case.other()
    equal(other.append("log", b"two", at=start), tail, "the same append from another store object")
    end = other.append("log", b"three", at=tail)
    equal(case.store.append("log", b"two", at=start), tail, "the same append after another store object's")
    equal(case.other().append("log", b"three", at=tail), end, "the last append from a third store object")
    case.holds("log", b"onetwothree")
