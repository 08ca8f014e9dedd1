"""The position index: where records begin, kept beside a local log, proven by the log or not believed."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from struct import Struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statestore.errors import Corrupt, NotFound, StateStoreError, Unavailable
from statestore.records import Draft, RecordLog, draft
from statestore.records.index import RECORDS, STRIDE, Index, Position
from statestore.store import Sidecar, Tail
from statestore.wrappers import Encrypted, Prefixed, ReadOnly
from statestore_local import LocalStore

ENTRY = Struct(">QQ16s")
BODY = b"b" * 1000


class Counted(LocalStore):
    """Counts the bytes that are read."""

    got = 0

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        data = super().read(log, start, stop)
        self.got += len(data)
        return data


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Counted]:
    with Counted(tmp_path / "state", sync="never") as store:
        yield store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the index of the log named "log" lies."""
    return tmp_path / "state" / ".log.index"


def drafts(count: int) -> list[Draft]:
    return [draft("message", BODY) for _ in range(count)]


def made(store: LocalStore, batches: int = 12, name: str = "log") -> RecordLog:
    """Make a log of 100 records a batch, about 110 KB each."""
    log = RecordLog(store, name)
    log.append("start", expect=1)
    for _ in range(batches):
        log.append_many(drafts(100))
    return log


def entries(file: Path) -> list[tuple[int, int, bytes]]:
    return list(ENTRY.iter_unpack(file.read_bytes())) if file.exists() else []


def places(log: RecordLog) -> dict[int, int]:
    """Where each record begins, by reading all."""
    scan = iter(log)
    return {record.offset: number for number, record in enumerate(scan, 1)}


