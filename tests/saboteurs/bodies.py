"""Stores that change bytes on their way in, as those do that treat them as text or as something else."""

from __future__ import annotations

import gzip
from collections.abc import Callable

from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Full, Unlimited


def _changes(name: str, fault: str, first: str, change: Callable[[bytes], bytes]) -> type[Full]:
    body = {"__doc__": fault, "__module__": __name__, "kept": lambda self, data: change(data)}
    return saboteur(first)(type(name, (Full,), body))


def _split(data: bytes) -> bytes:
    try:
        lines = data.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return data
    return "".join(line.rstrip("\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029") + "\n" for line in lines).encode()


def _split_unicode(data: bytes) -> bytes:
    return data.replace("\u2028".encode(), b"\n").replace("\u2029".encode(), b"\n")


TranslatesNewlines = _changes(
    "TranslatesNewlines",
    "Line ends are translated, as a file in text mode does.",
    "an-append-that-differs-in-one-byte-is-refused",
    lambda data: data.replace(b"\r", b"\n"),
)
TranslatesWindowsNewlines = _changes(
    "TranslatesWindowsNewlines",
    "A Windows line end becomes a plain one.",
    "a-read-is-a-slice-of-what-was-appended",
    lambda data: data.replace(b"\r\n", b"\n"),
)
SplitsLines = _changes(
    "SplitsLines",
    "Text is split by splitlines and joined again by line feeds.",
    "an-append-at-new-creates-the-log",
    _split,
)
SplitsAtUnicodeLineEnds = _changes(
    "SplitsAtUnicodeLineEnds",
    "U+2028 and U+2029 become line feeds.",
    "text-that-ends-lines-elsewhere-is-kept",
    _split_unicode,
)
Decodes = _changes(
    "Decodes",
    "Bytes are decoded as UTF-8, and what is none is replaced.",
    "an-append-that-differs-in-one-byte-is-refused",
    lambda data: data.decode(errors="replace").encode(),
)
DropsSurrogates = _changes(
    "DropsSurrogates",
    "Bytes that stand for a lone surrogate are dropped.",
    "bytes-that-are-no-text-are-kept",
    lambda data: data.replace(b"\xed\xa0\x80", b"???"),
)
NoSingleByte = _changes(
    "NoSingleByte",
    "A single byte above 127 is written as Latin-1 is in UTF-8.",
    "all-byte-values-are-kept",
    lambda data: data.decode("latin-1").encode() if len(data) == 1 else data,
)
JoinsTurnedLineEnds = _changes(
    "JoinsTurnedLineEnds",
    "A line feed and the carriage return behind it become one line feed.",
    "line-ends-of-every-kind-are-kept",
    lambda data: data.replace(b"\n\r", b"\n"),
)
StripsZeros = _changes(
    "StripsZeros",
    "Zeros at the end of a long append are taken for padding.",
    "zeros-and-blanks-are-kept",
    lambda data: data.rstrip(b"\0") if len(data) > 500 else data,
)
ReadsRecords = _changes(
    "ReadsRecords",
    "What looks like a record's header is written anew.",
    "bytes-that-look-like-records-are-kept",
    lambda data: data.replace(b'{"n":1', b'{"n": 1'),
)
EndsAtABoundary = _changes(
    "EndsAtABoundary",
    "What is sent is framed by a boundary that is always the same, and ends at the first line like it.",
    "bytes-that-look-like-a-transfer-are-kept",
    lambda data: data.split(b"\n--==0==")[0] or data,
)
Inflates = _changes(
    "Inflates",
    "What begins as a compressed file does is given back as what was compressed.",
    "bytes-that-look-like-a-transfer-are-kept",
    lambda data: gzip.decompress(data) if data.startswith(b"\x1f\x8b\x08") else data,
)
DropsAtTheBlock = _changes(
    "DropsAtTheBlock",
    "The byte behind a whole block is lost.",
    "a-log-may-have-any-length",
    lambda data: data[:-1] if len(data) % 4096 == 1 and len(data) > 1 else data,
)


@saboteur("an-append-of-64-mib-is-kept-whole", sample=0.5)
class CutsLongAppends(Unlimited):
    """The end of an append of more than twenty megabytes becomes zeros."""

    def kept(self, data: bytes) -> bytes:
        return data[: 20 << 20] + bytes(max(0, len(data) - (20 << 20)))
