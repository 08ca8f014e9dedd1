"""Turns that are cut short, seen by others, and repaired."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from statestore.errors import Conflict, Held
from statestore.records import CALL, RESULT, Draft, Record, RecordLog, draft
from statestore.sessions import Sessions, Status
from statestore.store import Store, Tail
from statestore_local import LocalStore
from statestore_memory import MemoryStore

ID = "0a1b2c3d"

# A turn with two tools, as drafts: what is typed, and what a program that is killed appends one by one.
TURN = """
[
    draft("message", b"which is larger?", id="m1"),
    draft("thinking", b"look at both", id="k1", step="s1"),
    draft("call", b'{"file":"a"}', id="a", step="s1"),
    draft("call", b'{"file":"b"}', id="b", step="s1"),
    draft("step", id="s1", upto=2),
    draft("result", b"10", id="ra", for_="a"),
    draft("result", b"20", id="rb", for_="b"),
    draft("text", b"b is", id="t2", step="s2"),
    draft("step", id="s2", upto=8),
]
"""
LENGTH = 9

WRITER = f"""
import sys
from statestore.records import draft
from statestore.sessions import Sessions
from statestore_local import LocalStore

session = Sessions(LocalStore(sys.argv[1])).start(id={ID!r})
print("held", flush=True)
for record in {TURN.strip()}:
    sys.stdin.readline()
    session.append_many([record])
    print("appended", flush=True)
