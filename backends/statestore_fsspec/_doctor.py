"""The doctor: what a live storage really does, tried below a prefix that is emptied afterwards, in plain words."""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, NamedTuple

from statestore.errors import StateStoreError, Unavailable
from statestore.store import Finding
from statestore_fsspec._drive import Drive
from statestore_fsspec._engine import Engine, entries
from statestore_fsspec._layout import PREAMBLE, segment_object
from statestore_fsspec._probe import probe
from statestore_fsspec._settings import MAX_APPEND
from statestore_fsspec._steps import Outcome

__all__ = ["examine"]

_SMALL: Final = 1024  # bytes
_ONE_BY_ONE: Final = 30
_AT_ONCE: Final = 128
_FRESH: Final = 20
_SKEW: Final = 60.0  # seconds by which the clocks may differ before it is told as a fault

# Bytes that upload protocols have taken for their own: the ends of multipart bodies, of chunks and of lines.
_LOOK_ALIKES: Final = (
    b"--==0==\r\n",
    b"\r\n--==0==--\r\n",
    b"--boundary\r\nContent-Type: text/plain\r\n\r\n",
    b"0\r\n\r\n",
    b"\x00\xff\xfe\n\r",
    b"5;chunk-signature=0\r\nhello\r\n",
)


class _Examination(NamedTuple):
    engine: Engine
    drive: Drive
    place: str

    def create(self, name: str, data: bytes) -> str:
        """Create an object below the place; return its key."""
        key = self.place + name
        outcome, failure = self.drive.create(key, data)
        if outcome is not Outcome.CREATED:
            raise Unavailable(f"the storage answered a creation with {outcome.value}", key=key) from failure
        return key

    def listed(self) -> list[str]:
        """Return the names of the objects below the place."""
        return [entry.key.removeprefix(self.place) for entry in entries(self.engine.pages(self.place))]


def examine(engine: Engine) -> Iterator[Finding]:
    """Yield what the storage does, one finding after another; one that fails stops no other."""
    exam = _Examination(engine, engine.drive, f"probe/doctor-{secrets.token_hex(8)}/")
    rights: tuple[tuple[str, Callable[[_Examination], str]], ...] = (
        ("right to list", _list),
        ("right to put", _put),
        ("right to get", _get),
        ("right to delete", _delete),
    )
    promises: tuple[tuple[str, Callable[[_Examination], str]], ...] = (
        ("exclusive creation", _exclusive),
        ("fresh listings", _fresh),
        ("ranges", _ranges),
        ("copies", _copies),
        ("any bytes", _any_bytes),
        ("large appends", _large),
        ("small appends", _latency),
        ("appends at once", _throughput),
        ("clock", _clock),
    )
    usable = False
    try:
        for name, check in rights:
            finding = _try(exam, name, check)
            usable = usable or finding.ok
            yield finding
        if usable:  # else there is no such place, or nobody is let in
            for name, check in promises:
                yield _try(exam, name, check)
    finally:
        _clean_up(exam)


def _try(exam: _Examination, name: str, check: Callable[[_Examination], str]) -> Finding:
    try:
        return Finding(name, True, check(exam))
    except StateStoreError as error:
        return Finding(name, False, str(error))


def _list(exam: _Examination) -> str:
    exam.drive.page("heads/", "")
    return "objects are listed"


def _put(exam: _Examination) -> str:
    exam.create("first", b"first")
    return "objects are created"


def _get(exam: _Examination) -> str:
    if exam.drive.fetch(exam.place + "first") != b"first":
        raise Unavailable("an object has other bytes than were put", key=exam.place + "first")
    if exam.drive.fetch(exam.place + "none") is not None:
        raise Unavailable("an object that nobody made is there", key=exam.place + "none")
    return "objects are read, and a missing one is told from a forbidden one"


