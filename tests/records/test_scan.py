"""Scanning: the same records however the bytes come, and an exact line between what is torn and what is corrupt."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statestore.errors import Corrupt
from statestore.records import MAX_HEADER, Header, Record, Scan, encode, scan
from statestore.records.header import MAX_BODY

scan_module = sys.modules["statestore.records.scan"]  # the package's own `scan` is the function

SESSION_12 = (Path(__file__).parents[1] / "vectors" / "statefile" / "session-12.state").read_bytes()
TIME = "2026-09-28T12:00:00Z"
MIB = 1 << 20


def log_of(*bodies: bytes, kind: str = "message") -> bytes:
    """A log of records with these bodies."""
    return b"".join(encode(Header(n=n, kind=kind, id=f"{n:08x}", time=TIME), body) for n, body in enumerate(bodies, 1))


class Bytes:
    """Fetches from bytes, and counts what was asked for and given.

    Attributes:
        fetched: how many bytes were given.
        largest: the most bytes given at once.
        calls: how often it was asked.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.fetched = self.largest = self.calls = 0

    def __call__(self, start: int, stop: int) -> bytes:
        piece = self.data[start:stop]
        self.calls += 1
        self.fetched += len(piece)
        self.largest = max(self.largest, len(piece))
        return piece


def ending(fetch: Callable[[int, int], bytes], chunk: int = MIB) -> tuple[list[Record], int, int | Corrupt]:
    """Scan to the end: the records, where they end, and what is torn behind them or what is corrupt."""
    records = Scan(fetch, chunk=chunk)
    found: list[Record] = []
    error = None
    try:
        found.extend(records)
    except Corrupt as corrupt:
        error = corrupt
    assert records.number == len(found) + 1
    if error is None:
        return found, records.end, records.torn
    assert (error.record, error.offset) == (len(found) + 1, records.end)
    return found, records.end, error


def is_torn(data: bytes, whole: int, end: int) -> None:
    found, place, torn = ending(Bytes(data))
    assert (len(found), place, torn) == (whole, end, len(data) - end)


def is_corrupt(data: bytes, record: int, offset: int) -> Corrupt:
    found, place, error = ending(Bytes(data))
    assert isinstance(error, Corrupt), f"{len(found)} records, then {error} bytes torn"
    assert (len(found), place) == (record - 1, offset)
    return error


# What lines, other JSON readers and other records look like, and every byte there is.
BODIES = st.one_of(
    st.binary(max_size=400),
    st.sampled_from(
        [
            b"",
            b"\n",
            b"\n\n",
            b"\r\n",
            b"\x00",
            "\u2028\u2029\x85".encode(),
            bytes(range(256)),
            SESSION_12[:700],
            log_of(b"a", b"b"),
            b"\n" + log_of(b"", b"", b"")[:-1],
            b'{"n":2,',
            b'x\n{"n":2,"kind":"x"}\n\n',
        ]
    ),
)
LOGS = st.lists(BODIES, min_size=1, max_size=6).map(lambda bodies: log_of(*bodies))


# Exactness


