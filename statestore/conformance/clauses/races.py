"""Races of threads and of store objects: one wins each position, and nothing that was acknowledged is lost."""

from __future__ import annotations

import threading
import time

from statestore.conformance.case import Case
from statestore.conformance.check import Failure, equal, refused, that
from statestore.conformance.others import together
from statestore.conformance.registry import clause
from statestore.errors import Closed, Conflict, Exists, Held, NotFound
from statestore.store import NEW, Store, Tail

_MANY = 6
_Kept = list[tuple[bytes, Tail]]


def win(store: Store, log: str, data: bytes) -> Tail:
    """Append `data` wherever the log ends, trying again at the tail that each conflict tells."""
    at = store.tail(log)
    while True:
        try:
            return store.append(log, data, at=at)
        except Conflict as conflict:
            if conflict.found == at:
                raise Failure(f"a conflict at {at} tells that the log ends at {conflict.found}") from conflict
            at = conflict.found


def one_each(case: Case, log: str, first: bytes, acknowledged: list[tuple[bytes, Tail]]) -> None:
    """Fail unless the log is `first` and each acknowledged record once, where its tail says that it is."""
    whole = case.store.read(log)
    for data, tail in acknowledged:
        equal(whole[tail.size - len(data) : tail.size], data, f"the bytes before the acknowledged tail {tail}")
    equal(len({tail for _, tail in acknowledged}), len(acknowledged), "the number of different tails acknowledged")
    equal(len(whole), len(first) + sum(len(data) for data, _ in acknowledged), "the size of the log after a race")
    equal(case.store.tail(log).size, len(whole), "tail() after a race")


def _race(case: Case, stores: list[Store]) -> None:
    case.put("log", b"begin\n")
    rounds = case.sized(25, 4)

    def work(number: int) -> list[tuple[bytes, Tail]]:
        store = stores[number % len(stores)]
        mine = [b"%d:%d:%s\n" % (number, turn, b"x" * (number * turn % 50)) for turn in range(rounds)]
        return [(data, win(store, "log", data)) for data in mine]

    acknowledged = [each for some in together(_MANY, work) for each in some]
    one_each(case, "log", b"begin\n", acknowledged)


@clause("concurrent")
def threads_win_each_position_once(case: Case) -> None:
    """Two tasks of one program write a session, and a record is lost or stands in another's place."""
    _race(case, [case.store])


@clause("concurrent", needs=("reopen",))
def store_objects_win_each_position_once(case: Case) -> None:
    """Two workers write one session, and a record is lost or stands in another's place."""
    _race(case, [case.other() for _ in range(_MANY)])


@clause("concurrent", needs=("reopen",))
def one_position_has_one_winner(case: Case) -> None:
    """Both of two workers are told that their next step counts, and both take it."""
    stores = [case.other() for _ in range(_MANY)]
    tail = case.put("log", b"begin\n")
    for turn in range(case.sized(40, 5)):

        def work(number: int, turn: int = turn, at: Tail = tail) -> Tail | Conflict:
            try:
                return stores[number].append("log", b"%d:%d\n" % (number, turn), at=at)
            except Conflict as conflict:
                return conflict

        results = together(_MANY, work)
        winners = [(number, each) for number, each in enumerate(results) if isinstance(each, Tail)]
        equal(len(winners), 1, f"the number of winners of {_MANY} appends at {tail}")
        number, after = winners[0]
        equal(case.store.read("log", tail.size), b"%d:%d\n" % (number, turn), "the bytes at the position")
        losers = {each.found for each in results if isinstance(each, Conflict)}
        equal(losers, {after}, "the tails that the losers were told")
        tail = after


