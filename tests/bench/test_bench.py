"""A run: all is done, all is checked, a store that lies is found out, and nothing is left."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Barrier, get_ident
from typing import Any

import pytest

from statestore import NEW, Store, Tail, open_store
from statestore.bench import OPERATIONS, Bench, Row, Sizes, Traffic, Watch
from statestore.errors import NotSupported, StateStoreError, Unavailable
from statestore.store import LogInfo
from statestore.wrappers import Encrypted, Faulty, ReadOnly
from statestore_local import LocalStore
from statestore_memory import MemoryStore

SMALL = Sizes(records=5, size=100, logs=3, workers=2, rounds=2, batch=4)
NAMES = [operation.name for operation in OPERATIONS]


def run(store: Store, sizes: Sizes = SMALL, **more: Any) -> Bench:
    with Bench(store, sizes, **more) as bench:
        for _ in bench.run():
            pass
    return bench


@pytest.fixture(params=["memory", "local", "encrypted"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = LocalStore(tmp_path / "state", sync="never") if request.param == "local" else MemoryStore()
    with Encrypted(made, [secrets.token_bytes(32)]) if request.param == "encrypted" else made as store:
        yield store


def test_every_operation_is_done_as_often_as_was_asked(store: Store) -> None:
    rows = {row.operation: row for row in run(store).rows}
    assert list(rows) == NAMES
    for operation in OPERATIONS:
        row = rows[operation.name]
        if operation.needs and not getattr(store.capabilities, operation.needs):
            assert (row.skipped, row.times, row.items) == (f"the store lacks {operation.needs}", 0, 0)
            continue
        assert row.skipped == ""
        assert row.times == operation.times(SMALL)
        assert 0 < row.p10 <= row.median <= row.p90
        assert row.seconds > 0
        assert (row.size > 100 * row.items) == (row.item == "record")
        assert row.traffic is None
    each = {name: rows[name].items // rows[name].times for name in NAMES if name != "held"}
    assert each == {
        "append": 1,
        "batch": 4,
        "scan": 6,  # with the one that makes the log
        "load": 6,
        "last": 6,
        "fork": 3,
        "many": 1,
        "list": 3,
        "tails": 3,
    }


def test_a_run_says_beforehand_how_often_it_will_yield(store: Store) -> None:
    with Bench(store, SMALL) as bench:
        assert len(list(bench.run())) == bench.total


@pytest.mark.parametrize("name", NAMES)
def test_an_operation_can_be_done_alone(name: str) -> None:
    (row,) = run(MemoryStore(), only=[name]).rows
    assert (row.operation, row.skipped) == (name, "")


def test_an_operation_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no such operation: nonsense"):
        Bench(MemoryStore(), only=["append", "nonsense"])


def test_sizes_are_at_least_1() -> None:
    for name in ("records", "size", "logs", "workers", "rounds", "batch"):
        with pytest.raises(ValueError, match=f"{name}=0"):
            Sizes(**{name: 0})


def test_the_last_ten_are_ten_where_there_are_more() -> None:
    (row,) = run(MemoryStore(), replace(SMALL, records=30), only=["last"]).rows
    assert row.items == 10 * row.times


def test_a_log_is_held_while_that_is_measured_and_only_then() -> None:
    store, held = MemoryStore(), Counter[str]()
    with Bench(store, SMALL) as bench:
        for row in bench.run():
            if row is None:
                operation = NAMES[len(bench.rows)]
                logs = [info.name for info in store.list(bench.prefix)]
                held[operation] += sum(store.holder(log) is not None for log in logs)
    assert +held == {"held": SMALL.records}


def test_a_batch_is_as_large_as_one_append_may_be() -> None:
    class Small(MemoryStore):
        capabilities = replace(MemoryStore.capabilities, max_append=1200)

        def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
            assert len(data) <= 1200
            return super().append(log, data, at=at)

    (row,) = run(Small(), only=["batch"]).rows
    assert row.items == 3 * row.times


def test_many_logs_are_filled_by_as_many_threads_as_were_asked_for() -> None:
    threads: dict[str, set[int]] = {}
    both = Barrier(2, timeout=60)

    class Watched(MemoryStore):
        def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
            if at != NEW:
                if data.startswith(b'{"n":2,'):
                    both.wait()
                threads.setdefault(log, set()).add(get_ident())
            return super().append(log, data, at=at)

    run(Watched(), replace(SMALL, records=40, logs=4, workers=2), only=["many"])
    assert [len(each) for each in threads.values()] == [1] * 4
    assert len(set.union(*threads.values())) == 2


class Losing(MemoryStore):
    """Acknowledges the last record of a log and forgets it."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        if data.startswith(b'{"n":5,' if "many" in log else b'{"n":13,'):
            return Tail(at.size + len(data), at.run)
        return super().append(log, data, at=at)


