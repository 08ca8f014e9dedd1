"""What docs/format.md states: its tables are those of the code, and its example is a log."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from statestore.errors import Corrupt
from statestore.records import KINDS, MAX_HEADER, Header, Usage, draft, encode, scan
from statestore.records.gojson import MAX_DEPTH
from statestore.records.header import MAX_BODY, decode_header

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text("utf-8")
TYPES = {"integer": int, "string": str, "boolean": bool, "time": str, "object": Usage, "any": msgspec.Raw}


def table(name: str) -> list[list[str]]:
    """The cells of the rows of the table that is marked with a name."""
    marked = PAGE.partition(f"<!-- {name} -->\n")[2].partition("\n<!-- end -->")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in marked.split("\n")]
    assert set(rows[1]) == {"---"}
    return rows[2:]


def sample(name: str) -> object:
    """A value of a field that is not its default."""
    kinds = {row[0].strip("`"): TYPES[row[1]] for row in table("fields")}
    return {int: 7, str: "x", bool: True, Usage: Usage(input=1), msgspec.Raw: msgspec.Raw(b"[1]")}[kinds[name]]


def test_the_fields_are_those_of_a_header_in_their_order() -> None:
    assert [row[0] for row in table("fields")] == [f"`{field.encode_name}`" for field in msgspec.structs.fields(Header)]


@pytest.mark.parametrize("row", table("fields"), ids=lambda row: row[0].strip("`"))
def test_a_field_has_its_type_and_is_left_out_where_the_page_says(row: list[str]) -> None:
    name, kind = row[0].strip("`"), row[1]
    field = next(field for field in msgspec.structs.fields(Header) if field.encode_name == name)
    key = f'"{name}":'.encode()
    assert (key in encode(Header(), b"")) == (row[2] == "never")
    default = getattr(Header(), field.name)
    defaults = {"never": default, "empty": "", "absent": None, "0": 0, "false": False}
    assert (bytes(default) == b"") if kind == "any" else (default == defaults[row[2]])
    if name not in ("time", "len"):
        value = sample(name)
        header = next(scan(encode(Header(**{field.name: value}), b""))).header
        found = getattr(header, field.name)
        assert isinstance(found, TYPES[kind])
        assert (bytes(found), bytes(value)) == (b"[1]", b"[1]") if isinstance(found, msgspec.Raw) else found == value


def test_an_exit_of_zero_is_written_and_no_exit_is_not() -> None:
    assert b'"exit":0' in encode(Header(exit=0), b"")


def test_the_kinds_are_the_ten_that_are_known() -> None:
    assert [row[0] for row in table("kinds")] == [f"`{kind}`" for kind in KINDS]
    assert len(KINDS) == 10


def test_the_limits_are_those_of_the_code() -> None:
    assert [int(row[1]) for row in table("limits")] == [MAX_HEADER, MAX_BODY, MAX_DEPTH, -(2**63), 2**63 - 1]


@pytest.mark.parametrize("name", ["n", "exit", "upto"])
def test_integers_have_the_limits_of_the_page(name: str) -> None:
    low, high = (int(row[1]) for row in table("limits")[3:])
    for number in (low, high):
        assert getattr(decode_header(b'{"%b":%d}' % (name.encode(), number)), name) == number
    for number in (low - 1, high + 1):
        with pytest.raises(ValueError):
            decode_header(b'{"%b":%d}' % (name.encode(), number))
        if name != "n":
            with pytest.raises(ValueError):
                draft("x", **{name: number})


def test_a_len_has_the_limits_of_the_page() -> None:
    high = int(table("limits")[1][1])
    assert decode_header(b'{"len":%d}' % high).len == high
    for size in (-1, high + 1):
        with pytest.raises(ValueError):
            decode_header(b'{"len":%d}' % size)


def test_the_example_is_a_log_and_its_offsets_are_right() -> None:
    escapes = {r"\n": b"\n", r"\x00": b"\0"}
    data = b""
    for offset, cell, _ in table("example"):
        assert int(offset) == len(data)
        for part in re.split(r"(\\n|\\x00)", cell.strip("`")):
            data += escapes.get(part, part.encode())
    records = list(scan(data))
    assert [(record.n, record.kind, record.body) for record in records] == [
        (1, "start", b""),
        (2, "message", b"one\ntwo\0"),
    ]
    assert records[1].header.via == "a&b"
    assert b"".join(encode(record.header, record.body) for record in records) == data
    assert f"the log at {len(data)}" in PAGE


# The rules by which an end is judged, one by one, as the page numbers them.

WHOLE = encode(Header(n=1, kind="a"), b"body")
HEADER = encode(Header(n=2, kind="b"), b"")[:-2]
NEXT = encode(Header(n=3, kind="c"), b"next")


def sized(size: int) -> bytes:
    return HEADER.replace(b'"len":0', b'"len":%d' % size)


@pytest.mark.parametrize(
    ("rest", "torn"),
    [
        (b"anything", True),
        (b"x" * MAX_HEADER, True),
        (b"x" * (MAX_HEADER + 1), False),
        (b"x" * MAX_HEADER + bytes(MAX_HEADER), True),
        (b"x" * (MAX_HEADER + 1) + bytes(MAX_HEADER), False),
        (b"x" + bytes(3 * MAX_HEADER) + b"x", False),
        (b"anything\n", False),
        (bytes(100) + b"\n", False),
        (bytes(MAX_HEADER + 1) + b"\n", False),
        (HEADER, True),
        (HEADER + b"\n", True),
        (sized(9) + b"\n" + b"12345678", True),
        (sized(9) + b"\n" + b"123456789", True),
        (sized(10**6) + b"\nbody\n" + NEXT, False),
        (sized(10**6) + b"\nbody\n" + NEXT[:-1], True),
        (sized(10**6) + b"\nbody\n" + NEXT.replace(b'"n":3', b'"n":4'), True),
        (sized(10**6) + b"\nbody" + NEXT, True),
        (sized(3) + b"\n123\0", True),
        (sized(3) + b"\n123" + bytes(5000), True),
        (sized(3) + b"\n123" + bytes(5000) + b"\n", False),
        (sized(3) + b"\n123 ", False),
        (sized(3) + b"\n123\r\n", False),
    ],
)
def test_an_end_is_judged_by_the_rules_of_the_page(rest: bytes, torn: bool) -> None:
    records = scan(WHOLE + rest)
    assert next(records).body == b"body"
    if torn:
        assert list(records) == []
    else:
        with pytest.raises(Corrupt) as caught:
            next(records)
        assert (caught.value.record, caught.value.offset) == (2, len(WHOLE))