@clause("concurrent", needs=("reopen",))
def a_creation_has_one_winner(case: Case) -> None:
    """Two workers both begin the session, and one of them writes into a log that is gone."""
    stores = [case.other() for _ in range(_MANY)]
    for turn in range(case.sized(40, 5)):
        log = f"log/{turn}"

        def work(number: int, log: str = log) -> bool:
            try:
                stores[number].append(log, b"mine:%d" % number, at=NEW)
            except Conflict as conflict:
                equal(conflict.found.size, 6, "the size that a loser is told")
                return False
            return True

        results = together(_MANY, work)
        equal(results.count(True), 1, f"the number of winners of {_MANY} creations of {log!r}")
        case.holds(log, b"mine:%d" % results.index(True))
    equal(len(case.names("log/")), case.sized(40, 5), "the number of logs listed")


@clause("concurrent", needs=("reopen",))
def equal_creations_at_once_are_one_log(case: Case) -> None:
    """A request that was sent twice begins a session twice, or fails."""
    stores = [case.other() for _ in range(_MANY)]
    for turn in range(case.sized(20, 3)):
        log = f"log-{turn}"
        tails = together(_MANY, lambda number, log=log: stores[number].append(log, b"same", at=NEW))  # type: ignore[misc]
        equal(set(tails), {case.store.tail(log)}, "the tails of equal creations")
        case.holds(log, b"same")


@clause("concurrent", needs=("reopen",))
def every_record_sent_twice_is_kept_once(case: Case) -> None:
    """A network that loses answers doubles the records of a busy session."""
    stores = [case.other() for _ in range(4)]
    case.put("log", b"begin\n")
    rounds = case.sized(15, 3)

    def work(number: int) -> list[tuple[bytes, Tail]]:
        kept = []
        for turn in range(rounds):
            data = b"%d:%d\n" % (number, turn)
            tail = win(stores[number], "log", data)
            again = stores[number].append("log", data, at=Tail(tail.size - len(data), tail.run))
            equal(again, tail, "the tail of the same append again while others append")
            kept.append((data, tail))
        return kept

    one_each(case, "log", b"begin\n", [each for some in together(4, work) for each in some])


@clause("concurrent", needs=("reopen",))
def a_copy_target_has_one_winner(case: Case) -> None:
    """Two forks under one name are one log that is neither."""
    stores = [case.other() for _ in range(4)]
    for number in range(4):
        case.put(f"source-{number}", b"%d" % number * 50_000)
    for turn in range(case.sized(20, 3)):
        target = f"target-{turn}"

        def work(number: int, target: str = target) -> bool:
            try:
                stores[number].copy(f"source-{number}", target)
            except Exists:
                return False
            return True

        results = together(4, work)
        equal(results.count(True), 1, f"the number of winners of 4 copies to {target!r}")
        case.holds(target, b"%d" % results.index(True) * 50_000)


@clause("concurrent", needs=("reopen",))
def a_copy_and_a_creation_have_one_winner(case: Case) -> None:
    """A new session and a fork under one name are mixed."""
    case.put("source", b"fork" * 10_000)
    other = case.other()
    for turn in range(case.sized(30, 4)):
        target = f"target-{turn}"

        def work(number: int, target: str = target) -> bool:
            try:
                if number:
                    other.copy("source", target)
                else:
                    case.store.append(target, b"new", at=NEW)
            except (Exists, Conflict):
                return False
            return True

        results = together(2, work)
        equal(results.count(True), 1, f"the number of winners of a creation and a copy of {target!r}")
        case.holds(target, b"fork" * 10_000 if results[1] else b"new")