class Flipping(MemoryStore):
    """Gives back another byte in the middle of a body."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        return super().read(log, start, stop).replace(b"append 4 ", b"append 5 ")


class Shortening(MemoryStore):
    """Acknowledges a batch and forgets its last record."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        keep = data.rindex(b'\n{"n":') + 1 if data.count(b'\n{"n":') else len(data)
        return Tail(at.size + len(data), super().append(log, data[:keep], at=at).run)


class Cutting(MemoryStore):
    """Copies a little less than was asked for, and says that it was all."""

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        assert stop is not None
        made = super().copy(source, target, stop=self.read(source, 0, stop - 1).rindex(b"\n") - 50)
        return Tail(stop, made.run)


class Hiding(MemoryStore):
    """Leaves the last log out of a listing."""

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        rows = list(super().list(prefix, after=after, tails=tails))
        return iter(rows[:-1] if prefix.endswith("many-") else rows)


class Aging(MemoryStore):
    """Shows old tails in a listing."""

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        for name, tail in super().list(prefix, after=after, tails=tails):
            old = tail and prefix.endswith("many-")
            yield LogInfo(name, Tail(tail.size - 1, tail.run) if tail and old else tail)


@pytest.mark.parametrize(
    ("lying", "only", "found"),
    [
        (Losing, "append", "append"),
        (Losing, "held", "held"),
        (Losing, "many", "many"),
        (Flipping, "append", "append"),
        (Flipping, "scan", "scan"),
        (Flipping, "load", "load"),
        (Flipping, "last", "last"),
        (Shortening, "batch", "batch"),
        (Cutting, "fork", "fork"),
        (Hiding, "list", "list"),
        (Aging, "tails", "tails"),
    ],
)
def test_a_store_that_lies_is_found_out(lying: type[MemoryStore], only: str, found: str) -> None:
    store = lying()
    with pytest.raises(StateStoreError, match="what was read is not what was written") as caught:
        run(store, replace(SMALL, records=12, rounds=1), only=[only])
    assert caught.value.facts["operation"] == found
    assert list(store.list()) == []


def test_nothing_is_left_and_no_other_log_is_touched(tmp_path: Path) -> None:
    with LocalStore(tmp_path / "state", sync="never") as store:
        for log in ("a", "bench-", "bench-0/append", "many-000000"):
            store.append(log, b"data", at=NEW)
        before = {path: path.stat() for path in tmp_path.rglob("*.state")}
        assert run(store).left == []
        assert {path: path.stat() for path in tmp_path.rglob("*.state")} == before
        assert sorted(path.name for path in (tmp_path / "state").iterdir()) == [
            "a.state",
            "bench-.state",
            "bench-0",
            "many-000000.state",
        ]


@pytest.mark.parametrize("end", [KeyboardInterrupt, Unavailable, GeneratorExit])
def test_nothing_is_left_of_a_run_that_ends_early(end: type[BaseException]) -> None:
    store = MemoryStore()
    error = end("the disk says no") if end is Unavailable else end()
    bench = Bench(store, SMALL)

    def work() -> None:
        with bench:
            for row in bench.run():
                if row is not None and row.operation == "many":
                    assert len(list(store.list(bench.prefix))) > SMALL.logs
                    raise error

    with pytest.raises(end):
        work()
    assert bench.left == []
    assert list(store.list()) == []


