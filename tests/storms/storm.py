"""A storm: several writers at one log through a proxy that harms their requests, and what must be true afterwards."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from statestore import NEW, Store, Tail
from statestore.errors import Conflict, NotFound, Unavailable
from statestore_fsspec import Settings
from statestore_fsspec import _layout as layout
from tests.proxy import Fault, Proxy
from tests.storms.aim import Aim

BATCH = 10  # seeds in which each kind of storm comes once
SETTINGS = Settings(windows=(64, 256))
HASTY = Settings(grace=1.0, windows=(64, 256))
WRITERS = 4
CLIENTS = WRITERS + 4
APPENDS = 4
_PATIENCE = 200
_STUBBORN = (Fault.LATE, Fault.RESET, Fault.REPLY_LOST, Fault.SLOW_DOWN, Fault.ERROR_AFTER)


def settings_of(seed: int) -> Settings:
    """Return the settings of the root in which the storm of this seed rages."""
    return HASTY if seed % BATCH == 9 else SETTINGS


class Place(Protocol):
    """Where the log of a storm is, seen without proxy and store."""

    def objects(self, begin: str = "") -> dict[str, bytes]:
        """Return what lies there under keys that begin so."""


@dataclass
class Said:
    """What the clients of one log were told."""

    acknowledged: list[tuple[bytes, Tail]] = field(default_factory=list)
    refused: list[bytes] = field(default_factory=list)
    unknown: list[bytes] = field(default_factory=list)
    read: list[tuple[Tail, bytes]] = field(default_factory=list)
    deleted: list[Tail | None] = field(default_factory=list)
    collected: list[str] = field(default_factory=list)


@dataclass
class Storm:
    """One seed: who takes part, and what is done to their requests.

    Attributes:
        seed: all luck hangs on it, but for what the threads' race adds.
        place: where the log is, seen without the proxy.
        aim: what can be done to requests there.
        proxy: what stands between the clients and the server.
        stores: one for each writer, and one each for reader, deleter, compactor and collector.
        plain: a store that goes past the proxy.
    """

    seed: int
    place: Place
    aim: Aim
    proxy: Proxy
    stores: list[Store]
    plain: Store
    said: Said = field(default_factory=Said)

    def __post_init__(self) -> None:
        self.log = f"storm/{self.seed}"
        self.luck = random.Random(self.seed)
        kind = self.seed % BATCH
        self.deletes = 4 if kind in (2, 5, 8) or self.seed % 20 == 19 else 0  # how often somebody deletes the log
        self.compacts = kind in (4, 5, 6)  # whether somebody merges all the while
        self.collects = settings_of(self.seed) is HASTY  # whether somebody collects, once there is something to collect
        self._over = threading.Event()

    def rage(self) -> None:
        """Let it happen, then look that what was promised is there."""
        self.proxy.begin(self.seed)
        self._inject()
        if self.collects:
            self._together("early", APPENDS // 2)
            self._wait_for_garbage()
        self._together("late", APPENDS // 2 if self.collects else APPENDS)
        self.proxy.heal()
        self.proxy.release()
        self.judge()

    def _inject(self) -> None:
        luck, aim = self.luck, self.aim
        for _ in range(luck.randint(2, 5)):
            fault = luck.choice((*aim.sudden, Fault.STALLED))
            self.proxy.inject(
                fault,
                method=luck.choice((aim.write, aim.write, aim.read, "")),
                target=luck.choice(("", aim.data, aim.heads)),
                nth=luck.randint(1, 8),
                probability=luck.uniform(0.1, 0.5),
                times=luck.choice((1, 2, 5)),
            )
        if luck.random() < 0.3:
            # More than a client tries again: calls fail, and their outcome is open.
            self.proxy.inject(
                luck.choice([fault for fault in _STUBBORN if fault in aim.sudden]),
                method=aim.write,
                target=luck.choice((aim.data, aim.heads)),
                nth=luck.randint(1, 12),
                probability=luck.choice((0.8, 1.0)),
                times=luck.randint(10, 40),
            )
        if luck.random() < 0.1:
            self.proxy.inject(luck.choice(aim.slow), method=aim.write, nth=luck.randint(1, 12))

    def _together(self, part: str, appends: int) -> None:
        self._over.clear()
        writers: list[Callable[[], None]] = [
            partial(self._write_all, f"{part}.{number}", self.stores[number], appends) for number in range(WRITERS)
        ]
        others: list[Callable[[], None]] = [self._read_on, self._release_on]
        if self.deletes:
            writers.append(self._delete)
        if self.compacts or self.collects:
            others.append(self._compact_on)
        if self.collects:
            others.append(self._collect_on)
        with ThreadPoolExecutor(len(writers) + len(others)) as pool:
            aside = [pool.submit(other) for other in others]
            try:
                for writer in [pool.submit(writer) for writer in writers]:
                    writer.result()
            finally:
                self._over.set()
            for other in aside:
                other.result()

    def _write_all(self, name: str, store: Store, appends: int) -> None:
        luck = random.Random(f"{self.seed}/{name}")
        at: Tail | None = None
        for count in range(appends):
            at = self._write(store, f"{name}.{count}", at, luck)

    def _write(self, store: Store, name: str, at: Tail | None, luck: random.Random) -> Tail:
        """Add one payload, whatever it takes; return the tail behind it."""
        for attempt in range(_PATIENCE):
            payload = f"<{name}.{attempt}{'-' * luck.randint(0, 30)}>".encode()
            try:
                at = at or self._tail(store)
                told = self._append(store, payload, at, luck)
            except Conflict as error:
                self.said.refused.append(payload)
                at = error.found
            except NotFound:
                self.said.refused.append(payload)
                at = NEW
            except Unavailable as error:
                (self.said.unknown if error.effect_unknown else self.said.refused).append(payload)
                at = None
            else:
                self.said.acknowledged.append((payload, told))
                return told
        raise AssertionError("a writer gets nowhere")

    def _append(self, store: Store, payload: bytes, at: Tail, luck: random.Random) -> Tail:
        """Append, and where the outcome is open, call again sometimes: the same bytes at the same place."""
        try:
            return store.append(self.log, payload, at=at)
        except Unavailable as error:
            if not error.effect_unknown or luck.random() < 0.5 or (at == NEW and self.deletes):
                raise
            first = error
        for _ in range(_PATIENCE):
            try:
                return store.append(self.log, payload, at=at)
            except Unavailable:
                continue
            except (Conflict, NotFound):
                if self.deletes:  # it may have been there before the log was deleted
                    raise first from None
                raise
        raise first

    def _tail(self, store: Store) -> Tail:
        try:
            return store.tail(self.log)
        except NotFound:
            return NEW

    def _read_on(self) -> None:
        while not self._over.is_set():
            with suppress(NotFound, Unavailable):
                snapshot = self.stores[WRITERS].snapshot(self.log)
                self.said.read.append((snapshot.tail, snapshot.read()))
            self._over.wait(0.1)

    def _release_on(self) -> None:
        luck = random.Random(f"{self.seed}/release")
        while not self._over.wait(luck.uniform(0.01, 0.1)):
            self.proxy.release()

    def _delete(self) -> None:
        luck, store = random.Random(f"{self.seed}/delete"), self.stores[WRITERS + 1]
        for _ in range(self.deletes):
            self._over.wait(luck.uniform(0, 0.1))
            with suppress(NotFound, Conflict, Unavailable):
                at = store.tail(self.log) if luck.random() < 0.5 else None
                store.delete(self.log, at=at)
                self.said.deleted.append(at)

    def _compact_on(self) -> None:
        store = self.stores[WRITERS + 2]
        assert store.maintenance is not None
        while not self._over.wait(0.03):
            with suppress(NotFound, Unavailable):
                store.maintenance.compact(self.log)

    def _collect_on(self) -> None:
        store = self.stores[WRITERS + 3]
        assert store.maintenance is not None
        while not self._over.wait(0.03):
            with suppress(Unavailable):
                self.said.collected += [one.object for one in store.maintenance.collect(self.log, dry_run=False)]

    def _wait_for_garbage(self) -> None:
        """Wait until something has been superseded for longer than the grace period, if anything will be."""
        assert self.plain.maintenance is not None
        for _ in range(30):
            if list(self.plain.maintenance.collect(self.log)):
                return
            threading.Event().wait(0.1)

    # What must be true.

    def judge(self) -> None:
        """Compare what was told with what is there."""
        told = f"seed {self.seed}"
        runs = self._runs()
        current = self._current()
        if current is not None:
            tail, data = current
            assert runs.get(tail.run, data) == data, told
            runs[tail.run] = data
            for store in self.stores:
                assert store.tail(self.log) == tail, told
            for store in self.stores[:2]:
                assert store.read(self.log) == data, told
        pieces = {run: re.findall(rb"<[^<>]*>", data) for run, data in runs.items()}
        for run, data in runs.items():
            assert b"".join(pieces[run]) == data, f"{told}: {run} holds something torn"
        everything = [piece for several in pieces.values() for piece in several]
        for payload, at in self.said.acknowledged:
            if at.run in runs:
                assert everything.count(payload) == 1, f"{told}: {payload!r} at {at}"
                assert runs[at.run][: at.size].endswith(payload), f"{told}: {payload!r} at {at}"
            else:
                assert self.collects, f"{told}: {payload!r} at {at}"
                assert payload not in everything, f"{told}: {payload!r} at {at}"
        assert not {*self.said.refused} & {*everything}, f"{told}: refused, and there"
        allowed = {*self.said.unknown} | {payload for payload, _ in self.said.acknowledged}
        assert allowed >= {*everything}, told
        assert len(everything) == len({*everything}), told
        for at, data in self.said.read:
            if at.run in runs:
                assert runs[at.run][: at.size] == data, f"{told}: a reader saw what is not there"
        for dead in self.said.deleted:
            if dead is not None and dead.run in runs:
                assert len(runs[dead.run]) == dead.size, f"{told}: deleted elsewhere than at {dead}"
        assert len(self.place.objects(layout.heads_prefix(self.log))) // 2 >= len(self.said.deleted), told
        assert self.plain.maintenance is not None
        assert list(self.plain.maintenance.check(self.log)) == [], told

    def _current(self) -> tuple[Tail, bytes] | None:
        try:
            snapshot = self.plain.snapshot(self.log)
            return snapshot.tail, snapshot.read()
        except NotFound:
            return None

    def _runs(self) -> dict[str, bytes]:
        """Return what each run of the log's heads holds, told from the appends alone; without those collected from."""
        runs: dict[str, bytes] = {}
        for key, head in self.place.objects(layout.heads_prefix(self.log)).items():
            if layout.parse_head(key)[1] % 2 == 0:
                continue
            run = layout.read_live(head, key)
            data = b""
            for single, segment in sorted(self.place.objects(layout.run_prefix(self.log, run) + "t/").items())[::-1]:
                if single != layout.single_key(self.log, run, len(data)):
                    assert self.collects, f"seed {self.seed}: {single} begins behind {len(data)}"
                    break
                data += segment[layout.PREAMBLE :]
            else:
                if data:
                    runs[run] = data
        return runs
