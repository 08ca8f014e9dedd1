"""The local store keeps the contract, under each sync policy."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path

import pytest

from statestore.conformance import Harness, conformance
from statestore.store import NEW, Store
from statestore_local import LocalStore
from statestore_local._files import locate


def harness(place: Path, sync: str) -> Harness:
    opened = partial(LocalStore, str(place), sync=sync)

    def file_of(log: str) -> Path:
        return Path(locate(str(place), log).path)

    def raw_write(log: str, data: bytes) -> None:
        file_of(log).parent.mkdir(parents=True, exist_ok=True)
        file_of(log).write_bytes(data)

    def raw_aside(log: str) -> bytes:
        where = locate(str(place), log)
        kept = file_of(log).parent.glob(where.beside("cut-*"))
        return b"".join(path.read_bytes() for path in sorted(kept, key=lambda path: path.stat().st_mtime_ns))

    def crash(store: Store) -> None:
        # What the kernel does with a killed process's files: closed, with no word said.
        handles = store._handles  # type: ignore[attr-defined]
        descriptors = [fd for handle in handles._table.values() for fd in (handle.fd, handle.note) if fd >= 0]
        handles.forget()
        for fd in descriptors:
            os.close(fd)

    return Harness(
        open=opened,
        reopen=opened,
        raw_read=lambda log: file_of(log).read_bytes(),
        raw_write=raw_write,
        raw_aside=raw_aside,
        spawn=opened,
        crash=crash,
    )


test_the_store_that_syncs_always = conformance(partial(harness, sync="always"))
test_the_store_that_syncs_on_flush = conformance(partial(harness, sync="on_flush"))
test_the_store_that_never_syncs = conformance(partial(harness, sync="never"))


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no writable /dev/shm here")
def test_a_store_says_that_it_has_runs_exactly_where_its_tails_show_them() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place, LocalStore(place) as store:
        assert (store.append("a", b"1", at=NEW).run != "") is store.capabilities.runs
