"""Whatever ends a sync, and whenever: the next one makes the target equal, and nothing that was there is lost."""

from __future__ import annotations

import threading
from contextlib import suppress
from itertools import chain, repeat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statestore import RecordLog, draft
from statestore.errors import Held, StateStoreError, Unavailable
from statestore.records import verify
from statestore.store import NEW, Store
from statestore.sync import Known, sync
from statestore.wrappers import Faulty
from statestore_local import LocalStore
from statestore_memory import MemoryStore

from .stores import Killed, Mortal, Watched, contents, fill

NAMES = st.sampled_from(["a", "a/b", "b", "c~", "c", "d.e", "x%2F", "z"])
LOGS = st.dictionaries(NAMES, st.binary(min_size=1, max_size=40), max_size=8)
DEATHS = st.lists(st.tuples(st.integers(1, 60), st.booleans(), st.booleans()), max_size=5)


def beginnings(logs: dict[str, bytes]) -> st.SearchStrategy[dict[str, bytes]]:
    """Return what a target may hold: beginnings of the source's logs, others, and logs of its own."""
    one = {
        log: st.one_of(
            st.none(),
            st.integers(1, len(data)).map(lambda size, data=data: data[:size]),  # type: ignore[misc]
            st.binary(min_size=1, max_size=50),
        )
        for log, data in logs.items()
    }
    own = st.dictionaries(NAMES, st.binary(min_size=1, max_size=9), max_size=3)
    mixed = st.tuples(own, st.fixed_dictionaries(one))
    return mixed.map(lambda both: {log: data for log, data in {**both[0], **both[1]}.items() if data})


def expected(logs: dict[str, bytes], before: dict[str, bytes]) -> dict[str, bytes]:
    return before | {log: data for log, data in logs.items() if data.startswith(before.get(log, b""))}


def states(logs: dict[str, bytes], before: dict[str, bytes]) -> dict[str, str]:
    """Return what a sync that nothing stops says of each log."""
    found = dict.fromkeys(before, "extra")
    for log, data in logs.items():
        there = before.get(log, b"")
        found[log] = "diverged" if not data.startswith(there) else "equal" if there == data else "copied"
    return found


@settings(max_examples=100)
@given(st.data())
def test_after_any_number_of_deaths_the_next_sync_makes_it_equal(data: st.DataObject) -> None:
    logs = data.draw(LOGS)
    before = data.draw(beginnings(logs))
    source, target, known = MemoryStore(), MemoryStore(), Known()
    fill(source, logs)
    fill(target, before)
    workers = data.draw(st.integers(1, 4))
    for calls, behind, ours in data.draw(DEATHS):
        mortal = Mortal(source if ours else target, calls, behind=behind, max_append=None if ours else 7)
        pair = (mortal, target) if ours else (source, mortal)
        with suppress(Killed):
            list(sync(*pair, workers=workers, known=known, pause=0))
        for log, there in contents(target).items():
            assert there.startswith(before.get(log, b""))
            assert there == before.get(log) or logs[log].startswith(there)
    rows = list(sync(source, target, workers=workers, known=known, pause=0))
    assert contents(target) == expected(logs, before)
    assert contents(source) == logs
    told = states(logs, before)
    assert [row.log for row in rows] == sorted(told)
    for row in rows:
        assert row.state == told[row.log] or (row.state == "equal" and told[row.log] == "copied")
    assert {row.state for row in sync(source, target, known=known)} <= {"equal", "diverged", "extra"}


@settings(max_examples=100)
@given(st.data(), st.integers(0, 10**6))
def test_storms_of_faults_on_both_sides_end_in_equal_stores(data: st.DataObject, seed: int) -> None:
    logs = data.draw(LOGS)
    before = data.draw(beginnings(logs))
    source, target, known = MemoryStore(), MemoryStore(), Known()
    fill(source, logs)
    fill(target, before)
    rates = {"error": 0.05, "lost": 0.1, "timeout": 0.1, "throttled": 0.05, "stale": 0.2}
    ours = Faulty(source, seed=seed, rates={"error": 0.1, "throttled": 0.05})
    theirs = Faulty(target, seed=seed + 1, rates=rates)
    told = states(logs, before)
    for _ in range(50):
        try:
            rows = list(sync(ours, theirs, known=known, pause=0, workers=2))
        except Unavailable:
            continue  # a listing failed, again and again
        for row in rows:
            if row.state != "failed" and not (row.state == "extra" and row.log in logs):
                assert row.state == told.get(row.log) or (row.state == "equal" and told[row.log] == "copied")
        if contents(target) == expected(logs, before):
            break
    assert contents(target) == expected(logs, before)


