"""What reaches the storage is sealed, what is read is what was appended, and without the key nothing is done."""

from __future__ import annotations

import base64
import json
import random
import re
import signal
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statestore import Conversations, Sessions, open_store
from statestore.errors import (
    Conflict,
    Corrupt,
    Exists,
    InvalidName,
    NotFound,
    NotSupported,
    PluginError,
    StateStoreError,
    Unavailable,
)
from statestore.records import MAX_HEADER, Header, RecordLog, draft, encode, scan, verify
from statestore.store import NEW, Snapshot, Store, Tail
from statestore.wrappers import Encrypted, Faulty, Wrapper, key_id, reseal
from statestore.wrappers._sealing import GROWTH
from statestore_local import LocalStore
from statestore_memory import MemoryStore

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
TIME = "2026-09-28T12:00:00Z"


def record(n: int, body: bytes, **more: object) -> bytes:
    return encode(Header(n=n, kind="message", id=f"{n:08x}", time=TIME, **more), body)


def some(*bodies: bytes) -> list[bytes]:
    return [record(n, body) for n, body in enumerate(bodies, 1)]


def fill(store: Store, log: str, pieces: list[bytes]) -> Tail:
    tail = NEW
    for piece in pieces:
        tail = store.append(log, piece, at=tail)
    return tail


def put(inner: MemoryStore, log: str, data: bytes) -> None:
    """Make a log of the inner store of these bytes, whatever was there: what somebody with the bucket can do."""
    if any(row.name == log for row in inner.list(log)):
        inner.delete(log)
    inner.append(log, data, at=NEW)


@pytest.fixture
def inner() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def store(inner: MemoryStore) -> Encrypted:
    return Encrypted(inner, [KEY])


# What the storage sees.


def test_headers_are_readable_and_bodies_are_not(store, inner):
    log = RecordLog(store, "log")
    log.append("message", b"SWORDFISH", expect=1, type="text/plain", via="web")
    (raw,) = RecordLog(inner, "log")
    (plain,) = log
    assert raw.line == plain.line[:-1] + raw.line[len(plain.line) - 1 :]
    assert (raw.kind, raw.header.type, raw.header.via, raw.header.len) == ("message", "text/plain", "web", 9)
    assert json.loads(raw.line)["key"] == key_id(KEY)
    assert b"SWORDFISH" not in inner.read("log")
    assert (plain.body, b"key" in plain.line) == (b"SWORDFISH", False)
    assert inner.tail("log").size == store.tail("log").size + GROWTH


def test_the_sealed_form_is_that_of_the_vectors_which_the_page_describes_how_to_make():
    rows = (Path(__file__).parents[1] / "vectors" / "sealed" / "logs.jsonl").read_text().split("\n")[:-1]
    assert len(rows) == 8
    for row in map(json.loads, rows):
        key, plain, sealed = (bytes.fromhex(row[name]) for name in ("key", "plain", "sealed"))
        assert key_id(key) == row["key_id"]
        inner = MemoryStore()
        Encrypted(inner, [key]).append("log", plain, at=NEW)
        assert inner.read("log") == sealed
        piecewise = MemoryStore()
        fill(Encrypted(piecewise, [key]), "log", [each.raw for each in scan(plain)])
        assert piecewise.read("log") == sealed
        assert Encrypted(inner, [key]).read("log") == plain


def test_equal_bodies_do_not_look_equal(store, inner):
    log = RecordLog(store, "log")
    for number in range(50):
        log.append("message", b"a rather long and always equal body", id="00000000", time=TIME, expect=number + 1)
    log.copy("other")
    fill(store, "third", some(b"a rather long and always equal body"))
    bodies = [each.body for name in ("log", "third") for each in RecordLog(inner, name)]
    assert len(set(bodies)) == len(bodies)


