"""`kill -9` of a writer at a random moment loses nothing that was acknowledged.

STATESTORE_KILLS=100 in the environment kills so many; six otherwise.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from statestore import NEW, RecordLog, Store
from statestore.errors import NotFound
from statestore.records import verify
from statestore_fsspec import Settings
from tests.s3.harness import options
from tests.s3.raw import Place, connection
from tests.servers import Rgw

KILLS = int(os.environ.get("STATESTORE_KILLS", "6"))
AT_ONCE = 3
VICTIM = Path(__file__).with_name("victim.py")


@pytest.fixture(scope="session")
def files(rgw: Rgw) -> Any:
    return connection(rgw)


@contextmanager
def victim(spot: Place, what: str, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that writes until it is killed."""
    given = {"url": spot.url, "options": options(spot.server), "what": what, "name": name}
    process = subprocess.Popen([sys.executable, str(VICTIM), json.dumps(given)], stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


def kill(process: subprocess.Popen[bytes], luck: random.Random) -> list[bytes]:
    """Kill the process at a random moment; return the lines by which it told what was acknowledged."""
    assert process.stdout
    lines = [process.stdout.readline() for _ in range(1 + luck.randint(0, 12))]
    assert lines[0] == b"ready\n"
    time.sleep(luck.uniform(0, 0.03))  # somewhere in the next append, or the one behind it
    process.kill()
    assert process.wait() == -9
    lines += process.stdout.readlines()
    return [line[:-1] for line in lines[1:] if line.endswith(b"\n")]


def look_at_records(store: Store, name: str, told: list[bytes]) -> None:
    log = RecordLog(store, name)
    records = list(log)
    for line in told:
        number, _, known = line.decode().partition(" ")
        assert records[int(number) - 1].id == known
    assert len(records) - 1 - len(told) in (0, 1)
    assert [record.n for record in records] == list(range(1, len(records) + 1))
    assert log.append("note", b"after").n == len(records) + 1
    assert verify(store, name).ok


def look_at_bytes(store: Store, name: str, told: list[bytes]) -> None:
    held = store.read(name)
    for line in told:
        size, _, data = line.partition(b" ")
        assert held[: int(size)].endswith(data)
    pieces = held.split(b";")
    assert pieces == [b"first", *(b"%s %d" % (name.encode(), n) for n in range(len(pieces) - 2)), b""]
    assert len(pieces) - 2 - len(told) in (0, 1)
    assert store.append(name, b"after", at=store.tail(name)).size == len(held) + 5


def look_at_creations(store: Store, name: str, told: list[bytes]) -> None:
    listed = [info.name for info in store.list(f"{name}/")]
    assert {line.decode() for line in told} <= {*listed}
    assert len(listed) - 1 - len(told) in (0, 1)
    for log in listed:
        assert store.read(log) == (b"x" if log.endswith("/first") else log.encode())
    # The one that was killed can be made by whoever comes next.
    log = f"{name}/{len(told)}"
    try:
        tail = store.tail(log)
    except NotFound:
        tail = store.append(log, log.encode(), at=NEW)
    assert store.append(log, b"after", at=tail).size == len(log) + 5


LOOKS = {"records": look_at_records, "bytes": look_at_bytes, "creations": look_at_creations}


@pytest.mark.parametrize("batch", range(0, KILLS, AT_ONCE))
def test_a_writer_that_is_killed_loses_nothing_that_was_acknowledged(rgw, place, files, batch):
    spot = Place(rgw, place)
    spot.put("statestore.json", Settings().spell())
    store = spot.quick(files)
    whats = {f"log-{kill}": list(LOOKS)[kill % len(LOOKS)] for kill in range(batch, min(batch + AT_ONCE, KILLS))}
    with ExitStack() as stack:
        processes = {name: stack.enter_context(victim(spot, what, name)) for name, what in whats.items()}
        for name, process in processes.items():
            told = kill(process, random.Random(f"{batch}/{name}"))
            LOOKS[whats[name]](store, name, told)
    assert list(store.maintenance.check()) == []
