"""Appends: one wins each position, at the end and nowhere else, and the same one again is success."""

from __future__ import annotations

from typing import Any

from statestore.conformance.case import Case
from statestore.conformance.check import equal, refused, that
from statestore.conformance.registry import clause
from statestore.errors import Conflict, NotFound, NotSupported
from statestore.store import NEW, Tail


@clause("core")
def an_append_at_new_creates_the_log(case: Case) -> None:
    """The first message of a session is lost, or the session cannot be begun."""
    case.lacks("log")
    tail = case.store.append("log", b"first", at=NEW)
    equal(tail.size, 5, "the size of the tail returned by a creation")
    case.holds("log", b"first")
    equal(case.names(), ["log"], "the listing after a creation")


@clause("core")
def an_append_returns_the_tail_behind_its_bytes(case: Case) -> None:
    """A writer that goes on from the returned tail meets a conflict with itself, or leaves a gap."""
    tail = NEW
    whole = b""
    for piece in (b"a", b"bc", b"\n", b"def" * 1000, b"\0"):
        whole += piece
        before, tail = tail, case.store.append("log", piece, at=tail)
        that(isinstance(tail, Tail), f"append returns a Tail, not {type(tail).__name__}")
        equal(tail.size, len(whole), f"the size of the tail after an append at {before}")
        equal(case.store.tail("log"), tail, "tail() after an append")
        case.holds("log", whole)


@clause("core")
def an_append_before_the_end_is_refused(case: Case) -> None:
    """Two agents that write one session overwrite or double each other's records."""
    tail = case.put("log", b"one", b"two")
    for size in range(1, tail.size):
        error = refused(Conflict, case.store.append, "log", b"XY", at=Tail(size, tail.run))
        equal(error.found, tail, "the tail that the conflict carries")
        case.holds("log", b"onetwo")
    equal(case.store.append("log", b"XY", at=tail).size, 8, "the tail of an append at the end, after refusals")


@clause("core")
def an_append_beyond_the_end_is_refused(case: Case) -> None:
    """A writer with a wrong position leaves a hole of zeros that no reader can pass."""
    tail = case.put("log", b"one")
    for size in (4, 5, 6, 4096, 2**40, 2**63):
        error = refused(Conflict, case.store.append, "log", b"XY", at=Tail(size, tail.run))
        equal(error.found, tail, "the tail that the conflict carries")
        case.holds("log", b"one")


@clause("core")
def a_creation_where_a_log_is_refused(case: Case) -> None:
    """A second session under a taken id erases or continues the first one."""
    tail = case.put("log", b"one", b"two")
    for data in (b"X", b"onX", b"onetwX", b"onetwoX", b"two"):
        error = refused(Conflict, case.store.append, "log", data, at=NEW)
        equal(error.found, tail, "the tail that the conflict carries")
        case.holds("log", b"onetwo")


@clause("core")
def an_append_to_a_missing_log_is_not_found(case: Case) -> None:
    """A writer of a deleted session brings it back to life without its beginning."""
    case.put("neighbour", b"x")
    for at in (Tail(1, ""), Tail(5, "r"), Tail(2**40, "")):
        error = refused(NotFound, case.store.append, "log", b"data", at=at)
        equal(error.facts.get("log"), "log", "the error's fact `log`")
        case.lacks("log")


@clause("core")
def the_same_append_again_is_success(case: Case) -> None:
    """A writer whose acknowledgement was lost can never learn whether its record is there."""
    start = case.put("log", b"one")
    tail = case.store.append("log", b"two", at=start)
    for _ in range(3):
        equal(case.store.append("log", b"two", at=start), tail, "the tail of the same append again")
        case.holds("log", b"onetwo")


@clause("core")
def the_same_append_again_after_others_is_success(case: Case) -> None:
    """A writer whose acknowledgement was lost doubles its record, or takes somebody else's later one for a refusal."""
    start = case.put("log", b"one")
    behind = case.store.append("log", b"two", at=start)
    end = case.store.append("log", b"four", at=case.store.append("log", b"three", at=behind))
    equal(case.store.append("log", b"two", at=start), behind, "the tail just behind the bytes that were repeated")
    case.holds("log", b"onetwothreefour")
    equal(case.store.tail("log"), end, "the log's tail after a repeated append")


@clause("core")
def the_same_creation_again_is_success(case: Case) -> None:
    """A session whose first acknowledgement was lost is reported as somebody else's."""
    first = case.store.append("log", b"one", at=NEW)
    equal(case.store.append("log", b"one", at=NEW), first, "the tail of the same creation again")
    case.store.append("log", b"two", at=first)
    equal(case.store.append("log", b"one", at=NEW), first, "the tail of the same creation after another append")
    case.holds("log", b"onetwo")


@clause("core")
def a_repeated_append_is_known_by_its_bytes_alone(case: Case) -> None:
    """A writer that sends a batch again in other pieces is refused, although all its bytes are there."""
    start = case.put("log", b"one")
    end = case.store.append("log", b"three", at=case.store.append("log", b"two", at=start))
    equal(case.store.append("log", b"twothree", at=start), end, "two appends repeated as one")
    equal(case.store.append("log", b"twoth", at=start), Tail(8, end.run), "a part of what is there, repeated")
    case.holds("log", b"onetwothree")