def test_a_nonce_comes_twice_only_for_the_very_same_record_at_the_same_place(store, inner):
    bodies = (b"", b"a", b"b", b"ab")
    for name, pieces in (
        ("log", some(*bodies)),
        ("again", some(*bodies)),
        ("swapped", some(b"b", b"a", b"", b"ab")),
        ("longer", some(b"", b"ab", b"b", b"ab")),
    ):
        fill(store, name, pieces)
    seen: dict[str, set[object]] = {}
    for row in inner.list():
        plain = store.read(row.name)
        for raw, opened in zip(RecordLog(inner, row.name), scan(plain), strict=True):
            origin = plain[: next(scan(plain)).end] if opened.offset else b""
            seen.setdefault(json.loads(raw.line)["seal"][:24], set()).add((opened.raw, opened.offset, origin))
    assert {len(each) for each in seen.values()} == {1}
    assert len(seen) == 4 + 4 + 3, "the logs `log` and `again` are one, and `longer` begins as they do"


# The plain log.

BATCHES = st.lists(
    st.lists(st.binary(max_size=40) | st.integers(0, 3000).map(lambda size: b"x" * size), min_size=1, max_size=4),
    min_size=1,
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(batches=BATCHES, data=st.data())
def test_whatever_is_appended_is_read_back_at_every_offset(batches, data):
    inner = MemoryStore()
    store, plain, tail, n = Encrypted(inner, [KEY]), b"", NEW, 1
    ends = [0]
    for batch in batches:
        piece = b"".join(record(n + number, body) for number, body in enumerate(batch))
        n += len(batch)
        tail = store.append("log", piece, at=tail)
        plain += piece
        ends.append(len(plain))
        assert tail == store.tail("log") == Tail(len(plain), tail.run)
    offsets = st.integers(0, len(plain) + 2)
    for opened in (store, Encrypted(inner, [OTHER, KEY])):
        start, stop = data.draw(offsets), data.draw(offsets)
        snapshot = opened.snapshot("log")
        for ask in (opened, snapshot):
            args = ("log",) if ask is opened else ()
            assert ask.read(*args, start, stop) == b"".join(ask.stream(*args, start, stop)) == plain[start:stop]
        assert opened.read("log") == snapshot.read() == plain
        assert opened.boundary("log", start) <= start
        assert [row.tail for row in opened.list(tails=True)] == [tail]
        for number, (begin, end) in enumerate(pairwise(ends)):
            repeated = b"".join(each.raw for each in scan(plain[begin:end]))
            if opened is store:
                at = Tail(begin, tail.run) if number else NEW
                assert store.append("log", repeated, at=at) == Tail(end, tail.run)
    assert [each.body for each in RecordLog(store, "log")] == [body for batch in batches for body in batch]


def test_large_bodies_come_back(store, inner):
    big = random.Random(1).randbytes(5 << 20)
    log = RecordLog(store, "log")
    log.append("message", b"one", expect=1)
    log.append("message", big)
    log.append("message", b"three")
    cold = RecordLog(Encrypted(inner, [KEY]), "log")
    assert [each.body for each in cold] == [b"one", big, b"three"]
    assert [each.body for each in cold.last(1)] == [b"three"]
    assert cold.count() == 3
    data = store.read("log")
    assert store.read("log", 1 << 20, (4 << 20) + 1) == data[1 << 20 : (4 << 20) + 1]


class Counted(Wrapper):
    """Counts the bytes that it is asked for, and notes what is waited for."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.fetched = 0
        self.waited: list[Tail] = []

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        data = super().read(log, start, stop)
        self.fetched += len(data)
        return data

    def snapshot(self, log: str) -> Snapshot:
        return Store.snapshot(self, log)

    def wait(self, log: str, at: Tail, timeout: float) -> bool:
        self.waited.append(at)
        return False


def test_a_read_near_the_end_of_a_long_log_fetches_little(inner):
    counted = Counted(inner)
    store = Encrypted(counted, [KEY])
    log = RecordLog(store, "log")
    log.append_many([draft("message", b"x" * 1000) for _ in range(3000)], expect=1)
    counted.fetched = 0
    size = store.tail("log").size
    assert counted.fetched == 0, "its own append is known"
    assert len(store.read("log", size - 100)) == 100
    assert 0 < counted.fetched < 200_000
    cold = Encrypted(counted, [KEY])
    cold.tail("log")
    counted.fetched = 0
    assert cold.tail("log").size == size
    assert [row.tail.size for row in cold.list(tails=True)] == [size]
    assert counted.fetched == 0, "what was read once is known"


def test_a_repeated_append_forgets_nothing_of_what_follows(inner):
    counted = Counted(inner)
    store = Encrypted(counted, [KEY])
    pieces = [record(n, b"x" * 40_000) for n in range(1, 9)]
    tail = fill(store, "log", pieces)
    store.append("log", pieces[0], at=NEW)
    store.append("log", pieces[1], at=Tail(len(pieces[0]), tail.run))
    counted.fetched = 0
    assert store.tail("log") == tail
    assert counted.fetched == 0
    assert store.read("log") == b"".join(pieces)


def test_a_large_record_is_fetched_and_opened_once_by_a_reader_of_records(inner):
    counted = Counted(inner)
    store = Encrypted(counted, [KEY])
    RecordLog(store, "log").append("message", b"x" * (8 << 20), expect=1)
    counted.fetched = 0
    assert [len(each.body) for each in RecordLog(store, "log")] == [8 << 20]
    assert counted.fetched < 11 << 20


def test_whoever_waits_is_told_at_once_that_the_plain_log_has_moved(inner):
    counted = Counted(inner)
    store = Encrypted(counted, [KEY])
    assert store.wait("log", NEW, 60.0) is False
    first = store.append("log", record(1, b"one"), at=NEW)
    assert store.wait("log", first, 60.0) is False
    assert counted.waited == [NEW, inner.tail("log")]
    store.append("log", record(2, b"two"), at=first)
    assert store.wait("log", first, 60.0) is True
    assert store.wait("none", first, 60.0) is True
    assert len(counted.waited) == 2


def test_a_boundary_is_one_of_the_plain_log(tmp_path):
    class Bounded(Wrapper):
        """Knows where appends began, as a bucket does."""

        def __init__(self, store: Store) -> None:
            super().__init__(store)
            self.begins: list[int] = []

        def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
            self.begins.append(at.size)
            return super().append(log, data, at=at)

        def boundary(self, log: str, before: int) -> int:
            return max(begin for begin in self.begins if begin <= before)

        def snapshot(self, log: str):
            return Store.snapshot(self, log)

    store = Encrypted(Bounded(MemoryStore()), [KEY])
    pieces = [b"".join(some(b"x" * 50, b"y")), *(record(3, b"z" * size) for size in (0, 700, 3))]
    fill(store, "log", pieces)
    begins = [sum(map(len, pieces[:number])) for number in range(len(pieces))]
    size = sum(map(len, pieces))
    for before in range(size + 3):
        expected = max(begin for begin in begins if begin <= before)
        assert expected == store.boundary("log", before) == store.snapshot("log").boundary(before)


def test_sessions_and_conversations_work_unchanged(store, inner):
    sessions = Sessions(store)
    with sessions.start(id="0a1b2c3d") as session:
        asked = session.append("message", b"SWORDFISH")
    with sessions.open(sessions.fork("0a1b2c3d", before=asked.n + 1, to="4e5f6071")) as fork:
        fork.append("message", b"SWORDFISH too")
    assert [each.body for each in sessions.load("4e5f6071").records][-2:] == [b"SWORDFISH", b"SWORDFISH too"]
    talks = Conversations(store)
    for turn in range(60):  # enough for a snapshot, which says at which offsets messages stand
        talks.log_append("c", turn, [{"role": "user", "content": f"SWORDFISH {turn}"}])
    again = Conversations(Encrypted(inner, [KEY]))
    assert [each.content for each in again.load_recent_messages("c", 2)] == ["SWORDFISH 58", "SWORDFISH 59"]
    assert again.message_count("c") == 60
    assert [row.tail for row in store.list(tails=True)] == [store.tail(row.name) for row in inner.list()]
    assert all(b"SWORDFISH" not in inner.read(row.name) for row in inner.list())


def test_threads_that_append_and_read_through_one_store_see_one_log(store):
    RecordLog(store, "log").append("message", b"begin", expect=1)
    begin = Barrier(4)

    def work(number: int) -> None:
        log = RecordLog(store, "log")
        begin.wait()
        for turn in range(25):
            log.append("message", b"%d:%d" % (number, turn))
            size = store.tail("log").size
            assert len(store.read("log", 0, size)) == size
            read = [each.n for each in log]
            assert read == list(range(1, len(read) + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert [each.n for each in RecordLog(store, "log")] == list(range(1, 102))


def test_an_answer_that_was_lost_is_healed_by_another_process(inner):
    store = Encrypted(Faulty(inner, plan={2: "lost"}), [KEY])
    first, second = some(b"one", b"two")
    tail = store.append("log", first, at=NEW)
    with pytest.raises(Unavailable):
        store.append("log", second, at=tail)
    again = Encrypted(inner, [KEY])
    assert again.append("log", second, at=tail).size == len(first + second)
    assert again.read("log") == first + second


# What is refused.


@pytest.mark.parametrize(
    "data",
    [
        b"text", b"{}\n\n", b" {}\n\n", b"null\n\n", record(1, b"x")[:-1], record(1, b"x") + b"{",
        record(1, b"x") + b"\0", b"\n", record(1, b"x") + b"more\n\n", b'{"n":1} \n\n',
        encode(Header(kind="x" * (MAX_HEADER - 100)), b""),
    ],
    ids=range(11),
)  # fmt: skip
def test_what_is_not_whole_records_is_refused_and_the_storage_is_not_asked(store, inner, data):
    tail = store.append("log", record(1, b"one"), at=NEW)
    for at in (NEW, tail):
        with pytest.raises(ValueError, match="sealed"):
            store.append("log" if at != NEW else "new", data, at=at)
    assert [row.name for row in inner.list()] == ["log"]
    assert store.read("log") == record(1, b"one")


def test_so_is_a_body_that_the_cipher_does_not_take(store, inner, monkeypatch):
    monkeypatch.setattr("statestore.wrappers._sealedlog.MOST", 3)
    with pytest.raises(ValueError, match="at most 3 bytes"):
        store.append("log", record(1, b"four"), at=NEW)
    assert list(inner.list()) == []
    store.append("log", record(1, b"one"), at=NEW)


def test_an_append_at_another_place_is_a_conflict_with_the_tail_of_the_plain_log(store):
    first, second, third = some(b"one", b"two", b"three")
    tail = fill(store, "log", [first, second])
    for size in (1, len(first), len(first) + 1, tail.size - 1, tail.size + 1, tail.size + 400, 2**62):
        with pytest.raises(Conflict) as caught:
            store.append("log", third, at=Tail(size, tail.run))
        assert (caught.value.found, caught.value.expected) == (tail, Tail(size, tail.run))
    for at in (NEW, Tail(tail.size, "other")):
        with pytest.raises(Conflict) as caught:
            store.append("log", third, at=at)
        assert caught.value.found == tail
    with pytest.raises(NotFound):
        store.append("none", third, at=tail)


def test_a_copy_ends_behind_a_record(store, inner):
    first, second = some(b"one", b"two")
    fill(store, "log", [first, second])
    for stop in (1, len(first) - 1, len(first) + 1):
        with pytest.raises(ValueError, match="end of a record"):
            store.copy("log", "copy", stop=stop)
        with pytest.raises(ValueError, match="end of a record"):
            store.snapshot("log").copy("copy", stop=stop)
    assert [row.name for row in inner.list()] == ["log"]
    assert store.copy("log", "copy", stop=len(first)).size == len(first)
    assert store.read("copy") == first
    assert inner.read("log").startswith(inner.read("copy")), "a copy is not sealed anew"
    third = record(2, b"else")
    store.append("copy", third, at=store.tail("copy"))
    assert store.read("copy") == first + third


def test_a_store_that_cannot_tell_runs_apart_is_not_encrypted(inner):
    inner.capabilities = replace(inner.capabilities, runs=False)
    with pytest.raises(NotSupported, match="capability=runs"):
        Encrypted(inner, [KEY])


def test_the_largest_append_is_one_that_the_storage_takes(inner):
    inner.capabilities = replace(inner.capabilities, max_append=9000)
    store = Encrypted(inner, [KEY])
    tiny = b"".join(encode(Header(), b"") for _ in range(store.capabilities.max_append // len(encode(Header(), b""))))
    store.append("log", tiny, at=NEW)
    assert inner.tail("log").size <= 9000


@pytest.mark.parametrize("keys", [[], [b"short"], [KEY, KEY[:-1]], [KEY + b"x"]])
def test_a_key_has_32_bytes(inner, keys):
    with pytest.raises(ValueError, match="key"):
        Encrypted(inner, keys)
    with pytest.raises(TypeError):
        Encrypted(inner, ["text" * 8])


# Without the key.

CALLS = {
    "read": lambda store, tail: store.read("log"),
    "read a part": lambda store, tail: store.read("log", 3, 5),
    "stream": lambda store, tail: list(store.stream("log")),
    "snapshot": lambda store, tail: store.snapshot("log").read(),
    "append": lambda store, tail: store.append("log", record(9, b"x"), at=tail),
    "append after a tail": lambda store, tail: store.append("log", record(9, b"x"), at=store.tail("log")),
    "repeat": lambda store, tail: store.append("log", record(2, b"two"), at=Tail(len(record(1, b"one")), tail.run)),
    "copy": lambda store, tail: store.copy("log", "copy"),
    "copy a snapshot": lambda store, tail: store.snapshot("log").copy("copy"),
    "delete": lambda store, tail: store.delete("log"),
    "delete at": lambda store, tail: store.delete("log", at=tail),
    "log append": lambda store, tail: RecordLog(store, "log").append("message", b"x"),
    "log last": lambda store, tail: RecordLog(store, "log").last(1),
    "log copy": lambda store, tail: RecordLog(store, "log").copy("copy"),
    "log recover": lambda store, tail: RecordLog(store, "log").recover(),
    "reseal": lambda store, tail: reseal(store, "log", store, "copy"),
    "verify": lambda store, tail: verify(store, "log"),
}


@pytest.mark.parametrize("call", CALLS)
def test_without_the_key_every_call_that_needs_it_raises_and_nothing_is_changed(store, inner, call):
    tail = fill(store, "log", some(b"one", b"two"))
    before = inner.read("log"), inner.tail("log")
    with pytest.raises(Unavailable, match="the log is sealed with a key that is not here") as caught:
        CALLS[call](Encrypted(inner, [OTHER]), tail)
    assert caught.value.facts["key"] == key_id(KEY)
    assert not caught.value.retry
    assert not caught.value.effect_unknown
    assert [row.name for row in inner.list()] == ["log"]
    assert (inner.read("log"), inner.tail("log")) == before


def test_without_the_key_names_and_tails_are_still_there(store, inner):
    tail = fill(store, "log", some(b"one", b"two"))
    blind = Encrypted(inner, [OTHER])
    assert [tuple(row) for row in blind.list(tails=True)] == [("log", tail)]
    assert (blind.tail("log"), blind.read("log", tail.size), blind.read("log", 3, 3)) == (tail, b"", b"")


def test_without_the_key_a_torn_end_is_not_cut(tmp_path):
    local = LocalStore(tmp_path)
    fill(Encrypted(local, [KEY]), "log", some(b"one", b"two"))
    file = tmp_path / "log.state"
    file.write_bytes(torn := file.read_bytes()[:-2])
    blind = Encrypted(LocalStore(tmp_path), [OTHER])
    for call in (
        RecordLog(blind, "log").recover,
        lambda: blind.cut("log", len(record(1, b"one")), at=blind.tail("log")),
    ):
        with pytest.raises(Unavailable):
            call()
    assert file.read_bytes() == torn


def test_keys_show_in_no_repr_and_no_error(store, inner):
    fill(store, "log", some(b"SWORDFISH"))
    shown = f"{store!r} {vars(store)!r} {store.snapshot('log')!r}"
    for call in CALLS.values():
        with pytest.raises(StateStoreError) as caught:
            call(Encrypted(inner, [OTHER]), NEW)
        shown += f"{caught.value!r} {caught.value}"
    for key in (KEY, OTHER):
        for secret in (key.hex(), repr(key)[2:-1], "SWORDFISH"):
            assert secret not in shown


# What somebody with the storage may try.


def swap(sealed: list[bytes]) -> list[bytes]:
    return [sealed[0], sealed[2], sealed[1]]


@pytest.mark.parametrize(
    ("what", "first_bad"),
    [
        ("a body", 2), ("a header", 2), ("a seal", 2), ("the order", 2), ("a doubled record", 3),
        ("a dropped record", 2),
        ("another log's record", 2), ("the first record", 1), ("another log's first record", 1), ("a plain record", 2),
    ],
)  # fmt: skip
def test_a_record_that_was_changed_or_moved_is_corrupt_and_those_before_it_are_read(store, inner, what, first_bad):
    """All records here have the same sizes, so that nothing but the seals can tell."""
    fill(store, "log", some(b"one", b"two", b"six"))
    fill(store, "other", [record(1, b"ONE"), record(2, b"TWO"), record(3, b"SIX")])
    one, two, six = (each.raw for each in RecordLog(inner, "log"))
    others = [each.raw for each in RecordLog(inner, "other")]
    put(
        inner,
        "log",
        b"".join(
            {
                "a body": [one, two[:-2] + bytes([two[-2] ^ 1]) + b"\n", six],
                "a header": [one, two.replace(b'"message"', b'"massage"'), six],
                "a seal": [
                    one,
                    re.sub(rb'"seal":"..', b'"seal":"00' if b'"seal":"00' not in two else b'"seal":"11', two),
                    six,
                ],
                "the order": [one, six, two],
                "a doubled record": [one, two, two],
                "a dropped record": [one, six],
                "another log's record": [one, others[1], six],
                "the first record": [one.replace(b'"message"', b'"massage"'), two, six],
                "another log's first record": [others[0], two, six],
                "a plain record": [one, record(2, b"two"), six],
            }[what]
        ),
    )
    fresh = Encrypted(inner, [KEY])
    if what == "another log's first record":
        first_bad = 2
    read = []
    with pytest.raises(Corrupt) as caught:
        read.extend(each.body for each in RecordLog(fresh, "log"))
    expected = [b"ONE" if what == "another log's first record" else b"one", b"two"][: first_bad - 1]
    assert (read, caught.value.record) == (expected, first_bad)
    assert caught.value.offset == (first_bad - 1) * len(record(1, b"one"))
    before = inner.read("log")
    for change in (lambda: RecordLog(fresh, "log").append("message", b"x"), RecordLog(fresh, "log").recover):
        with pytest.raises(Corrupt):
            change()
    assert inner.read("log") == before


def test_a_log_that_was_never_sealed_says_so_and_how_to_seal_it(store, inner):
    fill(inner, "log", some(b"one", b"two"))
    with pytest.raises(Corrupt, match="this record is not sealed: read the log without Encrypted, and reseal it"):
        store.read("log")
    with pytest.raises(Corrupt):
        RecordLog(store, "log").append("message", b"x")
    reseal(inner, "log", store, "sealed")
    assert store.read("sealed") == inner.read("log")


def test_damage_of_the_storage_is_told_with_record_and_offset_of_the_plain_log(store, inner):
    pieces = some(b"one", b"two", b"three")
    fill(store, "log", pieces)
    raw = [each.raw for each in RecordLog(inner, "log")]
    put(inner, "log", raw[0] + b"rubbish\n" + raw[2])
    log = RecordLog(Encrypted(inner, [KEY]), "log")
    assert [each.body for each in log.read(before=2)] == [b"one"]
    with pytest.raises(Corrupt) as caught:
        list(log)
    assert (caught.value.record, caught.value.offset) == (2, len(pieces[0]))
    verdict = verify(store, "log")
    assert (verdict.records, verdict.size, verdict.ok) == (1, len(pieces[0]), False)


def test_what_was_read_does_not_stand_for_another_log_under_its_name(store, inner):
    pieces = some(b"one", b"two")
    tail = fill(store, "log", pieces)
    other = Encrypted(inner, [KEY])
    assert other.tail("log") == tail
    store.delete("log")
    new = fill(store, "log", some(b"ONE", b"TWO", b"THREE"))
    assert other.read("log") == b"".join(some(b"ONE", b"TWO", b"THREE"))
    with pytest.raises(Conflict) as caught:
        other.append("log", record(3, b"x"), at=tail)
    assert caught.value.found == new


def test_bytes_that_were_never_acknowledged_and_made_way_for_others_are_forgotten(tmp_path):
    local = LocalStore(tmp_path, sync="never")
    early = Encrypted(local, [KEY])
    tail = fill(early, "log", [record(1, b"one")])
    late = Encrypted(LocalStore(tmp_path, sync="never"), [KEY])
    late.append("log", record(2, b"failed, and was taken back"), at=tail)
    seen = early.tail("log")
    late.cut("log", tail.size, at=late.tail("log"))
    late.append("log", record(2, b"longer than what was there, and now acknowledged"), at=tail)
    assert early.tail("log").size > seen.size
    assert [each.n for each in RecordLog(early, "log")] == [1, 2]
    assert early.read("log") == late.read("log")


# Torn ends, by a process that dies.

WRITER = """
import sys
import traceback
from statestore.records import RecordLog
from statestore.wrappers import Encrypted
from statestore_local import LocalStore
log = RecordLog(Encrypted(LocalStore(sys.argv[1]), [bytes(range(32))]), "log")
number = 0
while True:
    record = log.append("message", b"%d " % number * 3000, **({"expect": 1} if number == 0 else {}))
    number += 1
    print(record.n, flush=True)
"""


def test_a_writer_that_is_killed_loses_nothing_acknowledged(tmp_path):
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        acknowledged = [int(writer.stdout.readline()) for _ in range(20)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
    log = RecordLog(Encrypted(LocalStore(tmp_path), [KEY]), "log")
    log.append("message", b"after")
    bodies = [each.body for each in log]
    assert bodies[-1] == b"after"
    assert len(bodies) - 1 in (acknowledged[-1], acknowledged[-1] + 1)
    assert bodies[:-1] == [b"%d " % number * 3000 for number in range(len(bodies) - 1)]


def test_a_torn_end_is_left_out_by_readers_and_cut_by_a_writer_at_every_byte(tmp_path):
    local = LocalStore(tmp_path, sync="never")
    pieces = some(b"one", b"two" * 5)
    fill(Encrypted(local, [KEY]), "log", pieces)
    local.close()
    file = tmp_path / "log.state"
    sealed = file.read_bytes()
    first = len(pieces[0]) + GROWTH
    for end in range(first + 1, len(sealed), 7):
        file.write_bytes(sealed[:end])
        with Encrypted(LocalStore(tmp_path, sync="never"), [KEY]) as store:
            log = RecordLog(store, "log")
            assert [each.body for each in log] == [b"one"]
            tail = store.tail("log")
            assert tail.size == len(pieces[0]) + end - first
            assert verify(store, "log").torn == end - first
            with pytest.raises(Corrupt, match="cut it before appending"):
                store.append("log", record(2, b"x"), at=tail)
            log.append("message", b"new")
            assert [each.body for each in log] == [b"one", b"new"]


def test_a_cut_within_a_record_is_refused(tmp_path):
    store = Encrypted(LocalStore(tmp_path), [KEY])
    pieces = some(b"one", b"two")
    tail = fill(store, "log", pieces)
    for size in (1, len(pieces[0]) + 3, -1, tail.size + 1):
        with pytest.raises(ValueError, match="cut"):
            store.cut("log", size, at=tail)
    with pytest.raises(Conflict):
        store.cut("log", 0, at=Tail(len(pieces[0]), tail.run))
    assert store.cut("log", len(pieces[0]), at=tail) == pieces[1]
    assert store.read("log") == pieces[0]


# Changing keys.


def test_a_log_is_resealed_into_a_new_one_with_the_new_key(inner):
    old, both, new = Encrypted(inner, [KEY]), Encrypted(inner, [OTHER, KEY]), Encrypted(inner, [OTHER])
    pieces = some(b"one", b"two")
    tail = fill(old, "log", pieces)
    before = inner.read("log")
    assert reseal(both, "log", both, "log-2").size == tail.size
    assert new.read("log-2") == old.read("log") == b"".join(pieces)
    assert inner.read("log") == before
    with pytest.raises(Unavailable):
        old.read("log-2")
    with pytest.raises(Exists):
        reseal(both, "log", both, "log-2")
    with pytest.raises(NotFound):
        reseal(both, "none", both, "log-3")
    with pytest.raises(InvalidName):
        reseal(both, "log", both, "../up")
    both.delete("log")
    both.copy("log-2", "log")
    assert new.read("log") == b"".join(pieces)


def test_a_log_may_go_on_with_a_new_key_for_those_who_have_both(inner):
    old, both, new = Encrypted(inner, [KEY]), Encrypted(inner, [OTHER, KEY]), Encrypted(inner, [OTHER])
    first, second = some(b"one", b"two")
    tail = fill(old, "log", [first])
    tail = both.append("log", second, at=tail)
    assert both.read("log") == first + second
    assert new.read("log", len(first)) == second
    assert old.tail("log") == new.tail("log") == tail
    for blind in (old, new):
        with pytest.raises(Unavailable):
            blind.read("log")
    with pytest.raises(Unavailable):
        old.append("log", record(3, b"x"), at=tail)


# By URL.

SPELLED, SPELLED_OTHER = base64.b64encode(KEY).decode(), base64.b64encode(OTHER).decode()


def test_it_is_opened_by_url_with_keys_from_the_environment_or_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("STATESTORE_ENCRYPTED_KEYS", SPELLED)
    tail = fill(open_store("encrypted::memory://test-encrypted"), "log", some(b"one"))
    monkeypatch.setenv("STATESTORE_ENCRYPTED_KEYS", f"{SPELLED_OTHER}, {SPELLED}")
    open_store("encrypted::memory://test-encrypted").append("log", record(2, b"two"), at=tail)
    monkeypatch.delenv("STATESTORE_ENCRYPTED_KEYS")
    file = tmp_path / "keys"
    file.write_text(f"{SPELLED}\n{SPELLED_OTHER}\n")
    store = open_store("encrypted::memory://test-encrypted", encrypted_key_file=file)
    assert store.read("log") == b"".join(some(b"one", b"two"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"encrypted_keys": "SWORDFISH"},
        {"encrypted_keys": SPELLED[:-2]},
        {"encrypted_keys": SPELLED, "encrypted_key_file": "keys"},
        {"encrypted_key_file": "no/such/file"},
        {"encrypted_keys": f"{SPELLED},"},
    ],
)
def test_wrong_keys_are_refused_and_not_shown(options, monkeypatch):
    with pytest.raises(PluginError) as caught:
        open_store("encrypted::memory://", **options)
    assert caught.value.facts["wrapper"] == "encrypted"
    shown = "".join(traceback.format_exception(caught.value))
    assert "SWORDFISH" not in shown
    assert SPELLED[:-2] not in shown


def test_without_the_package_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['cryptography'] = None; from statestore import open_store;"
        "open_store('encrypted::memory://', encrypted_keys='AAAA')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'statestore[crypto]' wrapper=encrypted missing=cryptography" in ran.stderr.splitlines()[-1]
