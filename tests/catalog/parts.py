"""A fold that notices every mistake, stores that say less than others or more, and a scan to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from statestore import NEW, Record, RecordLog, Store, Tail
from statestore.catalog import Catalog
from statestore.errors import Corrupt
from statestore.store import LogInfo, Snapshot
from statestore.wrappers import Wrapper
from statestore_memory import MemoryStore

Told = tuple[int, str]

TIME = "2026-01-01T00:00:00Z"


class Chain:
    """How many records there were, and a digest of them in their order."""

    def __init__(self, name: str = "chain", version: int = 1) -> None:
        self.name = name
        self.version = version
        self.steps = 0

    def initial(self) -> Told:
        return 0, ""

    def step(self, state: Told, record: Record) -> Told:
        self.steps += 1
        if record.kind == "nonsense":
            raise Corrupt("this record makes no sense", offset=record.offset)
        chain = blake2b(f"{self.version} {state[1]}".encode() + record.raw, digest_size=8)
        return state[0] + 1, chain.hexdigest()

    def dump(self, state: Told) -> bytes:
        return f"{state[0]} {state[1]}".encode()

    def load(self, data: bytes) -> Told:
        count, _, chain = data.decode().partition(" ")
        return int(count), chain


class Shared(MemoryStore):
    """A store in memory that passes for one that other processes see; runs of two places are alike."""

    capabilities = replace(MemoryStore.capabilities, shared=True)

    def location(self, log: str) -> str:
        return f"shared://{self.name}/{super().location(log)}"


class Runless(Wrapper):
    """A store that cannot tell a log from another one under its name."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.capabilities = replace(store.capabilities, runs=False)

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        where = NEW if at == NEW else Tail(at.size, self.inner.tail(log).run)
        return Tail(self.inner.append(log, data, at=where).size, "")

    def tail(self, log: str) -> Tail:
        return Tail(self.inner.tail(log).size, "")

    def snapshot(self, log: str) -> Snapshot:
        return Snapshot(self, log, self.tail(log))

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        for info in self.inner.list(prefix, after=after, tails=tails):
            yield LogInfo(info.name, info.tail and Tail(info.tail.size, ""))


def add(store: Store, log: str, *bodies: bytes, kind: str = "message") -> None:
    """Append records, to a new log where there is none. Bodies of one length make records of one length."""
    for body in bodies:
        new = next(store.list(log), None)
        RecordLog(store, log).append(kind, body, time=TIME, expect=None if new and new.name == log else 1)


def scanned(store: Store, version: int = 1, prefix: str = "") -> dict[str, Told | str]:
    """Read every log from its first record on."""
    fold = Chain(version=version)
    found: dict[str, Told | str] = {}
    for info in store.list(prefix):
        state = fold.initial()
        try:
            for record in RecordLog(store, info.name):
                state = fold.step(state, record)
        except Corrupt as error:
            found[info.name] = str(error)
        else:
            found[info.name] = state
    return found


def shown(catalog: Catalog[Told], prefix: str = "") -> dict[str, Told | str]:
    """Return what a catalog says; damage as its message."""
    rows = list(catalog.refresh(prefix))
    assert [row.log for row in rows] == sorted({row.log for row in rows})
    return {row.log: str(row.error) if row.error else row.value or (-1, "") for row in rows}


def place(path: Path) -> Path:
    return path / "catalog" / "file.sqlite3"
