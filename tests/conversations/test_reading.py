"""How much is read: nothing again of what is known, and with snapshots a bounded end of what is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from statestore import Store, Tail
from statestore.conversations import Conversations, ConversationState, _conversations, _log
from statestore.records import verify
from statestore.records.index import STRIDE
from statestore.store import Snapshot
from statestore.wrappers import Wrapper
from statestore_local import LocalStore
from statestore_memory import MemoryStore
from tests.conversations.places import contents, user

T = TypeVar("T")
MANY = 10_000


class Counting(Wrapper):
    """Counts calls and the bytes that they moved; knows boundaries where told the offsets of appends."""

    def __init__(self, store: Store, boundaries: list[int] | None = None) -> None:
        super().__init__(store)
        self.calls: Counter[str] = Counter()
        self.read_bytes = 0
        self.boundaries = boundaries
        if boundaries is not None:
            self.capabilities = replace(store.capabilities, boundaries=True)

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self.calls["append"] += 1
        if self.boundaries is not None:
            self.boundaries.append(at.size)
        return super().append(log, data, at=at)

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        data = super().read(log, start, stop)
        self.calls["read"] += 1
        self.read_bytes += len(data)
        return data

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        self.calls["copy"] += 1
        return super().copy(source, target, stop=stop)

    def tail(self, log: str) -> Tail:
        self.calls["tail"] += 1
        return super().tail(log)

    def snapshot(self, log: str) -> Snapshot:
        return Snapshot(self, log, self.tail(log))

    def boundary(self, log: str, before: int) -> int:
        self.calls["boundary"] += 1
        assert self.boundaries is not None
        return max((place for place in self.boundaries if place <= before), default=0)

    def measure(self, call: Callable[[], T]) -> tuple[T, Counter[str], int]:
        """Return a call's result, what it asked of the store, and the bytes it read."""
        self.calls.clear()
        self.read_bytes = 0
        result = call()
        return result, Counter({name: count for name, count in self.calls.items() if count}), self.read_bytes


@pytest.fixture(scope="module", params=["memory", "local"])
def long(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Counting]:
    """Opens a store with one conversation of many messages, and the offsets of its appends."""
    if request.param == "memory":
        opener: Callable[[], Store] = partial(MemoryStore, "a long conversation")
    else:
        opener = partial(LocalStore, tmp_path_factory.mktemp("long"), sync="never")
    store = Counting(opener(), [])
    talks = Conversations(store)
    talks.save(ConversationState(id="c", user_id="u", metadata={"k": 1}))
    talks.append_list("c", "l", [b"item"])
    talks.save_summary("c", {"content": "s"})
    for number in range(MANY):
        talks.log_append("c", number, [user(f"{number:0100}")])
    assert store.boundaries is not None
    return lambda: Counting(opener(), list(store.boundaries or ()))


def test_what_is_known_is_not_read_again(long: Callable[[], Counting]) -> None:
    store = long()
    talks = Conversations(store)
    assert talks.message_count("c") >= MANY
    talks.load_recent_messages("c", 5)
    for call in (
        lambda: talks.load_recent_messages("c", 5),
        lambda: talks.message_count("c"),
        lambda: talks.load_metadata("c"),
        lambda: talks.load_list("c", "l"),
        lambda: talks.log_load("c", 5),
    ):
        _, calls, size = store.measure(call)
        assert (calls, size) == ({"tail": 1}, 0)
    count = talks.message_count("c")
    for write in (
        lambda: talks.log_append("c", count, [user("new")]),
        lambda: talks.merge_metadata("c", {"k": 2}),
        lambda: talks.append_list("c", "l", [b"new"]),
        lambda: talks.append_messages("c", [user("new")]),
    ):
        _, calls, size = store.measure(write)
        assert (calls, size) == ({"append": 1}, 0)


def test_what_others_have_written_is_all_that_is_read(long: Callable[[], Counting]) -> None:
    store, other = long(), Conversations(long())
    talks = Conversations(store)
    count = talks.message_count("c")
    other.append_messages("c", [user("from another")])
    found, _, size = store.measure(lambda: talks.message_count("c"))
    assert (found, size) == (count + 1, pytest.approx(250, abs=150))
    other.append_messages("c", [user("again")])
    _, calls, size = store.measure(lambda: talks.merge_metadata("c", {"k": 3}))
    assert calls["append"] == 3  # one refused, once more as the record log settles it, and one behind what was read
    assert size < 2000
    assert contents(talks.load_recent_messages("c", 1)) == ["again"]


