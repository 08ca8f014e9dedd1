"""Where a run keeps its logs: a prefix of a store that nobody else has, what they hold, and how they go again."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from statestore.errors import NotFound, StateStoreError
from statestore.records import MESSAGE, START, Draft, Record, RecordLog, Scan, draft
from statestore.store import Store

__all__ = ["Place", "SOURCE", "Sizes", "next_of", "size_of", "wrong"]

S = TypeVar("S")
T = TypeVar("T")

_HEADER: Final = 256  # bytes that a header takes at most, roughly
SOURCE: Final = "append"
"""The name of the log that is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is done.

    Attributes:
        records: how many records the log has that is appended to one by one, and then read.
        size: the bytes of a record's body.
        logs: how many logs are listed, and appended to at once.
        workers: how many threads do that.
        rounds: how often that is done which is not done once for each record.
        batch: how many records one write of a batch has, if the store takes so many bytes.

    Raises:
        ValueError: a number is below 1.
    """

    records: int = 100
    size: int = 1024
    logs: int = 20
    workers: int = 4
    rounds: int = 5
    batch: int = 100

    def __post_init__(self) -> None:
        if min(astuple(self)) < 1:
            raise ValueError(f"nothing is done less than once: {self}")


class Place:
    """A fresh prefix of a store.

    Args:
        store: the store.
        sizes: how much is done there.

    Attributes:
        prefix: what the names of all of its logs begin with.
        left: what `clean` could not remove, in words.
    """

    def __init__(self, store: Store, sizes: Sizes) -> None:
        self.store = store
        self.sizes = sizes
        self.prefix = f"bench-{secrets.token_hex(6)}/"
        self.left: list[str] = []
        self._filler = random.Random(sizes.size).randbytes(sizes.size)  # noqa: S311 - it only fills
        self._logs: dict[str, RecordLog] = {}

    @property
    def batch(self) -> int:
        """How many records a batch has."""
        most = self.store.capabilities.max_append
        return self.sizes.batch if most is None else max(1, min(self.sizes.batch, most // (self.sizes.size + _HEADER)))

    def body(self, log: RecordLog, number: int) -> bytes:
        """Return what a record of a log holds; no other record holds the same, unless it is very small."""
        return (b"%s %d " % (log.name.encode(), number) + self._filler)[: self.sizes.size]

    def log(self, name: str) -> RecordLog:
        """Return a log, which is made with one record where it is not there yet."""
        if name not in self._logs:
            log = RecordLog(self.store, self.prefix + name)
            log.append(START, self.body(log, 1), expect=1)
            self._logs[name] = log
        return self._logs[name]

    def source(self) -> RecordLog:
        """Return the log that is read: the one that was appended to one by one, or would have been."""
        log = self.log(SOURCE)
        for number in range(next_of(log), self.sizes.records + 2):
            self.append(log, number)()
        return log

    def many(self) -> list[RecordLog]:
        """Return the many logs."""
        return list(self.each(self.log, (f"many-{number:06}" for number in range(self.sizes.logs))))

    def append(self, log: RecordLog, number: int) -> Callable[[], Record]:
        """Return what appends a record, which must get that number."""
        return partial(log.append, MESSAGE, self.body(log, number))

    def drafts(self, log: RecordLog) -> list[Draft]:
        """Return the next batch of a log."""
        first = next_of(log)
        return [draft(MESSAGE, self.body(log, number)) for number in range(first, first + self.batch)]

    def each(self, act: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
        """Yield what comes of some work on each of the items, which several threads do."""
        pool = ThreadPoolExecutor(self.sizes.workers, thread_name_prefix="bench")
        try:
            yield from pool.map(act, items)
        finally:
            pool.shutdown(cancel_futures=True)

    def check(self, operation: str, log: RecordLog, *, of: RecordLog | None = None) -> None:
        """Read a log, and see that it holds what was written to it, and nothing else; see `compare`."""
        records = Scan(self.store.snapshot(log.name).read, log=log.name)
        self.compare(operation, log, records, of=of)
        if records.torn:
            raise wrong(operation, log=log.name, torn=records.torn)

    def compare(
        self, operation: str, log: RecordLog, found: Iterable[Record], first: int = 1, *, of: RecordLog | None = None
    ) -> None:
        """See that these are the records of a log from one number on.

        Args:
            operation: what has brought them.
            log: the log, as it was written.
            found: the records.
            first: the number of the first one.
            of: the log that it is a copy of.

        Raises:
            StateStoreError: they are not.
        """
        number = first - 1
        for number, record in enumerate(found, first):
            kind = START if number == 1 else MESSAGE
            if (record.n, record.kind, record.body) != (number, kind, self.body(of or log, number)):
                raise wrong(operation, log=log.name, record=number)
        if number != next_of(log) - 1:
            raise wrong(operation, log=log.name, expected=next_of(log) - first, found=number - first + 1)

    def clean(self) -> None:
        """Delete all logs that are here, and say in `left` what stays."""
        try:
            names = {info.name for info in self.store.list(self.prefix)}
        except StateStoreError as error:
            self.left.append(f"what is below {self.prefix} is left: it cannot be listed: {error}")
            return
        if names and not self.store.capabilities.deletes:
            self._leave(names, "this store cannot delete")
            return
        reasons = dict.fromkeys(names, "it was interrupted")

        def delete(name: str) -> None:
            try:
                self.store.delete(name)
            except NotFound:
                pass
            except StateStoreError as error:
                reasons[name] = str(error)
                return
            del reasons[name]

        try:
            for _ in self.each(delete, names):
                pass
        finally:
            if reasons:
                self._leave(reasons, next(iter(reasons.values())))
        if len(reasons) < len(names) and self.store.maintenance is not None:
            self.left.append(
                f"objects of {len(names) - len(reasons)} deleted logs stay below {self.prefix} until gc removes them"
            )
        self._remove_directory()

    def _leave(self, logs: Collection[str], why: str) -> None:
        told = "1 log is" if len(logs) == 1 else f"{len(logs):,} logs are"
        self.left.append(f"{told} left below {self.prefix}: {why}")

    def _remove_directory(self) -> None:
        """Remove the directory that the prefix was in a store of files, now that it is empty."""
        directory = Path(self.store.location(self.prefix + SOURCE)).parent
        if directory.is_absolute() and directory.name == self.prefix.rstrip("/"):
            with suppress(OSError):
                directory.rmdir()


def next_of(log: RecordLog) -> int:
    """Return the number that the next record gets in a log that was appended to."""
    assert log.end is not None
    return log.end[1]


def size_of(log: RecordLog) -> int:
    """Return how many bytes a log has that was appended to."""
    assert log.end is not None
    return log.end[0].size


def wrong(operation: str, **facts: object) -> StateStoreError:
    """Return the error for a store that gives back something else than it was given."""
    return StateStoreError(
        "what was read is not what was written: trust no log to this store before conform says why",
        operation=operation,
        **facts,
    )