def test_a_log_is_no_longer_held_when_it_is_deleted(tmp_path: Path) -> None:
    def work() -> None:
        with LocalStore(tmp_path, sync="never") as store, Bench(store, SMALL, only=["held"]) as bench:
            for _ in bench.run():
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert list(tmp_path.iterdir()) == []


def test_threads_end_when_one_of_them_fails() -> None:
    class Full(MemoryStore):
        appends = 0

        def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
            if at != NEW:
                self.appends += 1
                if log.endswith("many-000001"):
                    raise Unavailable("the disk is full")
            return super().append(log, data, at=at)

    store = Full()
    with pytest.raises(Unavailable, match="the disk is full"):
        run(store, replace(SMALL, records=10**9), only=["many"])
    assert store.appends < 10**6
    assert list(store.list()) == []


def test_answers_that_were_lost_are_no_lies() -> None:
    store = Faulty(MemoryStore(), plan={3: "lost", 5: "lost"})
    assert run(store, only=["append"]).rows[0].times == SMALL.records
    assert [step.call for step in store.trace] == ["append", "append"]


def test_a_store_that_is_only_read_refuses_at_once() -> None:
    inner = MemoryStore()
    with pytest.raises(NotSupported, match="this store is only read"):
        run(ReadOnly(inner))
    assert list(inner.list()) == []


def test_what_a_store_cannot_delete_is_told() -> None:
    class Keeping(MemoryStore):
        capabilities = replace(MemoryStore.capabilities, deletes=False)

    bench = run(Keeping(), only=["append", "fork"])
    assert bench.left == [f"3 logs are left below {bench.prefix}: this store cannot delete"]
    assert bench.describe()["left"] == bench.left


def test_what_a_store_fails_to_delete_is_told_and_the_rest_is_deleted() -> None:
    class Stubborn(MemoryStore):
        def delete(self, log: str, *, at: Tail | None = None) -> None:
            if log.endswith("/append"):
                raise Unavailable("the disk says no", log=log)
            super().delete(log, at=at)

    store = Stubborn()
    bench = run(store)
    assert [info.name for info in store.list()] == [f"{bench.prefix}append"]
    (told,) = bench.left
    assert told.startswith(f"1 log is left below {bench.prefix}: the disk says no log=")


def test_what_cannot_even_be_listed_in_the_end_is_told() -> None:
    class Gone(MemoryStore):
        def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
            if prefix.endswith("/"):
                raise Unavailable("the network is gone")
            return super().list(prefix, after=after, tails=tails)

    bench = run(Gone(), only=["append"])
    (told,) = bench.left
    assert told.startswith(f"what is below {bench.prefix} is left: it cannot be listed: the network is gone")


def test_an_interrupt_of_the_cleaning_tells_what_stays() -> None:
    class Slow(MemoryStore):
        def delete(self, log: str, *, at: Tail | None = None) -> None:
            raise KeyboardInterrupt

    bench = Bench(Slow(), SMALL, only=["append"])
    with pytest.raises(KeyboardInterrupt), bench:
        list(bench.run())
    assert bench.left == [f"1 log is left below {bench.prefix}: it was interrupted"]


def test_a_row_tells_what_follows_from_it() -> None:
    row = Row(
        operation="fork",
        item="record",
        times=4,
        items=200,
        size=1000,
        seconds=0.5,
        median=0.1,
        p10=0.1,
        p90=0.2,
        traffic=Traffic(6, 1001, 0),
    )
    told = row.describe()
    assert (told["items_per_second"], told["bytes_per_second"]) == (400, 2000)
    assert (told["requests"], told["sent"], told["received"]) == (1.5, 250.25, 0)
    assert Row(operation="held", item="record", skipped="why").describe()["items_per_second"] == 0


def test_a_watch_that_has_no_session_counts_nothing() -> None:
    bench = run(open_store("memory://bench"), watch=Watch())
    assert bench.describe()["counted"] is False
    assert {row.traffic for row in bench.rows} == {None}
