"""Where growth is measured: storages that are filled first, and then asked by somebody who knows nothing of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from uuid import uuid4

from benchmarks.growth.counted import Asked, Counted
from benchmarks.s3 import Traffic, watched
from statestore import Store, Tail
from statestore.wrappers import Wrapper
from statestore_fsspec import Settings
from statestore_fsspec import _layout as layout
from statestore_local import LocalStore
from statestore_memory import MemoryStore
from tests.s3.raw import Place as Bucket
from tests.servers import Rgw

__all__ = ["Place", "S3", "local", "memory"]

Fill = Callable[[Store], None]


class Place:
    """A storage. Each store that is opened there is a new one.

    Args:
        name: what it is called in the rows.
        opener: opens a store.

    Attributes:
        asked: what the stores are asked, while that is counted; None else, since counting takes time.
    """

    def __init__(self, name: str, opener: Callable[[], Store]) -> None:
        self.name = name
        self.opener = opener
        self.asked: Asked | None = None

    @contextmanager
    def open(self) -> Iterator[Store]:
        with self.opener() as store:
            yield store if self.asked is None else Counted(store, self.asked)  # type: ignore[misc]

    def watched(self) -> AbstractContextManager[Traffic | None]:
        """Count requests, where there are any."""
        return nullcontext()

    def fill(self, fill: Fill) -> None:
        """Put there what is to be measured."""
        with self.opener() as store:
            fill(store)


def local(root: Path) -> Place:
    """A local store that does not sync: what a disk takes for that would hide what grows."""
    return Place("local", lambda: LocalStore(root, sync="never"))


def memory() -> Place:
    name = uuid4().hex
    return Place("memory", lambda: MemoryStore(name))


class S3(Place):
    """A root in a bucket of its own.

    Args:
        server: where the bucket is.
        compacted: whether what is put there is compacted.
    """

    def __init__(self, server: Rgw, *, compacted: bool) -> None:
        self._bucket = Bucket(server, f"{server.new_bucket()}/root")
        self._bucket.put("statestore.json", Settings().spell())
        self._compacted = compacted
        super().__init__("s3, compacted" if compacted else "s3", self._bucket.open)

    def watched(self) -> AbstractContextManager[Traffic | None]:
        return watched()

    def fill(self, fill: Fill) -> None:
        """Put the objects there that a client would have made, one an append, in a tenth of the time."""
        store = _Recording()
        fill(store)
        runs = {log: layout.new_run(1, f"{number:016x}") for number, (log, at, _) in enumerate(store.appends) if not at}
        heads = [(layout.head_key(log, 1), layout.spell_live(run)) for log, run in runs.items()]
        self._bucket.put_all(
            heads
            + [(layout.single_key(log, runs[log], at), layout.segment_object(data)) for log, at, data in store.appends]
        )
        if self._compacted:
            with self.opener() as client:
                assert client.maintenance
                for log in runs:
                    client.maintenance.compact(log)


class _Recording(Wrapper):
    """Keeps what is appended."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.appends: list[tuple[str, int, bytes]] = []

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self.appends.append((log, at.size, data))
        return super().append(log, data, at=at)
