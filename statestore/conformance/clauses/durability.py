"""Durability: what was acknowledged is there after closing, after a crash, and after the power went."""

from __future__ import annotations

from statestore.conformance.case import Case
from statestore.conformance.check import equal, refused, show, that
from statestore.conformance.registry import clause
from statestore.errors import Conflict, NotFound, Unavailable
from statestore.store import NEW, Store, Tail


def _life(case: Case, store: Store) -> dict[str, tuple[bytes, Tail]]:
    """Do a little of everything through the store; return what must be there afterwards."""
    case.put("grown", b"one\r\n", b"two\x00", b"three\xff", store=store)
    case.put("a/b/c", b"deep", store=store)
    store.copy("grown", "copy", stop=9)
    store.append("copy", b"+", at=store.tail("copy"))
    expected = {"grown": b"one\r\ntwo\x00three\xff", "a/b/c": b"deep", "copy": b"one\r\ntwo\x00+"}
    if store.capabilities.deletes:
        case.put("gone", b"x", store=store)
        store.delete("gone")
        case.put("again", b"old", store=store)
        store.delete("again")
        case.put("again", b"new", store=store)
        expected["again"] = b"new"
    return {name: (data, store.tail(name)) for name, data in expected.items()}


def _alive(case: Case, store: Store, expected: dict[str, tuple[bytes, Tail]]) -> None:
    equal(case.names(store=store), sorted(expected), "the listing")
    for name, (data, tail) in expected.items():
        case.holds(name, data, store)
        equal(store.tail(name), tail, f"tail({name!r})")
        equal(store.append(name, b"on", at=tail).size, tail.size + 2, f"an append to {name!r} where it ended before")
        case.holds(name, data + b"on", store)


@clause("durable", needs=("reopen",))
def everything_is_there_after_reopening(case: Case) -> None:
    """A session is gone, cut off or renumbered when the program is started again."""
    first = case.other()
    expected = _life(case, first)
    first.close()
    _alive(case, case.other(), expected)


@clause("durable", needs=("reopen", "crash"))
def everything_is_there_after_a_crash(case: Case) -> None:
    """A program that crashed loses what it was told is kept."""
    first = case.other()
    expected = _life(case, first)
    case.crash(first)
    _alive(case, case.other(), expected)