@pytest.mark.parametrize("count", [1, 5, 64])
def test_with_boundaries_a_bounded_end_is_read(long: Callable[[], Counting], count: int) -> None:
    store = long()
    bound = 3 * _log._REACH
    whole = store.tail("conversations/c").size
    assert whole > 2 * bound
    for call in (
        lambda: Conversations(store).load_recent_messages("c", count),
        lambda: Conversations(store).message_count("c"),
        lambda: Conversations(store).merge_metadata("c", {"k": 4}),
        lambda: Conversations(store).log_append("c", 0, [user("x")]),
        lambda: Conversations(store).load_list("c", "l"),
    ):
        _, _, size = store.measure(call)
        assert 0 < size < bound
    cold, warm = Conversations(store), Conversations(store)
    assert cold.load_recent_messages("c", count) == warm.load("c").messages[-count:]
    assert cold.load("c") == warm.load("c")
    assert cold.message_count("c") == warm.message_count("c")


@pytest.mark.parametrize("long", ["local"], indirect=True)
def test_an_index_bounds_what_is_read_as_well(long: Callable[[], Counting]) -> None:
    store = long()
    store.capabilities = replace(store.capabilities, boundaries=False)
    assert store.tail("conversations/c").size > 2.5 * STRIDE
    for call in (
        lambda: Conversations(store).load_recent_messages("c", 5),
        lambda: Conversations(store).message_count("c"),
        lambda: Conversations(store).merge_metadata("c", {"k": 5}),
    ):
        _, _, size = store.measure(call)
        assert 0 < size < 1.3 * STRIDE
    assert Conversations(store).load_recent_messages("c", 5) == Conversations(store).load("c").messages[-5:]


def test_with_an_index_a_snapshot_that_lies_far_back_is_found(tmp_path: Path) -> None:
    """The next snapshot waits for eight times the size of the last one, over many positions of the index."""
    store, log = Counting(LocalStore(tmp_path, sync="never")), "conversations/c"
    state = ConversationState(id="c", metadata={"k": "v" * STRIDE})
    with Conversations(store) as talks:
        talks.save(state)
        for number in range(1500):
            talks.log_append("c", number, [user(f"{number:01000}")])
    (snapshot,) = [one for one in _conversations.RecordLog(store, log) if one.kind == "conversation.snapshot"]
    size = store.tail(log).size
    assert size - snapshot.offset > 2 * STRIDE
    found, _, read = store.measure(lambda: Conversations(store).load_metadata("c"))
    assert found == state.metadata
    assert read < 2.5 * size


def test_whoever_begins_at_a_snapshot_knows_the_numbers_of_records(long: Callable[[], Counting]) -> None:
    store = long()
    Conversations(store).append_messages("c", [user("cold")])
    verdict = verify(store, "conversations/c")
    assert verdict.ok
    assert verdict.misnumbered is None


def test_a_snapshot_that_does_not_fit_into_an_append_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_log, "INTERVAL", 2)
    store = Counting(MemoryStore())
    store.capabilities = replace(store.capabilities, max_append=10_000)
    talks = Conversations(store)
    for _ in range(30):
        talks.append_list("c", "l", [b"x" * 1000])
    kinds = [record.kind for record in _conversations.RecordLog(store, "conversations/c")]
    assert 0 < kinds.count("conversation.snapshot") < 10
    assert all(len(record.body) < 9000 for record in _conversations.RecordLog(store, "conversations/c"))
    assert talks.list_len("c", "l") == Conversations(store).list_len("c", "l") == 30


def test_without_boundaries_no_body_is_kept_but_those_asked_for(long: Callable[[], Counting]) -> None:
    store = long()
    store.capabilities = replace(store.capabilities, boundaries=False)
    talks = Conversations(store)
    recent = talks.load_recent_messages("c", 5)
    state = talks._cache._logs["conversations/c"].state
    assert state is not None
    assert len(state.messages) < 500
    assert recent == Conversations(store).load("c").messages[-5:]


def test_a_snapshot_costs_a_small_part_of_the_log(long: Callable[[], Counting]) -> None:
    store = long()
    records = _conversations.RecordLog(store, "conversations/c")
    sizes: Counter[bool] = Counter()
    for record in records:
        sizes[record.kind == "conversation.snapshot"] += record.end - record.offset
    assert 0 < sizes[True] < sizes[False] / 8