@clause("concurrent", needs=("reopen",))
def a_copy_of_a_growing_log_is_a_beginning_of_it(case: Case) -> None:
    """A fork of a session at work has a hole, or ends in half a record."""
    tail = case.put("log", b"0000:begin\n")
    record = b"%04d:" + b"x" * 3000 + b"\n"
    other = case.other()
    done = threading.Event()
    copies: list[tuple[int, str]] = []

    def work(number: int) -> None:
        nonlocal tail
        if number == 0:
            try:
                for turn in range(case.sized(60, 10)):
                    tail = case.store.append("log", record % turn, at=tail)
            finally:
                done.set()
            return
        while not done.is_set() or not copies:
            least, name = tail.size, f"copy-{len(copies)}"
            other.copy("log", name)
            copies.append((least, name))

    together(2, work)
    whole = case.store.read("log")
    ends = {11 + turn * len(record % 0) for turn in range(case.sized(60, 10) + 1)}
    for least, name in copies:
        got = case.store.read(name)
        equal(got, whole[: len(got)], f"a copy of {len(got)} bytes made while the log grew")
        that(len(got) >= least, f"a copy has {len(got)} bytes, though {least} had been acknowledged before it began")
        if case.store.capabilities.atomic_append:
            that(len(got) in ends, f"a copy ends at {len(got)}, inside an append")


@clause("concurrent", needs=("reopen",))
def a_reader_of_a_growing_log_sees_a_beginning_of_it(case: Case) -> None:
    """Somebody who watches a session at work sees bytes that are never in it."""
    tail = case.put("log", b"begin\n")
    other = case.other()
    done = threading.Event()
    seen: list[tuple[int, bytes]] = []

    def work(number: int) -> None:
        nonlocal tail
        if number == 0:
            try:
                for turn in range(case.sized(80, 10)):
                    tail = case.store.append("log", b"%d:" % turn + b"y" * (turn * 97 % 5000) + b"\n", at=tail)
            finally:
                done.set()
            return
        store = other if number == 1 else case.store
        while not done.is_set() or not seen:
            least = tail.size
            seen.append((least, store.read("log")))
            that(store.tail("log").size >= least, "a tail lies before what was acknowledged")

    together(3, work)
    whole = case.store.read("log")
    for least, got in seen:
        equal(got, whole[: len(got)], "a read while the log grew")
        that(len(got) >= least, f"a read gave {len(got)} bytes, though {least} had been acknowledged before it")


@clause("concurrent", needs=("reopen",))
def a_tail_is_never_ahead_of_its_bytes(case: Case) -> None:
    """A summary is taken to be fresh although the newest records were not there to be read."""
    tail = case.put("log", b"begin\n")
    other = case.other()
    done = threading.Event()

    def work(number: int) -> None:
        nonlocal tail
        if number == 0:
            try:
                for turn in range(case.sized(80, 10)):
                    tail = case.store.append("log", b"%d" % turn * 500, at=tail)
            finally:
                done.set()
            return
        store = other if number == 1 else case.store
        last = False
        while not last:
            last = done.is_set()  # one more look when all is written
            for size in (store.tail("log").size, next(store.list("log", tails=True)).tail.size):  # type: ignore[union-attr]
                that(len(store.read("log", 0, size)) == size, f"a tail says {size}, but fewer bytes can be read")

    together(3, work)


@clause("concurrent", capability="deletes", needs=("reopen",))
def an_append_never_brings_a_deleted_log_back(case: Case) -> None:
    """A session that was deleted for good is there again, with its last record only."""
    other = case.other()
    for turn in range(case.sized(40, 5)):
        log = f"log-{turn}"
        tail = case.put(log, b"one")

        def work(number: int, log: str = log, tail: Tail = tail) -> None:
            if number:
                other.delete(log)
                return
            try:
                for step in range(3):
                    tail = case.store.append(log, b"more:%d" % step, at=tail)
            except NotFound:
                pass

        together(2, work)
        case.lacks(log)


@clause("concurrent", capability="deletes", needs=("reopen",))
def a_deletion_at_a_tail_and_an_append_have_one_winner(case: Case) -> None:
    """A clean-up deletes a message that came in, and its writer was told that it is kept."""
    other = case.other()
    for turn in range(case.sized(40, 5)):
        log = f"log-{turn}"
        tail = case.put(log, b"one")

        def work(number: int, log: str = log, tail: Tail = tail) -> bool:
            try:
                if number:
                    other.delete(log, at=tail)
                else:
                    case.store.append(log, b"two", at=tail)
            except (Conflict, NotFound):
                return False
            return True

        appended, deleted = together(2, work)
        that(appended is not deleted, f"append and deletion at {tail}: both {'won' if appended else 'lost'}")
        if appended:
            case.holds(log, b"onetwo")
        else:
            case.lacks(log)


