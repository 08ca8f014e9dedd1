"""Several caches of one directory against a dict: whatever is done, damaged and evicted, each read is the dict's."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from statestore.errors import NotFound
from statestore.store import Snapshot
from statestore.wrappers import Cached
from tests.wrappers.places import Far, fill

LOGS = st.sampled_from(["a", "b", "a/b"])
PLACES = st.sampled_from([0, 1])  # two buckets share the directory, and the runs have the same names in both
CACHES = st.integers(0, 2)
OFFSETS = st.integers(0, 60_000)
LIMIT = 50_000


class Caches(RuleBasedStateMachine):
    """Three caches over each of two places, as so many processes have them."""

    @initialize(seed=st.integers(0, 1000))
    def open(self, seed: int) -> None:
        self.luck = random.Random(seed)
        self.root = tempfile.mkdtemp()
        self.far = [Far(), Far()]
        self.truth: list[dict[str, bytes]] = [{}, {}]
        self.caches = [
            [Cached(far, f"{self.root}/cache", origin=f"far://{number}", limit=LIMIT) for _ in range(3)]
            for number, far in enumerate(self.far)
        ]
        self.snapshots: list[tuple[Snapshot, bytes, int]] = []
        self.deletions = 0

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root, ignore_errors=True)

    def files(self) -> list[Path]:
        place = Path(self.root) / "cache" / "v1"
        with contextlib.suppress(FileNotFoundError):
            return sorted(place.iterdir())
        return []

    @rule(place=PLACES, log=LOGS, size=st.integers(1, 20_000))
    def append(self, place: int, log: str, size: int) -> None:
        data = self.luck.randbytes(size)
        fill(self.far[place], log, data)
        self.truth[place][log] = self.truth[place].get(log, b"") + data

    @rule(place=PLACES, log=LOGS, cache=st.none() | CACHES)
    def delete(self, place: int, log: str, cache: int | None) -> None:
        if self.truth[place].pop(log, None) is not None:
            (self.far[place] if cache is None else self.caches[place][cache]).delete(log)
            self.deletions += 1

    @rule(place=PLACES, cache=CACHES, log=LOGS, start=st.just(0) | OFFSETS, stop=st.none() | OFFSETS)
    def read(self, place: int, cache: int, log: str, start: int, stop: int | None) -> None:
        store, truth = self.caches[place][cache], self.truth[place].get(log)
        if truth is None:
            with pytest.raises(NotFound):
                store.read(log, start, stop)
        else:
            assert store.read(log, start, stop) == truth[start:stop]
            assert b"".join(store.stream(log, start, stop)) == truth[start:stop]

    @rule(place=PLACES, cache=CACHES, log=LOGS)
    def take_a_snapshot(self, place: int, cache: int, log: str) -> None:
        if log in self.truth[place]:
            snapshot = self.caches[place][cache].snapshot(log)
            self.snapshots.append((snapshot, self.truth[place][log], self.deletions))

    @precondition(lambda self: getattr(self, "snapshots", None))
    @rule(which=st.integers(0, 100), start=st.just(0) | OFFSETS, stop=st.none() | OFFSETS, streamed=st.booleans())
    def read_a_snapshot(self, which: int, start: int, stop: int | None, streamed: bool) -> None:
        snapshot, truth, deletions = self.snapshots[which % len(self.snapshots)]
        try:
            got = b"".join(snapshot.stream(start, stop)) if streamed else snapshot.read(start, stop)
        except NotFound:
            assert self.deletions > deletions
        else:
            assert got == truth[start:stop]

    @precondition(lambda self: hasattr(self, "root") and self.files())
    @rule(which=st.integers(0, 100), how=st.sampled_from(["flip", "cut", "remove", "swap", "grow", "zero"]))
    def damage(self, which: int, how: str) -> None:
        found = self.files()
        path = found[which % len(found)]
        data = bytearray(path.read_bytes())
        if how == "remove":
            path.unlink()
        elif how == "swap":
            other = self.luck.choice(found)
            path.rename(f"{self.root}/aside")
            if other != path:
                other.rename(path)
            Path(f"{self.root}/aside").rename(other)
        elif how == "cut":
            os.truncate(path, self.luck.randrange(len(data) + 1))
        elif how == "grow":
            path.write_bytes(data + self.luck.randbytes(self.luck.randrange(100)))
        elif data:
            place = self.luck.randrange(len(data))
            data[place : place + 1] = b"\0" * 9 if how == "zero" else bytes([data[place] ^ 1 << self.luck.randrange(8)])
            path.write_bytes(data)

    @invariant()
    def the_directory_is_bounded(self) -> None:
        if hasattr(self, "root"):
            # Six caches, and what was made to grow.
            assert sum(path.stat().st_size for path in self.files()) <= LIMIT + 5 * (LIMIT // 16) + 5_000


TestCaches = Caches.TestCase
TestCaches.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
