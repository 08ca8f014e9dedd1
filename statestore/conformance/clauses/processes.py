"""Processes: others on the same place, forked ones, frozen ones and killed ones."""

from __future__ import annotations

import os
import signal
import time

from statestore.conformance.case import Case
from statestore.conformance.check import equal, refused, that
from statestore.conformance.clauses.races import one_each, win
from statestore.conformance.others import Process, Talk, forked, process, watched
from statestore.conformance.registry import clause
from statestore.errors import Conflict, Held, StateStoreError
from statestore.store import NEW, Store, Tail


def _look(store: Store, talk: Talk) -> object:
    """Tell what is there, then append one record to `log` if it is there."""
    names = [row.name for row in store.list()]
    if "log" in names:
        win(store, "log", b"theirs")
    return names


@clause("concurrent", capability="shared", needs=("spawn",))
def another_process_sees_the_same_logs(case: Case) -> None:
    """A worker in another process begins a session anew that is there already."""
    tail = case.put("log", b"ours")
    case.put("other", b"x")
    with process(case, _look) as other:
        equal(other.hear(), ["log", "other"], "the listing in another process")
    case.holds("log", b"ourstheirs")
    refused(Conflict, case.store.append, "log", b"X", at=tail)
    equal(case.store.append("log", b"!", at=case.store.tail("log")).size, 11, "an append after another process's")


@clause("concurrent", capability="shared", on=False, needs=("spawn",))
def a_store_that_is_not_shared_is_seen_by_no_other_process(case: Case) -> None:
    """A store that says that it is private hands its sessions to whoever opens the same place."""
    case.put("log", b"ours")
    with process(case, _look) as other:
        equal(other.hear(), [], "the listing in another process")
    case.holds("log", b"ours")


def _ready(talk: Talk) -> None:
    talk.say("ready")
    talk.hear()


def _begin(*others: Process) -> None:
    """Let processes begin at the same moment: one that starts up late would meet nobody."""
    for other in others:
        other.hear()
    for other in others:
        other.say("go")


def _append_many(store: Store, talk: Talk, number: int, rounds: int) -> object:
    _ready(talk)
    return [(data, win(store, "log", data)) for data in (b"%d:%d\n" % (number, turn) for turn in range(rounds))]


@clause("concurrent", capability="shared", needs=("spawn",))
def processes_win_each_position_once(case: Case) -> None:
    """Workers in several processes write one session, and a record is lost or stands in another's place."""
    case.put("log", b"begin\n")
    rounds = case.sized(60, 10)
    with (
        process(case, _append_many, 0, rounds) as first,
        process(case, _append_many, 1, rounds) as second,
        process(case, _append_many, 2, rounds) as third,
    ):
        _begin(first, second, third)
        ours = [(data, win(case.store, "log", data)) for data in (b"ours:%d\n" % turn for turn in range(rounds))]
        theirs = [each for other in (first, second, third) for each in other.hear()]
    one_each(case, "log", b"begin\n", ours + theirs)


def _create_many(store: Store, talk: Talk, number: int, rounds: int) -> object:
    _ready(talk)
    won = []
    for turn in range(rounds):
        try:
            store.append(f"log-{turn}", b"mine:%d" % number, at=NEW)
        except Conflict:
            continue
        won.append(turn)
    return won


@clause("concurrent", capability="shared", needs=("spawn",))
def a_creation_has_one_winner_among_processes(case: Case) -> None:
    """Two machines both begin the session, and one of them writes into a log that is gone."""
    rounds = case.sized(60, 10)
    with process(case, _create_many, 0, rounds) as first, process(case, _create_many, 1, rounds) as second:
        _begin(first, second)
        won = (first.hear(), second.hear())
    equal(sorted(won[0] + won[1]), list(range(rounds)), "the creations won, by both processes together")
    for number, turns in enumerate(won):
        for turn in turns:
            case.holds(f"log-{turn}", b"mine:%d" % number)


def _sleep_then_append(store: Store, talk: Talk) -> object:
    at = store.append("log", b"before", at=store.tail("log"))
    talk.say(at)
    os.kill(os.getpid(), signal.SIGSTOP)
    try:
        store.append("log", b"stale", at=at)
    except StateStoreError as error:
        return error
    return "the stale append succeeded"