def _delete(exam: _Examination) -> str:
    key = exam.create("to-delete", b"x")
    try:
        exam.drive.remove(key)
    except Unavailable as error:
        raise Unavailable(
            "objects are not removed, so what is tried here stays below this place: only gc needs this right",
            place=exam.drive.path(exam.place),
            said=error.message,
            **{**error.facts, "key": None},
        ) from error
    if exam.drive.fetch(key) is not None:
        raise Unavailable("an object is there after it was removed", key=key)
    return "objects are removed; only gc needs this right"


def _exclusive(exam: _Examination) -> str:
    order = "in the order of their bytes" if probe(exam.engine) else "in another order, and are sorted here"
    return f"one of several writers wins, each time; keys are listed {order}"


def _fresh(exam: _Examination) -> str:
    for number in range(_FRESH):
        name = f"fresh-{number}"
        key = exam.create(name, b"x")
        if name not in exam.listed():
            raise Unavailable("a listing does not show what was made just before", key=key)
    return f"{_FRESH} objects, each listed at once"


def _ranges(exam: _Examination) -> str:
    data = bytes(range(256)) * 64
    key = exam.create("ranges", data)
    for start, stop in ((0, 1), (0, len(data)), (255, 257), (len(data) - 1, len(data)), (5000, 9000)):
        if exam.drive.fetch(key, start, stop) != data[start:stop]:
            raise Unavailable("a range of an object has other bytes", key=key, start=start, stop=stop)
    return "parts of objects are read exactly"


def _copies(exam: _Examination) -> str:
    key = exam.create("source", b"copied")
    exam.drive.copy(key, exam.place + "target")
    if exam.drive.fetch(exam.place + "target") != b"copied":
        raise Unavailable("a copy has other bytes than its source", key=exam.place + "target")
    return "objects are copied"


def _any_bytes(exam: _Examination) -> str:
    for number, data in enumerate((bytes(range(256)), *_LOOK_ALIKES, b"".join(_LOOK_ALIKES))):
        key = exam.create(f"bytes-{number}", data)
        if exam.drive.fetch(key) != data:
            raise Unavailable("bytes that look like a part of a protocol were changed", key=key)
    return "every byte value, and what looks like the end of an upload, comes back as it was put"


def _large(exam: _Examination) -> str:
    data = segment_object(secrets.token_bytes(MAX_APPEND))
    key = exam.create("large", data)
    if exam.drive.create(key, data[:PREAMBLE])[0] is not Outcome.REFUSED:
        raise Unavailable("a large object was created twice", key=key)
    if exam.drive.fetch(key) != data:
        raise Unavailable("a large object has other bytes than were put", key=key)
    return f"an append of {MAX_APPEND >> 20} MiB is one request, exclusive and whole"


def _latency(exam: _Examination) -> str:
    took = []
    for number in range(_ONE_BY_ONE):
        begun = time.perf_counter()
        exam.create(f"small-{number}", bytes(_SMALL))
        took.append((time.perf_counter() - begun) * 1000)
    slow = statistics.quantiles(took, n=20)[-1]
    return f"one by one, {_SMALL} bytes: median {statistics.median(took):.1f} ms, 95 of 100 within {slow:.1f} ms"


def _throughput(exam: _Examination) -> str:
    begun = time.perf_counter()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: exam.create(f"many-{number}", bytes(_SMALL)), range(_AT_ONCE)))
    return f"by 16 threads: {_AT_ONCE / (time.perf_counter() - begun):.0f} a second"


def _clock(exam: _Examination) -> str:
    before = time.time()
    key = exam.create("clock", b"x")
    after = time.time()
    (entry,) = (entry for entry in entries(exam.engine.pages(key)) if entry.key == key)
    # Storages tell whole seconds.
    skew = max(before - 1 - entry.modified, entry.modified - after - 1, 0.0)
    if skew > _SKEW:
        raise Unavailable("this machine's clock and the storage's differ: signatures may be refused", seconds=skew)
    return "agrees with this machine's within a second" if skew == 0 else f"{skew:.0f} s apart; nothing depends on it"


def _clean_up(exam: _Examination) -> None:
    with suppress(StateStoreError):  # who may not list or delete was told so
        exam.engine.each(exam.drive.remove, [(exam.place + name,) for name in exam.listed()])
