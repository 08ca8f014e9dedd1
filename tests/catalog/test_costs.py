"""What a refresh asks of a store, counted."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

from statestore import NEW, Record
from statestore.catalog import Catalog
from statestore.records import Header, encode
from statestore_memory import MemoryStore
from tests.catalog.parts import TIME, Chain, Shared, add, scanned, shown
from tests.sync.stores import Counting

LOGS = 10_000
GROWN = range(0, LOGS, 500)


def test_of_ten_thousand_logs_the_twenty_that_have_grown_are_read_and_nothing_else() -> None:
    store = Counting(MemoryStore())
    data = encode(Header(n=1, kind="message", id="00000000", time=TIME), b"x")
    for number in range(LOGS):
        store.append(f"conversations/{number:05}", data, at=NEW)
    fold = Chain()
    with Catalog(store, fold) as catalog:
        assert len(shown(catalog)) == LOGS
        for number in GROWN:
            add(store, f"conversations/{number:05}", b"y")
        fold.steps = 0
        store.calls.clear()
        answer = shown(catalog)
        assert store.calls == {"list": 1, "snapshot": 20, "read": 20}
        assert fold.steps == 20
        store.calls.clear()
        assert shown(catalog) == answer == scanned(store.inner)
        assert store.calls == {"list": 1}


def test_a_refresh_holds_a_bounded_part_of_the_states(tmp_path) -> None:
    size = 200_000

    class Large(Chain):
        def step(self, state: tuple[int, str], record: Record) -> tuple[int, str]:
            return state[0] + 1, "x" * size

    def peak() -> int:
        tracemalloc.start()
        with Catalog(store, Large(), path=tmp_path / "file", origin="here", workers=2) as catalog:
            assert sum(1 for row in catalog.refresh() if row.value == (1, "x" * size)) == 200
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    store = Shared(str(tmp_path))
    for number in range(200):
        add(store, f"log-{number:03}", b"x")
    # Of 40 MB. As they are folded, those that wait for the first one are held twice, as states and as bytes.
    assert peak() < 50 * size
    assert peak() < 30 * size


def test_sqlite_is_loaded_by_the_first_question() -> None:
    code = """
import sys
from statestore.catalog import Catalog
from statestore_memory import MemoryStore
from tests.catalog.parts import Chain
catalog = Catalog(MemoryStore(), Chain())
assert "sqlite3" not in sys.modules
list(catalog.refresh())
assert "sqlite3" in sys.modules
catalog.close()
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
