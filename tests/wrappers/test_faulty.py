"""Each fault does what it says, says its seed and call, and comes again."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statestore.errors import Closed, Conflict, InvalidName, NotFound, NotSupported, StateStoreError, Unavailable
from statestore.records import RecordLog
from statestore.store import NEW, Capabilities, LogInfo, Tail
from statestore.wrappers import Faulty, Step
from statestore.wrappers.faulty import FAULTS
from statestore_local import LocalStore
from statestore_memory import MemoryStore

DRAWN = {"error": 0.1, "throttled": 0.1, "lost": 0.1, "timeout": 0.1, "stale": 0.1, "slow": 0.1}

# What the calls of a program may be; each gets the store and the name of a log.
CALLS: dict[str, Callable[[Faulty, str], object]] = {
    "append": lambda store, log: store.append(log, b"x", at=NEW),
    "read": lambda store, log: store.read(log),
    "copy": lambda store, log: store.copy(log, log + "-copy"),
    "list": lambda store, log: list(store.list(tails=True)),
    "tail": lambda store, log: store.tail(log),
    "stream": lambda store, log: list(store.stream(log)),
    "boundary": lambda store, log: store.boundary(log, 0),
    "delete": lambda store, log: store.delete(log),
    "hold": lambda store, log: store.hold(log).__enter__(),
    "holder": lambda store, log: store.holder(log),
}
ON_LOCAL = {
    "flush": lambda store, log: store.flush(log),
    "cut": lambda store, log: store.cut(log, 1, at=store.inner.tail(log)),
}
programs = st.lists(st.tuples(st.sampled_from(sorted(CALLS)), st.sampled_from(["a", "ab", "b"])), max_size=60)


def play(store: Faulty, program: list[tuple[str, str]]) -> list[str]:
    """Do the calls, and return what came of each."""
    told = []
    for call, log in program:
        try:
            result = str(CALLS[call](store, log)) if call != "hold" else ""
        except StateStoreError as error:
            result = str(error)
        told.append(result)
    return told


def local(place, **more: object) -> Faulty:
    return Faulty(LocalStore(place, sync="on_flush"), **more)


@given(seed=st.integers(0, 1 << 40), program=programs)
def test_the_same_seed_and_the_same_calls_give_the_same_faults(seed, program):
    first, second = (Faulty(MemoryStore(), seed=seed, rates=DRAWN) for _ in "12")
    assert play(first, program) == play(second, program)
    assert first.trace == second.trace


@given(seed=st.integers(0, 1 << 40), program=programs)
def test_a_trace_given_as_a_plan_brings_the_same_faults_again(seed, program):
    first = Faulty(MemoryStore(), seed=seed, rates=DRAWN)
    told = play(first, program)
    again = Faulty.replay(MemoryStore(), first.trace, seed=seed)
    assert play(again, program) == told
    assert again.trace == first.trace


def test_other_seeds_give_other_faults():
    def trace(seed: int) -> tuple[Step, ...]:
        store = Faulty(MemoryStore(), seed=seed, rates=DRAWN)
        play(store, [("tail", "a")] * 100)
        return store.trace

    assert len({trace(seed) for seed in range(20)}) == 20


def test_faults_come_about_as_often_as_their_rates_say():
    store = Faulty(MemoryStore(), seed=1, rates={"lost": 0.25, "error": 0.5})
    for number in range(4000):
        with suppress(Unavailable):
            store.append(f"a{number}", b"x", at=NEW)
    counts = [sum(step.fault == fault for step in store.trace) for fault in ("lost", "error")]
    assert counts == [pytest.approx(1000, rel=0.15), pytest.approx(2000, rel=0.15)]


def test_without_rates_and_plan_nothing_happens():
    store = Faulty(MemoryStore())
    for number in range(300):
        store.append(f"a{number}", b"x", at=NEW)
    assert store.trace == ()


@pytest.mark.parametrize("call", [*CALLS, *ON_LOCAL])
@pytest.mark.parametrize("fault", ["error", "throttled"])
def test_an_error_comes_to_any_call_before_its_effect_and_says_how_to_come_again(tmp_path, call, fault):
    store = local(tmp_path, seed=7, plan=[Step(2, fault, amount=int(fault == "throttled"))])
    tail = store.append("log", b"12", at=NEW)
    act = (CALLS | ON_LOCAL)[call]
    with pytest.raises(Unavailable, match=f"fault={fault} seed=7 call=2 retry=yes$") as caught:
        act(store, "new" if call == "append" else "log")
    assert caught.value.retry
    assert not caught.value.effect_unknown
    assert store.trace == (Step(2, fault, call, int(fault == "throttled")),)
    assert list(store.inner.list(tails=True)) == [LogInfo("log", tail)]
    assert store.inner.holder("log") is None


@pytest.mark.parametrize("fault", ["lost", "timeout"])
@pytest.mark.parametrize("call", ["append", "copy", "delete", "flush", "cut"])
def test_a_lost_answer_leaves_the_effect_and_says_that_it_may(tmp_path, call, fault):
    store = local(tmp_path, seed=3, plan=[Step(2, fault, amount=int(fault == "timeout"))])
    store.append("log", b"12", at=NEW)
    with pytest.raises(Unavailable, match=r"seed=3 call=2 retry=yes effect=unknown$") as caught:
        (CALLS | ON_LOCAL)[call](store, "new" if call == "append" else "log")
    assert caught.value.retry
    assert caught.value.effect_unknown
    left = {row.name: row.tail.size for row in store.inner.list(tails=True)}
    assert (
        left
        == {
            "append": {"log": 2, "new": 1},
            "copy": {"log": 2, "log-copy": 2},
            "delete": {},
            "flush": {"log": 2},
            "cut": {"log": 1},
        }[call]
    )


@pytest.mark.parametrize("call", ["append", "copy", "delete", "flush", "cut"])
def test_a_time_out_may_have_had_no_effect_and_says_the_same(tmp_path, call):
    store = local(tmp_path, seed=3, plan=[Step(2, "timeout", amount=0)])
    tail = store.append("log", b"12", at=NEW)
    with pytest.raises(Unavailable, match=r"seed=3 call=2 retry=yes effect=unknown$"):
        (CALLS | ON_LOCAL)[call](store, "new" if call == "append" else "log")
    assert list(store.inner.list(tails=True)) == [("log", tail)]


def test_a_lost_append_is_healed_by_calling_again():
    store = Faulty(MemoryStore(), plan={1: "lost"})
    with pytest.raises(Unavailable):
        store.append("log", b"once", at=NEW)
    assert store.append("log", b"once", at=NEW).size == 4
    assert store.read("log") == b"once"


def test_what_the_inner_store_refuses_is_refused_and_not_called_lost():
    store = Faulty(MemoryStore(), plan={2: "lost"})
    store.append("log", b"one", at=NEW)
    with pytest.raises(Conflict):
        store.append("log", b"two", at=NEW)


def test_throttling_refuses_so_many_calls_one_after_the_other():
    store = Faulty(MemoryStore(), plan=[Step(2, "throttled", amount=3), Step(4, "error")])
    store.append("log", b"x", at=NEW)
    faults = []
    for _ in range(5):
        try:
            faults.append(store.read("log"))
        except Unavailable as error:
            faults.append(error.facts["fault"])
    assert faults == ["throttled", "throttled", "error", b"x", b"x"]


def test_drawn_throttling_comes_in_bursts():
    store = Faulty(MemoryStore(), seed=5, rates={"throttled": 0.05})
    play(store, [("holder", "a")] * 2000)
    numbers = {step.number for step in store.trace}
    runs = re.findall(r"1+", "".join("01"[number in numbers] for number in range(1, 2001)))
    assert {len(run) for run in runs} >= {1, 2, 3}
    assert len(numbers) == pytest.approx(200, rel=0.25)  # a burst is two calls on the average


@pytest.mark.parametrize("kept", [0, 1, 5, 9, 10])
def test_a_torn_append_leaves_the_beginning_and_a_dead_process(tmp_path, kept):
    store = local(tmp_path, seed=9, plan=[Step(2, "torn", "append", kept)])
    tail = store.append("log", b"whole.", at=NEW)
    with pytest.raises(Unavailable, match=r"seed=9 call=2 retry=no effect=unknown$"):
        store.append("log", b"0123456789", at=tail)
    for call, act in (CALLS | ON_LOCAL).items():
        with pytest.raises(Unavailable, match=r"revive.* seed=9 call=2 retry=no$"):
            act(store, "log" if call != "append" else "new")
    store.revive()
    assert store.read("log") == b"whole." + b"0123456789"[:kept]


def test_a_drawn_tear_keeps_some_and_not_all(tmp_path):
    kept = set()
    for seed in range(40):
        store = local(tmp_path / str(seed), seed=seed, plan={1: "torn"})
        with pytest.raises(Unavailable):
            store.append("log", b"1234", at=NEW)
        kept.add(store.trace[0].amount)
    assert kept == {1, 2, 3}


def test_a_torn_append_that_is_refused_kills_nobody(tmp_path):
    store = local(tmp_path, plan={2: "torn"})
    store.append("log", b"one", at=NEW)
    with pytest.raises(Conflict):
        store.append("log", b"two", at=NEW)
    assert store.read("log") == b"one"


def test_a_log_of_records_is_whole_again_after_a_tear(tmp_path):
    store = local(tmp_path, plan={3: "torn"})
    log = RecordLog(store, "log")
    log.append("message", b"one", expect=1)
    log.append("message", b"two")
    with pytest.raises(Unavailable):
        log.append("message", b"three")
    store.revive(LocalStore(tmp_path))
    log = RecordLog(store, "log")
    log.append("message", b"four")
    assert [(record.n, record.body) for record in log] == [(1, b"one"), (2, b"two"), (3, b"four")]


def test_a_dead_process_lets_go_of_what_it_held_and_ends_its_listings(tmp_path):
    store = local(tmp_path, plan={4: "torn"})
    store.append("a", b"1", at=NEW)
    with store.hold("a"):
        rows = store.list()
        assert next(rows).name == "a"
        with pytest.raises(Unavailable, match="died in an append"):
            store.append("b", b"1234", at=NEW)
        with pytest.raises(Unavailable, match="has died"):
            next(rows)
    assert store.inner.holder("a") is None


def test_a_tear_is_refused_on_a_store_that_tears_nothing():
    with pytest.raises(ValueError, match="capability cuts"):
        Faulty(MemoryStore(), plan={1: "torn"})
    with pytest.raises(ValueError, match="capability cuts"):
        Faulty(MemoryStore(), rates={"torn": 0.1})


def test_a_stale_listing_shows_what_was_there_some_calls_ago():
    store = Faulty(MemoryStore(), plan=[Step(number, "stale", amount=number - 4) for number in range(7, 12)])
    kept, grown, gone = (store.append(log, b"x", at=NEW) for log in ("kept", "grown", "gone"))
    now = store.append("grown", b"y", at=grown)  # 4
    store.delete("gone")  # 5
    made = store.append("made", b"x", at=NEW)  # 6
    assert list(store.list(tails=True)) == [("gone", gone), ("grown", grown), ("kept", kept)]  # 7: as before 4
    assert [row.name for row in store.list()] == ["gone", "grown", "kept"]  # 8
    assert [row.name for row in store.list("g", after="gone")] == ["grown"]  # 9
    assert [row.name for row in store.list("m")] == []  # 10
    assert list(store.list("g")) == [("gone", None), ("grown", None)]  # 11
    assert list(store.list(tails=True)) == [("grown", now), ("kept", kept), ("made", made)]  # fresh again


def test_a_stale_listing_goes_back_no_further_than_it_says():
    store = Faulty(MemoryStore(), plan=[Step(4, "stale", amount=1)])
    for log in "abc":
        store.append(log, b"x", at=NEW)
    assert [row.name for row in store.list()] == ["a", "b"]


def test_what_a_stale_listing_hides_is_caught_where_it_matters():
    store = Faulty(MemoryStore(), plan=[Step(4, "stale", amount=2)])
    old = store.append("grown", b"x", at=NEW)
    store.append("grown", b"y", at=old)
    store.append("made", b"x", at=NEW)
    assert list(store.list(tails=True)) == [("grown", old)]
    with pytest.raises(Conflict):
        store.append("grown", b"z", at=old)
    with pytest.raises(Conflict):
        store.append("made", b"z", at=NEW)


def test_a_store_without_runs_never_shows_an_old_tail():
    class Runless(MemoryStore):
        capabilities = Capabilities(deletes=True)

    store = Faulty(Runless(), plan=[Step(4, "stale", amount=2)])
    old = store.append("grown", b"x", at=NEW)
    tail = store.append("grown", b"y", at=old)
    store.append("made", b"x", at=NEW)
    assert list(store.list(tails=True)) == [("grown", tail)]


def test_slowness_is_asked_of_the_sleep_that_was_given_and_then_the_call_runs():
    slept: list[float] = []
    store = Faulty(MemoryStore(), plan=[Step(1, "slow", amount=250), Step(2, "slow")], sleep=slept.append)
    store.append("log", b"x", at=NEW)
    assert store.read("log") == b"x"
    assert slept[0] == 0.25
    assert 0.001 <= slept[1] <= 1
    assert store.trace[1].amount == round(slept[1] * 1000)


def in_thread(act: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Start a thread, and return it with the list that gets what it returned or raised."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(act())
        except StateStoreError as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, results


@pytest.mark.parametrize("how", ["planned", "until the context ends", "until it is resumed"])
def test_a_paused_writer_waits_while_others_go_ahead_and_is_then_refused(request, how):
    inner = MemoryStore(request.node.nodeid)
    store = Faulty(inner, plan={1: "paused"} if how == "planned" else None)
    tail = inner.append("log", b"one", at=NEW)
    with store.paused("append") if how != "planned" else nullcontext():
        thread, results = in_thread(lambda: store.append("log", b"late", at=tail))
        store.wait_paused()
        assert results == []
        assert inner.append("log", b"two", at=store.tail("log")).size == 6
        if how != "until the context ends":
            store.resume()
            thread.join(60)
            assert results
    thread.join(60)
    assert isinstance(results[0], Conflict)
    assert store.read("log") == b"onetwo"
    assert store.append("log", b"!", at=results[0].found).size == 7


def test_each_planned_pause_waits_for_its_own_end():
    store = Faulty(MemoryStore(), plan={1: "paused", 2: "paused"})
    for log in "ab":
        thread, results = in_thread(lambda log=log: store.append(log, b"x", at=NEW))
        store.wait_paused()
        assert (results, list(store.inner.list(log))) == ([], [])
        store.resume()
        thread.join(60)
        assert results == [store.inner.tail(log)]


def test_a_pause_that_is_over_is_not_taken_for_the_next_one():
    store = Faulty(MemoryStore())
    with store.paused("append"):
        thread, _ = in_thread(lambda: store.append("a", b"x", at=NEW))
        store.wait_paused()
    thread.join(60)
    with store.paused("append"), pytest.raises(TimeoutError):
        store.wait_paused(0)


def test_a_writer_whose_process_dies_while_it_is_paused_writes_nothing(tmp_path):
    store = local(tmp_path, plan={1: "paused", 2: "torn"})
    thread, results = in_thread(lambda: store.append("paused", b"x", at=NEW))
    store.wait_paused()
    with pytest.raises(Unavailable, match="died in an append"):
        store.append("torn", b"1234", at=NEW)
    store.resume()
    thread.join(60)
    assert "has died" in str(results[0])
    assert [row.name for row in store.inner.list()] == ["torn"]


def test_nothing_is_paused_but_what_was_named():
    store = Faulty(MemoryStore())
    with store.paused("append", "delete"):
        assert list(store.list()) == []
        with pytest.raises(TimeoutError):
            store.wait_paused(0)
    for wrong in ((), ("close",), ("append", "apend")):
        with pytest.raises(ValueError, match="calls that can pause"), store.paused(*wrong):
            pass


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "torn"])
def test_wrong_arguments_and_closed_stores_are_told_as_ever_and_count_as_no_call(fault):
    store = Faulty(MemoryStore(), plan={1: fault})
    wrong = (
        lambda: store.append("a", b"", at=NEW),
        lambda: store.read("a", -1),
        lambda: store.stream("a", -1),
        lambda: store.boundary("a", -1),
        lambda: store.copy("a", "b", stop=0),
    )
    for call in wrong:
        with pytest.raises(ValueError, match=r"first byte|at least one byte"):
            call()
    named = (
        *(lambda act=act: act(store, "../a") for call, act in CALLS.items() if call != "list"),
        lambda: store.copy("../a", "b"),
        lambda: store.list("../a"),
    )
    for call in named:
        with pytest.raises(InvalidName):
            call()
    for call in (lambda: store.cut("a", 0, at=NEW), lambda: store.flush("a")):
        with pytest.raises(NotSupported):
            call()
    store.close()
    for act in CALLS.values():
        with pytest.raises(Closed):
            act(store, "a")
    assert store.trace == ()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"rates": {"loss": 0.1}}, "loss"),
        ({"rates": {"paused": 0.1}}, "paused"),
        ({"rates": {"lost": 1.1}}, "probabilities"),
        ({"rates": {"lost": -0.1}}, "probabilities"),
        ({"rates": {"lost": 0.6, "error": 0.6}}, "probabilities"),
        ({"plan": {1: "loss"}}, "loss"),
        ({"plan": {0: "lost"}}, "counted from 1"),
        ({"plan": [Step(1, "stale", amount=-1)]}, "below zero"),
        ({"plan": {1: "lost"}, "rates": {"lost": 0.1}}, "not from both"),
    ],
)
def test_faults_that_cannot_be_are_refused(wrong, why):
    with pytest.raises(ValueError, match=why):
        Faulty(MemoryStore(), **wrong)


def test_a_plan_that_was_made_for_other_calls_says_so_when_it_comes_to_them():
    store = Faulty(MemoryStore(), plan=[Step(1, "lost"), Step(2, "error", "append")])
    with pytest.raises(ValueError, match="'lost' at call 1, which is tail"):
        store.tail("a")
    with pytest.raises(ValueError, match="'append error' at call 2, which is read"):
        store.read("a")
    with pytest.raises(NotFound):
        store.read("a")


def test_a_repr_tells_the_store_and_the_seed():
    assert repr(Faulty(MemoryStore("x"), seed=3)) == "Faulty(MemoryStore('x'), seed=3)"


def test_a_revived_process_has_what_its_new_store_can():
    store = Faulty(MemoryStore())
    store.revive(LocalStoreLike())
    assert store.capabilities.cuts
    assert store.tail("a") == Tail(1, "")


class LocalStoreLike(MemoryStore):
    capabilities = Capabilities(cuts=True)

    def tail(self, log: str) -> Tail:
        return Tail(1, "")
