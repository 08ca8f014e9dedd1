"""Golden logs: bytes that are fixed here lie under the store as they are, and are read from there as they are."""

from __future__ import annotations

from statestore.conformance.case import Case
from statestore.conformance.check import equal, refused
from statestore.conformance.registry import clause
from statestore.errors import Conflict
from statestore.store import Tail

_QUOTING = b'{"n":4,"kind":"result","id":"5bd1e995c0ffee03","time":"2026-09-28T12:00:02Z","len":89}\n'
_QUOTED = b'{"n":1,"kind":"config","id":"5bd1e995c0ffee00","time":"2026-09-28T12:00:00Z","len":2}\n{}\n\n'
# Whole sessions, record by record: a header line, a body of `len` bytes, a newline.
RECORDS = (
    b'{"n":1,"kind":"config","id":"5bd1e995c0ffee00","time":"2026-09-28T12:00:00Z","len":2}\n{}\n',
    b'{"n":2,"kind":"user","id":"5bd1e995c0ffee01","time":"2026-09-28T12:00:00.5Z","len":12}\nline\r\nline 2\n',
    b'{"n":3,"kind":"model","id":"5bd1e995c0ffee02","time":"2026-09-28T12:00:01Z","len":7}\n\xe2\x80\xa8\x00\xff\r\n\n',
    _QUOTING + _QUOTED,
    b'{"n":5,"kind":"mine","id":"5bd1e995c0ffee04","time":"2026-09-28T14:00:03+02:00","len":0,"extra":[1]}\n\n',
)
GOLDEN = b"".join(RECORDS)
BINARY = bytes(range(256)) * 3 + b"\n\r\n\x00" + b"\xe2\x80\xa8"


@clause("durable", needs=("raw_read",))
def what_is_appended_lies_under_the_store_byte_for_byte(case: Case) -> None:
    """Nobody but this store can read the sessions in it, or each side's mistake hides the other's."""
    for name, pieces in (("golden", RECORDS), ("deep/er/golden", (GOLDEN,)), ("binary", (BINARY, b"\n", BINARY))):
        whole = b""
        tail = Tail(0, "")
        for piece in pieces:
            tail = case.store.append(name, piece, at=tail)
            whole += piece
            equal(case.raw_read(name), whole, f"the bytes under the store of {name!r}")


@clause("durable", needs=("raw_read",))
def a_copy_lies_under_the_store_byte_for_byte(case: Case) -> None:
    """A fork is only a promise, and is gone with the session it was made of."""
    case.put("source", *RECORDS)
    for number in range(1, len(RECORDS) + 1):
        stop = len(b"".join(RECORDS[:number]))
        case.store.copy("source", f"target-{number}", stop=stop)
        equal(case.raw_read(f"target-{number}"), GOLDEN[:stop], f"the bytes under a copy to {stop}")


@clause("durable", needs=("raw_read",))
def a_refused_append_leaves_nothing_under_the_store(case: Case) -> None:
    """A refusal leaves bytes behind that come to light after the next start."""
    tail = case.put("log", *RECORDS)
    refused(Conflict, case.store.append, "log", b"X", at=Tail(tail.size - 1, tail.run))
    refused(Conflict, case.store.append, "log", b"X", at=Tail(tail.size + 1, tail.run))
    case.store.append("log", RECORDS[0], at=Tail(0, ""))
    equal(case.raw_read("log"), GOLDEN, "the bytes under the store after refusals")


@clause("durable", needs=("raw_write",))
def a_log_put_under_the_store_is_read_as_it_is(case: Case) -> None:
    """Sessions that another program wrote are not found, or are read otherwise than they were written."""
    case.raw_write("golden", GOLDEN)
    case.raw_write("deep/er/golden", GOLDEN)
    case.raw_write("binary", BINARY)
    case.holds("golden", GOLDEN)
    case.holds("deep/er/golden", GOLDEN)
    case.holds("binary", BINARY)
    equal(case.names(), ["binary", "deep/er/golden", "golden"], "the listing of logs put under the store")
    place = 0
    for record in RECORDS:
        equal(case.store.read("golden", place, place + len(record)), record, f"the record at {place}")
        place += len(record)


@clause("durable", needs=("raw_write",))
def a_log_put_under_the_store_can_be_gone_on_with(case: Case) -> None:
    """Sessions that another program wrote can be looked at and no more."""
    case.raw_write("golden", GOLDEN)
    tail = case.store.append("golden", b"more\n", at=case.store.tail("golden"))
    case.holds("golden", GOLDEN + b"more\n")
    case.store.copy("golden", "fork", stop=tail.size - 5)
    case.holds("fork", GOLDEN)


@clause("durable", needs=("raw_write",))
def a_torn_log_put_under_the_store_is_told_as_it_is(case: Case) -> None:
    """What a crash left is hidden by the store, and the next record is glued to it."""
    torn = GOLDEN[:-30]
    case.raw_write("torn", torn)
    case.holds("torn", torn)
    tail = case.store.tail("torn")
    if case.store.capabilities.cuts:
        whole = len(b"".join(RECORDS[:4]))
        equal(case.store.cut("torn", whole, at=tail), torn[whole:], "the torn bytes given back")
        case.holds("torn", torn[:whole])
        case.store.append("torn", RECORDS[4], at=case.store.tail("torn"))
        case.holds("torn", GOLDEN)


@clause("durable", capability="durable", needs=("reopen", "lose_power", "raw_write"))
def a_repeated_append_is_as_durable_as_a_fresh_one(case: Case) -> None:
    """A record that was found to be there already is gone with the power, since it was found and not made safe."""
    store = case.other()
    start = case.put("log", b"one", store=store)
    store.append("log", b"two", at=start)
    again = case.other()
    again.append("log", b"two", at=start)
    # What a writer left that died before it made its bytes durable.
    case.raw_write("left", b"onetwo")
    again.append("left", b"two", at=Tail(3, again.tail("left").run))
    case.lose_power()
    case.holds("log", b"onetwo", case.other())
    case.holds("left", b"onetwo", case.other())
