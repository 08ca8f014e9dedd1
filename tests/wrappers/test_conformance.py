"""A wrapper keeps the contract over each of our stores; what one cannot keep is declared, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from statestore.conformance import Harness, conformance
from statestore.conformance.harness import Factory, enter
from statestore.store import LogInfo, Snapshot, Store, Tail
from statestore.wrappers import Faulty, Instrumented, Prefixed, ReadOnly, Wrapper
from statestore.wrappers._wrapper import WrappedSnapshot
from tests.conformance import test_local, test_memory
from tests.wrappers.framed import sealed

Wrap = Callable[[Store], Wrapper]


def opened(wrap: Wrap, opener: Callable[[], Store]) -> Wrapper:
    return wrap(opener())


def wrapped(place: Path, *, wrap: Wrap, factory: Factory, **more: Any) -> Iterator[Harness]:
    """Put a wrapper around each store that a harness opens."""
    with enter(factory, place) as inner:
        assert inner.reopen
        assert inner.spawn
        parts: dict[str, Any] = {
            "open": partial(opened, wrap, inner.open),
            "reopen": partial(opened, wrap, inner.reopen),
            "spawn": partial(opened, wrap, inner.spawn),
            "crash": lambda store: inner.crash and inner.crash(store.inner),
        }
        yield replace(inner, **{**parts, **more})


over_memory = partial(partial, wrapped, factory=test_memory.harness)
over_local = partial(partial, wrapped, factory=test_local.always)

test_faulty_over_memory = conformance(over_memory(wrap=Faulty), sample=0.25)
test_faulty_over_local = conformance(over_local(wrap=Faulty), sample=0.05)
test_instrumented_over_memory = conformance(over_memory(wrap=Instrumented), sample=0.05)


class Elsewhere(Wrapper):
    """A store whose appends and copies are made beside what is read-only: by somebody else, as it were."""

    inner: ReadOnly

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        return self.inner.inner.append(log, data, at=at)

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        return self.inner.inner.copy(source, target, stop=stop)

    def snapshot(self, log: str) -> Snapshot:
        return CopiedElsewhere(self, log, super().snapshot(log))


class CopiedElsewhere(WrappedSnapshot):
    def copy(self, target: str, *, stop: int | None = None) -> Tail:
        return self.store.copy(self.log, target, stop=self._within(stop))


def looked_at(store: Store) -> Wrapper:
    return Elsewhere(ReadOnly(store))


test_read_only_over_memory = conformance(over_memory(wrap=looked_at, crash=lambda store: None), sample=0.02)

LONGEST = {"the-longest-names-are-names": "a prefix takes its length from the names below it"}


def below(store: Store) -> Prefixed:
    return Prefixed(store, "tenants/acme")


def below_memory(place: Path) -> Iterator[Harness]:
    """Other logs lie in the same store, at names that begin alike or sort before, between and behind."""
    with enter(partial(wrapped, wrap=below, factory=test_memory.harness), place) as inner:
        store = test_memory.MemoryStore(str(place))
        for log in ("a", "log", "tenants/acme", "tenants/acme.log", "tenants/acme0/log", "tenants/acmelog", "zz"):
            test_memory.put(str(place), log, b"a neighbour's")
        before = list(rows(store))
        yield replace(
            inner,
            raw_read=lambda log: inner.raw_read and inner.raw_read(f"tenants/acme/{log}"),
            raw_write=lambda log, data: inner.raw_write and inner.raw_write(f"tenants/acme/{log}", data),
            divergences=LONGEST,
        )
        assert [row for row in rows(store) if not row.name.startswith("tenants/acme/")] == before


def rows(store: Store) -> Iterator[LogInfo]:
    return store.list(tails=True)


test_prefixed_over_memory = conformance(below_memory, sample=0.05)


def below_local(place: Path) -> Iterator[Harness]:
    with enter(partial(wrapped, wrap=below, factory=test_local.always), place) as inner:
        yield replace(
            inner,
            raw_read=lambda log: inner.raw_read and inner.raw_read(f"tenants/acme/{log}"),
            raw_write=lambda log, data: inner.raw_write and inner.raw_write(f"tenants/acme/{log}", data),
            raw_aside=lambda log: inner.raw_aside and inner.raw_aside(f"tenants/acme/{log}"),
            divergences=LONGEST,
        )


test_prefixed_over_local = conformance(below_local, sample=0.02, levels=["core"])

# The kit appends bytes of all kinds, and an encrypted store takes whole records: each byte is made one.
LARGE = dict.fromkeys(
    (
        "a-copy-and-a-creation-have-one-winner",
        "a-copy-of-a-growing-log-is-a-beginning-of-it",
        "a-copy-of-a-long-log-is-whole",
        "a-copy-shows-to-another-store-object",
        "a-copy-target-has-one-winner",
        "a-log-may-have-any-length",
        "a-reader-of-a-growing-log-sees-a-beginning-of-it",
        "a-stream-ends-where-the-log-ended",
        "a-stream-joins-its-pieces-without-a-seam",
        "an-append-returns-the-tail-behind-its-bytes",
        "an-append-that-differs-in-one-byte-is-refused",
        "zeros-and-blanks-are-kept",
    ),
    "it appends more bytes at once than are worth as many records; test_encrypted.py tries large ones",
)


test_encrypted_over_memory = conformance(
    over_memory(wrap=sealed, crash=lambda store: None, raw_read=None, raw_write=None, divergences=LARGE),
    sample=0.02,
    levels=["concurrent"],
)
test_encrypted_over_local = conformance(
    over_local(wrap=sealed, crash=None, raw_read=None, raw_write=None, raw_aside=None, divergences=LARGE),
    sample=0.02,
    levels=["core"],
)
