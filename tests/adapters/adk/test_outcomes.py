"""An event and what it sets of shared state are one outcome: whoever dies, at any call, and whoever else writes."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statestore.adapters.adk._brief import EVENT
from statestore.adapters.adk._ledger import Key, Read
from statestore.adapters.adk._shared import Entry, SharedLog, _decode
from statestore.errors import Conflict, Exists, NotFound
from statestore.records import RecordLog
from statestore.store import Store
from statestore_local import LocalStore
from statestore_memory import MemoryStore
from tests.adapters.adk.stage import ONE, TWO, Actor, Deadly, Death, Disturbed, body, ledger, made, play, story

FULL = os.environ.get("STATESTORE_ADK") == "full"
SEEDS = 2000 if FULL else 40
KILLS = range(1, 100) if FULL else (2, 5, 9, 10)  # which appends kill a process


def events(read: Read) -> set[str]:
    """What has happened in a session: its making, if that set anything, and its events."""
    found = set()
    for record in read.records:
        told = json.loads(record.body)
        state = told["actions"]["stateDelta"] if record.kind == EVENT else told["state"]
        if "app:last" in state:
            found.add(state["app:last"])
    return found


def order(store: Store, name: str) -> list[str]:
    """The events that took effect in a scope, in their order, worked out by hand from all its entries."""
    try:
        entries: list[Entry] = [_decode(record.body) for record in RecordLog(store, name)]
    except NotFound:
        return []
    last = SharedLog(store, name, 0.0)
    state = last.read()
    assert state is not None
    effects = [entry.before for entry in entries[1:]] + [last.decided(state) is True]
    return [entry.delta["last"] for entry, took in zip(entries, effects, strict=True) if took and entry.delta]


def check_agreement(store: Store, keys: list[Key], acknowledged: set[str], gone: bool = False) -> list[str]:
    """Look at everything anew, and return the events in their order."""
    fresh = ledger(store)
    app, user = order(store, "adk/a/app"), order(store, "adk/a/users/u")
    assert app == user
    assert len(set(app)) == len(app)
    assert acknowledged <= set(app)
    there: set[str] = set()
    for key in keys:
        read = fresh.read(key)
        if read is None:
            continue
        there |= events(read)
        expected = dict.fromkeys(app, True) | ({"last": app[-1]} if app else {})
        assert read.shared == {"app": expected, "user": expected}
    assert there <= set(app)
    assert gone or there == set(app)
    assert fresh.values("app", "a") == fresh.values("user", "a", "u")
    return app


def calls(tell: Callable[[MemoryStore, set[str]], None]) -> int:
    store = Deadly(secrets.token_hex(8))
    tell(store, set())
    return store.calls


@pytest.mark.parametrize("late", [False, True], ids=["in-front-of", "behind"])
def test_whoever_dies_at_any_call_leaves_scopes_that_agree_with_the_events(late):
    total = calls(story)
    assert total > 50
    # Every other call for each of the two, unless all are asked for.
    for at in range(1, total + 1) if FULL else range(1 + late, total + 1, 2):
        name = secrets.token_hex(8)
        acknowledged: set[str] = set()
        with pytest.raises(Death):
            story(Deadly(name, at, late), acknowledged)
        store = MemoryStore(name)
        before = check_agreement(store, [ONE, TWO], acknowledged)
        # And who comes next goes on.
        sessions = ledger(store)
        for key in (ONE, TWO):
            try:
                sessions.create(key, *made(key, f"again-{key.id}"))
            except Exists:
                read = sessions.read(key)
                assert read is not None
                sessions.append(key, read.place, *body(f"again-{key.id}"))
        assert check_agreement(store, [ONE, TWO], acknowledged) == [*before, "again-one", "again-two"]


def half_written(name: str) -> Callable[[], object]:
    """Have a writer die in front of the record of its event; return what lets the record arrive."""
    sessions = ledger(MemoryStore(name))
    place = sessions.create(ONE, *made(ONE, "made"))
    sessions.create(TWO, b'{"app":"a","user":"u","id":"two","time":1,"state":{}}', {})
    writer = Deadly(name)
    ledger(writer).append(ONE, place, *body("first"))
    read = sessions.read(ONE)
    assert read is not None
    # The record is the last call of an append, which needs as many as the one before it.
    writer = Deadly(name, writer.calls)
    with pytest.raises(Death):
        ledger(writer).append(ONE, read.place, *body("late"))
    assert writer.lost is not None
    return writer.lost


def whole(name: str) -> Callable[[], object]:
    """Have sessions whose last event is whole; return what deletes the one that it is in."""
    half_written(name)()
    return lambda: ledger(MemoryStore(name)).delete(ONE)


@pytest.mark.parametrize("prepare", [half_written, whole], ids=["a-late-record", "a-deletion"])
@pytest.mark.parametrize("key", [ONE, TWO], ids=["in-it", "beside-it"])
def test_a_reader_sees_whole_events_whatever_happens_between_two_of_its_calls(prepare, key):
    when = 1
    while True:
        name = secrets.token_hex(8)
        store = Disturbed(name, when, prepare(name))
        read = ledger(store).read(key)
        if read is not None:
            assert read.shared["app"] == read.shared["user"]
            assert read.shared["app"]["last"] in (["first", "late"] if prepare is half_written else ["late"])
            assert ("late" in read.shared["app"]) >= ("late" in events(read))
            assert key is not ONE or events(read) == read.shared["app"].keys() - {"last"}
        if store.calls < when:
            break
        when += 1
    assert when > 10


@pytest.mark.parametrize("scope", ["app", "user"])
def test_a_scope_read_alone_loses_nothing_to_a_deletion_between_two_calls(scope):
    when = 1
    while True:
        name = secrets.token_hex(8)
        store = Disturbed(name, when, whole(name))
        assert ledger(store).values(scope, "a", "u")["last"] == "late"
        if store.calls < when:
            break
        when += 1
    assert when > 3


def test_a_late_record_is_refused_once_somebody_has_decided_without_it():
    name = secrets.token_hex(8)
    arrive = half_written(name)
    sessions = ledger(MemoryStore(name))
    two = sessions.read(TWO)
    assert two is not None
    sessions.append(TWO, two.place, *body("other"))
    with pytest.raises(Conflict):
        arrive()
    assert check_agreement(MemoryStore(name), [ONE, TWO], {"made", "first", "other"}) == ["made", "first", "other"]
    # The session itself goes on where its writer thought that it ends: what took the place is stepped over.
    read = sessions.read(ONE)
    assert read is not None
    sessions.append(ONE, read.place, *body("next"))


def test_a_writer_whose_place_was_taken_by_an_empty_record_goes_on_behind_it():
    name = secrets.token_hex(8)
    half_written(name)
    sessions = ledger(MemoryStore(name))
    one, two = sessions.read(ONE), sessions.read(TWO)
    assert one is not None
    assert two is not None
    sessions.append(TWO, two.place, *body("other"))
    sessions.append(ONE, one.place, *body("mine"))
    assert check_agreement(MemoryStore(name), [ONE, TWO], {"other", "mine"})[-2:] == ["other", "mine"]


def write(actor: Actor, key: Key, name: str, acknowledged: set[str], count: int = 2) -> Callable[[], None]:
    """A part: makes the session or takes the one that is there, and appends, reading anew where it is stale."""

    def part() -> None:
        sessions = ledger(actor)
        try:
            place = sessions.create(key, *made(key, f"make-{name}"))
            acknowledged.add(f"make-{name}")
        except Exists:
            place = None
        for number in range(count):
            event = f"{name}-{number}"
            for _ in range(30):
                try:
                    if place is None:
                        read = sessions.read(key)
                        if read is None:
                            return
                        place = read.place
                    place = sessions.append(key, place, *body(event))
                except Conflict:
                    place = None
                except NotFound:
                    return
                else:
                    acknowledged.add(event)
                    break

    return part


def delete(actor: Actor, key: Key) -> Callable[[], None]:
    return lambda: ledger(actor).delete(key)


def look(actor: Actor, key: Key, seen: list[Read]) -> Callable[[], None]:
    def part() -> None:
        sessions = ledger(actor)
        for _ in range(4):
            read = sessions.read(key)
            if read is not None:
                seen.append(read)

    return part


def play_one(seed: str, deletes: bool) -> None:
    rng = random.Random(seed)
    name = secrets.token_hex(8)

    def actor() -> Actor:
        return Actor(name, rng.choice([0, 0, rng.randint(1, 60)]), rng.random() < 0.5)

    acknowledged: set[str] = set()
    seen: list[list[Read]] = [[], []]
    parts = []
    for number, key in enumerate([ONE, ONE, TWO][: rng.randint(2, 3)]):
        writer = actor()
        parts.append((writer, write(writer, key, f"w{number}", acknowledged)))
    for views in seen:
        reader = Actor(name, 0, False)
        parts.append((reader, look(reader, rng.choice([ONE, TWO]), views)))
    if deletes:
        deleter = actor()
        parts.append((deleter, delete(deleter, ONE)))
    play(rng, parts)
    final = check_agreement(MemoryStore(name), [ONE, TWO], acknowledged, gone=deletes)
    for views in seen:
        sizes = []
        for read in views:
            app = set(read.shared["app"]) - {"last"}
            # Each view is what it was after some number of events, and never one half of an event.
            assert app == set(final[: len(app)])
            assert read.shared["app"].get("last") == (final[len(app) - 1] if app else None)
            assert read.shared["user"] == read.shared["app"]
            assert events(read) <= app
            sizes.append(len(app))
        assert sizes == sorted(sizes)


@pytest.mark.parametrize("deletes", [False, True], ids=["writing", "deleting"])
def test_writers_and_readers_in_any_order_see_one_order_of_whole_events(deletes):
    for seed in range(SEEDS):
        try:
            play_one(f"{deletes}-{seed}", deletes)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


KILLED = """
import os, signal, sys
from statestore_local import LocalStore
from tests.adapters.adk.stage import story

