"""Reads: slices of exactly what was appended; tails, streams and boundaries."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from statestore.conformance.case import Case
from statestore.conformance.check import equal, refused, that
from statestore.conformance.registry import clause
from statestore.errors import NotFound
from statestore.store import NEW, Tail

_PIECES = (b"one", b"\n", b"two\r\n", b"345")
_WHOLE = b"".join(_PIECES)
_EDGES = range(len(_WHOLE) + 3)


def _some(case: Case, start: int) -> Iterable[int]:
    """Return where slices from `start` end: everywhere, or in a sample at the edges next to it and one farther on."""
    return _EDGES if case.sample == 1 else (start - 1, start, start + 1, start + 5) if start else (0, 1, 5)


@clause("core")
def a_read_is_a_slice_of_what_was_appended(case: Case) -> None:
    """A reader that asks for one record gets a byte too few or too many, and every later record is garbage."""
    case.put("log", *_PIECES)
    equal(case.store.read("log"), _WHOLE, "read of the whole log")
    for start in _EDGES:
        equal(case.store.read("log", start), _WHOLE[start:], f"read from {start}")
        for stop in _some(case, start):
            equal(case.store.read("log", start, stop), _WHOLE[start:stop], f"read of [{start}, {stop})")
    equal(case.store.read("log", 2**62), b"", "read far beyond the end")
    equal(case.store.read("log", 2, 2**62), _WHOLE[2:], "read to far beyond the end")


@clause("core")
def a_read_of_a_missing_log_is_not_found(case: Case) -> None:
    """A session that was never there looks like one that is empty."""
    case.put("log/x", b"x")
    case.put("log-", b"x")
    for call in (case.store.read, case.store.tail):
        error = refused(NotFound, call, "log")
        equal(error.facts.get("log"), "log", "the error's fact `log`")
    refused(NotFound, case.store.read, "log", 3, 3)
    refused(NotFound, case.store.boundary, "log", 0)
    refused(NotFound, lambda: list(case.store.stream("log")))


@clause("core")
def an_offset_below_zero_is_refused(case: Case) -> None:
    """A caller's bug reads the log's end for its beginning."""
    case.put("log", *_PIECES)
    for start, stop in ((-1, None), (0, -1), (-1, -1), (-3, 2)):
        refused(ValueError, case.store.read, "log", start, stop)
        refused(ValueError, case.store.stream, "log", start, stop)
    refused(ValueError, case.store.boundary, "log", -1)


@clause("core")
def the_tail_is_where_the_log_ends(case: Case) -> None:
    """A writer that opens a session to go on with it meets a conflict, or writes where nobody looks."""
    case.put("log/x", b"longer than log")
    case.put("log-", b"also longer")
    expected = NEW
    for piece in _PIECES:
        expected = case.store.append("log", piece, at=expected)
        tail = case.store.tail("log")
        that(isinstance(tail, Tail), f"tail returns a Tail, not {type(tail).__name__}")
        equal(tail, expected, "tail() after an append")
        that(isinstance(tail.run, str), f"a run is a str, not {type(tail.run).__name__}")


@clause("core", capability="runs", on=False)
def a_store_without_runs_gives_none(case: Case) -> None:
    """A writer trusts a word that says nothing, and goes on in a log that was made again."""
    tail = case.put("log", b"one", b"two")
    equal((tail.run, case.store.tail("log").run), ("", ""), "the runs of a store that cannot tell them")


@clause("core", capability="runs")
def a_run_stays_while_the_log_lives(case: Case) -> None:
    """A writer loses its position to a change of the run that no deletion explains."""
    first = case.put("log", b"one")
    that(first.run != "", "a store that tells runs gives each log one")
    equal(case.store.append("log", b"two", at=first).run, first.run, "the run after another append")
    equal(case.store.tail("log").run, first.run, "the run of tail()")
    case.store.copy("log", "copy")
    equal(case.store.tail("log").run, first.run, "the run after a copy")


@clause("core")
def a_stream_is_the_same_slice_in_pieces(case: Case) -> None:
    """A long session is shown with a part missing or doubled."""
    case.put("log", *_PIECES)
    for start in _EDGES:
        for stop in (None, *_some(case, start)):
            pieces = list(case.store.stream("log", start, stop))
            equal(b"".join(pieces), _WHOLE[start:stop], f"the stream of [{start}, {stop})")
            that(all(type(piece) is bytes and piece for piece in pieces), "every piece of a stream is some bytes")


@clause("core")
def a_stream_joins_its_pieces_without_a_seam(case: Case) -> None:
    """A log longer than a read buffer comes back with bytes missing at the buffer's edge."""
    block = bytes(range(251)) * 4177
    case.put("log", block, b"|", block, b"|", block)
    whole = b"|".join([block] * 3)
    for start, stop in (
        (0, None),
        (1, len(whole) - 1),
        (len(block) - 1, len(block) + 2),
        ((1 << 20) - 1, (1 << 21) + 1),
    ):
        equal(b"".join(case.store.stream("log", start, stop)), whole[start:stop], f"the stream of [{start}, {stop})")
        equal(case.store.read("log", start, stop), whole[start:stop], f"the read of [{start}, {stop})")


