"""A conversation beside the least that could keep it: one record, and one row of SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import Compare
from statestore.conversations import Conversations
from statestore.records import RecordLog
from statestore_local import LocalStore

MESSAGE = {"role": "user", "content": "How long does the train to Oslo take? " * 8, "timestamp": "2026-09-28T12:00:00Z"}
BODY = b'{"messages":[%s]}' % json.dumps(MESSAGE).encode()


@pytest.fixture
def many(pytestconfig: pytest.Config) -> int:
    """How many messages a long conversation has: fewer where nothing is timed."""
    return 10_000 if pytestconfig.getoption("benchmark_enable") else 300


@pytest.fixture(params=["never", "always"])
def store(request: pytest.FixtureRequest, local: Callable[[str], LocalStore]) -> LocalStore:
    return local(request.param)


@pytest.fixture
def rows(tmp_path: Path, store: LocalStore) -> Iterator[Callable[[], Any]]:
    """Adds a message as one row, in WAL mode and as durable as the store: what many would do."""
    with closing(sqlite3.connect(tmp_path / "rows.sqlite3", isolation_level=None)) as connection:
        connection.execute("pragma journal_mode=wal")
        connection.execute(f"pragma synchronous={'full' if store.capabilities.durable else 'off'}")
        connection.execute(
            "create table messages (conversation text, seq integer, body text, primary key (conversation, seq))"
        )

        def add() -> None:
            row = connection.execute("select coalesce(max(seq), 0) from messages where conversation = 'c'").fetchone()
            connection.execute("insert into messages values ('c', ?, ?)", (row[0] + 1, json.dumps(MESSAGE)))

        yield add
        assert connection.execute("select count(*) from messages").fetchone()[0] > 0


def times(store: LocalStore) -> dict[str, int]:
    return {"times": 10, "rounds": 20} if store.capabilities.durable else {"times": 100, "rounds": 40}


def filled(store: LocalStore, conversation: str, count: int) -> Conversations:
    talks = Conversations(store)
    while (there := talks.log_len(conversation)) < count:
        talks.log_append(conversation, there, [MESSAGE] * min(100, count - there))
    return talks


def bare(store: LocalStore) -> RecordLog:
    log = RecordLog(store, "bare")
    log.append("message", BODY, expect=1)
    return log


def test_log_append_beside_a_record(store: LocalStore, compare: Compare) -> None:
    talks, log = filled(store, "c", 100), bare(store)
    compare(
        lambda: talks.log_append("c", talks_count(talks), [MESSAGE]),
        lambda: log.append("message", BODY),
        against="RecordLog.append",
        bar=3.0,
        **times(store),
    )
    assert talks.load("c").messages[-1].content == MESSAGE["content"]


def talks_count(talks: Conversations) -> int:
    """Return the place that a caller who counts along would give."""
    state = talks._cache._logs["conversations/c"].state
    assert state is not None
    return state.count


def test_merge_metadata_beside_a_record(store: LocalStore, compare: Compare) -> None:
    talks, log = filled(store, "c", 100), bare(store)
    compare(
        lambda: talks.merge_metadata("c", {"seats": 2, "note": "a window"}),
        lambda: log.append("message", b'{"metadata":{"seats":2,"note":"a window"}}'),
        against="RecordLog.append",
        bar=3.0,
        **times(store),
    )
    assert talks.load_metadata("c") == {"seats": 2, "note": "a window"}


def test_the_10000th_message_beside_the_100th(store: LocalStore, compare: Compare, many: int) -> None:
    filled(store, "c", many)
    filled(store, "short", 100)
    talks = Conversations(store)
    few = Conversations(store)
    talks.log_len("c")
    few.log_len("short")
    compare(
        lambda: talks.append_messages("c", [MESSAGE]),
        lambda: few.append_messages("short", [MESSAGE]),
        against="append_messages to 100 messages",
        bar=1.5,
        **times(store),
    )
    assert talks.message_count("c") > many


def test_append_messages_beside_a_row(store: LocalStore, rows: Callable[[], Any], compare: Compare) -> None:
    talks = filled(store, "c", 100)
    compare(lambda: talks.append_messages("c", [MESSAGE]), rows, against="SQLite, WAL: one row", **times(store))
    assert talks.load_recent_messages("c", 1)[0].content == MESSAGE["content"]


def test_load_recent_5_beside_rows(store: LocalStore, tmp_path: Path, compare: Compare, many: int) -> None:
    talks = filled(store, "c", many)
    with closing(sqlite3.connect(tmp_path / "read.sqlite3", isolation_level=None)) as connection:
        connection.execute(
            "create table messages (conversation text, seq integer, body text, primary key (conversation, seq))"
        )
        body = json.dumps(MESSAGE)
        connection.execute("begin")
        connection.executemany("insert into messages values ('c', ?, ?)", ((seq, body) for seq in range(many)))
        connection.execute("commit")
        query = "select body from messages where conversation = 'c' order by seq desc limit 5"
        compare(
            lambda: talks.load_recent_messages("c", 5),
            lambda: [json.loads(row[0]) for row in connection.execute(query)],
            against="SQLite: five rows, as dicts",
            times=100,
        )
    assert len(talks.load_recent_messages("c", 5)) == 5


def test_load_all_beside_rows(store: LocalStore, tmp_path: Path, compare: Compare, many: int) -> None:
    talks = filled(store, "c", many)
    with closing(sqlite3.connect(tmp_path / "read.sqlite3", isolation_level=None)) as connection:
        connection.execute(
            "create table messages (conversation text, seq integer, body text, primary key (conversation, seq))"
        )
        body = json.dumps(MESSAGE)
        connection.executemany("insert into messages values ('c', ?, ?)", ((seq, body) for seq in range(many)))
        query = "select body from messages where conversation = 'c' order by seq"
        compare(
            lambda: Conversations(store).load("c"),
            lambda: [json.loads(row[0]) for row in connection.execute(query)],
            against="SQLite: all rows, as dicts",
            rounds=5,
        )
    assert talks.message_count("c") == many
