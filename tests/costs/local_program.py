"""Uses a local store, and has `tests.costs.tracing` see each call as a step.

``python -m tests.costs.local_program ROOT RECORDS``: logs have about so many records, and there are so many logs.
"""

from __future__ import annotations

import sys
from collections import deque
from pathlib import Path
from typing import Any

import statestore_local._store
from statestore import NEW, Conversations, RecordLog, Sessions, draft
from statestore_local import LocalStore
from tests.costs.tracing import step

BODY = b"b" * 256
HUNDRED = [draft("message", BODY)] * 100
MESSAGE = {"role": "user", "content": "hello"}

# How long a held log's name is trusted to lead to its file, in seconds: as long as a traced call may take.
statestore_local._store._TRUST = 3600.0


def fill(store: LocalStore, name: str, records: int) -> RecordLog:
    log = RecordLog(store, name)
    log.append("start", expect=1)
    for done in range(1, records, 100):
        log.append_many(HUNDRED[: records - done])
    return log


def exhaust(rows: Any) -> None:
    deque(rows, maxlen=0)


def write(store: LocalStore, sync: str, records: int) -> None:
    """Append to a log that was appended to a moment ago, while it is not held and while it is."""
    log = fill(store, "log", records)
    for _ in range(2):
        log.append_many(HUNDRED)  # one of them is the next of each thousand that goes into the index
    with step(f"{sync}: append"):
        log.append("message", BODY)
    with step(f"{sync}: append a hundred"):
        log.append_many(HUNDRED)
    hold = log.hold()
    with step(f"{sync}: hold"):
        hold.__enter__()
    log.append("message", BODY)  # the first one in a hold looks whether the name leads to the file
    with step(f"{sync}: append, held"):
        log.append("message", BODY)
    with step(f"{sync}: append a hundred, held"):
        log.append_many(HUNDRED)
    with step(f"{sync}: let go"):
        hold.__exit__(None, None, None)
    with step(f"{sync}: create"):
        tail = store.append("bytes", b"x", at=NEW)
    with step(f"{sync}: append bytes"):
        store.append("bytes", b"x", at=tail)
    with step(f"{sync}: copy"):
        store.copy("log", "copy")
    with step(f"{sync}: delete"):
        store.delete("copy")


def read(store: LocalStore, records: int) -> None:
    """Read the same log, by objects that know nothing of it."""
    with step("tail"):
        store.tail("log")
    with step("read a range"):
        store.read("log", 10, 30)
    with step("stream"):
        exhaust(store.stream("log"))
    fill(store, "two/down/log", records)
    with step("tail of a log two directories down"):
        store.tail("two/down/log")
    RecordLog(store, "log").recover()
    with step("recover"):
        RecordLog(store, "log").recover()
    with step("last ten"):
        RecordLog(store, "log").last(10)


def look(root: Path, logs: int) -> None:
    for number in range(logs):
        (root / f"{number:05}.state").write_bytes(b"x")
    with step("open a store"):
        store = LocalStore(root)
    with step("list"):
        exhaust(store.list())
    with step("list with tails"):
        exhaust(store.list(tails=True))


def work(store: LocalStore, records: int) -> None:
    """Append to a session and to a conversation, and fork the session at its fifth record."""
    sessions = Sessions(store, "sessions")
    with sessions.start(id="00000000") as session:
        session.append_many([draft("message", BODY)] * records)
        session.append("message", BODY)
        with step("append to a session"):
            session.append("message", BODY)
    with step("fork a session"):
        sessions.fork("00000000", before=5, to="11111111")
    conversations = Conversations(store, "conversations")
    conversations.append_messages("talk", [MESSAGE] * records)
    conversations.append_messages("talk", [MESSAGE])
    with step("append to a conversation"):
        conversations.append_messages("talk", [MESSAGE])
    with step("load the last five messages"):
        conversations.load_recent_messages("talk", 5)


def main(root: Path, records: int) -> None:
    with LocalStore(root / "always") as store:
        write(store, "always", records)
    with LocalStore(root / "never", sync="never") as store:
        write(store, "never", records)
        read(store, records)
        work(store, records)
    (root / "many").mkdir()
    look(root / "many", min(records, 300))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