@clause("concurrent", capability="deletes", needs=("reopen",))
def a_deletion_has_one_winner(case: Case) -> None:
    """Two clean-ups each report the same session as theirs, or the second deletes the one begun between them."""
    stores = [case.other() for _ in range(4)]
    for turn in range(case.sized(20, 3)):
        log = f"log-{turn}"
        case.put(log, b"one")

        def work(number: int, log: str = log) -> bool:
            try:
                stores[number].delete(log)
            except NotFound:
                return False
            return True

        equal(together(4, work).count(True), 1, "the number of deletions that succeeded")
        case.lacks(log)


@clause("concurrent", needs=("reopen",))
def a_listing_during_creations_misses_no_earlier_log(case: Case) -> None:
    """A session is missing from the list because others were begun while it was read."""
    other = case.other()
    made: list[str] = []
    done = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            try:
                for turn in range(case.sized(120, 20)):
                    name = f"{turn * 7919 % 1000:03}/{turn}"
                    case.put(name, b"x")
                    made.append(name)
            finally:
                done.set()
            return
        last = False
        while not last:
            last = done.is_set()  # one more look when all is written
            before = set(made)
            got = case.names(store=other)
            equal(before - set(got), set(), "logs acknowledged before a listing and missing from it")
            equal(got, sorted(set(got)), "a listing during creations, in order and each once")

    together(2, work)


@clause("concurrent", needs=("reopen",))
def a_listing_during_appends_shows_every_log(case: Case) -> None:
    """A session vanishes from the list for the moment in which it is written."""
    other = case.other()
    names = [f"log-{number}" for number in range(5)]
    tails = {name: case.put(name, b"begin") for name in names}
    done = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            try:
                for turn in range(case.sized(100, 10)):
                    name = names[turn % 5]
                    tails[name] = case.store.append(name, b"%d" % turn, at=tails[name])
            finally:
                done.set()
            return
        last = False
        while not last:
            last = done.is_set()  # one more look when all is written
            equal(case.names(store=other), names, "a listing during appends")

    together(2, work)


@clause("concurrent", capability="holds", needs=("reopen",))
def a_hold_has_one_winner(case: Case) -> None:
    """Two workers hold one session at the same time."""
    stores = [case.other() for _ in range(_MANY)]
    case.put("log", b"begin")
    inside = 0
    most = 0
    count = threading.Lock()

    def work(number: int) -> int:
        nonlocal inside, most
        won = 0
        for _ in range(case.sized(200, 20)):
            try:
                with stores[number].hold("log"):
                    with count:
                        inside += 1
                        most = max(most, inside)
                    won += 1
                    time.sleep(0.0005)  # an owner for a moment, or no two could be seen together
                    with count:
                        inside -= 1
            except Held:
                continue
        return won

    won = together(_MANY, work)
    that(sum(won) > 0, "nobody could hold the log")
    equal(most, 1, "the largest number of holders at one time")


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

    for number, whole in enumerate(together(_MANY, work)):
        case.holds(f"log-{number}", whole, case.other())


@clause("concurrent", needs=("reopen",))
def a_store_that_is_closed_under_its_users_loses_nothing(case: Case) -> None:
    """A program that shuts down while it writes loses a record that it was told is kept."""
    for turn in range(case.sized(10, 2)):
        other = case.other()
        log = f"log-{turn}"
        case.put(log, b"begin\n")
        begun = threading.Semaphore(0)

        def work(number: int, store: Store = other, log: str = log, begun: threading.Semaphore = begun) -> _Kept:
            kept: _Kept = []
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