@clause("concurrent", capability="shared", needs=("spawn",))
def a_process_that_was_frozen_and_overtaken_is_refused(case: Case) -> None:
    """A worker on a laptop that slept wakes up and writes into the session that another has taken over."""
    case.put("log", b"one")
    with process(case, _sleep_then_append) as other:
        at = other.hear()
        other.stopped()
        tail = case.store.append("log", b"ours", at=at)
        other.signal(signal.SIGCONT)
        error = other.hear()
        that(isinstance(error, Conflict), f"a frozen writer that was overtaken should meet a Conflict: {error!r}")
        equal(error.found, tail, "the tail that the frozen writer is told")
    case.holds("log", b"onebeforeours")


@clause("concurrent", capability="runs", also=("shared", "deletes"), needs=("spawn",))
def a_process_that_was_frozen_through_a_deletion_is_refused(case: Case) -> None:
    """A worker that slept writes into the session that was made under its old session's id."""
    case.put("log", b"one")
    with process(case, _sleep_then_append) as other:
        other.hear()
        other.stopped()
        case.store.delete("log")
        case.put("log", b"one", b"before")
        other.signal(signal.SIGCONT)
        error = other.hear()
        that(isinstance(error, Conflict), f"a writer of a deleted log should meet a Conflict: {error!r}")
    case.holds("log", b"onebefore")


def _hold(store: Store, talk: Talk) -> object:
    with store.hold("log"):
        talk.say(os.getpid())
        talk.hear()
    return "let go"


def _try_to_hold(store: Store, talk: Talk, tail: Tail) -> object:
    told: list[object] = []
    for attempt in (lambda: store.append("log", b"X", at=tail), lambda: store.hold("log").__enter__()):
        try:
            told.append(repr(attempt()))
        except Held as error:
            told.append(error.holder.pid if error.holder else None)
    return told


@clause("concurrent", capability="holds", also=("shared",), needs=("spawn",))
def a_hold_keeps_other_processes_out(case: Case) -> None:
    """Two processes drive one session, and each tool is called twice."""
    tail = case.put("log", b"one")
    with case.store.hold("log"), process(case, _try_to_hold, tail) as other:
        told = other.hear()
        that(all(each in (os.getpid(), None) for each in told), f"another process should be refused: {told}")
    case.holds("log", b"one")


@clause("concurrent", capability="holds", also=("shared",), needs=("spawn",))
def a_hold_by_another_process_is_told_and_ends(case: Case) -> None:
    """Nobody can find out which process keeps the session, or it stays locked when that process is done."""
    tail = case.put("log", b"one")
    with process(case, _hold) as other:
        pid = other.hear()
        error = refused(Held, case.store.append, "log", b"X", at=tail)
        for holder in (error.holder, case.store.holder("log")):
            equal(getattr(holder, "pid", None), pid, "the process id of the holder")
        other.say("enough")
        equal(other.hear(), "let go", "what the other process says")
        equal(case.store.holder("log"), None, "the holder afterwards")
        case.store.append("log", b"two", at=tail)
    case.holds("log", b"onetwo")


@clause("durable", capability="holds", also=("shared",), needs=("spawn",))
def a_hold_dies_with_its_process(case: Case) -> None:
    """A session stays locked by a worker that is dead, until somebody finds the lock and removes it by hand."""
    tail = case.put("log", b"one")
    with process(case, _hold) as other:
        other.hear()
        refused(Held, case.store.append, "log", b"X", at=tail)
        other.kill()
        while True:  # a lease may take its time; the runner's limit ends the wait
            try:
                case.store.append("log", b"two", at=tail)
                break
            except Held:
                time.sleep(0.05)
    equal(case.store.holder("log"), None, "the holder after its process died")
    with case.store.hold("log"):
        case.holds("log", b"onetwo")


def _append_for_ever(store: Store, talk: Talk, turn: int) -> object:
    at = store.tail("log")
    step = 0
    while True:
        data = b"%d:%d:%s\n" % (turn, step, b"z" * (step * 1237 % 9000))
        at = store.append("log", data, at=at)
        talk.say((data, at))
        step += 1


@clause("durable", capability="shared", needs=("spawn",))
def a_killed_writer_loses_nothing_acknowledged(case: Case) -> None:
    """A worker that is killed loses records that it was told are kept, or leaves a session nobody can go on with."""
    case.put("log", b"begin\n")
    for turn in range(case.sized(20, 3)):
        before = case.store.read("log")
        with process(case, _append_for_ever, turn) as other:
            acknowledged = [other.hear() for _ in range(1 + turn * 3 % 11)]
            other.kill()
        whole = case.store.read("log")
        equal(whole[: len(before)], before, "what was there before the killed writer")
        for data, tail in acknowledged:
            equal(whole[tail.size - len(data) : tail.size], data, f"the bytes before the acknowledged tail {tail}")
        tail = case.store.append("log", b"after\n", at=case.store.tail("log"))
        equal(case.store.read("log", tail.size - 6), b"after\n", "an append after the writer was killed")


