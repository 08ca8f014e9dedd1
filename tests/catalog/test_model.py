"""Several stores and catalogs over the same logs and one file, in any order: each answer is that of a full scan."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from statestore import Store, open_store
from statestore.catalog import Catalog
from statestore.errors import Corrupt, NotFound
from tests.catalog.parts import Chain, Runless, Shared, Told, add, scanned, shown

LOGS = st.sampled_from(["a", "a-b", "a/b", "b"])
BODIES = st.lists(st.sampled_from([b"one", b"two", b"", b'\n{"n":2,', b"x" * 3000]), min_size=1, max_size=3)
TWO = st.integers(0, 1)
THREE = st.integers(0, 2)


class Catalogs(RuleBasedStateMachine):
    """Two stores over the same logs, and three catalogs that share a file: one has another version of the fold."""

    def stores(self) -> list[Store]:
        raise NotImplementedError

    @initialize()
    def open(self) -> None:
        self.root = tempfile.mkdtemp()
        self.file = Path(self.root) / "catalog"
        self.two = self.stores()
        self.catalogs = [self.make(number) for number in range(3)]

    def teardown(self) -> None:
        if hasattr(self, "root"):
            for catalog in self.catalogs:
                catalog.close()
            shutil.rmtree(self.root)

    def make(self, number: int) -> Catalog[Told]:
        fold = Chain(version=2 if number == 2 else 1)
        return Catalog(self.two[number % 2], fold, path=self.file, origin="the same", workers=2)

    @rule(number=TWO, log=LOGS, bodies=BODIES)
    def append(self, number: int, log: str, bodies: list[bytes]) -> None:
        with suppress(Corrupt):
            add(self.two[number], log, *bodies)

    @rule(number=TWO, log=LOGS)
    def append_nonsense(self, number: int, log: str) -> None:
        with suppress(Corrupt):
            add(self.two[number], log, b"?", kind="nonsense")

    @rule(number=TWO, log=LOGS)
    def delete(self, number: int, log: str) -> None:
        with suppress(NotFound):
            self.two[number].delete(log)

    @rule(number=TWO, log=LOGS, bodies=BODIES)
    def make_again(self, number: int, log: str, bodies: list[bytes]) -> None:
        self.delete(number, log)
        self.append(number, log, bodies)

    @rule(number=TWO, log=LOGS, by=LOGS)
    def replace_by_a_copy(self, number: int, log: str, by: str) -> None:
        if log != by:
            self.delete(number, log)
            with suppress(NotFound):
                self.two[number].copy(by, log)

    @rule(number=THREE, prefix=st.sampled_from(["", "", "a", "a/", "b"]))
    def refresh(self, number: int, prefix: str) -> None:
        catalog = self.catalogs[number]
        assert shown(catalog, prefix) == scanned(catalog.store, catalog.fold.version, prefix)

    @rule(number=THREE, log=LOGS)
    def get(self, number: int, log: str) -> None:
        catalog = self.catalogs[number]
        try:
            found: Told | str | None = catalog.get(log)
        except NotFound:
            found = None
        except Corrupt as error:
            found = str(error)
        assert found == scanned(catalog.store, catalog.fold.version).get(log)

    @rule(number=THREE, rows=st.integers(0, 3))
    def leave_a_refresh(self, number: int, rows: int) -> None:
        refresh = self.catalogs[number].refresh()
        for _ in range(rows):
            next(refresh, None)
        refresh.close()

    @rule(number=THREE)
    def open_anew(self, number: int) -> None:
        self.catalogs[number].close()
        self.catalogs[number] = self.make(number)

    @rule(number=THREE)
    def clear(self, number: int) -> None:
        self.catalogs[number].clear()

    @rule()
    def lose_the_file(self) -> None:
        self.file.unlink(missing_ok=True)

    @rule(at=st.floats(0, 1), byte=st.integers(0, 255))
    def harm_the_file(self, at: float, byte: int) -> None:
        with suppress(FileNotFoundError), open(self.file, "r+b") as file:
            if size := os.fstat(file.fileno()).st_size:
                file.seek(int(at * (size - 1)))
                file.write(bytes([byte]))

    @rule()
    def mix_up_the_rows(self) -> None:
        """Put what was kept of one log under another's name."""
        with suppress(sqlite3.Error), closing(sqlite3.connect(self.file, isolation_level=None)) as connection:
            rows = connection.execute("SELECT * FROM kept ORDER BY log").fetchall()
            for row, other in pairwise(rows):
                mixed = (*row[:2], *other[2:])
                connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", mixed)


class InMemory(Catalogs):
    def stores(self) -> list[Store]:
        return [Shared(self.root), Shared(self.root)]


class WithoutRuns(Catalogs):
    def stores(self) -> list[Store]:
        return [Runless(Shared(self.root)), Runless(Shared(self.root))]


class Local(Catalogs):
    """Appends may tear here, and writers die in the midst of one."""

    def stores(self) -> list[Store]:
        return [open_store(f"{self.root}/logs", sync="never") for _ in range(2)]

    @rule(log=LOGS, size=st.integers(1, 200), zeros=st.booleans())
    def tear(self, log: str, size: int, zeros: bool) -> None:
        torn = b"\0" * size if zeros else b'{"n":99,"kind":"message","id":"00000000","time":"2026-01-01'[:size]
        self.write(log, torn)

    @rule(log=LOGS)
    def damage(self, log: str) -> None:
        self.write(log, b"?????\n")

    def write(self, log: str, data: bytes) -> None:
        with suppress(FileNotFoundError), open(f"{self.root}/logs/{log}.state", "r+b") as file:
            file.seek(0, os.SEEK_END)
            file.write(data)


@pytest.mark.parametrize("machine", [InMemory, WithoutRuns, Local])
def test_a_catalog_always_agrees_with_a_full_scan(machine: type[Catalogs]) -> None:
    case = machine.TestCase
    case.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
    case("runTest").runTest()
