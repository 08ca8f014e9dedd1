"""Scale: many logs, long logs and many appends, without a list that ends early or a memory that fills."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

from statestore.conformance.case import Case
from statestore.conformance.check import equal, that
from statestore.conformance.registry import clause
from statestore.store import NEW

_MIB = 1 << 20


@contextmanager
def _memory(most: int, what: str) -> Iterator[None]:
    """Fail if the block makes Python hold more than `most` bytes at one time."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    that(
        peak <= most, f"{what} took {peak / _MIB:.1f} MiB of memory at one time, and {most / _MIB:.0f} MiB are allowed"
    )


@clause("scale")
def ten_thousand_logs_are_listed(case: Case) -> None:
    """Somebody with many sessions never sees those behind the first page."""
    count = case.sized(10_000, 100)
    names = [f"{number % 7}/{number * 7919 % count:05}" for number in range(count)]
    for name in names:
        case.store.append(name, b"x", at=NEW)
    names.sort()
    equal(case.names(), names, "the listing of many logs")
    equal(case.names("3/"), [name for name in names if name[0] == "3"], "the listing of a prefix among many logs")
    for place in (0, 1, count // 3, count - 2, count - 1):
        equal(case.names(after=names[place]), names[place + 1 :], f"the listing behind row {place}")
    got: list[str] = []
    while page := [row.name for row, _ in zip(case.store.list(after=got[-1] if got else ""), range(999), strict=False)]:
        got += page
    equal(got, names, "pages of 999 rows, joined")


@clause("scale")
def a_long_listing_is_held_in_bounded_memory(case: Case) -> None:
    """A server that lists its sessions runs out of memory."""
    count = case.sized(6_000, 50)  # of long names, and more of them than the memory that is allowed
    folders = "/".join(letter * 190 for letter in "xyz")
    for number in range(count):
        case.store.append(f"{number % 100:02}/{folders}/{number:06}", b"x", at=NEW)
    with _memory(3 * _MIB, "a listing of many logs, row by row"):
        equal(sum(1 for _ in case.store.list()), count, "the number of rows")


@clause("scale")
def a_long_log_is_streamed_in_bounded_memory(case: Case) -> None:
    """A session of a hundred megabytes cannot be shown, since it does not fit into memory."""
    step = min(4 * _MIB, case.store.capabilities.max_append or 4 * _MIB)
    total = case.sized(100 * _MIB, 40 * _MIB)
    block = bytes(range(256)) * (step // 256)
    tail = NEW
    while tail.size < total:
        tail = case.store.append("log", block, at=tail)
    length = 0
    # A store that keeps a log in pieces may hold a few of them whole, to try their checksums.
    with _memory(32 * _MIB, f"a stream of {total // _MIB} MiB"):
        for piece in case.store.stream("log"):
            that(piece[0] == length % 256, f"the piece at {length} begins with another byte")
            length += len(piece)
    equal(length, tail.size, "the length of the stream")
    with _memory(8 * _MIB, "a read of the last 1000 bytes of a long log"):
        equal(case.store.read("log", tail.size - 1000), block[-1000:], "the last 1000 bytes")


@clause("scale", capability="server_copy")
def a_long_log_is_copied_without_passing_through(case: Case) -> None:
    """A fork of a long session takes as much memory, or as much of the network, as the session is long."""
    step = min(4 * _MIB, case.store.capabilities.max_append or 4 * _MIB)
    total = case.sized(64 * _MIB, 16 * _MIB)
    tail = NEW
    while tail.size < total:
        tail = case.store.append("log", b"0123456789abcdef" * (step // 16), at=tail)
    with _memory(4 * _MIB, f"a copy of {total // _MIB} MiB that the storage makes by itself"):
        equal(case.store.copy("log", "copy").size, tail.size, "the size of the copy")
    equal(case.store.read("copy", tail.size - 16), b"0123456789abcdef", "the last bytes of the copy")


@clause("scale")
def many_appends_are_one_log(case: Case) -> None:
    """A session of many small steps loses one of them where pieces are merged or pages end."""
    count = case.sized(5_000, 100)
    tail = NEW
    for number in range(count):
        tail = case.store.append("log", b"%d\n" % number, at=tail)
    whole = b"".join(b"%d\n" % number for number in range(count))
    case.holds("log", whole)
    for start in range(0, len(whole), max(1, len(whole) // case.sized(97, 10))):
        equal(case.store.read("log", start, start + 40), whole[start : start + 40], f"the bytes at {start}")
    equal(case.store.append("log", b"0\n", at=NEW).size, 2, "the first append, repeated after all others")