_LONG = 32 << 20  # bytes: long enough to be killed in the middle of


def _block(turn: int, step: int, size: int) -> bytes:
    return (b"%d:%d " % (turn, step) * size)[:size]


def _append_long_ones(store: Store, talk: Talk, turn: int, size: int) -> object:
    at = store.tail("log")
    step = 0
    while True:
        data = _block(turn, step, size)
        talk.say("now")
        at = store.append("log", data, at=at)
        step += 1


@clause("durable", capability="atomic_append", also=("shared",), needs=("spawn",))
def an_append_is_whole_or_not_there_when_its_writer_is_killed(case: Case) -> None:
    """A worker that is killed leaves a part of a record, in a store that says that it never does."""
    size = min(_LONG, case.store.capabilities.max_append or _LONG)
    case.put("log", b"begin\n")
    for turn in range(case.sized(8, 3)):
        before = case.store.tail("log").size
        with process(case, _append_long_ones, turn, size) as other:
            other.hear()
            other.kill()
        added = case.store.read("log", before)
        for step, begin in enumerate(range(0, len(added), size)):
            that(
                added[begin : begin + size] == _block(turn, step, size),
                f"append {step} of the killed writer is there in part: {len(added) - begin} of {size} bytes",
            )


@clause("concurrent", capability="shared")
def a_forked_child_goes_on_with_the_store(case: Case) -> None:
    """A server that forks its workers hangs in the first of them, or writes over what it wrote."""
    tail = case.put("log", b"one")
    case.store.read("log")

    def child() -> None:
        case.holds("log", b"one")
        win(case.store, "log", b"-child")
        case.put("made by the child".replace(" ", "-"), b"x")
        case.holds("log", b"one-child")

    forked(child)
    case.holds("log", b"one-child")
    refused(Conflict, case.store.append, "log", b"X", at=tail)
    win(case.store, "log", b"-parent")
    case.holds("log", b"one-child-parent")
    equal(case.names(), ["log", "made-by-the-child"], "the listing after a fork")


@clause("concurrent", capability="shared", on=False)
def a_forked_child_does_not_reach_into_its_parent(case: Case) -> None:
    """A forked worker of a private store tears the sessions of the process that it came from."""
    tail = case.put("log", b"one")

    def child() -> None:
        case.holds("log", b"one")
        win(case.store, "log", b"-child")
        case.holds("log", b"one-child")

    forked(child)
    case.holds("log", b"one")
    equal(case.store.append("log", b"-parent", at=tail).size, 10, "an append after a fork")


@clause("concurrent", capability="holds", also=("shared",), needs=("reopen",))
def a_fork_neither_takes_nor_ends_a_hold(case: Case) -> None:
    """A forked worker believes that it holds its parent's session, or lets go of it when it ends."""
    tail = case.put("log", b"one")
    other = case.other()
    with case.store.hold("log"):

        def child() -> None:
            refused(Held, case.store.append, "log", b"X", at=tail)
            refused(Held, case.store.hold("log").__enter__)
            case.store.close()

        forked(child)
        refused(Held, other.append, "log", b"X", at=tail)
        tail = case.store.append("log", b"two", at=tail)
        refused(Held, other.hold("log").__enter__)
    with other.hold("log"):
        case.holds("log", b"onetwo")


@clause("concurrent")
def a_fork_amid_work_leaves_no_lock_behind(case: Case) -> None:
    """A server that forks while other threads write gets a child that waits for ever for a lock nobody holds."""
    theirs = "theirs" if case.store.capabilities.shared else "log"
    for log in {"log", theirs}:
        case.put(log, b"begin\n")

    def child() -> None:
        signal.alarm(60)  # a child that hangs dies of it
        win(case.store, theirs, b"child")

    def fork() -> None:
        for _ in range(case.sized(15, 3)):
            forked(child)

    watched(fork, *[lambda: win(case.store, "log", b"x")] * 3)
    size = case.store.tail("log").size
    equal(case.store.read("log"), b"begin\n" + b"x" * (size - 6), "the log that threads wrote during forks")
