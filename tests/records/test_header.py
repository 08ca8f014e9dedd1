"""Headers: two decoders that agree, a round trip for every value, and limits that hold at any depth of the stack."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statestore.records import MAX_HEADER, Header, RecordLog, Usage, draft, encode, scan
from statestore.records.header import MAX_BODY, _decode_slowly, decode_header, encode_header, match_plain
from statestore_memory import MemoryStore

VECTORS = Path(__file__).parents[1] / "vectors" / "statefile"

INT64 = st.integers(-(2**63), 2**63 - 1)
# Text with what splits lines elsewhere, what is escaped, and what no UTF-8 can hold.
AWKWARD = '\u2028\u2029\x85\r\n\v\f\x1c\x00\x7f<>&"\\/\ud800\udfff\ufffd\uffff\U0001f600é'
TEXT = st.text(st.characters() | st.sampled_from(AWKWARD), max_size=20)
TIMES = st.sampled_from(
    [
        "2026-09-28T12:00:00Z",
        "2026-09-28T12:00:00.120Z",
        "2026-09-28T1:02:03,5+05:30",
        "0000-02-29T23:59:59.999999999-23:59",
        "9999-12-31T00:00:00.1234567899Z",
    ]
)


# Two decoders


def outcome(decode: Callable[[bytes], Header], line: bytes) -> Header | None:
    """What a decoder makes of a line: a header with its cache as bytes, or None for a refusal."""
    try:
        header = decode(line)
    except ValueError:
        return None
    return header if 0 <= header.len <= MAX_BODY else None


def same(a: Header | None, b: Header | None) -> bool:
    if a is None or b is None:
        return a is b
    return msgspec.structs.astuple(a)[:-1] == msgspec.structs.astuple(b)[:-1] and bytes(a.cache) == bytes(b.cache)


def check(line: bytes) -> None:
    header = outcome(decode_header, line)
    assert same(header, outcome(_decode_slowly, line)), line
    plain = match_plain(line + b"\n", 0)
    if plain is not None:
        assert header is not None
        assert (plain.end(), int(plain[1])) == (len(line) + 1, header.len)


@given(st.from_regex(re.compile(match_plain.__self__.pattern), fullmatch=True))
def test_a_line_that_is_matched_without_being_read_is_read_alike(line: bytes) -> None:
    """Also with members twice: a scan believes the match's `len`, and whoever asks for the header gets the same."""
    assert match_plain(line, 0)
    check(line[:-1])


def test_the_lines_of_real_sessions_are_matched_without_being_read() -> None:
    lines = [
        record.line
        for name in ("session-200", "session-2000")
        for record in scan((VECTORS / f"{name}.state").read_bytes())
    ]
    plain = [line for line in lines if match_plain(line + b"\n", 0)]
    assert len(plain) > len(lines) // 2


NAMES = st.sampled_from(
    [
        "n",
        "kind",
        "id",
        "time",
        "len",
        "type",
        "step",
        "for",
        "exit",
        "truncated",
        "upto",
        "usage",
        "cache",
        "N",
        "Len",
        "LEN",
        "\u212aind",
        "\u017ftep",
        "full_output",
        "fullOutput",
        "full-output",
        "FULL_OUTPUT",
        "input",
        "output",
        "cache_read",
        "CACHE_WRITE",
        "",
        "other",
        "\x00",
        "lén",
    ]
)
NUMBERS = st.sampled_from(
    [
        "0",
        "1",
        "-0",
        "-1",
        "1.0",
        "1e2",
        "01",
        "+1",
        "1.",
        ".5",
        "0x3",
        "1_0",
        "NaN",
        "Infinity",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999999",
        "1e400",
    ]
)
LITERALS = st.sampled_from(
    [
        '""',
        '"a"',
        r'"\u0061"',
        r'"\ud83d\ude00"',
        r'"\ud800"',
        r'"\udc00\ud800"',
        r'"\x"',
        r'"\/"',
        '"\u2028"',
        '"\x7f"',
        '"2026-09-28T12:00:00Z"',
        '"2026-02-29T12:00:00Z"',
        r'"2026\u002d09-28T12:00:00Z"',
        '"\t"',
        "'a'",
        '"a',
    ]
)
BLANKS = st.sampled_from(["", "", "", " ", "\t", "\r", " \n", "\f", "\ufeff", "//x"])