@clause("durable", capability="durable", needs=("fill",))
def an_append_that_does_not_fit_is_refused(case: Case) -> None:
    """The disk is full, half of a record is stored, and the agent is told that it is kept."""
    size = case.large(4 << 20, 2 << 20)
    data = bytes(range(251)) * (size // 251 + 1)
    data = data[:size]
    tail = case.put("log", b"kept")
    with case.full():
        for log, at in (("log", tail), ("new", NEW)):
            refused(Unavailable, case.store.append, log, data, at=at)
        equal(case.store.read("log", 0, 4), b"kept", "what was kept before")
    found = case.store.read("log")
    that((b"kept" + data).startswith(found), f"what is there is no beginning of what was sent: {show(found)}")
    if case.store.capabilities.atomic_append:
        equal(found, b"kept", "the log after an append that was refused")
    if found == b"kept":
        equal(case.store.append("log", data, at=tail).size, 4 + size, "the same append when there is room")
        case.holds("log", b"kept" + data)
    case.put("new", data)
    case.holds("new", data)


@clause("durable", needs=("reopen",))
def a_lost_answer_is_healed_after_reopening(case: Case) -> None:
    """A program that is started again cannot find out whether its last record is there, and doubles it."""
    first = case.other()
    start = case.put("log", b"one", store=first)
    tail = first.append("log", b"two", at=start)
    first.close()
    second = case.other()
    equal(second.append("log", b"two", at=start), tail, "the same append after reopening")
    second.append("log", b"three", at=tail)
    second.close()
    equal(case.other().append("log", b"two", at=start), tail, "the same append after another reopening")
    case.holds("log", b"onetwothree")


@clause("durable", capability="runs", also=("deletes",), needs=("reopen",))
def a_run_is_never_given_twice_across_reopening(case: Case) -> None:
    """A restart makes an old writer's position valid in the new session under its old id."""
    seen: list[Tail] = []
    for _ in range(4):
        store = case.other()
        tail = case.put("log", b"same", store=store)
        that(tail not in seen, f"the tail {tail} was that of an earlier log under this name")
        for old in seen:
            refused(Conflict, store.append, "log", b"stale", at=old)
        seen.append(tail)
        store.delete("log")
        store.close()


@clause("durable", capability="deletes", needs=("reopen",))
def a_deletion_lasts(case: Case) -> None:
    """What somebody asked to be deleted is back after the next start."""
    first = case.other()
    tail = case.put("log", b"one", store=first)
    case.put("kept", b"x", store=first)
    first.delete("log")
    first.close()
    second = case.other()
    case.lacks("log", second)
    refused(NotFound, second.append, "log", b"two", at=tail)
    equal(case.names(store=second), ["kept"], "the listing after reopening")


@clause("durable", capability="cuts", needs=("reopen",))
def a_cut_lasts(case: Case) -> None:
    """What a repair has cut is back after the next start, behind or within what was added since."""
    first = case.other()
    tail = case.put("log", b"one", b"torn-and-long", store=first)
    first.cut("log", 3, at=tail)
    first.append("log", b"two", at=first.tail("log"))
    first.close()
    case.holds("log", b"onetwo", case.other())


@clause("durable", capability="boundaries", needs=("reopen",))
def a_boundary_after_reopening_is_where_an_append_began(case: Case) -> None:
    """After a restart a reader starts inside a record and reads its body as headers."""
    first = case.other()
    pieces = [b"%d:" % number * (number % 5 + 1) for number in range(50)]
    case.put("log", *pieces, store=first)
    first.close()
    second = case.other()
    starts = {len(b"".join(pieces[:number])) for number in range(50)}
    for before in range(0, len(b"".join(pieces)) + 2, 3):
        place = second.boundary("log", before)
        that(place in starts and place <= before, f"boundary({before}) is {place}, where no append began")


@clause("durable", capability="durable", needs=("reopen", "lose_power"))
def an_acknowledged_append_survives_the_loss_of_power(case: Case) -> None:
    """The power goes, and with it the record that the agent was told is kept."""
    store = case.other()
    tail = case.put("log", b"one", store=store)
    case.put("a/b/c", b"deep", store=store)
    for number in range(4):
        tail = store.append("log", b"-%d" % number, at=tail)
        case.lose_power()
        store = case.other()
        case.holds("log", b"one" + b"".join(b"-%d" % step for step in range(number + 1)), store)
        equal(store.tail("log"), tail, "the tail after the loss of power")
    case.holds("a/b/c", b"deep", store)


@clause("durable", capability="durable", needs=("reopen", "lose_power"))
def a_creation_survives_the_loss_of_power(case: Case) -> None:
    """The power goes, and with it the whole session, since only its bytes were made safe and not its name."""
    for number, name in enumerate(("log", "new/log", "new/er/log", "new/er/log-2")):
        tail = case.put(name, b"one", store=case.other())
        case.lose_power()
        store = case.other()
        case.holds(name, b"one", store)
        equal(len(case.names(store=store)), number + 1, "the number of logs listed after the loss of power")
        store.append(name, b"two", at=tail)


@clause("durable", capability="durable", needs=("reopen", "lose_power"))
def a_copy_survives_the_loss_of_power(case: Case) -> None:
    """The power goes, and with it the fork that work went on with."""
    store = case.other()
    case.put("source", b"one", b"two" * 50_000, store=store)
    tail = store.copy("source", "forks/target", stop=100_000)
    case.lose_power()
    store = case.other()
    case.holds("forks/target", (b"one" + b"two" * 50_000)[:100_000], store)
    equal(store.tail("forks/target"), tail, "the tail of the copy after the loss of power")


@clause("durable", capability="durable", also=("deletes",), needs=("reopen", "lose_power"))
def a_deletion_survives_the_loss_of_power(case: Case) -> None:
    """The power goes, and what was deleted for good is back."""
    store = case.other()
    case.put("log", b"one", store=store)
    case.put("kept", b"two", store=store)
    store.delete("log")
    case.lose_power()
    store = case.other()
    case.lacks("log", store)
    case.holds("kept", b"two", store)


@clause("durable", capability="flushes", needs=("reopen", "lose_power"))
def a_flushed_log_survives_the_loss_of_power(case: Case) -> None:
    """The power goes, and with it a session that somebody took care to make safe."""
    for number, name in enumerate(("log", "new/log")):
        store = case.other()
        tail = case.put(name, b"one", b"two", store=store)
        store.flush(name)
        store.append(name, b"not flushed", at=tail)
        case.lose_power()
        store = case.other()
        equal(store.read(name, 0, 6), b"onetwo", "what was flushed, after the loss of power")
        that(store.tail(name).size >= 6, "the tail lies before what was flushed")
        equal(len(case.names(store=store)), number + 1, "the number of logs listed after the loss of power")
