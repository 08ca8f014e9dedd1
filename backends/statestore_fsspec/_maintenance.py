"""What the store offers its operator: merging, collecting, checking, probing."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from statestore.errors import StateStoreError, Unavailable
from statestore.store import Finding, Garbage, Problem
from statestore_fsspec import _layout as layout
from statestore_fsspec._check import check, foreign
from statestore_fsspec._doctor import examine
from statestore_fsspec._engine import entries
from statestore_fsspec._listing import Listed, listed
from statestore_fsspec._probe import probe
from statestore_fsspec._root import Root
from statestore_fsspec._steps import TOKEN, List, Page, Put, Remove, Steps
from statestore_fsspec._upkeep import collect, merge, spare_objects

__all__ = ["BucketMaintenance"]


_OWN: Final = re.compile(rf"{re.escape(layout.SETTINGS)}$|probe/|clock/|$")  # "" is the root itself, seen as a folder
_CHECKED: Final = 8  # logs that are checked at once


class BucketMaintenance:
    """The maintenance of a root. Any number of clients may do it at any time, beside any others.

    Args:
        root: the root.
    """

    def __init__(self, root: Root) -> None:
        self._root = root

    def compact(self, log: str) -> int:
        """Merge a log's segments; return how many fewer objects a reader needs now."""
        finder = self._root.writer().finder
        # Only now are the settings those that lie there.
        return self._root.engine.run(merge(finder, log, self._root.settings.windows))

    def collect(self, prefix: str = "", *, dry_run: bool = True) -> Iterator[Garbage]:
        """Yield each object that no log needs any more, and remove it unless this is a dry run.

        Only what has been superseded for longer than the root's grace period goes. The age of an object is told by
        the storage's own clock, for which a small object is made and removed.
        """
        writer = self._root.writer()
        engine, settings = self._root.engine, self._root.settings
        now = engine.run(_storage_time())
        for found in listed(engine, prefix, ordered=settings.sorted, data=True):
            if _may_hold_garbage(found):
                for spare in engine.run(collect(writer, found.log, now, dry_run=dry_run)):
                    yield Garbage(spare.key, spare.size, spare.why)

    def check(self, prefix: str = "") -> Iterator[Problem]:
        """Yield all that is wrong with the objects of logs whose names begin with a prefix; every byte is read."""
        finder, engine = self._root.finder(), self._root.engine
        logs: dict[str, None] = {}
        # Without a prefix everything below the root is looked at.
        for begin in (f"heads/{prefix}", f"data/{prefix}") if prefix else ("",):
            for entry in entries(engine.pages(begin)):
                if (log := layout.log_of(entry.key)) is not None:
                    logs.setdefault(log)
                elif not _OWN.match(entry.key):
                    yield foreign(entry)

        def look(log: str) -> list[Problem]:
            try:
                return engine.run(check(finder, log))
            except Unavailable:
                raise
            except StateStoreError as error:
                return [Problem(log, error.facts.get("object", ""), error.message)]

        pool = ThreadPoolExecutor(_CHECKED, thread_name_prefix="statestore-check")
        try:
            looks = deque[Future[list[Problem]]]()
            for log in logs:
                looks.append(pool.submit(look, log))
                if len(looks) > 2 * _CHECKED:
                    yield from looks.popleft().result()
            for done in looks:
                yield from done.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def examine(self) -> Iterator[Finding]:
        """Yield what the storage really does, tried one by one below a prefix that is emptied afterwards."""
        return examine(self._root.engine)

    def probe(self) -> None:
        """Try whether the storage keeps its promises; raise ``Unavailable`` where it does not."""
        probe(self._root.engine)


def _may_hold_garbage(found: Listed) -> bool:
    """Say whether a log is worth a closer look: whether there is more than a run that lives and was never merged."""
    assert found.runs is not None
    live = next(iter(found.runs), None) if len(found.heads) % 2 and len(found.runs) == 1 else None
    sealed = any(segment.seal for segments in found.runs.values() for segment in segments)
    return sealed or bool(spare_objects(found.heads, live, found.runs))


def _storage_time() -> Steps[float]:
    """Return the time by the storage's own clock, in seconds."""
    key = f"clock/{(yield TOKEN)}"
    yield Put(key, b"tick")
    page: Page = yield List(key)
    yield Remove((key,))
    if not page.entries:
        raise Unavailable("the storage does not show what was made just now", retry=True, object=key)
    return page.entries[0].modified
