"""Real processes that share a catalog's file: at once, killed in the midst, forked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statestore import RecordLog, Store, draft, open_store
from statestore.catalog import Catalog
from tests.catalog.parts import Chain, Shared, add, place, scanned, shown

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("STATESTORE_CATALOG_KILLS", "8"))

# Takes a store, a file, how many times to ask, and what; sees that the answers are what a scan says.
ASK = """
import logging, sys
from statestore import open_store
from statestore.catalog import Catalog
from tests.catalog.parts import Chain, scanned

logging.basicConfig()
root, file, times, what = sys.argv[1:]
store = open_store(root)
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(times)):
    with Catalog(store, Chain(), path=file, workers=2) as catalog:
        assert {row.log: row.value for row in getattr(catalog, what)()} == scanned(store)
    print(number, flush=True)
"""


def process(root: Path, file: Path, times: int, what: str = "refresh") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ASK, str(root), str(file), str(times), what]
    started = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stdout
    assert started.stdout.readline() == "ready\n"
    return started


def go(*processes: subprocess.Popen[str]) -> None:
    for each in processes:
        assert each.stdin
        each.stdin.write("\n")
        each.stdin.flush()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    store = open_store(tmp_path / "logs", sync="never")
    for number in range(400):
        RecordLog(store, f"log-{number:03}").append_many([draft("message", b"%d" % number)] * 3, expect=1)
    return tmp_path / "logs"


def test_processes_that_refresh_at_once_all_say_the_truth_and_none_complains(logs: Path, tmp_path: Path) -> None:
    processes = [process(logs, place(tmp_path), 4) for _ in range(3)]
    go(*processes)
    for each in processes:
        out, err = each.communicate(timeout=120)
        assert (each.returncode, err, out) == (0, "", "0\n1\n2\n3\n")
    fold = Chain()
    with Catalog(open_store(logs), fold, path=place(tmp_path)) as catalog:
        shown(catalog)
    assert fold.steps == 0


def test_processes_that_are_killed_while_they_write_the_file_leave_nothing_wrong(logs: Path, tmp_path: Path) -> None:
    store = open_store(logs, sync="never")
    for number in range(KILLS):
        victim = process(logs, place(tmp_path), 1000, "rebuild")
        with victim, Catalog(store, Chain(), path=place(tmp_path)) as catalog:
            go(victim)
            assert victim.stdout
            victim.stdout.readline()
            assert shown(catalog, "log-0") == scanned(store, prefix="log-0")
            victim.kill()
        add(store, f"log-{number:03}", b"more")
        with Catalog(store, Chain(), path=place(tmp_path)) as catalog:
            assert shown(catalog) == scanned(store)


@pytest.fixture(scope="module")
def workers() -> Iterator[list[subprocess.Popen[str]]]:
    """Two processes that do what they are told."""
    command = [sys.executable, "-m", "tests.catalog.worker"]
    started = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    yield started
    for each in started:
        each.communicate(timeout=30)
        assert each.returncode == 0


LOGS = st.sampled_from(["a", "a-b", "a/b", "b"])
DONE = st.one_of(
    st.tuples(st.just("append"), LOGS, st.sampled_from(["x", "yy", "z" * 3000])),
    st.tuples(st.just("append"), LOGS, st.just("two"), st.just("at once")),
    st.tuples(st.just("delete"), LOGS),
    st.tuples(st.just("refresh"), st.sampled_from(["", "a"])),
)


@settings(max_examples=25)
@given(steps=st.lists(st.tuples(st.integers(0, 1), DONE), max_size=30))
def test_whatever_two_processes_do_in_turn_each_refresh_says_what_a_scan_does(
    workers: list[subprocess.Popen[str]], steps: list[tuple[int, tuple[str, ...]]]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        for number, step in [*steps, (0, ("refresh", "")), (1, ("refresh", ""))]:
            asked, told = workers[number].stdin, workers[number].stdout
            assert asked
            assert told
            asked.write(json.dumps([root, *step]) + "\n")
            asked.flush()
            answer = json.loads(told.readline())
            assert answer is None or answer[0] == answer[1]


def in_a_child(store: Store, catalog: Catalog[tuple[int, str]]) -> Iterator[bool]:
    yield shown(catalog) == scanned(store)
    add(store, "a", b"of the child")
    yield shown(catalog) == scanned(store)
    catalog.clear()
    yield shown(catalog) == scanned(store)
    catalog.close()


def test_a_forked_child_goes_on_with_the_catalog_and_harms_not_its_parents(tmp_path: Path) -> None:
    store = Shared(str(tmp_path))
    for log in ("a", "b"):
        add(store, log, b"x")
    with Catalog(store, Chain(), path=place(tmp_path)) as catalog:
        shown(catalog)
        child = os.fork()
        if not child:
            status = 1
            try:
                status = 0 if all(in_a_child(store, catalog)) else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        add(store, "b", b"of the parent")
        assert shown(catalog) == shown(catalog) == scanned(store)
