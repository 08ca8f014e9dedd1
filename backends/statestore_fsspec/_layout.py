"""Where the objects of a log lie, and what they hold: keys, heads and segments.

::

    statestore.json                          the root's settings, written once
    heads/<log>!<generation>                 odd: the log lives, and this names its run; even: it was deleted
    data/<log>!<run>/t/<9…9 minus start>     one append, or the seal of a deletion
    data/<log>!<run>/m/<start>-<stop>        a merge of the appends in [start, stop)

``docs/object-storage.md`` is the normative description. Keys are relative to the store's root.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import Final, NamedTuple

from statestore import names
from statestore.errors import Corrupt

__all__ = [
    "Dead",
    "Entry",
    "LARGEST",
    "MAX_OFFSET",
    "PREAMBLE",
    "SETTINGS",
    "Segment",
    "check_head_entry",
    "data_prefix",
    "head_key",
    "heads_prefix",
    "log_of",
    "merge_key",
    "new_run",
    "open_seal",
    "open_segment",
    "parse_data",
    "parse_head",
    "read_dead",
    "read_live",
    "run_generation",
    "run_prefix",
    "seal_object",
    "segment_object",
    "single_key",
    "spell_dead",
    "spell_live",
]

SETTINGS: Final = "statestore.json"
"""The key of the root's settings."""

MAX_OFFSET: Final = 10**15 - 1
"""The largest offset that a key can spell, in bytes."""

LARGEST: Final = 4 << 20
"""An append of more bytes than this is never merged: it stands between two merges."""

PREAMBLE: Final = 24
"""The bytes in front of a segment's data: magic, kind, CRC-32 and length of the data, as one line."""

_HEAD = re.compile(r"heads/(.+)!([0-9]{10})")
_DATA = re.compile(r"data/(.+)!([0-9]{10}\.[0-9a-f]{16})/(?:t/([0-9]{15})|m/([0-9]{15})-([0-9]{15}))")
_LIVE = re.compile(rb"live ([0-9]{10}\.[0-9a-f]{16}) ([0-9a-f]{8})\n")
_DEAD = re.compile(rb"dead ([0-9]{10}\.[0-9a-f]{16}) ([0-9]{15}) ([0-9a-f]{16}) ([0-9a-f]{8})\n")
_LINE = re.compile(rb"sts1 ([ams]) ([0-9a-f]{16})\n")
_HEAD_SIZES = {1: 42, 0: 75}


class Entry(NamedTuple):
    """One row of the storage's listing.

    Attributes:
        key: the object's key, below the root.
        size: its size in bytes.
        modified: when it was made, in seconds by the storage's own clock.
    """

    key: str
    size: int
    modified: float


class Segment(NamedTuple):
    """An object that holds the bytes ``[start, stop)`` of a run; a seal holds none.

    Attributes:
        start: offset of its first byte in the log.
        stop: offset behind its last byte.
        key: the object's key.
        merged: whether it is a merge.
        modified: when it was made, in seconds by the storage's own clock.
    """

    start: int
    stop: int
    key: str
    merged: bool
    modified: float

    @property
    def seal(self) -> bool:
        """Whether it holds no byte: it closes its run."""
        return self.start == self.stop


@dataclass(frozen=True, slots=True)
class Dead:
    """What an even head says: which run ended, at which offset, and the token of whoever deleted it."""

    run: str
    end: int
    token: str


def new_run(generation: int, token: str) -> str:
    """Return the name of a new run of a generation; the token is 16 random hexadecimal digits."""
    return f"{generation:010d}.{token}"


def run_generation(run: str) -> int:
    """Return the generation that a run belongs to; 0 for what is no run of ours."""
    return int(run[:10]) if re.fullmatch(r"[0-9]{10}\.[0-9a-f]{16}", run) else 0


def heads_prefix(log: str) -> str:
    """Return what the keys of a log's heads begin with."""
    return f"heads/{log}!"


def head_key(log: str, generation: int) -> str:
    """Return the key of one head."""
    return f"heads/{log}!{generation:010d}"


def data_prefix(log: str, generation: int) -> str:
    """Return what the keys of all runs of one generation begin with."""
    return f"data/{log}!{generation:010d}."


def run_prefix(log: str, run: str) -> str:
    """Return what the keys of one run's segments begin with."""
    return f"data/{log}!{run}/"


def single_key(log: str, run: str, start: int) -> str:
    """Return the key of the append, or seal, at an offset: the greatest offset sorts first."""
    return f"data/{log}!{run}/t/{MAX_OFFSET - start:015d}"


def merge_key(log: str, run: str, start: int, stop: int) -> str:
    """Return the key of the merge of ``[start, stop)``."""
    return f"data/{log}!{run}/m/{start:015d}-{stop:015d}"