def test_an_append_costs_no_more_late_than_early(long: Callable[[], Counting]) -> None:
    store = long()
    talks = Conversations(store)
    talks.message_count("c")
    written = []
    for _ in range(2 * _log.INTERVAL):
        before = store.tail("conversations/c").size
        _, calls, size = store.measure(lambda: talks.append_messages("c", [user("x" * 100)]))
        assert (calls, size) == ({"append": 1}, 0)
        written.append(store.tail("conversations/c").size - before)
    assert max(written) < 1500
    assert sum(written) < 1.3 * min(written) * len(written)


def test_a_fork_is_one_copy_and_one_record_or_one_record_alone(long: Callable[[], Counting]) -> None:
    store = long()
    talks = Conversations(store)
    count = talks.message_count("c")
    for name in ("new", "there"):
        talks.delete(name)
    talks.append_messages("there", [])
    _, calls, size = store.measure(lambda: talks.fork("c", "new"))
    assert calls == {"tail": 3, "copy": 1, "append": 1}
    assert size == 0
    talks.load("c")
    _, calls, size = store.measure(lambda: talks.fork("c", "there"))
    assert calls["append"] == 1
    assert talks.message_count("new") == talks.message_count("there") == count
    for name in ("new", "there"):
        talks.delete(name)


def test_the_cache_is_bounded_and_forgets_the_oldest(tmp_path: Path) -> None:
    store = Counting(LocalStore(tmp_path, sync="never"))
    talks = Conversations(store, cache=100_000)
    for number in range(20):
        talks.append_messages(str(number), [user("x" * 20_000)])
    _, calls, size = store.measure(lambda: talks.load_recent_messages("19", 1))
    assert (calls, size) == ({"tail": 1}, 0)
    _, calls, size = store.measure(lambda: talks.load_recent_messages("0", 1))
    assert size > 20_000
    assert sum(log.weight for log in talks._cache._logs.values()) <= 100_000


def test_of_a_history_that_is_too_large_for_the_cache_its_end_is_kept(tmp_path: Path) -> None:
    store = Counting(LocalStore(tmp_path, sync="never"))
    talks = Conversations(store, cache=400_000)
    for number in range(40):
        talks.append_messages("c", [user(f"{number}:{time}:{'x' * 50}") for time in range(50)])
    everything = talks.load("c").messages
    assert len(everything) == 2000
    _, calls, size = store.measure(lambda: talks.load_recent_messages("c", 100))
    assert (calls, size) == ({"tail": 1}, 0)
    assert talks.load_recent_messages("c", 1500) == everything[-1500:]
    talks.save(talks.load("c"))
    assert talks.load("c").messages == everything


def test_probing_for_conversations_keeps_nothing() -> None:
    talks = Conversations(MemoryStore())
    for number in range(100):
        assert talks.log_len(str(number)) == 0
    assert not talks._cache._logs


@pytest.mark.parametrize("keep", range(0, 10, 3))
@pytest.mark.parametrize("behind", [0, 1, 4])
def test_the_end_of_a_history_that_was_replaced_is_read_right(
    monkeypatch: pytest.MonkeyPatch, keep: int, behind: int
) -> None:
    monkeypatch.setattr(_log, "INTERVAL", 1)
    monkeypatch.setattr(_log, "_SHARE", 0)
    store = MemoryStore()
    talks = Conversations(store)
    history = [user(str(number)) for number in range(10)]
    for message in history:
        talks.append_messages("c", [message])
    replaced = [*history[:keep], user("a"), user("b")]
    talks.save(ConversationState(id="c", messages=replaced))  # type: ignore[arg-type]
    for number in range(behind):
        talks.append_messages("c", [user(f"behind {number}")])
        replaced.append(user(f"behind {number}"))
    talks.merge_metadata("c", {})
    talks.merge_metadata("c", {"k": 1})
    expected = [message["content"] for message in replaced]
    for count in range(1, len(expected) + 2):
        assert contents(Conversations(store).load_recent_messages("c", count)) == expected[-count:]
        # First a few, so that the rest is looked for behind them.
        cold = Conversations(store)
        cold.load_recent_messages("c", 1)
        assert contents(cold.load_recent_messages("c", count)) == expected[-count:]


def test_a_save_on_what_is_half_known_compares_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_log, "INTERVAL", 1)
    monkeypatch.setattr(_log, "_SHARE", 0)
    store = MemoryStore()
    for number in range(10):
        Conversations(store).append_messages("c", [user(str(number))])
    talks = Conversations(store)
    assert contents(talks.load_recent_messages("c", 1)) == ["9"]
    talks.save(ConversationState(id="c", messages=[user("9"), user("new")]))  # type: ignore[list-item]
    assert contents(talks.load("c").messages) == contents(Conversations(store).load("c").messages) == ["9", "new"]
