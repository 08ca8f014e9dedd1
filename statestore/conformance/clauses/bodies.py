"""Bytes: whatever is appended comes back as it was, and nothing in it means anything to the store."""

from __future__ import annotations

import base64
import gzip

from statestore.conformance.case import Case
from statestore.conformance.check import equal
from statestore.conformance.registry import clause

_HEADER = b'{"n":1,"kind":"user","id":"0123456789abcdef","time":"2026-09-28T12:00:00Z","len":5}\n'


def _kept(case: Case, *pieces: bytes) -> None:
    """Fail unless the pieces come back, from this store object by every reading, and from a copy."""
    whole = b"".join(pieces)
    case.put("log", *pieces)
    case.holds("log", whole)
    equal(b"".join(case.store.stream("log")), whole, "the stream")
    place = 0
    for piece in pieces:
        equal(case.store.read("log", place, place + len(piece)), piece, f"the piece at {place}")
        place += len(piece)
    case.store.copy("log", "copy")
    case.holds("copy", whole)


@clause("core")
def all_byte_values_are_kept(case: Case) -> None:
    """A picture, or text in an old encoding, comes back changed, or cannot be read at all."""
    every = bytes(range(256))
    alone = every[:: 1 if case.sample == 1 else 17]
    _kept(case, every, every[::-1], *(bytes([value]) for value in alone))


@clause("core")
def line_ends_of_every_kind_are_kept(case: Case) -> None:
    """A tool's output with Windows line ends changes its length, and every later record is garbage."""
    _kept(case, b"a\r\nb\rc\nd\n\re", b"\r", b"\n", b"\r\n", b"\n\n\n", b"\x0b\x0c\x1c\x1d\x1e\x85")


@clause("core")
def text_that_ends_lines_elsewhere_is_kept(case: Case) -> None:
    """A message with U+2028 in it splits into two records that are none."""
    _kept(case, "a\u2028b\u2029c\x85d\ufeffe".encode(), "\u2028".encode(), b"\xef\xbb\xbf", "\U0001f600".encode())


@clause("core")
def bytes_that_are_no_text_are_kept(case: Case) -> None:
    """A record with half a character in it stops the whole session from being read."""
    _kept(case, b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\xa9", b"\xf0\x9f\x98", b"\x80", b"caf\xe9")


@clause("core")
def zeros_and_blanks_are_kept(case: Case) -> None:
    """Zeros or blanks at an end are taken for padding and cut."""
    _kept(case, b"\0", b"\0" * 511, b" ", b"\t", b"\0" * 5000, b"  x  ", b"\x1a", b"\x04", b"\0")


@clause("core")
def bytes_that_look_like_records_are_kept(case: Case) -> None:
    """A message that quotes a session file is taken for records of its own."""
    record = _HEADER + b"hello\n"
    _kept(
        case, record, record * 3, _HEADER, b"hello", b"\n", b'{"n":2', b"}\n", record[:-1], b"---\n", b"--boundary\r\n"
    )


@clause("core")
def bytes_that_look_like_a_transfer_are_kept(case: Case) -> None:
    """A message that quotes an upload ends where the storage's client takes the quotation for the end of its own."""
    kept = b"before\n--==0==\nContent-Type: application/octet-stream\n\ninside\n--==0==--\nafter"
    _kept(
        case,
        kept,
        kept.replace(b"\n", b"\r\n"),
        b"--==0==--",
        b"\r\n--==0==\r\n",
        b'{"name": "x"}\r\n--0123456789abcdef\r\n\r\n',
        b"5;chunk-signature=0\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n",
        b'<?xml version="1.0" encoding="utf-8"?><Error><Code>BlobAlreadyExists</Code></Error>',
        gzip.compress(b"once", mtime=0),
        gzip.compress(gzip.compress(b"twice" * 1000, mtime=0), mtime=0),
        base64.b64encode(bytes(range(256))),
        b"caf%C3%A9+%2B%00&a=b",
    )


@clause("core")
def a_log_may_have_any_length(case: Case) -> None:
    """A log as long as somebody's buffer loses or doubles its last byte."""
    for size in (1, 2, 511, 512, 513, 4095, 4096, 4097, 65535, 65536, 65537):
        data = (b"0123456789abcde\n" * (size // 16 + 1))[:size]
        tail = case.put(f"log-{size}", data)
        equal(tail.size, size, "the size of the tail")
        case.holds(f"log-{size}", data)
        case.store.append(f"log-{size}", b"$", at=tail)
        case.holds(f"log-{size}", data + b"$")


@clause("scale")
def an_append_of_64_mib_is_kept_whole(case: Case) -> None:
    """A long recording, or a large tool result, is cut off or refused."""
    size = case.large(64 << 20, 1 << 20)
    data = bytes(range(256)) * 257 * (size // 65_792 + 1)
    data = data[:size]
    tail = case.put("log", b"before", data, b"after")
    equal(tail.size, size + 11, "the size of the tail")
    equal(case.store.read("log", 6, 6 + size), data, "the bytes of the append")
    equal(case.store.read("log", size), (b"before" + data + b"after")[size:], "the bytes around its end")