sys.stdin.readline()
"""


class Unheld(MemoryStore):
    """A store that cannot hold, as those over buckets cannot."""

    capabilities = replace(MemoryStore.capabilities, holds=False)


def turn() -> list[Draft]:
    return list(eval(TURN.strip(), {"draft": draft}))


def check_paired(context: Sequence[Record]) -> None:
    calls = [record.id for record in context if record.kind == CALL]
    results = [record.header.for_ for record in context if record.kind == RESULT]
    assert Counter(calls) == Counter(results)
    for record in context:
        if record.kind == RESULT:
            assert record.header.for_ in {other.id for other in context[: context.index(record)] if other.kind == CALL}


@contextmanager
def writer(root: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a session and appends one record of the turn for each line that it is sent."""
    command = [sys.executable, "-c", WRITER, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def let_append(process: subprocess.Popen[str], records: int) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    for _ in range(records):
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "appended\n"


@pytest.mark.parametrize("appended", range(LENGTH + 1))
def test_a_writer_killed_between_two_records_of_a_turn_leaves_a_session_that_goes_on(
    tmp_path: Path, appended: int
) -> None:
    with writer(tmp_path) as process:
        let_append(process, appended)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    with LocalStore(tmp_path) as store:
        sessions = Sessions(store)
        first = sessions.load(ID)
        assert len(first) == 1 + appended
        check_paired(first.context())
        assert sessions.load(ID).context() == first.context()
        assert sessions.status(ID) == (Status.INTERRUPTED if appended in (5, 6) else first.status())

        with sessions.open(ID) as session:
            closed = session.close_waiting("the program was killed")
            assert [record.header.for_ for record in closed] == {5: ["a", "b"], 6: ["b"]}.get(appended, [])
            assert session.close_waiting("again") == []
            repaired = session.transcript()
            assert repaired.waiting() == []
            check_paired(repaired.context())
            assert repaired.context() == repaired.context(unpaired="error")
            session.append("message", b"go on")
        with LocalStore(tmp_path) as other:
            assert Sessions(other).load(ID).context()[:-1] == repaired.context()


def test_a_turn_cut_anywhere_has_the_same_paired_context_on_every_load(store: Store) -> None:
    sessions = Sessions(store)
    with sessions.start(id=ID) as session:
        session.append_many(turn())
    for before in range(2, LENGTH + 3):
        child = sessions.fork(ID, before=before)
        context = sessions.load(child).context()
        check_paired(context)
        assert sessions.load(child).context() == context
    assert [record.id for record in sessions.load(ID).context()] == ["m1", "k1", "a", "b", "s1", "ra", "rb", "t2", "s2"]


def test_waiting_calls_are_closed_with_one_result_each(store: Store) -> None:
    sessions = Sessions(store)
    with sessions.start(id=ID) as session:
        session.append_many(turn()[:6])
        closed = session.close_waiting("its program was killed")
        assert [(record.kind, record.header.for_, record.header.type) for record in closed] == [
            ("result", "b", "text/plain")
        ]
        assert [record.body for record in closed] == [b"its program was killed"]
        assert [record.n for record in closed] == [8]
        assert session.transcript().records[-1] == closed[0]
        assert session.close_waiting("again") == []
        assert session.transcript().status() == "open"


def test_calls_that_share_an_id_are_closed_one_by_one(store: Store) -> None:
    with Sessions(store).start() as session:
        for step in ("s1", "s2"):
            session.append_many([draft("call", id="x", step=step), draft("step", id=step)])
        assert [record.header.for_ for record in session.close_waiting("no")] == ["x", "x"]
        assert session.close_waiting("no") == []
        assert len([record for record in session.transcript().context() if record.kind == CALL]) == 2


def test_a_closer_that_is_overtaken_decides_again() -> None:
    class Meddled(Unheld):
        """Lets somebody else act just before the next append."""

        meddle: Callable[[], object] | None = None

        def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
            meddle, self.meddle = self.meddle, None
            if meddle:
                meddle()
            return super().append(log, data, at=at)

    with Meddled() as store:
        sessions = Sessions(store)
        slow, quick = sessions.start(id=ID), sessions.open(ID)
        slow.append_many(turn()[:5])
        slow.transcript()

        store.meddle = lambda: quick.append("result", b"10", for_="a")
        assert [record.header.for_ for record in slow.close_waiting("slow")] == ["b"]

        quick.append_many([draft("call", id="c", step="s2"), draft("step", id="s2")])
        store.meddle = lambda: quick.close_waiting("quick")
        assert slow.close_waiting("slow") == []
        assert [record.body for record in sessions.load(ID).records[-1:]] == [b"quick"]

        def overtake() -> None:
            store.meddle = None
            quick.append("message")
            store.meddle = overtake

        quick.append_many([draft("call", id="d", step="s3"), draft("step", id="s3")])
        store.meddle = overtake
        with pytest.raises(Conflict):
            slow.close_waiting("slow")
        store.meddle = None


def test_closers_at_the_same_time_close_each_call_once() -> None:
    closers = 8
    with Unheld() as store:
        sessions = Sessions(store)
        opened = [sessions.start(id=ID), *(sessions.open(ID) for _ in range(closers - 1))]
        gate = threading.Barrier(closers)
        with ThreadPoolExecutor(closers) as pool:
            for turn_ in range(20):
                calls = [f"c{turn_}-{number}" for number in range(5)]
                step = f"s{turn_}"
                opened[0].append_many([*(draft("call", id=call, step=step) for call in calls), draft("step", id=step)])

                def close(at: int) -> list[Record]:
                    gate.wait()
                    return opened[at].close_waiting(f"closer {at}")

                answers = [record.header.for_ for records in pool.map(close, range(closers)) for record in records]
                assert sorted(answers) == calls
        answered = Counter(record.header.for_ for record in sessions.load(ID) if record.kind == RESULT)
        assert set(answered.values()) == {1}
        sessions.load(ID).context(unpaired="error")


def test_a_session_in_another_process_is_held_and_its_holder_is_named(tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store, writer(tmp_path) as process:
        sessions = Sessions(store)
        let_append(process, 5)
        with pytest.raises(Held) as caught:
            sessions.open(ID)
        holder = caught.value.holder
        assert (holder.pid, holder.host) == (process.pid, socket.gethostname())
        assert holder.since.endswith("Z")
        for fact in (str(process.pid), holder.host, holder.since):
            assert fact in str(caught.value)
        assert sessions.status(ID) == "stepping"
        assert sessions.load(ID).status() == "interrupted"

        process.kill()
        process.wait()
        assert sessions.status(ID) == "interrupted"
        with sessions.open(ID) as session:
            assert len(session.close_waiting("its program was killed")) == 2


def test_companion_logs_never_move_the_session_of_a_writer_in_the_midst_of_a_turn(
    open_store: Callable[[], Store],
) -> None:
    sessions = Sessions(open_store(), "teams/a")
    others = open_store()
    with sessions.start(id=ID) as session:
        for number, record in enumerate(turn(), 2):
            for companion in (f"teams/a/{ID}.ops", f"teams/a/{ID}/pending", f"ops/{ID}"):
                RecordLog(others, companion).append_many([draft("marker")], expect=number - 1)
            assert session.append_many([record], expect=number) == range(number, number + 1)
        assert len(session.transcript()) == 1 + LENGTH
    assert list(sessions.list()) == [ID]
