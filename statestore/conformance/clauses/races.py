"""Races of threads and of store objects: one wins each position, and nothing that was acknowledged is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from statestore.conformance.case import Case
from statestore.conformance.check import Failure, equal, that
from statestore.conformance.others import together, watched
from statestore.conformance.registry import clause
from statestore.errors import Conflict, Exists, Held, NotFound
from statestore.store import NEW, Store, Tail

MANY = 6
"""How many race for one thing."""

Kept = list[tuple[bytes, Tail]]


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

    acknowledged = [each for some in together(MANY, work) for each in some]
    one_each(case, "log", b"begin\n", acknowledged)


@clause("concurrent")
def threads_win_each_position_once(case: Case) -> None:
    """Two tasks of one program write a session, and a record is lost or stands in another's place."""
    _race(case, [case.store])


@clause("concurrent", needs=("reopen",))
def store_objects_win_each_position_once(case: Case) -> None:
    """Two workers write one session, and a record is lost or stands in another's place."""
    _race(case, [case.other() for _ in range(MANY)])


def _one_wins(case: Case, stores: list[Store], at: Tail, pieces: list[bytes]) -> Tail:
    """Let each store append its piece at one place; fail unless one does, and all others are told where it ends."""

    def work(number: int) -> Tail | Conflict:
        try:
            return stores[number].append("log", pieces[number], at=at)
        except Conflict as conflict:
            return conflict

    results = together(len(stores), work)
    winners = [(number, each) for number, each in enumerate(results) if isinstance(each, Tail)]
    equal(len(winners), 1, f"the number of winners of {len(stores)} appends at {at}")
    number, after = winners[0]
    equal(case.store.read("log", at.size), pieces[number], "the bytes at the position")
    losers = {each.found for each in results if isinstance(each, Conflict)}
    equal(losers, {after}, "the tails that the losers were told")
    return after


@clause("concurrent", needs=("reopen",))
def one_position_has_one_winner(case: Case) -> None:
    """Both of two workers are told that their next step counts, and both take it."""
    stores = [case.other() for _ in range(MANY)]
    tail = case.put("log", b"begin\n")
    for turn in range(case.sized(40, 5)):
        tail = _one_wins(case, stores, tail, [b"%d:%d\n" % (number, turn) for number in range(MANY)])


@clause("concurrent", needs=("reopen",))
def one_position_has_one_winner_of_large_appends(case: Case) -> None:
    """Two workers upload long results at once in parts, and the one that was told that it counts is replaced."""
    stores = [case.other() for _ in range(3)]
    tail, size = case.put("log", b"begin\n"), case.large(16 << 20, 6 << 20)
    for turn in range(case.sized(4)):
        pieces = [bytes([65 + number + turn]) * (size - number) for number in range(len(stores))]
        tail = _one_wins(case, stores, tail, pieces)


@clause("concurrent", needs=("reopen",))
def a_creation_has_one_winner(case: Case) -> None:
    """Two workers both begin the session, and one of them writes into a log that is gone."""
    stores = [case.other() for _ in range(MANY)]
    for turn in range(case.sized(40, 5)):
        log = f"log/{turn}"

        def work(number: int, log: str = log) -> bool:
            try:
                stores[number].append(log, b"mine:%d" % number, at=NEW)
            except Conflict as conflict:
                equal(conflict.found.size, 6, "the size that a loser is told")
                return False
            return True

        results = together(MANY, work)
        equal(results.count(True), 1, f"the number of winners of {MANY} creations of {log!r}")
        case.holds(log, b"mine:%d" % results.index(True))
    equal(len(case.names("log/")), case.sized(40, 5), "the number of logs listed")


@clause("concurrent", needs=("reopen",))
def equal_creations_at_once_are_one_log(case: Case) -> None:
    """A request that was sent twice begins a session twice, or fails."""
    stores = [case.other() for _ in range(MANY)]
    for turn in range(case.sized(20, 3)):
        log = f"log-{turn}"
        tails = together(MANY, lambda number, log=log: stores[number].append(log, b"same", at=NEW))  # type: ignore[misc]
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
    copies: list[tuple[int, str]] = []

    def write() -> None:
        nonlocal tail
        for turn in range(case.sized(60, 10)):
            tail = case.store.append("log", record % turn, at=tail)

    def look() -> None:
        least, name = tail.size, f"copy-{len(copies)}"
        other.copy("log", name)
        copies.append((least, name))

    watched(write, look)
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
    seen: list[tuple[int, bytes]] = []

    def write() -> None:
        nonlocal tail
        for turn in range(case.sized(80, 10)):
            tail = case.store.append("log", b"%d:" % turn + b"y" * (turn * 97 % 5000) + b"\n", at=tail)

    def look(store: Store) -> None:
        least = tail.size
        seen.append((least, store.read("log")))
        that(store.tail("log").size >= least, "a tail lies before what was acknowledged")

    watched(write, partial(look, other), partial(look, case.store))
    whole = case.store.read("log")
    for least, got in seen:
        equal(got, whole[: len(got)], "a read while the log grew")
        that(len(got) >= least, f"a read gave {len(got)} bytes, though {least} had been acknowledged before it")


@clause("concurrent", needs=("reopen",))
def a_tail_is_never_ahead_of_its_bytes(case: Case) -> None:
    """A summary is taken to be fresh although the newest records were not there to be read."""
    tail = case.put("log", b"begin\n")
    other = case.other()

    def write() -> None:
        nonlocal tail
        for turn in range(case.sized(80, 10)):
            tail = case.store.append("log", b"%d" % turn * 500, at=tail)

    def look(store: Store) -> None:
        # One at a time: what the second waits for may be what the first was ahead of.
        asks: list[Callable[[], Tail | None]] = [
            lambda: store.tail("log"),
            lambda: next(store.list("log", tails=True)).tail,
        ]
        for ask in asks:
            size = (ask() or NEW).size
            that(len(store.read("log", 0, size)) == size > 0, f"a tail says {size}, but fewer bytes can be read")

    watched(write, partial(look, other), partial(look, case.store))


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

    def write() -> None:
        for turn in range(case.sized(120, 20)):
            name = f"{turn * 7919 % 1000:03}/{turn}"
            case.put(name, b"x")
            made.append(name)

    def look() -> None:
        before = set(made)
        got = case.names(store=other)
        equal(before - set(got), set(), "logs acknowledged before a listing and missing from it")
        equal(got, sorted(set(got)), "a listing during creations, in order and each once")

    watched(write, look)


@clause("concurrent", needs=("reopen",))
def a_listing_during_appends_shows_every_log(case: Case) -> None:
    """A session vanishes from the list for the moment in which it is written."""
    other = case.other()
    names = [f"log-{number}" for number in range(5)]
    tails = {name: case.put(name, b"begin") for name in names}

    def write() -> None:
        for turn in range(case.sized(100, 10)):
            name = names[turn % 5]
            tails[name] = case.store.append(name, b"%d" % turn, at=tails[name])

    watched(write, lambda: equal(case.names(store=other), names, "a listing during appends"))


@clause("concurrent", capability="holds", needs=("reopen",))
def a_hold_has_one_winner(case: Case) -> None:
    """Two workers hold one session at the same time."""
    stores = [case.other() for _ in range(MANY)]
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

    won = together(MANY, work)
    that(sum(won) > 0, "nobody could hold the log")
    equal(most, 1, "the largest number of holders at one time")
