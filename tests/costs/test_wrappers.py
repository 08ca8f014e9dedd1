"""What wrappers ask of the store that they are made of: what would be asked without them, and nothing more."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statestore import RecordLog, Store
from statestore.wrappers import Cached, Encrypted, Instrumented, Prefixed, ReadOnly
from statestore_memory import MemoryStore


class Counted(MemoryStore):
    """A store that counts the calls that others make of it, and those that it makes of itself."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()


def _counting(name: str) -> Callable[..., Any]:
    def call(self: Counted, *args: Any, **kwargs: Any) -> Any:
        self.calls[name] += 1
        return getattr(super(Counted, self), name)(*args, **kwargs)

    return call


for _name in ("append", "boundary", "copy", "delete", "list", "read", "snapshot", "stream", "tail"):
    setattr(Counted, _name, _counting(_name))

READING: dict[str, Callable[[Store], object]] = {
    "tail": lambda store: store.tail("log"),
    "read": lambda store: store.read("log", 1, 9),
    "stream": lambda store: deque(store.stream("log")),
    "list": lambda store: deque(store.list()),
    "list with tails": lambda store: deque(store.list(tails=True)),
    "records": lambda store: deque(RecordLog(store, "log")),
    "last": lambda store: RecordLog(store, "log").last(2),
    "count": lambda store: RecordLog(store, "log").count(),
}
CHANGING: dict[str, Callable[[Store], object]] = {
    "append": lambda store: RecordLog(store, "log").append("message", b"x"),
    "copy": lambda store: store.copy("log", "copy"),
    "copy records": lambda store: RecordLog(store, "log").copy("copy", before=3),
    "delete": lambda store: store.delete("log"),
}
PASSING: dict[str, Callable[[Store], Store]] = {
    "instrumented": Instrumented,
    "prefixed": lambda store: Prefixed(store, "above"),
    "read-only": ReadOnly,
}


def filled(store: Store) -> Store:
    log = RecordLog(store, "log")
    for number in range(1, 6):
        log.append("message", b"x" * 100, expect=number)
    return store


def asked(inner: Counted, call: Callable[[Store], object], store: Store) -> Counter[str]:
    """Return what a call asks of the inner store."""
    inner.calls.clear()
    call(store)
    return +inner.calls


CASES = [(wrapper, what) for wrapper in PASSING for what in READING | (CHANGING if wrapper != "read-only" else {})]


@pytest.mark.parametrize(("wrapper", "what"), CASES)
def test_a_wrapper_that_passes_calls_on_asks_what_is_asked_without_it(wrapper, what) -> None:
    call = (READING | CHANGING)[what]
    bare, inner = Counted(), Counted()
    filled(bare)
    store = PASSING[wrapper](inner)
    filled(inner if wrapper == "read-only" else store)
    assert asked(inner, call, store) == asked(bare, call, bare)


@pytest.mark.parametrize("what", ["read", "stream", "records", "last", "count"])
def test_of_a_cached_log_only_its_end_is_asked_for(what, tmp_path: Path) -> None:
    inner = Counted()
    store = filled(Cached(inner, tmp_path, origin="here"))
    deque(store.stream("log"))
    assert not asked(inner, READING[what], store).keys() & {"read", "stream"}


def test_an_append_to_a_sealed_log_that_is_known_is_one_append() -> None:
    inner = Counted()
    store = filled(Encrypted(inner, [bytes(32)]))
    log = RecordLog(store, "log")
    log.append("message", b"x")
    assert asked(inner, lambda _: log.append("message", b"x"), store) == {"append": 1}
    assert asked(inner, READING["tail"], store)["read"] == 0