def check(store: LocalStore, name: str = "log") -> None:
    """Everything reads as it does without an index."""
    every = [record.raw for record in RecordLog(store, name)]
    for k in (0, 1, 10, len(every) // 2, len(every), len(every) + 5):
        assert [record.raw for record in RecordLog(store, name).last(k)] == every[max(len(every) - k, 0) :]
    for first in (1, 2, len(every) // 3 + 1, len(every), len(every) + 1):
        assert [record.raw for record in RecordLog(store, name).read(first)] == every[first - 1 :]
    assert RecordLog(store, name).count() == len(every)
    assert RecordLog(store, name).recover() == len(every) + 1


@pytest.mark.parametrize(("body", "least"), [(BODY, STRIDE), (b"tiny", 0), (b"l" * 400_000, STRIDE)])
def test_a_writer_enters_a_record_in_each_mebibyte_and_of_each_thousand(store, file, body, least):
    log = RecordLog(store, "log")
    log.append("start", expect=1)
    for _ in range(40 if len(body) < 9999 else 1):
        log.append_many([draft("message", body) for _ in range(50)])
        for _ in range(50 if len(body) < 9999 else 10):
            log.append("message", body)
    begin = places(log)
    found = entries(file)
    assert [begin[offset] for offset, _, _ in found] == [number for _, number, _ in found]
    apart = [(after[0] - before[0], after[1] - before[1]) for before, after in itertools.pairwise(found)]
    assert len(found) == 4
    assert all(size >= least or count >= RECORDS for size, count in apart)
    assert all(size < STRIDE + 450_000 and count < RECORDS + 100 for size, count in apart)
    check(store)


def test_a_short_log_has_no_index(store, file):
    log = made(store, 1)
    log.recover()
    assert not file.exists()


def test_opening_and_the_last_ten_read_the_end_alone(store):
    made(store, 100)  # 11 MB
    for call in (RecordLog.recover, RecordLog.count, lambda log: log.last(10), lambda log: next(log.read(9_999))):
        store.got = 0
        call(RecordLog(store, "log"))
        assert store.got < 2 * STRIDE
    log = RecordLog(store, "log")
    store.got = 0
    assert log.append("message").n == 10_002
    assert store.got < 2 * STRIDE


def test_without_an_index_all_is_read_and_whoever_opens_to_append_makes_one(store, file):
    made(store, 40)
    file.unlink()
    store.got = 0
    assert len(RecordLog(store, "log").last(10)) == 10
    assert store.got > 4_000_000
    assert not file.exists(), "a reader writes nothing"
    assert RecordLog(store, "log").recover() == 4_002
    begin = places(RecordLog(store, "log"))
    assert len(entries(file)) > 10
    assert all(begin[offset] == number for offset, number, _ in entries(file))
    store.got = 0
    assert RecordLog(store, "log").recover() == 4_002
    assert store.got < 2 * STRIDE
    check(store)


def test_the_logs_bytes_are_those_of_a_log_without_an_index(store, file, tmp_path):
    log = made(store)
    before = store.read("log")
    RecordLog(store, "log").recover()
    file.unlink()
    RecordLog(store, "log").recover()
    assert store.read("log") == before == b"".join(record.raw for record in log)


DAMAGES = st.one_of(
    st.binary(max_size=200).map(lambda data: lambda index: data),
    st.builds(lambda at, bit: lambda index: flipped(index, at, bit), st.integers(0, 95), st.integers(0, 7)),
    st.integers(0, 95).map(lambda at: lambda index: index[:at]),
    st.builds(lambda at, more: lambda index: index[:at] + more + index[at:], st.integers(0, 96), st.binary(min_size=1)),
    st.permutations([0, 32, 64]).map(lambda order: lambda index: b"".join(index[at : at + 32] for at in order)),
)


def flipped(index: bytes, at: int, bit: int) -> bytes:
    changed = bytearray(index)
    changed[at] ^= 1 << bit
    return bytes(changed)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Iterator[LocalStore]:
    """A store with one log that has an index of three entries."""
    with LocalStore(tmp_path_factory.mktemp("state"), sync="never") as store:
        made(store, 32)
        yield store


@settings(max_examples=30, deadline=None)
@given(damage=DAMAGES)
def test_a_damaged_index_changes_no_answer(whole, damage):
    file = Path(whole.location("log")).with_name(".log.index")
    index = file.read_bytes()
    assert len(index) == 96
    try:
        file.write_bytes(damage(index))
        assert [record.n for record in RecordLog(whole, "log").last(400)] == list(range(2802, 3202))
        assert next(RecordLog(whole, "log").read(900)).n == 900
        assert RecordLog(whole, "log").recover() == 3202
    finally:
        file.write_bytes(index)


def test_each_entry_is_believed_only_where_the_log_bears_it_out(store, file):
    log = made(store)
    offset, number, digest = entries(file)[-1]
    wrong = [
        (offset, number + 1, digest),
        (offset - 1, number, digest),
        (offset + 1, number, digest),
        (0, 1, digest),
        (1 << 40, number, digest),
        (offset, number, bytes(16)),
    ]
    snapshot = store.snapshot("log")
    for entry in wrong:
        file.write_bytes(ENTRY.pack(*entry))
        assert Index(store.sidecar("log"), snapshot).nearest() == Position(0, 1)
    file.write_bytes(ENTRY.pack(offset, number, digest))
    assert Index(store.sidecar("log"), snapshot).nearest() == Position(offset, number)
    assert log.count() == 1201


def forged(store: LocalStore, offset: int, number: int, line: bytes) -> bytes:
    """An entry as whoever knows how they are made could make it."""
    run = store.tail("log").run.encode()
    return ENTRY.pack(offset, number, blake2b(b"%d %d %s\n%s" % (offset, number, run, line), digest_size=16).digest())


def test_a_line_inside_another_is_no_record_whatever_an_entry_says(store, file):
    made(store, 3)
    inner = b'{"n":999,"kind":"message","id":"01234567","time":"2026-12-01T00:00:00Z","len":1}'
    record = RecordLog(store, "log").append("message", b"x" * 100 + inner + b"\ny\n")
    offset = record.offset + record.raw.index(inner)
    for wrong in ((offset, 999, inner), (record.offset - 3, record.n, record.line)):
        file.write_bytes(forged(store, *wrong))
        assert Index(store.sidecar("log"), store.snapshot("log")).nearest() == Position(0, 1)
    file.write_bytes(forged(store, record.offset, record.n, record.line))
    assert Index(store.sidecar("log"), store.snapshot("log")).nearest() == Position(record.offset, record.n)


def test_a_log_that_is_written_over_in_place_is_known_by_its_lines(store, file):
    log = made(store)
    offset, number, _ = entries(file)[-1]
    rest = [record.body for record in log if record.offset >= offset]
    with LocalStore(file.parent.parent / "elsewhere", sync="never") as other:
        new = RecordLog(other, "log")
        head = len(RecordLog(other, "x").append("message", b"", expect=1).raw)
        new.append("message", b"b" * (offset - head - len(str(offset)) + 1), expect=1)
        assert new.end[0].size == offset, "its second record begins where the index says that another one does"
        new.append_many([draft("message", body) for body in rest])
        with Path(store.location("log")).open("r+b") as out:
            out.write(other.read("log"))
            out.truncate()
    assert RecordLog(store, "log").count() == 1 + len(rest) < number
    check(store)


def test_entries_for_what_is_gone_do_not_hide_those_for_what_is_there(store, file):
    made(store)
    found = Index(store.sidecar("log"), store.snapshot("log")).nearest()
    with file.open("ab") as out:
        out.write(b"".join(ENTRY.pack(1 << 40 | number, 5000 + number, bytes(16)) for number in range(50)))
    assert Index(store.sidecar("log"), store.snapshot("log")).nearest() == found != Position(0, 1)


def test_an_index_that_is_useless_is_made_anew_and_stays_small(store, file):
    made(store)
    file.write_bytes(b"damaged" * 10_000)
    assert RecordLog(store, "log").recover() == 1202
    assert len(entries(file)) == file.stat().st_size // 32 == 4
    store.got = 0
    RecordLog(store, "log").recover()
    assert store.got < 2 * STRIDE


def test_the_index_of_another_log_is_not_believed(store, tmp_path):
    made(store)
    RecordLog(store, "log").copy("copy")
    root = tmp_path / "state"
    (root / ".copy.index").write_bytes((root / ".log.index").read_bytes())
    assert Index(store.sidecar("copy"), store.snapshot("copy")).nearest() == Position(0, 1)
    check(store, "copy")


def test_a_log_that_another_program_puts_in_the_place_is_read_as_it_is(store, file, tmp_path):
    made(store)
    made(store, 4, "other")
    (tmp_path / "state" / "other.state").replace(tmp_path / "state" / "log.state")
    check(store)
    assert RecordLog(store, "log").append("message").n == 402


def test_a_log_that_another_program_cuts_and_writes_on_in_place_is_read_as_it_is(store, file, tmp_path):
    log = made(store)
    begin = {number: offset for offset, number in places(log).items()}
    path = tmp_path / "state" / "log.state"
    os.truncate(path, begin[300])
    with path.open("ab") as out:
        other = made(LocalStore(tmp_path / "elsewhere", sync="never"), 9, "x")
        out.write(b"".join(record.raw for record in other))
    numbers = [record.n for record in RecordLog(store, "log")]
    assert numbers == [*range(1, 300), *range(1, 902)], "no number is judged by what a body or an index says"
    check(store)


def test_a_body_that_holds_a_whole_log_at_any_place_is_never_read_as_records(store, file):
    inner = made(store)
    whole = store.read("log")
    log = RecordLog(store, "outer")
    log.append("start", expect=1)
    for _ in range(3):
        log.append("message", whole)
        log.append("message", b"\n" + whole)
    assert log.count() == 7
    check(store, "outer")
    assert inner.count() == 1201


def test_a_stale_entry_is_passed_over_for_the_one_before(store, file):
    made(store)
    before = entries(file)
    with file.open("ab") as out:
        out.write(b"".join(ENTRY.pack(offset + 7, number, digest) for offset, number, digest in before))
    offset, number, _ = before[-1]
    assert Index(store.sidecar("log"), store.snapshot("log")).nearest() == Position(offset, number)


def test_after_a_cut_nothing_of_the_index_is_left(store, file, tmp_path):
    made(store)
    with (tmp_path / "state" / "log.state").open("ab") as out:
        out.write(b'{"n":1202,"kind":"mess')
    assert file.exists()
    assert RecordLog(store, "log").recover() == 1202
    assert not file.exists() or len(entries(file)) < 3
    check(store)


def test_many_writers_of_one_record_each_do_not_enter_each_record(store, file):
    made(store)
    before = len(entries(file))
    for _ in range(50):
        RecordLog(store, "log").append("message", BODY)
        log = RecordLog(store, "log")
        log.resume(store.tail("log"), RecordLog(store, "log").count() + 1)
        log.append("message", BODY)
    assert len(entries(file)) <= before + 1
    check(store)


def test_damage_behind_the_last_position_is_told_with_its_number_and_place(store, tmp_path):
    log = made(store)
    last = log.last(1)[0]
    path = tmp_path / "state" / "log.state"
    with path.open("r+b") as out:
        out.seek(last.offset)
        out.write(b"[")
    for call in (RecordLog.recover, RecordLog.count, lambda log: log.last(1)):
        with pytest.raises(Corrupt) as caught:
            call(RecordLog(store, "log"))
        assert (caught.value.facts["record"], caught.value.facts["offset"]) == (1201, last.offset)


def test_damage_in_front_of_the_last_position_is_found_by_reading(store, tmp_path):
    log = made(store)
    second = next(iter(log.read(2, 3)))
    with (tmp_path / "state" / "log.state").open("r+b") as out:
        out.seek(second.offset)
        out.write(b"[")
    assert RecordLog(store, "log").recover() == 1202
    with pytest.raises(Corrupt, match="record=2"):
        list(RecordLog(store, "log"))


class Failing(LocalStore):
    """Has a place beside its logs that always fails."""

    def sidecar(self, log: str) -> Sidecar:
        raise Unavailable("nothing is to be had there", log=log)


def test_an_acknowledged_append_is_no_failure_since_its_entry_is_one(tmp_path):
    with LocalStore(tmp_path, sync="never") as good:
        log = made(good, 3)
        end = log.end
    with Failing(tmp_path, sync="never") as store:
        log = RecordLog(store, "log")
        log.resume(*end)
        assert log.append("message").n == 302
        assert log.append_many(drafts(2)) == range(303, 305)


def test_where_nothing_can_be_kept_beside_the_log_everything_works(store, file):
    file.mkdir(parents=True)
    made(store)
    check(store)
    file.rmdir()
    file.symlink_to("/etc/passwd")
    check(store)
    RecordLog(store, "log").append("message")
    assert file.is_symlink()


def test_what_is_written_beside_the_log_is_this_users_alone(store, file):
    made(store)
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_reader_of_a_read_only_store_uses_the_index_and_writes_none(store, file):
    made(store, 40)
    before = file.read_bytes()
    reader = ReadOnly(store)
    store.got = 0
    assert len(RecordLog(reader, "log").last(10)) == 10
    assert store.got < 2 * STRIDE
    file.write_bytes(b"")
    assert RecordLog(reader, "log").count() == 4_001
    beside = reader.sidecar("log")
    beside.append(before)
    beside.replace(before)
    assert file.read_bytes() == b""


def test_below_a_prefix_the_index_is_that_of_the_inner_log(store, tmp_path):
    below = Prefixed(store, "a/b")
    made(below, 12)
    assert (tmp_path / "state" / "a" / "b" / ".log.index").exists()
    check(below)


def test_an_encrypted_log_has_no_index(store, tmp_path):
    sealed = Encrypted(store, [b"k" * 32])
    made(sealed, 12)
    assert not list((tmp_path / "state").glob(".*.index"))
    check(sealed)


WRITER = """
import sys
from statestore.records import RecordLog, draft
from statestore_local import LocalStore

log = RecordLog(LocalStore(sys.argv[1], sync="never"), "log")
print("ready", flush=True)
while True:
    log.append_many([draft("message", b"b" * 1000) for _ in range(60)])
"""


def test_writers_that_are_killed_leave_an_index_that_tells_no_lie(store, tmp_path, file):
    made(store, 3)
    for _ in range(3):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, tmp_path / "state"], stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout.readline() == b"ready\n"
        size = store.tail("log").size
        while store.tail("log").size < size + 2 * STRIDE:
            pass
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
        numbers = places(RecordLog(store, "log"))
        assert list(numbers.values()) == list(range(1, len(numbers) + 1))
        check(store)


def test_a_run_that_was_deleted_and_made_again_does_not_know_the_old_positions(store, file):
    made(store)
    old = file.read_bytes()
    store.delete("log")
    assert not file.exists()
    made(store, 4)
    file.write_bytes(old)
    assert Index(store.sidecar("log"), store.snapshot("log")).nearest() == Position(0, 1)
    check(store)


def test_a_fork_reads_only_what_is_near_its_end(store):
    log = made(store, 100)
    for before in (2, 300, 3_000, 10_002, None):
        store.got = 0
        copy = RecordLog(store, "log").copy(f"copy-{before}", before=before)
        assert store.got < 3 * STRIDE
        assert [record.raw for record in copy] == [record.raw for record in log.read(before=before)]
    with pytest.raises(NotFound):
        log.copy("none", before=10_004)


def test_a_fork_is_ready_for_its_next_record_without_reading(store):
    log = made(store)
    copy = log.copy("copy", before=900)
    store.got = 0
    assert copy.append("message").n == 900
    assert store.got == 0
    tail, number = copy.end
    assert (tail, number) == (store.tail("copy"), 901)
    assert isinstance(tail, Tail)


def test_a_closed_store_has_no_place_beside_its_logs(tmp_path):
    store = LocalStore(tmp_path)
    store.close()
    with pytest.raises(StateStoreError, match="closed"):
        store.sidecar("log")
