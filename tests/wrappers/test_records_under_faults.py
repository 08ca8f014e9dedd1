"""The promise of a log of records, kept while answers are lost and the storage is asked too much."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from threading import Barrier, Thread

import pytest

from statestore.errors import Conflict, Held, Unavailable
from statestore.records import RecordLog, new_id
from statestore.wrappers import Faulty, Step
from statestore_memory import MemoryStore

THREADS, EACH = 4, 250
RATES = {"lost": 0.1, "timeout": 0.1, "throttled": 0.1, "error": 0.05}


@pytest.mark.parametrize("shared", [True, False], ids=["one log object", "an object for each thread"])
@pytest.mark.parametrize("seed", range(3))
def test_what_was_acknowledged_is_there_once_and_in_one_order_that_all_see(request, seed, shared):
    """A caller who is told that nothing was done does it again, and one who is told nothing certain does not."""
    space = request.node.nodeid
    store = Faulty(MemoryStore(space), seed=seed, rates=RATES)
    one = RecordLog(store, "log")
    RecordLog(store.inner, "log").append("message", b"begin", expect=1)
    begin = Barrier(THREADS)
    acknowledged: dict[bytes, int] = {}
    unknown: set[bytes] = set()
    broken: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            log = one if shared else RecordLog(store, "log")
            begin.wait()
            for number in range(EACH):
                body = b"%d:%d" % (thread, number)
                while True:
                    try:
                        acknowledged[body] = log.append("message", body).n
                    except Unavailable as error:
                        if error.effect_unknown:
                            unknown.add(body)
                            break
                    else:
                        break
        except BaseException as error:
            broken.append(error)

    threads = [Thread(target=work, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert broken == []
    assert len(acknowledged) + len(unknown) == THREADS * EACH
    assert {step.fault for step in store.trace} == set(RATES)
    read = [(record.body, record.n) for record in RecordLog(MemoryStore(space), "log")]
    assert [n for _, n in read] == list(range(1, len(read) + 1))
    places = Counter(body for body, _ in read)
    assert [body for body, times in places.items() if times > 1] == []
    assert {body: n for body, n in read if body in acknowledged} == acknowledged
    assert set(places) - set(acknowledged) - {b"begin"} <= unknown
    assert [(record.body, record.n) for record in RecordLog(MemoryStore(space), "log")] == read
    for thread in range(THREADS):
        mine = [n for body, n in read if body.startswith(b"%d:" % thread)]
        assert mine == sorted(mine)


def test_an_append_that_was_done_and_is_then_refused_is_not_said_to_be_undone():
    store = Faulty(MemoryStore(), plan=[Step(1, "lost", "append"), Step(2, "throttled", "append", 5)])
    log = RecordLog(store, "log")
    with pytest.raises(Unavailable) as caught:
        log.append("message", b"once", expect=1)
    assert [record.body for record in RecordLog(store.inner, "log")] == [b"once"]
    assert caught.value.effect_unknown


def test_an_append_that_was_never_done_is_not_said_to_be_uncertain():
    store = Faulty(MemoryStore(), plan=[Step(2, "throttled", "append", 5)])
    log = RecordLog(store, "log")
    log.append("message", b"one", expect=1)
    with pytest.raises(Unavailable) as caught:
        log.append("message", b"two")
    assert not caught.value.effect_unknown


def test_an_append_that_found_its_place_taken_after_an_uncertain_try_is_not_said_to_be_uncertain():
    plan = [Step(2, "timeout", "append", 0), *(Step(number, "error", "append") for number in (7, 8, 9))]
    store = Faulty(MemoryStore(), plan=plan)
    log = RecordLog(store, "log")
    log.append("message", b"one", expect=1)
    RecordLog(store.inner, "log").append("message", b"another's")
    with pytest.raises(Unavailable) as caught:
        log.append("message", b"two")
    assert store.trace[-1].number == 9
    assert not caught.value.effect_unknown


def test_an_append_that_was_done_and_then_meets_a_holder_is_not_said_to_be_undone():
    """The answer is lost, and before the append is repeated somebody else holds the log."""
    space = "done-and-held"
    other = MemoryStore(space)
    holds: list[AbstractContextManager[None]] = []

    def hold(_: float) -> None:
        holds.append(other.hold("log"))
        holds[-1].__enter__()

    store = Faulty(MemoryStore(space), plan=[Step(2, "lost", "append"), Step(3, "slow")], sleep=hold)
    log = RecordLog(store, "log")
    log.append("message", b"one", expect=1)
    with pytest.raises(Unavailable) as caught:
        log.append("message", b"two")
    assert [record.body for record in RecordLog(other, "log")] == [b"one", b"two"]
    assert caught.value.effect_unknown
    assert isinstance(caught.value.__cause__, Held)
    holds[-1].__exit__(None, None, None)


def test_the_recipe_for_retrying_loses_no_turn_of_five_workers():
    """The loop that docs/errors.md shows, by five workers for ten turns each, while answers are lost."""
    inner = MemoryStore("recipe")
    RecordLog(inner, "counter").append("count", b"0", expect=1)

    def is_there(log: RecordLog, mine: str) -> bool:
        while True:
            with suppress(Unavailable):
                return any(record.id == mine for record in log)

    def work(seed: int) -> None:
        log = RecordLog(Faulty(MemoryStore("recipe"), seed=seed, rates={"lost": 0.2, "throttled": 0.1}), "counter")
        turns = 0
        while turns < 10:
            mine = new_id()
            try:
                (last,) = log.last(1)
                log.append("count", b"%d" % (int(last.body) + 1), id=mine, expect=last.n + 1)
            except Conflict:
                continue
            except Unavailable as error:
                if not (error.effect_unknown and is_there(log, mine)):
                    continue
            turns += 1

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, range(5)))
    assert [record.body for record in RecordLog(inner, "counter")] == [b"%d" % n for n in range(51)]