def records(store: Store, log: str, count: int) -> None:
    RecordLog(store, log).append_many([draft("message", b"%d" % number * 50) for number in range(count)])


@pytest.mark.parametrize("seed", range(5))
def test_a_local_target_whose_appends_tear_is_completed(tmp_path: Path, seed: int) -> None:
    source = LocalStore(tmp_path / "source", sync="never")
    for number in range(10):
        RecordLog(source, f"log{number}").append("start", b"", expect=1)
        records(source, f"log{number}", 10 * number + 1)
    target = Faulty(LocalStore(tmp_path / "target", sync="never"), seed=seed, rates={"torn": 0.5, "lost": 0.1})
    for _ in range(100):
        states = {"failed"}
        with suppress(Unavailable):  # the process has died amid its listing
            states = {row.state for row in sync(source, target, pause=0)}
        assert states <= {"copied", "equal", "failed"}
        if "failed" not in states:
            break
        target.revive()
    assert any(step.fault == "torn" for step in target.trace)
    assert contents(LocalStore(tmp_path / "target")) == contents(source)


def test_a_source_that_grows_all_the_time_is_copied_up_to_whole_records(tmp_path: Path) -> None:
    source, target = LocalStore(tmp_path / "source", sync="never"), MemoryStore()
    known = Known()
    logs = [RecordLog(source, f"log{number}") for number in range(5)]
    for log in logs:
        log.append("start", b"", expect=1)

    def write() -> None:
        for number in range(100):
            for log in logs:
                log.append_many([draft("message", b"%d" % number * 3000)] * 3)

    writer = threading.Thread(target=write)
    writer.start()
    syncs = 0
    while writer.is_alive() or not syncs:
        syncs += 1
        assert {row.state for row in sync(source, target, known=known, pause=0)} <= {"copied", "equal"}
        for log in logs:
            verdict = verify(target, log.name)
            assert (verdict.ok, verdict.torn) == (True, 0)
            assert source.read(log.name, 0, verdict.size) == target.read(log.name)
    writer.join()
    list(sync(source, target, known=known))
    assert contents(target) == contents(source)


def test_many_syncs_to_one_target_at_once_make_it_equal() -> None:
    source, target = MemoryStore(), MemoryStore()
    fill(source, {f"log{number}": b"%d" % number * 100 for number in range(100)})
    states: set[str] = set()

    def run() -> None:
        states.update(row.state for row in sync(source, target, pause=0, workers=3))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states <= {"copied", "equal"}
    assert contents(target) == contents(source)


def test_appends_at_the_end_of_a_copy_are_never_lost(tmp_path: Path) -> None:
    """What somebody has appended to a target, acknowledged, stays there whatever a sync does."""
    source, target = MemoryStore(), LocalStore(tmp_path, sync="never")
    fill(source, {"log": b"12345"})
    list(sync(source, target))
    tail = target.append("log", b"mine", at=target.tail("log"))
    source.append("log", b"678", at=source.tail("log"))
    (row,) = sync(source, target)
    assert (row.state, row.offset) == ("diverged", 5)
    assert (target.tail("log"), target.read("log")) == (tail, b"12345mine")
    target.append("log", b"more", at=tail)
    target.append("new", b"x", at=NEW)
    assert [row.state for row in sync(source, target)] == ["diverged", "extra"]


@pytest.mark.parametrize("later", [Unavailable("the disk is full"), Held("somebody holds the log")])
def test_a_try_that_may_have_had_an_effect_is_told_whatever_the_next_one_says(later: StateStoreError) -> None:
    answers = chain([Unavailable("no answer", retry=True, effect_unknown=True)], repeat(later))

    class Unsure(Watched):
        def before(self, call: str, log: str) -> None:
            if call == "append":
                raise next(answers)

    source = MemoryStore()
    fill(source, {"log": b"1"})
    (row,) = sync(source, Unsure(MemoryStore()), pause=0)
    assert row.state == "failed"
    assert isinstance(row.error, Unavailable)
    assert row.error.effect_unknown
    assert later in (row.error, row.error.__cause__)
