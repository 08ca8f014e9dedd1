"""A log as JSON lines, and back: the same bytes, or no log."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statestore.errors import Conflict, Corrupt, Exists, Unavailable
from statestore.records import Record, RecordLog, scan
from statestore.records.jsonl import add_lines, decode_line, encode_line
from statestore.records.making import NewLog
from statestore.store import Store, Tail
from statestore_memory import MemoryStore

# Spellings that Go reads and does not write: blanks, other cases, escapes, doubled and unknown members, no UTF-8.
ODD = [
    b'"n":7',
    b'"N" :\t7',
    b'"kind":"note"',
    b'"Kind":"n\\u006fte"',
    b'"kind":"a","kind":"b"',
    b'"id":"\xff\xfe"',
    b'"time":"2026-09-28T9:00:00,5+01:00"',
    b'"exit":null',
    b'"u\\u017fage":{"input":1}',
    b'"cache":{"b": [1, 2e5] , "a":"\xe2\x80\xa8"}',
    b'"via":"\xc2\x85 \x1f"'.replace(b"\x1f", b"\\u001f"),
    b'"nobody knows":{"":[null,-0]}',
    b'"truncated" : true\r',
]
blanks = st.sampled_from([b"", b" ", b"\t", b" \r "])


@st.composite
def records(draw: st.DrawFn) -> bytes:
    body = draw(
        st.one_of(st.binary(max_size=60), st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace")))
    )
    unknown = st.text(max_size=8).map(lambda text: json.dumps("x" + text).encode() + b":0")
    members = [*draw(st.lists(st.sampled_from(ODD) | unknown, max_size=4)), b'"len":%d' % len(body)]
    around = [draw(blanks) + member + draw(blanks) for member in draw(st.permutations(members))]
    return draw(blanks) + b"{" + b",".join(around) + b"}" + draw(blanks) + b"\n" + body + b"\n"


@given(st.lists(records(), min_size=1, max_size=5))
def test_any_log_goes_out_and_comes_back_byte_for_byte(raw: list[bytes]) -> None:
    data = b"".join(raw)
    assert [record.raw for record in scan(data)] == raw  # it is a log
    lines = [encode_line(record) for record in scan(data)]
    assert all(line.isascii() and line[:-1].decode().isprintable() and line.endswith(b"\n") for line in lines)
    store = MemoryStore()
    with NewLog() as made:
        add_lines(lines, made)
        made.create(store, "log")
    assert store.read("log") == data
    # A program that reads and writes the lines changes nothing that counts.
    assert [decode_line(json.dumps(json.loads(line), indent=1, ensure_ascii=False).encode()) for line in lines] == raw


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not an object"),
        (b'{"header":"{}"}', "not an object"),
        (b'{"header":"{}","body":"","more":1}', "not an object"),
        (b'{"header":"{}","body":5}', '"body" is a string'),
        (b'{"header":"{}","body":{"base64":"?"}}', '"body" holds no bytes'),
        (b'{"header":"{}","body":"\\ud800"}', '"body" holds no bytes'),
        (b'{"header":"{}\\n","body":""}', "one line"),
        (b'{"header":"{}","body":"x"}', "len is 0 and the body has 1"),
        (b'{"header":"{\\"len\\":-1}","body":""}', "no body's size"),
        (b'{"header":"","body":""}', "not JSON at byte 0"),
        (json.dumps({"header": "{" + " " * (1 << 20) + "}", "body": ""}).encode(), "at most 1048576 bytes"),
    ],
)
def test_a_line_that_is_no_record_is_refused_with_its_number_and_nothing_is_made(line: bytes, why: str) -> None:
    good = encode_line(Record(b"{}", b"", 0))
    with NewLog() as made:
        with pytest.raises(Corrupt, match=why) as caught:
            add_lines([good, line, good], made)
        assert caught.value.facts["line"] == 2


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log is written in pieces of at most ten bytes, unless a record is larger."""
    monkeypatch.setattr("statestore.records.making._PIECE", 10)


def create(store: Store, *raw: bytes) -> Tail:
    with NewLog() as made:
        for one in raw:
            made.add(one)
        return made.create(store, "log")


