"""`kill -9` of processes that change a conversation, at random moments: each change is there whole, once, in its order.

STATESTORE_CONVERSATION_KILLS=100 in the environment kills so many; three otherwise.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from statestore import Store, open_store
from statestore.conversations import Conversations
from statestore.errors import NotFound
from statestore.records import verify
from statestore_memory import MemoryStore
from tests.conversations.victim import change

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("STATESTORE_CONVERSATION_KILLS", "3"))
IN_TURN = 3
LOG = "conversations/c"


@contextmanager
def victim(root: Path, name: str, what: str, first: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that makes changes until it is killed."""
    command = [sys.executable, "-m", "tests.conversations.victim", str(root), name, what, str(first)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def kill(process: subprocess.Popen[bytes], luck: random.Random) -> list[int]:
    """Kill a process at a random moment; return the changes that were acknowledged."""
    assert process.stdout
    lines = [process.stdout.readline() for _ in range(luck.randint(0, 40))]
    time.sleep(luck.uniform(0, 0.002))  # somewhere in the next change, or the one behind it
    process.kill()
    assert process.wait() == -9
    lines += process.stdout.readlines()
    return [int(line) for line in lines if line.endswith(b"\n")]


def everything(store: Store) -> Any:
    """Return all that a conversation is, but for its times; None where there is none."""
    talks = Conversations(store)
    try:
        state = talks.load("c")
    except NotFound:
        return None
    return state.model_dump(exclude={"last_accessed_at"}), talks.load_list("c", "a")


def after(changes: int) -> Any:
    """Return what a conversation is after so many changes."""
    store = MemoryStore()
    talks = Conversations(store)
    for number in range(changes):
        change(talks, "a", number)
    return everything(store)


@pytest.mark.parametrize("turn", range(0, KILLS, IN_TURN))
def test_of_a_writer_that_is_killed_again_and_again_no_change_is_lost_or_doubled(tmp_path: Path, turn: int) -> None:
    luck = random.Random(turn)
    store = open_store(tmp_path / "state", sync="never")
    done = 0
    for _ in range(IN_TURN):
        with victim(tmp_path / "state", "a", "change", done) as process:
            told = kill(process, luck)
        assert told == list(range(done, done + len(told)))
        done += len(told)
        found = everything(store)
        if found != after(done):
            done += 1  # it was made, and the process died before it could tell
            assert found == after(done)
    change(Conversations(store), "a", done)
    assert everything(store) == after(done + 1)
    verdict = verify(store, LOG)
    assert verdict.ok
    assert verdict.misnumbered is None


def test_what_a_process_has_written_another_one_sees_at_once(tmp_path: Path) -> None:
    with victim(tmp_path / "state", "a", "add") as process:
        talks = Conversations(open_store(tmp_path / "state", sync="never"))
        assert process.stdout
        for number in range(30):
            assert process.stdout.readline() == b"%d\n" % number
            word = f"a {number}"
            if number % 3 == 0:
                assert word in [message.content for message in talks.log_load("c")]
            else:
                assert word in talks.load_metadata("c") or word.encode() in talks.load_list("c", "l")


@pytest.mark.parametrize("turn", range(0, KILLS, IN_TURN))
def test_what_a_writer_has_told_survives_that_another_one_is_killed_beside_it(tmp_path: Path, turn: int) -> None:
    luck = random.Random(turn)
    root = tmp_path / "state"
    with victim(root, "a", "add") as first, victim(root, "b", "add") as second:
        told = {"a": kill(first, luck), "b": kill(second, luck)}
    store = open_store(root, sync="never")
    talks = Conversations(store)
    state = talks.load("c")
    words = [str(message.content) for message in state.messages]
    for name, numbers in told.items():
        said = [int(word.split()[1]) for word in words if word[0] == name]
        assert said == sorted(said)
        items = [item.decode() for item in talks.load_list("c", "l")]
        mine = sorted(int(word.split()[1]) for word in (*words, *state.metadata, *items) if word[0] == name)
        assert mine == list(range(len(mine)))
        assert len(mine) - len(numbers) in (0, 1)
    assert verify(store, LOG).ok