def parse_head(key: str) -> tuple[str, int]:
    """Return log and generation of a head's key.

    Raises:
        Corrupt: the key is none of ours.
    """
    match = _HEAD.fullmatch(key)
    if match is None or int(match[2]) == 0:
        raise _foreign(key)
    return match[1], int(match[2])


def check_head_entry(entry: Entry, generation: int) -> None:
    """Refuse a head whose size is not the one that every head of its kind has.

    Raises:
        Corrupt: the head is damaged.
    """
    if entry.size != _HEAD_SIZES[generation % 2]:
        raise Corrupt("a head is damaged: restore it from a copy of the bucket", object=entry.key, size=entry.size)


def log_of(key: str) -> str | None:
    """Return the log that a key below ``heads/`` or ``data/`` belongs to; None where no store made it."""
    match = _HEAD.fullmatch(key) or _DATA.fullmatch(key)
    return match[1] if match is not None and names.is_name(match[1]) else None


def parse_data(entry: Entry) -> tuple[str, str, Segment]:
    """Return log, run and segment of a row below ``data/``.

    Raises:
        Corrupt: the key is none of ours, or the object is shorter than its preamble.
    """
    match = _DATA.fullmatch(entry.key)
    if match is None:
        raise _foreign(entry.key)
    log, run, single, start, stop = match.groups()
    length = entry.size - PREAMBLE
    if single is not None:
        begin = MAX_OFFSET - int(single)
        segment = Segment(begin, begin + length, entry.key, False, entry.modified)
    else:
        begin = int(start)
        segment = Segment(begin, int(stop), entry.key, True, entry.modified)
    if length < 0 or segment.stop - segment.start != length or (segment.merged and not length):
        raise Corrupt(
            "a segment has another size than it should: restore it from a copy of the bucket",
            object=entry.key,
            offset=begin,
            size=entry.size,
        )
    return log, run, segment


def spell_live(run: str) -> bytes:
    """Return what the head of a living log holds."""
    return _sign(f"live {run}")


def spell_dead(dead: Dead) -> bytes:
    """Return what the head of a deleted log holds."""
    return _sign(f"dead {dead.run} {dead.end:015d} {dead.token}")


def read_live(raw: bytes, key: str) -> str:
    """Return the run that an odd head names.

    Raises:
        Corrupt: the head is damaged.
    """
    match = _LIVE.fullmatch(raw)
    if match is None or raw != _sign(raw[:-10].decode()):
        raise _damaged_head(key)
    return match[1].decode()


def read_dead(raw: bytes, key: str) -> Dead:
    """Return what an even head says.

    Raises:
        Corrupt: the head is damaged.
    """
    match = _DEAD.fullmatch(raw)
    if match is None or raw != _sign(raw[:-10].decode()):
        raise _damaged_head(key)
    return Dead(match[1].decode(), int(match[2]), match[3].decode())


def segment_object(data: bytes, *, merged: bool = False) -> bytes:
    """Return the object that holds `data`: preamble and data."""
    return b"sts1 %c %08x%08x\n%b" % (b"m" if merged else b"a", zlib.crc32(data), len(data), data)


def seal_object(token: str) -> bytes:
    """Return the object that closes a run; the token tells whose it is."""
    return b"sts1 s %b\n" % token.encode()


def open_segment(raw: bytes, segment: Segment) -> bytes:
    """Return the data of a segment that was read whole.

    Raises:
        Corrupt: preamble, length or checksum are not right.
    """
    match = _LINE.match(raw)
    data = raw[PREAMBLE:]
    kind = b"m" if segment.merged else b"a"
    if match is None or match[1] != kind or int(match[2][8:], 16) != len(data):
        what = "a segment is damaged or cut: restore it from a copy of the bucket"
    elif int(match[2][:8], 16) != zlib.crc32(data):
        what = "a segment's checksum is wrong: restore it from a copy of the bucket"
    elif len(data) != segment.stop - segment.start:
        what = "a segment is not as long as the listing said: restore it from a copy of the bucket"
    else:
        return data
    raise Corrupt(what, object=segment.key, offset=segment.start)


def open_seal(raw: bytes, segment: Segment) -> str:
    """Return the token of a seal.

    Raises:
        Corrupt: the object is no seal.
    """
    match = _LINE.fullmatch(raw)
    if match is None or match[1] != b"s":
        raise Corrupt("an empty segment is no seal: remove it by hand", object=segment.key, offset=segment.start)
    return match[2].decode()


def _sign(words: str) -> bytes:
    raw = words.encode()
    return b"%b %08x\n" % (raw, zlib.crc32(raw))


def _damaged_head(key: str) -> Corrupt:
    return Corrupt("a head is damaged: restore it from a copy of the bucket", object=key)


def _foreign(key: str) -> Corrupt:
    return Corrupt("an object that no store made lies among its own: move it elsewhere", object=key)