RAW = (b"{}\n\n", b"{}\n\n", b'{"len":9}\n123456789\n', b"{}\n\n")


class Recorded(MemoryStore):
    """Remembers what it was given, and fails or is overtaken in front of one append."""

    def __init__(self, before: int = -1, error: BaseException | None = None, deletes: bool = True) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.before, self.error, self.deletes = before, error, deletes

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        if len(self.pieces) == self.before and self.error:
            raise self.error
        if len(self.pieces) == self.before:
            super().append(log, b"{}\n\n", at=at)
        self.pieces.append(data)
        return super().append(log, data, at=at)

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        if not self.deletes:
            raise self._refusal("deletes")
        super().delete(log, at=at)


def test_a_log_that_fits_is_one_write() -> None:
    store = Recorded()
    assert create(store, *RAW) == store.tail("log")
    assert store.pieces == [b"".join(RAW)]


@pytest.mark.usefixtures("small")
def test_a_larger_one_is_written_in_pieces_that_end_behind_a_record() -> None:
    store = Recorded()
    create(store, *RAW)
    assert store.pieces == [RAW[0] + RAW[1], RAW[2], RAW[3]]
    assert store.read("log") == b"".join(RAW)


def test_a_record_that_is_larger_than_an_append_may_be_is_split() -> None:
    store = Recorded()
    store.capabilities = type(store.capabilities)(max_append=7)
    create(store, *RAW)
    assert max(map(len, store.pieces)) == 7
    assert store.read("log") == b"".join(RAW)


def test_a_log_that_is_there_is_left_alone_even_with_the_same_bytes() -> None:
    store = MemoryStore()
    create(store, *RAW)
    with pytest.raises(Exists):
        create(store, *RAW)
    assert store.read("log") == b"".join(RAW)


def test_who_makes_the_log_first_wins() -> None:
    store = Recorded(before=0)
    with pytest.raises(Exists):
        create(store, *RAW)
    assert store.read("log") == b"{}\n\n"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("error", [Unavailable("the disk is full"), KeyboardInterrupt()])
def test_what_was_begun_is_removed_where_the_rest_fails(error: BaseException) -> None:
    store = Recorded(1, error)
    with pytest.raises(type(error)):
        create(store, *RAW)
    assert list(store.list()) == []


@pytest.mark.usefixtures("small")
def test_what_cannot_be_removed_is_named() -> None:
    store = Recorded(1, Unavailable("the disk is full"), deletes=False)
    with pytest.raises(Unavailable) as caught:
        create(store, *RAW)
    assert caught.value.facts["left"] == "the log's first 8 bytes"
    assert store.read("log") == RAW[0] + RAW[1]


@pytest.mark.usefixtures("small")
def test_what_others_have_added_meanwhile_is_not_removed() -> None:
    store = Recorded(1)
    with pytest.raises(Conflict) as caught:
        create(store, *RAW)
    assert caught.value.facts["left"] == "the log's first 8 bytes"
    assert [record.raw for record in RecordLog(store, "log")] == [RAW[0], RAW[1], b"{}\n\n"]


def test_a_failure_that_may_pass_is_tried_again_with_the_same_bytes() -> None:
    class Shaky(MemoryStore):
        failures = 2

        def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
            tail = super().append(log, data, at=at)
            if self.failures:
                self.failures -= 1
                raise Unavailable("no answer came", retry=True, effect_unknown=True)
            return tail

    store: Store = Shaky()
    create(store, *RAW)
    assert store.read("log") == b"".join(RAW)


def test_no_record_is_no_log() -> None:
    with pytest.raises(ValueError, match="at least one"):
        create(MemoryStore())


def test_lines_may_come_from_a_generator_and_memory_is_let_go() -> None:
    def lines() -> Iterator[bytes]:
        for number in range(40):
            body = b"%d" % number + b"x" * (1 << 20)
            yield encode_line(Record(b'{"len":%d}' % len(body), body, 0))

    store = MemoryStore()
    with NewLog() as made:
        add_lines(lines(), made)
        assert made._file._rolled  # type: ignore[attr-defined]
        made.create(store, "log")
        assert store.tail("log").size == made.size
