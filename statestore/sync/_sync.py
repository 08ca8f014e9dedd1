"""Two listings, joined by name, and the logs that differ brought over by several threads."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Final

from statestore import names
from statestore.ahead import in_order
from statestore.errors import Unavailable
from statestore.store import LogInfo, Store, Tail
from statestore.sync._known import Known
from statestore.sync._log import TRIES, Job, Row

__all__ = ["sync"]

_AHEAD: Final = 8  # logs for each worker that may be done, or waiting, before the first of them is given


def sync(
    source: Store,
    target: Store,
    *,
    prefix: str = "",
    workers: int = 8,
    known: Known | None = None,
    verify: bool = True,
    dry_run: bool = False,
    pause: float = 0.2,
) -> Generator[Row]:
    """Copy every log of a store that another one lacks, or has less of, and yield what became of each, by name.

    A log that the target has must be a beginning of the source's; then what follows is appended. Otherwise it has
    diverged, and is not touched. Nothing is ever deleted or overwritten. A sync that was ended at any moment, by
    whatever, is taken up by the next one; others may append to the source, and sync to the target, meanwhile.

    The work is done as the rows are taken. What stops one log does not stop the others; what fails in a way that
    may pass is tried a few times.

    Args:
        source: where the logs are; it is only read.
        target: where they go.
        prefix: only logs whose names begin so.
        workers: how many logs are worked on at once; each holds a few pieces, of 4 MiB or as
            large as the source gives them (16 MiB from a bucket).
        known: what is known to be equal, and not compared again; what is found is added to it. By default nothing is
            known, and whatever both have is read and compared.
        verify: read back what was written, and compare it.
        dry_run: write nothing, and tell what would be copied.
        pause: seconds before something is tried again; twice as long each time.

    Raises:
        InvalidName: no name begins with `prefix`.
        ValueError: both stores are the same, the target lies within the source, or there are no workers.
        Unavailable: a store cannot be listed; raised when the rows are taken.
    """
    names.check_prefix(prefix)
    if workers < 1:
        raise ValueError(f"at least one worker is needed: workers={workers}")
    if source is target or _lies_within(source, target):
        raise ValueError("the target is the source, or a directory in it: a store cannot be copied into itself")
    known = Known() if known is None else known
    return _rows(Job(source, target, known, verify, dry_run, pause, Event()), prefix, workers)


def _rows(job: Job, prefix: str, workers: int) -> Generator[Row]:
    pool = ThreadPoolExecutor(workers, thread_name_prefix="sync")
    try:
        joined = _joined(_listing(job, job.source, prefix), _listing(job, job.target, prefix))
        yield from in_order((job.settled(*logs) or pool.submit(job.bring, *logs) for logs in joined), _AHEAD * workers)
    finally:
        job.stop.set()
        pool.shutdown(cancel_futures=True)


def _listing(job: Job, store: Store, prefix: str) -> Iterator[LogInfo]:
    """Yield the logs with their tails, and go on behind the last one where the storage failed."""
    after, failures = "", 0
    while True:
        try:
            for info in store.list(prefix, after=after, tails=True):
                yield info
                after, failures = info.name, 0
            return
        except Unavailable as error:
            failures += 1
            if not error.retry or failures == TRIES:
                raise
        job.rest(failures)


def _joined(sources: Iterator[LogInfo], targets: Iterator[LogInfo]) -> Iterator[tuple[str, Tail | None, Tail | None]]:
    """Yield each name that is in either listing, with the tails on both sides."""
    source, target = next(sources, None), next(targets, None)
    while source or target:
        if target is None or (source and source.name < target.name):
            assert source is not None
            yield source.name, source.tail, None
            source = next(sources, None)
        elif source is None or target.name < source.name:
            yield target.name, None, target.tail
            target = next(targets, None)
        else:
            yield source.name, source.tail, target.tail
            source, target = next(sources, None), next(targets, None)


def _lies_within(source: Store, target: Store) -> bool:
    """Say whether both keep logs in files, and the target's are among the source's."""
    places = [store.location("log") for store in (source, target)]
    if not all(map(os.path.isabs, places)):
        return False
    outer, inner = (os.path.dirname(os.path.realpath(place)) for place in places)
    return os.path.commonpath([outer, inner]) == outer