@given(data=LOGS, chunk=st.integers(40, 900))
@settings(max_examples=150)
def test_the_records_are_the_same_whatever_the_size_of_a_chunk(data: bytes, chunk: int) -> None:
    whole = list(scan(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_module, "MAX_HEADER", 200)
        found, end, torn = ending(Bytes(data), chunk)
    assert found == whole
    assert b"".join(record.raw for record in found) == data
    assert (end, torn) == (len(data), 0)


@given(data=LOGS, chunk=st.integers(40, 900), cut=st.data())
@settings(max_examples=150)
def test_the_end_is_judged_alike_whatever_the_size_of_a_chunk(data: bytes, chunk: int, cut: st.DataObject) -> None:
    damaged = bytearray(data[: cut.draw(st.integers(0, len(data)))])
    if damaged and cut.draw(st.booleans()):
        place = cut.draw(st.integers(0, len(damaged) - 1))
        damaged[place] = cut.draw(st.integers(0, 255))
    if cut.draw(st.booleans()):
        damaged += bytes(cut.draw(st.integers(0, 600)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_module, "MAX_HEADER", 200)
        whole = ending(Bytes(bytes(damaged)))
        patch.setattr(scan_module, "CHUNK", chunk)
        pieces = ending(Bytes(bytes(damaged)), chunk)
    assert (pieces[:2], str(pieces[2])) == (whole[:2], str(whole[2]))


@given(data=LOGS, first=st.integers(1, 7), before=st.none() | st.integers(0, 8), chunk=st.integers(40, 900))
@settings(max_examples=80)
def test_records_that_are_skipped_are_counted_and_checked_like_those_that_are_read(
    data: bytes, first: int, before: int | None, chunk: int
) -> None:
    whole = list(scan(data))
    asked = whole[first - 1 : None if before is None else max(before - 1, 0)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_module, "MAX_HEADER", 200)
        patch.setattr(scan_module, "_PEEK", 60)
        found = list(Scan(Bytes(data), first=first, before=before, chunk=chunk))
        bare = list(Scan(Bytes(data), first=first, before=before, chunk=chunk, bodies=False))
        skipped = Scan(Bytes(data), before=before, chunk=chunk)
        skipped.skip()
    assert found == asked
    assert [(record.line, record.body, record.offset) for record in bare] == [(r.line, b"", r.offset) for r in asked]
    assert skipped.number == max(1, min(len(whole) + 1, len(whole) + 1 if before is None else before))
    assert skipped.end == (whole[skipped.number - 2].end if skipped.number > 1 else 0)


@pytest.mark.parametrize(
    "body",
    [bytes(range(256)), b"\x00" * 300, b"\n" * 300, b"\r\n", "\u2028\u2029\x85\v\f\x1c".encode(), b"\xed\xa0\x80", b""],
)
def test_a_body_is_bytes_and_nothing_in_it_is_looked_at(body: bytes) -> None:
    found, _, torn = ending(Bytes(log_of(body, body)))
    assert [record.body for record in found] == [body, body]
    assert torn == 0


def test_a_body_that_is_a_session_file_is_one_record() -> None:
    found, _, torn = ending(Bytes(log_of(SESSION_12, SESSION_12 + SESSION_12, b"after")))
    assert [record.body for record in found] == [SESSION_12, SESSION_12 + SESSION_12, b"after"]
    assert torn == 0


def test_a_log_of_no_bytes_has_no_records_and_nothing_torn() -> None:
    assert ending(Bytes(b"")) == ([], 0, 0)


@pytest.mark.parametrize("size", [MIB - 200, MIB - 96, MIB - 1, MIB, MIB + 1, 2 * MIB, 3 * MIB + 7])
def test_bodies_around_and_beyond_the_size_of_a_chunk_are_read_whole(size: int) -> None:
    bodies = [b"a", b"b" * size, b"c", b"d" * size]
    fetch = Bytes(log_of(*bodies))
    assert [record.body for record in Scan(fetch)] == bodies
    assert fetch.largest <= size + 2 * MIB


# Torn


@given(LOGS)
@settings(max_examples=20)
def test_a_log_cut_at_any_byte_is_torn_right_behind_its_last_whole_record(data: bytes) -> None:
    ends = [0, *(record.end for record in scan(data))]
    for size in range(len(data) + 1):
        whole = max(place for place, end in enumerate(ends) if end <= size)
        found, end, torn = ending(Bytes(data[:size]))
        assert (len(found), end) == (whole, ends[whole])
        # A torn body that holds what the next record would be is refused rather than cut: see below.
        holds_next = b'\n{"n":%d,' % (whole + 2) in data[end:size]
        assert torn == size - end or (holds_next and isinstance(torn, Corrupt))


def test_zeros_from_any_byte_of_the_last_record_to_the_end_are_torn() -> None:
    data = log_of(b"first", b"second body")
    end = next(scan(data)).end
    for start in range(end, len(data)):
        for extra in (0, 1, 4096):
            is_torn(data[:start] + bytes(len(data) - start + extra), 1, end)


def test_zeros_from_any_sector_to_the_end_are_torn_over_many_records() -> None:
    records = [(record.offset, record.end) for record in scan(SESSION_12)]
    for sector in range(0, len(SESSION_12), 512):
        zeroed = SESSION_12[:sector] + bytes(len(SESSION_12) - sector)
        whole = sum(end <= sector for _, end in records)
        is_torn(zeroed, whole, records[whole][0])


@pytest.mark.parametrize("zeros", [1, MIB - 1, MIB, MIB + 1, 5 * MIB])
def test_zeros_behind_the_last_record_are_torn_however_many(zeros: int) -> None:
    data = log_of(b"first")
    is_torn(data + bytes(zeros), 1, len(data))


@pytest.mark.parametrize("zeros", [MIB, MIB + 1, 5 * MIB])
def test_zeros_that_do_not_reach_the_end_are_corrupt(zeros: int) -> None:
    data = log_of(b"first")
    is_corrupt(data + bytes(zeros) + b"x", 2, len(data))
    is_corrupt(data + bytes(zeros) + b"\n", 2, len(data))


def test_a_torn_body_that_holds_a_session_file_is_torn() -> None:
    """The file in the body has a record of every number, but the one that would follow is not whole in it."""
    before = log_of(b"first")
    inner = b"".join(encode(Header(n=n, kind="text", id="0a1b2c3d", time=TIME), b"x") for n in (1, 2, 4, 5, 6, 7))
    data = before + encode(Header(n=2, kind="message", id="0a1b2c3d", time=TIME), inner + b"tail")
    for size in range(len(before) + 1, len(data)):
        is_torn(data[:size], 1, len(before))


def test_a_torn_body_that_holds_the_very_record_that_would_follow_is_refused_and_not_cut() -> None:
    """It looks like a damaged `len` with a whole record behind it, and nothing tells the two apart: so ask a person."""
    before = log_of(b"first")
    data = before + encode(Header(n=2, kind="message", id="0a1b2c3d", time=TIME), SESSION_12 + b"tail")
    error = is_corrupt(data[:-3], 2, len(before))
    assert error.facts["next"] == len(before) + data[len(before) :].index(b'{"n":3,')


# Corrupt


@pytest.mark.parametrize("k", [1, 4, 11])
def test_a_header_zeroed_in_the_middle_is_corrupt_and_names_its_record_and_offset(k: int) -> None:
    record = list(scan(SESSION_12))[k - 1]
    for start, stop in ((0, 8), (20, 40), (len(record.line) - 5, len(record.line))):
        data = bytearray(SESSION_12)
        data[record.offset + start : record.offset + stop] = bytes(stop - start)
        error = is_corrupt(bytes(data), k, record.offset)
        assert f"record={k} offset={record.offset}" in str(error)


def test_a_run_of_zeros_over_several_records_in_the_middle_is_corrupt() -> None:
    records = list(scan(SESSION_12))
    start = records[3].offset
    data = SESSION_12[:start] + bytes(512) + SESSION_12[start + 512 :]
    is_corrupt(data, 4, start)


@pytest.mark.parametrize("k", range(1, 12))
def test_a_len_that_reaches_beyond_the_end_while_whole_records_follow_is_corrupt(k: int) -> None:
    record = list(scan(SESSION_12))[k - 1]
    for size in (len(SESSION_12), 9_999_999, MAX_BODY):
        line = record.line.replace(b'"len":%d' % record.header.len, b'"len":%d' % size)
        data = SESSION_12[: record.offset] + line + SESSION_12[record.offset + len(record.line) :]
        error = is_corrupt(data, k, record.offset)
        assert error.facts["next"] == record.end + len(line) - len(record.line)


def test_a_damaged_len_is_noticed_however_far_behind_the_next_record_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    data = log_of(b"x" * 777, b"y").replace(b'"len":777', b'"len":99999', 1)
    for chunk in range(40, 200):
        monkeypatch.setattr(scan_module, "CHUNK", chunk)
        is_corrupt(data, 1, 0)


def test_any_single_byte_changed_in_a_header_in_the_middle_never_loses_the_records_behind_it_in_silence() -> None:
    """Whatever it becomes, the scan goes on behind it, or refuses: it never ends as torn."""
    records = list(scan(SESSION_12))
    middle = records[5]
    for place in range(middle.offset, middle.offset + len(middle.line) + 1):
        for byte in (0, 10, 32, 48, 57, 255):
            data = bytearray(SESSION_12)
            data[place] = byte
            found, _, torn = ending(Bytes(bytes(data)))
            assert isinstance(torn, Corrupt) or (len(found), torn) == (12, 0), (place, byte, torn)


@pytest.mark.parametrize("terminator", [b" ", b"\r", b"x", b"{"])
def test_another_byte_where_the_newline_belongs_is_corrupt_even_at_the_end(terminator: bytes) -> None:
    data = log_of(b"first", b"second")
    end = next(scan(data)).end
    assert is_corrupt(data[:-1] + terminator, 2, end).facts["at"] == len(data) - 1
    is_corrupt(data[: end - 1] + terminator + data[end:], 1, 0)


# Bounds


def peak(run: Callable[[], Any]) -> int:
    """The most bytes that were allocated at once while it ran."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [MAX_BODY, 1 << 62, 2**63 - 1])
def test_a_len_beyond_the_end_is_never_allocated(size: int) -> None:
    data = b'{"n":1,"kind":"message","id":"","time":"%b","len":%d}\nabc\n' % (TIME.encode(), size)
    assert peak(lambda: ending(Bytes(data))) < 256 * 1024
    found, _, torn = ending(Bytes(data))
    assert found == []
    assert isinstance(torn, Corrupt) == (size > MAX_BODY)


def is_corrupt_at_once(fetch: Callable[[int, int], bytes]) -> None:
    with pytest.raises(Corrupt, match="header line"):
        list(Scan(fetch))


@pytest.mark.parametrize("chunk", [100, MIB, 4 * MIB])
def test_a_header_line_over_a_mebibyte_is_refused_though_it_parses(chunk: int) -> None:
    def log(size: int) -> bytes:
        return log_of(b"first") + b'{"n":2,%b"len":0}' % (b" " * (size - 15)) + b"\n\n"

    assert len(ending(Bytes(log(MAX_HEADER)), chunk)[0]) == 2
    found, _, error = ending(Bytes(log(MAX_HEADER + 1)), chunk)
    assert len(found) == 1
    assert "header line has more than" in str(error)


class Endless:
    """A log that is `size` bytes of one line, made when asked for."""

    def __init__(self, size: int, fill: bytes) -> None:
        self.size, self.fill = size, fill
        self.fetched = 0

    def __call__(self, start: int, stop: int) -> bytes:
        piece = self.fill * (max(min(stop, self.size), start) - start)
        self.fetched += len(piece)
        return piece


def test_a_header_of_a_hundred_megabytes_is_refused_in_bounded_memory() -> None:
    line = Endless(100_000_000, b"x")
    assert peak(lambda: is_corrupt_at_once(line)) < 8 * MIB
    assert line.fetched < 8 * MIB


def test_a_log_of_a_hundred_megabytes_of_zeros_is_torn_in_bounded_memory() -> None:
    records = Scan(Endless(100_000_000, b"\0"))
    assert peak(lambda: list(records)) < 8 * MIB
    assert (records.end, records.torn) == (0, 100_000_000)


def test_a_large_log_is_read_in_bounded_memory() -> None:
    one = encode(Header(n=1, kind="message", id="0a1b2c3d", time=TIME), b"x" * 1000)
    data = Bytes(one * 20_000)

    def run() -> None:
        assert sum(1 for _ in Scan(data)) == 20_000

    assert peak(run) < 8 * MIB
    assert data.fetched < 1.1 * len(data.data)


def test_skipping_over_large_bodies_reads_a_small_part_of_the_log() -> None:
    data = Bytes(log_of(*[b"x" * 1_000_000] * 200))
    records = Scan(data)
    records.skip()
    assert records.number == 201
    assert data.fetched < len(data.data) / 100
    assert data.calls <= 402


def test_a_torn_body_full_of_what_looks_like_records_is_judged_in_one_pass() -> None:
    begin = b'\n{"n":2,"kind":"x"}'  # with no newline behind it for a while
    data = b'{"n":1,"kind":"message","id":"","time":"%b","len":%d}\n' % (TIME.encode(), 10**9) + begin * 20_000
    fetch = Bytes(data)
    found, end, torn = ending(fetch)
    assert (found, end, torn) == ([], 0, len(data))
    assert fetch.fetched < 20 * len(data)


# A log that changes while it is read


class Growing:
    """A log that is short when it is first read, and longer by every later time: somebody appends to it."""

    def __init__(self, *states: bytes) -> None:
        self.states = list(states)

    def __call__(self, start: int, stop: int) -> bytes:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return state[start:stop]


@pytest.mark.parametrize("size", [100, 2 * MIB])
def test_a_record_that_is_being_written_while_it_is_read_is_no_damage(size: int) -> None:
    """The reader comes first upon a part of record 2; before it looks again, records 2 and 3 are there."""
    data = log_of(b"first", b"x" * size, b"third")
    ends = [record.end for record in scan(data)]
    for cut in (ends[0] + 10, ends[1] - size - 1, ends[1] - size + 5, ends[1] - 1):
        records = Scan(Growing(data[:cut], data))
        found = list(records)
        assert [record.body for record in found] in (
            [b"first"],
            [b"first", b"x" * size],
            [b"first", b"x" * size, b"third"],
        )


def test_a_large_record_is_never_put_together_from_two_logs() -> None:
    """Between two reads the log is deleted, and another one made: the body must not be the other one's."""
    one, other = log_of(b"a\n" * MIB, kind="a"), log_of(b"b\n" * MIB, kind="b")
    shorter = log_of(b"a\n" * (MIB // 2), kind="a")
    for states in ((one, other), (one, one, other), (one, one, one[:MIB]), (one, one, shorter), (one, other[:MIB])):
        records = Scan(Growing(*states))
        try:
            found = list(records)
        except Corrupt:
            continue
        for record in found:
            assert record.raw in (one, other, shorter), "a record is whole and of one log"
