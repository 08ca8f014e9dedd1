"""The records against vectors that the Go package made: ``tests/vectors/statefile``, every line of them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from statestore.errors import Corrupt, Exists, NotFound
from statestore.records import Header, Record, RecordLog, Scan, Usage, draft, encode, scan
from statestore.records.header import encode_header
from statestore.store import NEW, Store
from statestore_local import LocalStore
from statestore_memory import MemoryStore

VECTORS = Path(__file__).parents[1] / "vectors" / "statefile"
FORMAT = Path(__file__).parents[2] / "docs" / "format.md"
SESSION_12 = (VECTORS / "session-12.state").read_bytes()

# Streams that the Go package takes for torn, or crashes on, and that are Corrupt here. docs/format.md says why.
REFUSED = {
    "wrong byte": {
        "body-short-by-one",
        "len--0",
        "len-null",
        "len-zero-with-body",
        "missing-newline-then-record-mid-file",
        "terminator-cr",
        "terminator-space",
        "top-empty-object-nonempty-body",
    },
    "huge len": {"len-281474976710657", "len-4611686018427387904", "len-9223372036854775807"},
}


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / f"{name}.jsonl").read_bytes().split(b"\n") if line]


def named(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in lines(name)])


def raw(case: dict[str, Any], key: str) -> bytes:
    return base64.b64decode(case[key], validate=True)


def refusals() -> dict[str, str]:
    return {name: category for category, names in REFUSED.items() for name in names}


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with MemoryStore() if request.param == "memory" else LocalStore(tmp_path, sync="never") as made:
        yield made


# Encoding


def header_of(case: dict[str, Any]) -> Header:
    """The header that an encode vector gives: bytes that are no UTF-8 become lone surrogates, one each."""
    given = {**case["header"]}
    for name in case.get("raw_b64", {}):
        given[name] = raw(case["raw_b64"], name)
        if name == "cache":
            given[name] = msgspec.Raw(given[name])
        else:
            given[name] = given[name].decode("utf-8", "surrogateescape")
    if "usage" in given:
        given["usage"] = Usage(**given["usage"])
    if "for" in given:
        given["for_"] = given.pop("for")
    return Header(**given)


@named("encode")
def test_a_record_is_written_as_go_writes_it(case: dict[str, Any]) -> None:
    header = header_of(case)
    if "encoded_b64" in case:
        assert encode(header, raw(case, "body_b64")) == raw(case, "encoded_b64")
        return
    with pytest.raises(ValueError):
        encode(header, raw(case, "body_b64"))
    # It is that field, and no other, that cannot be written.
    cured = {"time": "2026-09-28T12:00:00Z"} if case["error"] == "time" else {"cache": msgspec.Raw()}
    encode(msgspec.structs.replace(header, **cured), raw(case, "body_b64"))


@named("encode")
def test_an_appended_record_has_the_same_bytes_as_an_encoded_one(case: dict[str, Any]) -> None:
    header = header_of(case)
    fields = {name: value for name, value in msgspec.structs.asdict(header).items() if name not in ("n", "len")}
    fields["usage"] = header.usage
    body = raw(case, "body_b64")
    log = RecordLog(MemoryStore(), "log")
    if "error" in case:
        with pytest.raises(ValueError):
            draft(body=body, **fields)
        return
    record = log.append(body=body, **fields, expect=1)
    assert record.raw == encode(msgspec.structs.replace(header, n=1), body)
    assert log.store.read("log") == record.raw
    assert list(log) == [record]


# Decoding


def whole(data: bytes) -> tuple[list[Record], Scan, str]:
    """Read a stream to its end: the records, the scan, and how it ended in the words of the vectors."""
    records = Scan(lambda start, stop: data[start:stop])
    found: list[Record] = []
    try:
        found.extend(records)
    except Corrupt:
        return found, records, "corrupt"
    return found, records, "torn" if records.torn else "eof"


def spelled(header: Header) -> bytes | None:
    try:
        return encode_header(header)
    except ValueError:
        return None


def expected_header(record: dict[str, Any]) -> bytes | None:
    if "header_json" in record:
        return str(record["header_json"]).encode()
    return raw(record, "header_b64") if "header_b64" in record else None


@named("decode")
def test_a_stream_is_read_as_go_reads_it(case: dict[str, Any]) -> None:
    data = raw(case, "input_b64")
    try:
        found = list(scan(data))
    except Corrupt:
        found = whole(data)[0]
    assert [record.body for record in found] == [raw(record, "body_b64") for record in case["records"]]
    assert [spelled(record.header) for record in found] == [expected_header(record) for record in case["records"]]
    for record, expected in zip(found, case["records"], strict=True):
        assert (expected_header(expected) is None) == (expected.get("header_error") == "time")
        assert data[record.offset : record.end] == record.raw


@named("decode")
def test_a_stream_ends_as_go_says_or_is_refused(case: dict[str, Any]) -> None:
    data = raw(case, "input_b64")
    found, records, final = whole(data)
    if case["name"] in refusals():
        assert (final, case["final"]) == ("corrupt", "panic" if refusals()[case["name"]] == "huge len" else "torn")
    else:
        assert final == {"header": "corrupt"}.get(case["final"], case["final"])
        assert case["read"] == (None if final == "corrupt" else len(found))
        assert case["open_size"] == (None if final == "corrupt" else records.end)
        assert case["open_n"] == (None if final == "corrupt" else records.number - 1)
    assert b"".join(record.raw for record in found) == data[: records.end]
    assert final == "corrupt" or records.end + records.torn == len(data)


@pytest.mark.parametrize("category", REFUSED)
def test_a_refusal_says_which_category_it_is_of(category: str) -> None:
    words = {"wrong byte": "another byte stands where the newline", "huge len": "len is no body's size"}[category]
    for case in lines("decode"):
        if case["name"] in REFUSED[category]:
            with pytest.raises(Corrupt, match=words):
                list(scan(raw(case, "input_b64")))


def test_no_other_stream_is_refused_than_the_format_lists() -> None:
    """The list of what we refuse and Go does not is the same in three places: here, in fact, and in the document."""
    in_fact = {
        case["name"]
        for case in lines("decode")
        if whole(raw(case, "input_b64"))[2] == "corrupt" and case["final"] != "header"
    }
    assert in_fact == set(refusals())
    table = FORMAT.read_text("utf-8").partition("<!-- refused -->")[2].partition("<!-- end -->")[0]
    rows = [row.strip("|").split("|") for row in table.strip().split("\n")[2:]]
    assert {row[0].strip(): set(re.findall(r"`([^`]+)`", row[2])) for row in rows} == REFUSED


# Torn logs


def test_a_log_cut_at_any_byte_reads_up_to_its_last_whole_record() -> None:
    cases = lines("torn")
    assert [case["size"] for case in cases] == list(range(len(SESSION_12) + 1))
    for case in cases:
        found, records, final = whole(SESSION_12[: case["size"]])
        assert (len(found), records.end) == (case["read"], case["open_size"])
        assert final == ("eof" if case["size"] == case["open_size"] else "torn")


@pytest.mark.parametrize("part", range(4))
def test_a_log_cut_at_any_byte_is_cut_back_by_the_next_append_and_what_was_cut_is_kept(
    part: int, tmp_path: Path
) -> None:
    with LocalStore(tmp_path, sync="never") as store:
        for case in lines("torn")[part::4]:
            size, end = case["size"], case["open_size"]
            name = f"at-{size}"
            path = tmp_path / f"{name}.state"
            path.write_bytes(SESSION_12[:size])
            log = RecordLog(store, name)
            record = log.append("message", b"next", expect=case["read"] + 1)
            assert record.n == case["read"] + 1
            assert path.read_bytes() == SESSION_12[:end] + record.raw
            aside = [kept.read_bytes() for kept in tmp_path.glob(f".{name}.cut-*")]
            assert aside == ([SESSION_12[end:size]] if size > end else [])
            path.unlink()


# Copies

# What the Go package does otherwise: it makes an empty file of no records, and no log is empty here; and where the
# directory of a copy is missing it fails, while a log's name has no directories.
NO_EMPTY_COPY = "before is below 2"
NO_DIRECTORIES = "dst-dir-missing"


def copy_source(case: dict[str, Any]) -> bytes | None:
    if case.get("src"):
        return (VECTORS / case["src"]).read_bytes()
    return raw(case, "src_b64") if "src_b64" in case else None


@named("copy")
def test_a_copy_is_made_as_go_makes_it(case: dict[str, Any], store: Store) -> None:
    source = copy_source(case)
    target = "src" if case["name"] == "dst-is-src" else "dst"
    if source:
        store.append("src", source, at=NEW)
    kept = raw(case, "dst_b64") if "dst_b64" in case else b""
    if kept:
        store.append("dst", kept, at=NEW)
    log = RecordLog(store, "src")

    if case["n"] < 2:
        assert case.get("bytes_b64") == "" or case["error"] == "missing", NO_EMPTY_COPY
        with pytest.raises(ValueError):
            log.copy(target, before=case["n"])
    elif "error" not in case:
        copied = log.copy(target, before=case["n"])
        assert store.read("dst") == raw(case, "bytes_b64")
        assert [record.raw for record in copied] == [record.raw for record in log.read(1, case["n"])]
        return
    else:
        wrong_byte = case["name"].startswith("newline-lost")
        refusal = {
            "eof": NotFound,
            "torn": Corrupt if wrong_byte else NotFound,
            "header": Corrupt,
            "exists": Exists,
        }[case["error"]]
        with pytest.raises(refusal) as caught:
            log.copy(target, before=case["n"])
        if source and "record" in case:
            assert caught.value.facts["record"] == case["record"]
            assert ("torn" in caught.value.facts) == (case["error"] == "torn" and not wrong_byte)
    # On an error no target is made, and one that was there is unchanged.
    if source:
        assert store.read("src") == source
    if kept:
        assert store.read("dst") == kept
    elif target == "dst":
        with pytest.raises(NotFound):
            store.read("dst")


def test_a_copy_of_a_log_that_does_not_exist_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        RecordLog(store, "src").copy("dst", before=2)


def test_a_copy_to_a_name_with_segments_needs_no_directory_made_before(store: Store) -> None:
    """The counterpart of `dst-dir-missing`."""
    store.append("src", SESSION_12, at=NEW)
    RecordLog(store, "src").copy("no/such/place/dst", before=3)
    assert len(list(RecordLog(store, "no/such/place/dst"))) == 2


# Whole files


@pytest.mark.parametrize("case", [pytest.param(case, id=case["file"]) for case in lines("files")])
def test_a_session_file_of_the_go_package_is_a_log_as_it_is(case: dict[str, Any], tmp_path: Path) -> None:
    data = (VECTORS / case["file"]).read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (case["size"], case["sha256"])
    (tmp_path / case["file"]).write_bytes(data)
    with LocalStore(tmp_path, sync="never") as store:
        log = RecordLog(store, case["file"].removesuffix(".state"))
        found = list(log)
        assert log.count() == case["records"]
    assert [record.n for record in found] == list(range(1, case["records"] + 1))
    assert b"".join(encode(record.header, record.body) for record in found) == data
    assert b"".join(record.raw for record in found) == data