@st.composite
def spelled_key(draw: st.DrawFn) -> str:
    name = draw(NAMES)
    if name and draw(st.booleans()) and draw(st.booleans()):
        place = draw(st.integers(0, len(name) - 1))
        return f'"{name[:place]}\\u{ord(name[place]):04x}{name[place + 1 :]}"'
    return json.dumps(name, ensure_ascii=draw(st.booleans()))


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.tuples(BLANKS, spelled_key(), BLANKS, values, BLANKS).map(lambda m: f"{m[0]}{m[1]}{m[2]}:{m[3]}{m[4]}")
    return st.lists(member, max_size=4).map(lambda members: "{" + ",".join(members) + "}")


def arrays(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(values, max_size=3).map(lambda elements: "[" + ",".join(elements) + "]")


VALUES = st.recursive(
    NUMBERS | LITERALS | st.sampled_from(["null", "true", "false", "nul", "True", ""]),
    lambda inner: objects(inner) | arrays(inner),
    max_leaves=4,
)
LINES = objects(VALUES).map(lambda text: text.encode("utf-8", "surrogatepass"))


@given(LINES)
@example(b'{"usage":{"input":1},"usage":{"output":2}}')
@example(b'{"usage":{"input":1},"us\\u0061ge":{"output":2}}')
@example(b'{"usage":{"input":1},"usage":null}')
@example(b'{"len":1.0}')
@example(b'{"exit":1,"exit":null}')
@example(b'{"kind":"a","kind":null}')
@example(b'{"truncated":true,"truncated":null}')
@example(b'{"cache":1,"cache":null}')
@example(b'{"time":"2026-02-30T00:00:00Z","time":"2026-02-20T00:00:00Z"}')
@example(b'{"kind":5,"kind":"a"}')
@example(b"null")
@example(b" {} ")
def test_the_fast_decoder_and_the_slow_one_agree_on_any_object(line: bytes) -> None:
    check(line)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A header that was fine, with a few bytes replaced, removed or put in."""
    line = bytearray(draw(st.sampled_from(_good_lines())))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(line) - 1))
        new = draw(
            st.binary(max_size=3) | st.sampled_from([b'"', b"\\", b",", b"}", b"0", b"null", b"\xe2\x80", b"\xff"])
        )
        line[place : place + draw(st.integers(0, 3))] = new
        if not line:
            break
    return bytes(line)


_cached_lines: list[bytes] = []


def _good_lines() -> list[bytes]:
    """The header lines of the session of 200 records, and one with every field."""
    if not _cached_lines:
        _cached_lines.extend({record.line for record in scan((VECTORS / "session-200.state").read_bytes())})
        _cached_lines.sort()
        _cached_lines.append(
            b'{"n":1,"kind":"a","id":"b","time":"2026-09-28T12:00:00Z","len":0,"type":"c","step":"d","provider":"e",'
            b'"for":"f","exit":1,"truncated":true,"full_output":"g","via":"h","source":"i","upto":2,"model":"j",'
            b'"harness":"k","request":"l","usage":{"input":1,"output":2,"cache_read":3,"cache_write":4},"cache":[1]}'
        )
    return _cached_lines


@given(damaged())
def test_the_fast_decoder_and_the_slow_one_agree_on_damaged_headers(line: bytes) -> None:
    check(line)


@given(st.binary(max_size=40))
def test_the_fast_decoder_and_the_slow_one_agree_on_any_bytes(line: bytes) -> None:
    check(line)


@given(st.lists(st.binary(max_size=6), max_size=4))
@example([b"\xe2\x80"])
@example([b"\xed\xa0\x80"])
@example([b"\xf0\x9f\x98", b"\xff"])
def test_bytes_that_are_no_utf_8_are_read_alike_in_values_and_keys(parts: list[bytes]) -> None:
    text = b"".join(parts).translate(None, b'"\\' + bytes(range(32)))
    for line in (b'{"kind":"%b"}' % text, b'{"%b":1}' % text, b'{"cache":"%b"}' % text):
        check(line)


def test_the_decoders_agree_on_every_header_of_the_vectors() -> None:
    lines = 0
    for text in (VECTORS / "decode.jsonl").read_bytes().split(b"\n")[:-1]:
        for line in base64.b64decode(json.loads(text)["input_b64"]).split(b"\n"):
            check(line)
            lines += 1
    assert lines > 600


# Nesting


def nested(key: bytes, depth: int, opening: bytes, closing: bytes) -> bytes:
    """A header in which the deepest value lies `depth` deep, the header counted."""
    return b'{"len":0,"%b":' % key + opening * (depth - 1) + b"1" + closing * (depth - 1) + b"}"


@pytest.mark.parametrize("key", [b"cache", b"unknown", b"usage"])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
@pytest.mark.parametrize("depth", [500, 9_998, 9_999, 10_000, 10_001, 20_000])
def test_values_may_be_nested_ten_thousand_deep_and_no_deeper(
    key: bytes, opening: bytes, closing: bytes, depth: int
) -> None:
    line = nested(key, depth, opening, closing)
    check(line)
    accepted = depth <= 10_000 and (key != b"usage" or opening != b"[")
    assert (outcome(decode_header, line) is not None) == accepted


def at_depth(frames: int, call: Callable[[], Any]) -> Any:
    """Call with so many frames more on the stack."""
    return call() if frames == 0 else at_depth(frames - 1, call)


@pytest.mark.parametrize("line", [nested(b"cache", 900, b"[", b"]"), nested(b"x", 10_001, b"[", b"]"), b'{"x":[[1]]}'])
def test_a_header_is_read_alike_however_full_the_stack_is(line: bytes) -> None:
    plain = outcome(decode_header, line)
    used = len(inspect_stack())
    for room in (60, 80, 120, 200, 400):
        deep = at_depth(sys.getrecursionlimit() - used - room, lambda: outcome(decode_header, line))
        assert same(deep, plain), room


def inspect_stack() -> list[Any]:
    frames = []
    frame: Any = sys._getframe()
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


# Round trips


def read_back(text: str) -> str:
    """What a text is after Go has written it: a lone surrogate cannot be spelled and becomes U+FFFD."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


TEXTS = [name for name, kind in Header.__annotations__.items() if kind == "str" and name != "time"]
HEADERS = st.builds(
    Header,
    n=INT64,
    time=TIMES,
    exit=st.none() | INT64,
    truncated=st.booleans(),
    upto=INT64,
    usage=st.none() | st.builds(Usage, input=INT64, output=INT64, cache_read=INT64, cache_write=INT64),
    cache=st.sampled_from([b"", b"null", b'{"a":[1,2]}', b'"\\ud800"', b"-0", b'"\xe2\x80\xa8<"']).map(msgspec.Raw),
    **dict.fromkeys(TEXTS, TEXT),
)


@given(HEADERS, st.binary(max_size=30))
def test_what_is_written_is_read_back(header: Header, body: bytes) -> None:
    data = encode(header, body)
    assert data.count(b"\n") == 2 + body.count(b"\n"), "no value brings a newline into the header line"
    (record,) = scan(data)
    assert record.body == body
    for name in Header.__struct_fields__:
        written, found = getattr(header, name), getattr(record.header, name)
        if name == "len":
            assert found == len(body)
        elif isinstance(written, str) and name != "time":
            assert found == read_back(written)
        elif name not in ("time", "cache"):
            assert found == written
    # What was read is written again to the same bytes.
    assert encode(record.header, record.body) == data


@given(HEADERS)
def test_other_json_readers_read_the_same_header(header: Header) -> None:
    line = encode_header(header)
    assert line.isascii() or line.decode("utf-8")
    found = json.loads(line)
    assert list(found)[:5] == ["n", "kind", "id", "time", "len"]
    assert [found["kind"], found["id"], found["n"]] == [read_back(header.kind), read_back(header.id), header.n]
    order = [field.encode_name for field in msgspec.structs.fields(Header)]
    assert list(found) == [name for name in order if name in found]
    assert not any(c in line for c in (b"<", b">", b"&", "\u2028".encode(), "\u2029".encode()))


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\r", "\v", "\f", "\x1c", "\x00", "\ud800"])
def test_what_other_readers_take_for_the_end_of_a_line_is_only_text(character: str) -> None:
    data = encode(Header(n=1, kind=f"a{character}b", via=character), character.encode("utf-8", "surrogatepass"))
    (record,) = scan(data)
    assert (record.kind, record.header.via) == (read_back(f"a{character}b"), read_back(character))
    assert (f"\\u{ord(character):04x}".encode() in record.line) == (character in "\u2028\u2029\v\x1c\x00")


# Sizes


def line_of(size: int) -> Header:
    """A header whose line has so many bytes."""
    bare = len(encode_header(Header(n=1, kind="x")))
    return Header(n=1, kind="x" * (size - bare + 1))


def test_a_header_line_may_have_a_mebibyte_and_no_more() -> None:
    data = encode(line_of(MAX_HEADER), b"body")
    (record,) = scan(data)
    assert len(record.line) == MAX_HEADER
    assert record.body == b"body"
    with pytest.raises(ValueError, match="1048576"):
        encode(line_of(MAX_HEADER + 1), b"body")


def test_a_draft_whose_header_line_would_be_too_large_is_refused_before_it_is_written() -> None:
    store = MemoryStore()
    log = RecordLog(store, "log")
    with pytest.raises(ValueError, match="1048576"):
        log.append("message", b"", via="x" * MAX_HEADER, expect=1)
    assert list(store.list()) == []


# Drafts


@pytest.mark.parametrize(
    "fields",
    [
        {"exit": True},
        {"exit": 1.0},
        {"exit": "1"},
        {"upto": True},
        {"upto": None},
        {"truncated": 1},
        {"truncated": None},
        {"via": b"cli"},
        {"via": None},
        {"via": 5},
        {"kind": b"message"},
        {"kind": None},
        {"id": 5},
        {"time": 5},
        {"usage": {"input": 1}},
        {"usage": Usage(input=True)},
        {"usage": Usage(input=1.5)},  # type: ignore[arg-type]
        {"cache": "{}"},
        {"cache": {"a": 1}},
        {"cache": bytearray(b"{}")},
        {"body": "text"},
        {"body": bytearray(b"text")},
        {"body": None},
        {"n": 1},
        {"len": 1},
        {"for": "x"},
        {"unknown": "x"},
        {"offset": 1},
    ],
)
def test_a_field_of_another_type_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        draft(**{"kind": "message", **fields})


def test_a_kind_that_is_no_string_is_refused_whatever_was_spelled_before() -> None:
    draft("message", type="text/plain")
    for kind in (("message", ("type", "text/plain")), ("message",), ["message"]):
        with pytest.raises(TypeError):
            draft(kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_a_number_beyond_64_bits_is_refused(number: int) -> None:
    for fields in ({"exit": number}, {"upto": number}, {"usage": Usage(cache_read=number)}):
        with pytest.raises(ValueError, match="64 bits"):
            draft("message", **fields)
    for header in (Header(n=number), Header(exit=number), Header(usage=Usage(output=number))):
        with pytest.raises(ValueError, match="64 bits"):
            encode(header, b"")


@pytest.mark.parametrize(
    "fields",
    [
        {"time": "yesterday"},
        {"time": ""},
        {"time": "2026-02-29T00:00:00Z"},
        {"time": "2026-09-28T12:00:00+24:00"},
        {"time": "2026-09-28T12:00:00Z\n"},
        {"time": "2026-09-28T12:00:0\u0660Z"},
        {"cache": b"{"},
        {"cache": b"1 2"},
        {"cache": b"\x00"},
        {"cache": b'"a\nb"'},
        {"cache": b"[" * 10_000 + b"]" * 10_000},
    ],
)
def test_a_value_that_cannot_be_spelled_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        draft("message", **fields)


def test_a_draft_takes_every_field_of_a_header() -> None:
    fields = {field.name for field in msgspec.structs.fields(Header)} - {"n", "len", "kind", "time"}
    given = dict.fromkeys(fields, "x") | {
        "exit": 0,
        "truncated": True,
        "upto": 1,
        "usage": Usage(),
        "cache": b" { } ",
    }
    header = RecordLog(MemoryStore(), "log").append("message", **given, expect=1).header
    assert {name: getattr(header, name) for name in fields - {"cache"}} == {
        name: value for name, value in given.items() if name != "cache"
    }
    assert bytes(header.cache) == b"{}"
