"""The local store keeps the contract, whenever it syncs."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from statestore.conformance import Harness, conformance
from statestore.store import Store
from statestore_local import LocalStore, _forks, _sync
from tests.conformance.power import Power


def crash(store: Store) -> None:
    """What the kernel does with a killed process's files: they are closed, and nothing else happens."""
    handles = store._handles  # type: ignore[attr-defined]
    descriptors = [fd for handle in handles._table.values() for fd in (handle.fd, handle.note) if fd >= 0]
    handles.forget()
    for fd in descriptors:
        _forks.let_go(fd)


@contextmanager
def fill() -> Iterator[None]:
    """Let no file of this process grow beyond a megabyte: a longer write is done in part, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def harness(place: Path, sync: _sync.Sync) -> Iterator[Harness]:
    root = place / "logs"
    power = Power(root)

    def raw_write(log: str, data: bytes) -> None:
        file = root / f"{log}.state"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sync, "fsync", power.sync)
        patch.setattr(_sync, "fdatasync", power.sync)
        opener = partial(LocalStore, root, sync=sync)
        yield Harness(
            open=opener,
            reopen=opener,
            spawn=opener,
            raw_read=lambda log: (root / f"{log}.state").read_bytes(),
            raw_write=raw_write,
            raw_aside=lambda log: b"".join(
                file.read_bytes()
                for file in sorted(
                    (root / log).parent.glob(f".{Path(log).name}*cut-*"), key=lambda each: each.stat().st_ctime_ns
                )
            ),
            crash=crash,
            lose_power=power.lose,
            fill=fill,
        )
    power.close()


def always(place: Path) -> Iterator[Harness]:
    yield from harness(place, "always")


def on_flush(place: Path) -> Iterator[Harness]:
    yield from harness(place, "on_flush")


def never(place: Path) -> Iterator[Harness]:
    yield from harness(place, "never")


test_the_local_store_that_syncs_always = conformance(always, sample=0.1)
test_the_local_store_that_syncs_on_flush = conformance(on_flush, sample=0.1)
test_the_local_store_that_never_syncs = conformance(never, sample=0.1)
