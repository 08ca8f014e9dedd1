"""What the local store asks of the kernel: every system call, in order, and none more as a log grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from statestore.records.scan import CHUNK
from tests.costs.tracing import Calls, trace

SIZES = (10, 10_000)

OPEN = "open fstat"  # the file, and whether it is a plain one
TAIL = f"{OPEN} ioctl close"  # ioctl: which run of the name this is
LOCKED = "flock stat {} flock"  # stat: does the name still lead to the file, and where does it end
SYNC_NAMES = "open fsync close open fsync close"  # the directory, and its own entry
NOTE = "open unlink open flock write close"  # who holds the log
READ_DIRECTORY = "open fcntl fstat fcntl fcntl getdents getdents lseek close close"  # the first and last are ours
COPY = "open fstat open stat open copy_file_range {} fstat ioctl close close"

EXACTLY = {
    "never: append": LOCKED.format("write"),
    "never: append a hundred": LOCKED.format("write"),
    "never: append bytes": LOCKED.format("write"),
    "never: append, held": "lseek write",
    "never: append a hundred, held": "lseek write",
    "never: create": f"{OPEN} fstat ioctl flock stat write flock",
    "always: append": LOCKED.format("write fdatasync"),
    "always: append a hundred": LOCKED.format("write fdatasync"),
    "always: append bytes": LOCKED.format("write fdatasync"),
    "always: append, held": "stat write fdatasync",
    "always: append a hundred, held": "stat write fdatasync",
    "always: create": f"{OPEN} fstat ioctl flock stat write fdatasync {SYNC_NAMES} flock",
    "never: hold": f"uname flock stat {NOTE}",
    "never: let go": "open stat fstat unlink close flock close fstat flock",
    "tail": TAIL,
    "tail of a log two directories down": f"open open close open close {OPEN} close ioctl close",
    "read a range": f"{OPEN} pread close",
    "open a store": "mkdir open ioctl close",
    "append to a session": "lseek write",
    "append to a conversation": LOCKED.format("write"),
    "load the last five messages": f"open open close {OPEN} close ioctl close",  # what is known is not read again
}


COPIES = {
    "never: copy": COPY.format("link") + " close",
    "always: copy": COPY.format("fdatasync link") + f" {SYNC_NAMES} close",
}


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], dict[str, Calls]]:
    """Trace the program with logs of so many records, once."""

    @cache
    def run(records: int) -> dict[str, Calls]:
        root: Path = tmp_path_factory.mktemp("traced")
        return trace("tests.costs.local_program", root, records)

    return run


@pytest.mark.parametrize("records", SIZES)
@pytest.mark.parametrize("what", EXACTLY)
def test_a_call_makes_these_system_calls_and_no_other(what, records, traced) -> None:
    assert traced(records)[what].names == EXACTLY[what].split()


@pytest.mark.parametrize("records", SIZES)
@pytest.mark.parametrize("what", COPIES)
def test_a_copy_is_made_by_the_kernel(what, records, traced) -> None:
    assert traced(records)[what].names == COPIES[what].split()


@pytest.mark.parametrize("records", SIZES)
def test_a_log_is_streamed_in_pieces_of_one_opened_file(records, traced) -> None:
    calls = traced(records)["stream"]
    pieces = -(-calls.returned("pread") // CHUNK)
    assert calls.names == [*OPEN.split(), *["pread"] * pieces, "close"]


@pytest.mark.parametrize("records", SIZES)
def test_a_listing_reads_the_directory_and_looks_at_no_log(records, traced) -> None:
    names = traced(records)["list"].names
    more = names.count("getdents") - 2  # a directory comes in pieces of 32 KiB
    assert more <= records // 500
    assert [*names[:6], *names[6 + more :]] == READ_DIRECTORY.split()


@pytest.mark.parametrize("records", SIZES)
def test_a_listing_with_tails_asks_for_each_log_what_a_tail_asks(records, traced) -> None:
    calls = traced(records)
    logs = min(records, 300)
    bare = len(calls["list"])
    assert calls["list with tails"].names[:bare] == calls["list"].names
    assert calls["list with tails"].names[bare:] == TAIL.split() * logs


@pytest.mark.parametrize("what", ["last ten", "recover"])
def test_where_a_log_ends_is_found_without_reading_it(what, traced) -> None:
    calls = traced(10_000)[what]
    assert calls.returned("pread") <= CHUNK < traced(10_000)["stream"].returned("pread") // 2
    assert len(calls) <= 48


def test_a_fork_costs_the_same_of_a_long_session_as_of_a_short_one(traced) -> None:
    short, long = (traced(records)["fork a session"] for records in SIZES)
    # A long one has an index, which is read, and proven by a look at the log.
    assert 0 <= len(long.names) - len(short.names) <= 16
    assert long.returned("pread") <= CHUNK + 3 * 4096
    assert Counter(long.names)["copy_file_range"] == Counter(long.names)["link"] == 1


def test_nothing_else_is_traced(traced) -> None:
    others = {*COPIES, "always: delete", "always: hold", "always: let go", "fork a session", "last ten", "list"}
    others |= {"list with tails", "never: delete", "recover", "stream"}
    assert traced(10).keys() == EXACTLY.keys() | others
