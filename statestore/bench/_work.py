"""The operations that are measured. Each checks what it has done, outside of the time that is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from threading import Event
from typing import Final, NamedTuple

from statestore.bench._measure import Meter
from statestore.bench._place import SOURCE, Place, Sizes, next_of, size_of, wrong
from statestore.records import Record, RecordLog, Scan
from statestore.store import LogInfo

__all__ = ["OPERATIONS", "Operation"]

_LAST: Final = 10


class Operation(NamedTuple):
    """One thing that is measured.

    Attributes:
        name: its name.
        about: what it is, in words.
        work: does it; yields whenever it was done once.
        times: how often it is done.
        item: what it is about.
        needs: the capability without which it cannot be done.
    """

    name: str
    about: str
    work: Callable[[Place, Meter], Iterator[None]]
    times: Callable[[Sizes], int]
    item: str = "record"
    needs: str = ""


def _append(place: Place, meter: Meter) -> Iterator[None]:
    yield from _append_each("append", place.log(SOURCE), place, meter)


def _append_held(place: Place, meter: Meter) -> Iterator[None]:
    log = place.log("held")
    with log.hold():
        yield from _append_each("held", log, place, meter)


def _append_each(operation: str, log: RecordLog, place: Place, meter: Meter) -> Iterator[None]:
    for number in range(2, place.sizes.records + 2):
        record = meter.time(place.append(log, number))
        meter.add(1, len(record.raw))
        if record.n != number:
            raise wrong(operation, log=log.name, expected=number, found=record.n)
        yield
    place.check(operation, log)


def _append_batch(place: Place, meter: Meter) -> Iterator[None]:
    log = place.log("batch")
    for _ in range(place.sizes.rounds):
        drafts, size = place.drafts(log), size_of(log)
        meter.time(partial(log.append_many, drafts))
        meter.add(len(drafts), size_of(log) - size)
        yield
    place.check("batch", log)


def _scan(place: Place, meter: Meter) -> Iterator[None]:
    log = place.source()

    def scan() -> tuple[int, int]:
        records = Scan(place.store.snapshot(log.name).read, log=log.name)
        return sum(1 for _ in records), records.end

    place.check("scan", log)
    for _ in range(place.sizes.rounds):
        found = meter.time(scan)
        expected = next_of(log) - 1, size_of(log)
        if found != expected:
            raise wrong("scan", log=log.name, expected=expected, found=found)
        meter.add(*found)
        yield


def _load(place: Place, meter: Meter) -> Iterator[None]:
    log = place.source()

    def load() -> list[Record]:
        records = list(RecordLog(place.store, log.name))
        for record in records:
            record.header  # noqa: B018 - it is read when it is asked for
        return records

    for _ in range(place.sizes.rounds):
        found = meter.time(load)
        place.compare("load", log, found)
        meter.add(len(found), size_of(log))
        yield


def _last(place: Place, meter: Meter) -> Iterator[None]:
    log = place.source()
    first = max(1, next_of(log) - _LAST)
    for _ in range(place.sizes.rounds):
        found = meter.time(lambda: RecordLog(place.store, log.name).last(_LAST))
        place.compare("last", log, found, first)
        meter.add(len(found), sum(len(record.raw) for record in found))
        yield


def _fork(place: Place, meter: Meter) -> Iterator[None]:
    log = place.source()
    middle = max(1, (next_of(log) - 1) // 2)
    for number in range(place.sizes.rounds):
        name = f"{place.prefix}fork-{number:06}"
        fork = meter.time(partial(RecordLog(place.store, log.name).copy, name, before=middle + 1))
        if next_of(fork) != middle + 1:
            raise wrong("fork", log=name, expected=middle + 1, found=next_of(fork))
        place.check("fork", fork, of=log)
        meter.add(middle, size_of(fork))
        yield


def _many(place: Place, meter: Meter) -> Iterator[None]:
    """Append to all logs in turn; each log is one thread's."""
    logs, threads = place.many(), place.sizes.workers
    turns = _turns(place.sizes)
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    stopped = Event()

    def work(some: list[RecordLog]) -> None:
        try:
            for _ in range(turns):
                for log in some:
                    if stopped.is_set():
                        return
                    meter.clock(place.append(log, next_of(log)))
                    done.put(None)
        except BaseException as error:
            done.put(error)

    before = sum(map(size_of, logs))
    with ThreadPoolExecutor(threads, thread_name_prefix="bench") as pool, meter.span():
        try:
            for thread in range(threads):
                pool.submit(work, logs[thread::threads])
            for _ in range(turns * len(logs)):
                if error := done.get():
                    raise error
                yield
        finally:
            stopped.set()
    meter.add(turns * len(logs), sum(map(size_of, logs)) - before)
    for _ in place.each(lambda log: place.check("many", log), logs):
        pass


def _turns(sizes: Sizes) -> int:
    return max(1, sizes.records // sizes.logs)


def _list(place: Place, meter: Meter) -> Iterator[None]:
    yield from _list_rows("list", place, meter, tails=False)


def _list_tails(place: Place, meter: Meter) -> Iterator[None]:
    yield from _list_rows("tails", place, meter, tails=True)


def _list_rows(operation: str, place: Place, meter: Meter, *, tails: bool) -> Iterator[None]:
    logs = place.many()
    expected = [LogInfo(log.name, log.end[0] if tails and log.end else None) for log in logs]
    for _ in range(place.sizes.rounds):
        found = meter.time(lambda: list(place.store.list(place.prefix + "many-", tails=tails)))
        if [info if tails else info._replace(tail=None) for info in found] != expected:
            raise wrong(operation, expected=len(expected), found=len(found))
        meter.add(len(found))
        yield


OPERATIONS: Final = (
    Operation("append", "append one record", _append, lambda sizes: sizes.records),
    Operation(
        "held", "append one record to a log that is held", _append_held, lambda sizes: sizes.records, needs="holds"
    ),
    Operation("batch", "append many records in one write", _append_batch, lambda sizes: sizes.rounds),
    Operation("scan", "read a log and find its records", _scan, lambda sizes: sizes.rounds),
    Operation("load", "load all records with their headers", _load, lambda sizes: sizes.rounds),
    Operation("last", "load the last ten records", _last, lambda sizes: sizes.rounds),
    Operation("fork", "make a new log of the first half", _fork, lambda sizes: sizes.rounds),
    Operation("many", "append to many logs by several threads", _many, lambda sizes: _turns(sizes) * sizes.logs),
    Operation("list", "list the many logs", _list, lambda sizes: sizes.rounds, item="log"),
    Operation("tails", "list the many logs with their tails", _list_tails, lambda sizes: sizes.rounds, item="log"),
)
"""All of them, in the order in which they are done."""
