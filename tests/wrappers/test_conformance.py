"""A faulty store without faults is the inner store: it keeps the contract, over each of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from statestore.conformance import Harness, conformance
from statestore.conformance.harness import Factory, enter
from statestore.store import Store
from statestore.wrappers import Faulty
from tests.conformance import test_local, test_memory


def opened(opener: Callable[[], Store]) -> Faulty:
    return Faulty(opener())


def wrapped(factory: Factory, place: Path) -> Iterator[Harness]:
    with enter(factory, place) as inner:
        assert inner.reopen
        assert inner.spawn
        yield replace(
            inner,
            open=partial(opened, inner.open),
            reopen=partial(opened, inner.reopen),
            spawn=partial(opened, inner.spawn),
            crash=lambda store: inner.crash and inner.crash(store.inner),
        )


def over_memory(place: Path) -> Iterator[Harness]:
    yield from wrapped(test_memory.harness, place)


def over_local(place: Path) -> Iterator[Harness]:
    yield from wrapped(test_local.always, place)


test_faulty_over_memory = conformance(over_memory, sample=0.25)
test_faulty_over_local = conformance(over_local, sample=0.05)