class Killed(LocalStore):
    left = int(sys.argv[2])

    def append(self, log, data, *, at):
        self.left -= 1
        if self.left == 0 and sys.argv[3] == "in-front-of":
            os.kill(os.getpid(), signal.SIGKILL)
        tail = super().append(log, data, at=at)
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return tail

class Loud(set):
    def add(self, event):
        print(event, flush=True)

story(Killed(sys.argv[1], sync="never"), Loud())
"""


@pytest.mark.parametrize("when", ["in-front-of", "behind"])
def test_a_process_killed_at_an_append_leaves_files_that_agree(when, tmp_path):
    for at in KILLS:
        root = tmp_path / f"{at}"
        command = [sys.executable, "-c", KILLED, str(root), str(at), when]
        ran = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True)
        if ran.returncode == 0:
            break
        assert ran.returncode == -signal.SIGKILL, ran.stderr
        store = LocalStore(root, sync="never")
        check_agreement(store, [ONE, TWO], set(ran.stdout.split()))
        sessions = ledger(store)
        read = sessions.read(ONE)
        if read is not None:
            sessions.append(ONE, read.place, *body("next"))
            check_agreement(store, [ONE, TWO], {*ran.stdout.split(), "next"})


LOGS = ["adk/a/app", "adk/a/users/u", "adk/a/sessions/u/two"]


@pytest.mark.parametrize("written", range(3), ids=LOGS)
def test_a_crash_in_the_middle_of_each_write_of_an_event_leaves_nothing_of_it(written, tmp_path):
    store = LocalStore(tmp_path, sync="never")
    acknowledged: set[str] = set()
    story(store, acknowledged)
    # The last event was two-1. Take back what had not been written, and half of what was being written.
    for number, name in enumerate(LOGS[written:]):
        last = RecordLog(store, name).last(1)[0]
        file = Path(store.location(name))
        file.write_bytes(file.read_bytes()[: last.offset + (len(last.raw) // 2 if number == 0 else 0)])
    acknowledged.remove("two-1")
    check_agreement(store, [ONE, TWO], acknowledged)
    for key in (ONE, TWO):
        read = ledger(store).read(key)
        assert read is not None
        ledger(store).append(key, read.place, *body(f"next-{key.id}"))
        acknowledged.add(f"next-{key.id}")
    assert check_agreement(store, [ONE, TWO], acknowledged)[-3:] == ["one-1", "next-one", "next-two"]


def test_what_each_call_costs():
    store = Deadly(secrets.token_hex(8))
    sessions = ledger(store)
    plain = body("x")[0]

    def cost(work: Callable[[], Any]) -> tuple[Any, dict[str, int]]:
        store.made.clear()
        return work(), dict(store.made)

    place, made_of = cost(lambda: sessions.create(ONE, *made(ONE, "made")))
    assert made_of["append"] == 4
    place, made_of = cost(lambda: sessions.append(ONE, place, plain, {}))
    assert made_of == {"append": 1}
    place, made_of = cost(lambda: sessions.append(ONE, place, plain, {"app": {"k": 1}}))
    assert made_of["append"] == 2
    place, made_of = cost(lambda: sessions.append(ONE, place, *body("y")))
    assert made_of["append"] == 3
    # What is shared is read once, and then only looked at: the session alone is read.
    sessions.read(ONE)
    _, made_of = cost(lambda: sessions.read(ONE))
    assert made_of["read"] == 1
    _, made_of = cost(lambda: sessions.create(TWO, b'{"app":"a","user":"u","id":"two","time":1,"state":{}}', {}))
    assert made_of == {"append": 1}


def test_a_long_history_of_shared_state_is_read_from_its_last_copy_on():
    name = secrets.token_hex(8)
    sessions = ledger(MemoryStore(name))
    place = sessions.create(ONE, *made(ONE, "made"))
    for number in range(300):
        place = sessions.append(ONE, place, body("x")[0], {"app": {f"k{number % 20}": number}})
    log = RecordLog(MemoryStore(name), "adk/a/app")
    last = _decode(log.last(1)[0].body)
    assert log.count() == 301
    assert last.back[1] > 250
    state = ledger(MemoryStore(name)).values("app", "a")
    assert state == {"made": True, "last": "made"} | {f"k{number % 20}": number for number in range(300)}
    assert state == sessions.values("app", "a")
    # Copies of the state are no more than a part of the log.
    copies = sum(len(record.body) for record in log if _decode(record.body).base is not None)
    assert copies < log.store.tail(log.name).size / 3


def test_what_was_read_before_it_was_acknowledged_is_not_believed(tmp_path):
    store = LocalStore(tmp_path, sync="never")
    story(store, set())
    sessions = ledger(store)
    assert sessions.values("app", "a")["last"] == "two-1"
    for name in LOGS:
        file = Path(store.location(name))
        file.write_bytes(file.read_bytes()[: RecordLog(store, name).last(1)[0].offset])
    other = ledger(store)
    read = other.read(TWO)
    assert read is not None
    other.append(TWO, read.place, *body("an event with a longer name"))
    assert sessions.values("app", "a") == ledger(store).values("app", "a")
    assert "two-1" not in sessions.values("app", "a")
