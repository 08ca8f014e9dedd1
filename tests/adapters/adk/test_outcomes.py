"""An event and what it sets of shared state are one outcome: whoever dies, at whatever call, and whoever else writes."""

from __future__ import annotations

import json
import os
import random
import secrets
from collections.abc import Callable
from typing import Any

import pytest

from statestore.adapters.adk._brief import EVENT
from statestore.adapters.adk._ledger import Key, Ledger, Read
from statestore.adapters.adk._shared import Entry, SharedLog, _decode
from statestore.errors import Conflict, Exists, NotFound
from statestore.records import RecordLog
from statestore_memory import MemoryStore
from tests.adapters.adk.stage import Actor, Deadly, Death, play

SEEDS = int(os.environ.get("STATESTORE_ADK_SCHEDULES", "40"))


def body(event: str) -> tuple[bytes, dict[str, dict[str, Any]]]:
    """An event that sets two keys of each scope: its own, and one that all events set."""
    delta = {event: True, "last": event}
    state = {f"{prefix}{key}": value for prefix in ("", "app:", "user:") for key, value in delta.items()}
    return json.dumps({"id": event, "timestamp": 1.0, "actions": {"stateDelta": state}}).encode(), {
        "app": delta,
        "user": delta,
    }


def made(key: Key, event: str) -> tuple[bytes, dict[str, dict[str, Any]]]:
    """A session that begins as if with an event."""
    _, deltas = body(event)
    state = {f"{scope}:{name}": value for scope, delta in deltas.items() for name, value in delta.items()}
    return json.dumps({**key._asdict(), "time": 1.0, "state": state}).encode(), deltas


def events(read: Read) -> set[str]:
    """What has happened in a session: its making, if that set anything, and its events."""
    found = set()
    for record in read.records:
        told = json.loads(record.body)
        state = told["actions"]["stateDelta"] if record.kind == EVENT else told["state"]
        if "app:last" in state:
            found.add(state["app:last"])
    return found


def ledger(store: MemoryStore) -> Ledger:
    return Ledger(store, "adk", 0.0)


def order(store: MemoryStore, name: str) -> list[str]:
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


def check_agreement(store: MemoryStore, keys: list[Key], acknowledged: set[str], gone: bool = False) -> list[str]:
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
        expected = {event: True for event in app} | ({"last": app[-1]} if app else {})
        assert read.shared == {"app": expected, "user": expected}
    assert there <= set(app)
    assert gone or there == set(app)
    assert fresh.values("app", "a") == fresh.values("user", "a", "u")
    return app


ONE, TWO = Key("a", "u", "one"), Key("a", "u", "two")


def story(store: MemoryStore, acknowledged: set[str]) -> None:
    """Two sessions, one after the other and then by turns."""
    sessions = ledger(store)
    places = {}
    for key in (ONE, TWO):
        places[key] = sessions.create(key, *made(key, f"make-{key.id}"))
        acknowledged.add(f"make-{key.id}")
    for number in range(3):
        for key in (ONE, TWO):
            event = f"{key.id}-{number}"
            places[key] = sessions.append(key, places[key], *body(event))
            acknowledged.add(event)


def calls(tell: Callable[[MemoryStore, set[str]], None]) -> int:
    store = Deadly(secrets.token_hex(8))
    tell(store, set())
    return store.calls


@pytest.mark.parametrize("late", [False, True], ids=["in-front-of", "behind"])
def test_whoever_dies_at_any_call_leaves_scopes_that_agree_with_the_events(late):
    total = calls(story)
    assert total > 50
    for at in range(1, total + 1):
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