@clause("core")
def an_append_that_differs_in_one_byte_is_refused(case: Case) -> None:
    """Another writer's record passes for the repetition of one's own, and one's own is lost."""
    start = case.put("log", b"one")
    mine = bytes(range(256)) * 64
    tail = case.store.append("log", mine, at=start)
    for place in (0, 1, 255, 256, 8191, len(mine) - 2, len(mine) - 1):
        other = mine[:place] + bytes([mine[place] ^ 1]) + mine[place + 1 :]
        error = refused(Conflict, case.store.append, "log", other, at=start)
        equal(error.found, tail, "the tail that the conflict carries")
    case.holds("log", b"one" + mine)


@clause("core")
def an_append_that_is_there_only_in_part_is_refused(case: Case) -> None:
    """After a torn write, a repeated record is glued to its own first half."""
    start = case.put("log", b"one")
    tail = case.store.append("log", b"tw", at=start)
    error = refused(Conflict, case.store.append, "log", b"two", at=start)
    equal(error.found, tail, "the tail that the conflict carries")
    case.holds("log", b"onetw")


@clause("core")
def equal_bytes_at_two_places_are_both_kept(case: Case) -> None:
    """An agent that says the same thing twice is heard once."""
    tail = case.put("log", b"ok\n", b"ok\n", b"ok\n")
    equal(tail.size, 9, "the size after three equal appends")
    case.holds("log", b"ok\nok\nok\n")


@clause("core")
def logs_do_not_share_bytes(case: Case) -> None:
    """One customer's session shows in another's."""
    tails = {name: case.put(name, name.encode()) for name in ("a", "b", "c")}
    case.store.append("b", b"!", at=tails["b"])
    for name, expected in (("a", b"a"), ("b", b"b!"), ("c", b"c")):
        case.holds(name, expected)


@clause("core")
def a_conflict_tells_both_tails(case: Case) -> None:
    """A writer that was overtaken cannot find out where to go on, and a person cannot see what went wrong."""
    tail = case.put("log", b"one", b"two")
    wrong = Tail(3, tail.run)
    error = refused(Conflict, case.store.append, "log", b"X", at=wrong)
    equal((error.found, error.expected), (tail, wrong), "the tails found and expected")
    equal(error.facts.get("log"), "log", "the error's fact `log`")
    that("log=log" in str(error), f"the message should end in its facts: {error}")
    that(error.message[:1] == error.message[:1].lower(), f"a message is lower case: {error}")


@clause("core")
def an_append_of_nothing_is_refused(case: Case) -> None:
    """An empty write makes a log that is there for one call and not for another."""
    refused(ValueError, case.store.append, "log", b"", at=NEW)
    case.lacks("log")
    tail = case.put("log", b"one")
    refused(ValueError, case.store.append, "log", b"", at=tail)
    case.holds("log", b"one")


@clause("core")
def an_append_of_anything_but_bytes_is_refused(case: Case) -> None:
    """Text is encoded by guess, or a buffer that changes later changes the log."""
    not_bytes: list[Any] = ["text", bytearray(b"x"), memoryview(b"x"), None, 7, [1, 2]]
    for data in not_bytes:
        refused(TypeError, case.store.append, "log", data, at=NEW)
        case.lacks("log")


@clause("core")
def an_append_at_a_tail_that_no_log_has_is_refused(case: Case) -> None:
    """A wrong position from a caller's bug is taken for some position."""
    tail = case.put("log", b"one")
    for at in (Tail(-1, ""), Tail(-3, tail.run), Tail(0, "run")):
        refused(ValueError, case.store.append, "log", b"X", at=at)
    no_tails: list[Any] = [3, None, (3, tail.run), "3"]
    for other in no_tails:
        refused(TypeError, case.store.append, "log", b"X", at=other)
    case.holds("log", b"one")


@clause("core")
def a_large_append_is_held_to_the_same_conditions(case: Case) -> None:
    """A long tool result takes another way to the storage than a short one, and replaces what others have written."""
    size = case.large(16 << 20, 6 << 20)
    data = bytes(range(251)) * (size // 251 + 1)
    data, other = data[:size], data[1 : size + 1]
    start = case.put("log", b"one")
    tail = case.store.append("log", b"two", at=start)
    for at in (NEW, start):
        error = refused(Conflict, case.store.append, "log", data, at=at)
        equal(error.found, tail, f"the tail that a conflict at {at} carries")
        case.holds("log", b"onetwo")
    after = case.store.append("log", data, at=tail)
    equal(after.size, 6 + size, "the tail of a large append")
    equal(case.store.append("log", data, at=tail), after, "the tail of the same large append again")
    refused(Conflict, case.store.append, "log", other, at=tail)
    case.holds("log", b"onetwo" + data)


@clause("core", capability="max_append")
def an_append_over_the_limit_is_refused_whole(case: Case) -> None:
    """A record too large for one write is split, and a crash leaves half of it."""
    limit = case.store.capabilities.max_append or 0
    tail = case.put("log", b"one")
    refused((NotSupported, ValueError), case.store.append, "log", b"x" * (limit + 1), at=tail)
    case.holds("log", b"one")
    equal(case.store.append("log", b"y" * limit, at=tail).size, 3 + limit, "the tail of the largest append")
