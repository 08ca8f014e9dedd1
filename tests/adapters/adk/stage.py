"""A store on a stage: actors in threads, one call at a time, in an order that a seed draws, and deaths between calls.

Each actor has a store object of its own over the same logs, as processes have. A death is like that of a process: the
call it meets takes effect or not, and no other one follows. Below: what they write.
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from statestore.adapters.adk._ledger import Key, Ledger
from statestore.store import LogInfo, Store, Tail
from statestore_memory import MemoryStore


class Death(BaseException):
    """An actor's end."""


class Deadly(MemoryStore):
    """A store that dies at one of its calls, and counts them.

    Args:
        name: stores with the same name share their logs.
        at: the call, counted from 1; 0 stands for none.
        late: whether that call takes effect.
    """

    def __init__(self, name: str, at: int = 0, late: bool = False) -> None:
        super().__init__(name)
        self.at = at
        self.late = late
        self.calls = 0
        self.made: Counter[str] = Counter()
        self.inside = False
        self.lost: Callable[[], Any] | None = None  # the call that did not take effect, which may yet arrive

    def turn(self) -> None:
        """Wait for the turn of this actor."""

    def call(self, what: str, work: Callable[[], Any]) -> Any:
        if self.inside:  # the store calls itself
            return work()
        self.turn()
        self.calls += 1
        self.made[what] += 1
        if self.at and self.calls >= self.at and not (self.late and self.calls == self.at):
            self.lost = self.lost or work
            raise Death
        self.inside = True
        try:
            result = work()
        finally:
            self.inside = False
        if self.calls == self.at:
            raise Death
        return result

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        return self.call("append", lambda: MemoryStore.append(self, log, data, at=at))

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        return self.call("read", lambda: MemoryStore.read(self, log, start, stop))

    def tail(self, log: str) -> Tail:
        return self.call("tail", lambda: MemoryStore.tail(self, log))

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        return iter(self.call("list", lambda: list(MemoryStore.list(self, prefix, after=after, tails=tails))))

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        self.call("delete", lambda: MemoryStore.delete(self, log, at=at))


class Disturbed(Deadly):
    """A store in front of whose calls, at one of them, something else happens."""

    def __init__(self, name: str, when: int, what: Callable[[], Any]) -> None:
        super().__init__(name)
        self.when = when
        self.what = what

    def turn(self) -> None:
        if self.calls + 1 == self.when:
            self.what()


class Actor(Deadly):
    """A store whose calls wait for their turn on a stage."""

    def __init__(self, name: str, at: int, late: bool) -> None:
        super().__init__(name, at, late)
        self.go = threading.Semaphore(0)
        self.ready = threading.Semaphore(0)
        self.done = False

    def turn(self) -> None:
        self.ready.release()
        self.go.acquire()


def play(rng: random.Random, parts: list[tuple[Actor, Callable[[], None]]]) -> None:
    """Run actors until all are done or dead; raise what one of them raised."""
    errors: list[BaseException] = []

    def run(actor: Actor, part: Callable[[], None]) -> None:
        try:
            part()
        except Death:
            pass
        except BaseException as error:
            errors.append(error)
        finally:
            actor.done = True
            actor.ready.release()

    threads = [threading.Thread(target=run, args=each) for each in parts]
    for thread in threads:
        thread.start()
    for actor, _ in parts:
        actor.ready.acquire()
    favourite = rng.choice(parts)[0]
    while waiting := [actor for actor, _ in parts if not actor.done]:
        # Long runs of one actor and quick changes: both find faults that the other does not.
        if favourite.done or rng.random() < 0.3:
            favourite = rng.choice(waiting)
        favourite.go.release()
        favourite.ready.acquire()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


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


def ledger(store: Store) -> Ledger:
    return Ledger(store, "adk", 0.0)


ONE, TWO = Key("a", "u", "one"), Key("a", "u", "two")


def story(store: Store, acknowledged: set[str]) -> None:
    """Two sessions, one after the other and then by turns."""
    sessions = ledger(store)
    places = {}
    for key in (ONE, TWO):
        places[key] = sessions.create(key, *made(key, f"make-{key.id}"))
        acknowledged.add(f"make-{key.id}")
    for number in range(2):
        for key in (ONE, TWO):
            event = f"{key.id}-{number}"
            places[key] = sessions.append(key, places[key], *body(event))
            acknowledged.add(event)