@clause("core")
def a_stream_ends_where_the_log_ended(case: Case) -> None:
    """A reader of a log that grows while it is read never comes to an end."""
    tail = case.put("log", b"a" * (3 << 20))
    stream = case.store.stream("log")
    got = [next(stream)]
    for _ in range(5):
        tail = case.store.append("log", b"b" * 1000, at=tail)
        got.append(next(stream, b""))
    equal(b"".join([*got, *stream]), b"a" * (3 << 20), "a stream begun before the log grew")


@clause("core")
def a_read_changes_nothing(case: Case) -> None:
    """Looking at a session changes it."""
    tail = case.put("log", *_PIECES)
    for _ in range(2):
        case.store.read("log", 3, 5)
        list(case.store.stream("log", 1))
        case.store.boundary("log", 4)
        list(case.store.list(tails=True))
    equal(case.store.tail("log"), tail, "the tail after reads")
    case.holds("log", _WHOLE)


@clause("core", needs=("reopen",))
def an_append_shows_to_another_store_object(case: Case) -> None:
    """Whoever has looked at a session once does not see what is said in it since, or writes where it ended then."""
    tail, whole, other = case.put("log", b"0"), b"0", case.other()
    for number in range(4):
        case.holds("log", whole, other)
        equal(b"".join(other.stream("log")), whole, "the stream of another store object")
        piece = b"%d" % number * (number + 1)
        tail, whole = case.store.append("log", piece, at=tail), whole + piece
        equal(other.tail("log"), tail, "tail() of another store object right after an append")
        case.holds("log", whole, other)
        equal(other.snapshot("log").read(), whole, "a snapshot of another store object")
    equal(other.append("log", b"on", at=tail).size, tail.size + 2, "an append by another store object")
    case.holds("log", whole + b"on")


@clause("core")
def a_boundary_is_where_an_append_began(case: Case) -> None:
    """A reader that starts at a boundary starts inside a record and reads its body as headers."""
    pieces = [b"%d\n" % number * (number % 7 + 1) for number in range(60)]
    case.put("log", *pieces)
    ends = list(accumulate(map(len, pieces)))
    starts = {0, *ends[:-1]}
    every = [*range(80), *(end + step for end in ends for step in (-1, 0, 1)), ends[-1] + 1000]
    for before in every[:: 1 if case.sample == 1 else 4]:  # 4 and 3 have no common factor: each step comes up
        place = case.store.boundary("log", before)
        that(place <= before, f"boundary({before}) is {place}, which is behind it")
        that(place in starts, f"boundary({before}) is {place}, where no append began")


@clause("core", capability="boundaries")
def a_boundary_is_near(case: Case) -> None:
    """The last ten records of a long session cost a reading of all of it."""
    case.put("log", *[b"x" * 1000] * 200)
    for before in (200_000, 150_500, 100_000):
        place = case.store.boundary("log", before)
        that(place > before // 2, f"boundary({before}) of 200 appends of 1000 bytes is {place}, which is far")


@clause("core", capability="boundaries", on=False)
def a_store_without_boundaries_says_the_beginning(case: Case) -> None:
    """A reader believes a place that the store only guessed."""
    tail = case.put("log", b"one", b"two", b"three")
    equal({case.store.boundary("log", before) for before in range(tail.size + 2)}, {0}, "the boundaries")
