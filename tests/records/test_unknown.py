"""An append whose outcome is unknown stays so, whatever its repetitions meet, until one of them settles it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from statestore import RecordLog, Store
from statestore.errors import Conflict, Held, NotFound, Unavailable
from statestore.store import Tail
from statestore.wrappers import Faulty
from statestore.wrappers._faults import Step
from statestore_memory import MemoryStore


def delete(store: Store) -> None:
    store.delete("log")


def make_again(store: Store) -> None:
    store.delete("log")
    RecordLog(store, "log").append("start", b"another", expect=1)


def append_other(store: Store) -> None:
    RecordLog(store, "log").append("message", b"other")


def nothing(store: Store) -> None:
    pass


LOST = Step(2, "lost")
NEVER = Step(2, "timeout", amount=0)
TOOK_EFFECT = Step(2, "timeout", amount=1)


class Place:
    """A log whose next append meets a fault; others do something before it is repeated, which then meets more."""

    def __init__(self, meanwhile: Callable[[Store], object], *faults: Step, knows: bool = True) -> None:
        self.inner = MemoryStore()
        steps = [*faults] if any(step.number == 3 for step in faults) else [*faults, Step(3, "slow")]
        self.log = RecordLog(Faulty(self.inner, plan=steps, sleep=lambda _: meanwhile(self.inner)), "log")
        self.log.append("start", b"first", expect=1)  # call 1; the append below is call 2, its repetitions those behind

    def append(self) -> int:
        return self.log.append("message", b"mine").n

    @property
    def bodies(self) -> list[bytes]:
        return [record.body for record in RecordLog(self.inner, "log")]


@pytest.mark.parametrize("fault", [LOST, NEVER, TOOK_EFFECT], ids=["lost", "never came", "timed out"])
@pytest.mark.parametrize(("meanwhile", "cause"), [(delete, NotFound), (make_again, Conflict)])
def test_it_stays_unknown_where_the_log_has_gone_meanwhile(fault, meanwhile, cause):
    place = Place(meanwhile, fault)
    with pytest.raises(Unavailable) as caught:
        place.append()
    assert (caught.value.effect_unknown, caught.value.retry) == (True, False)
    assert isinstance(caught.value.__cause__, cause)


@pytest.mark.parametrize("fault", [LOST, NEVER, TOOK_EFFECT], ids=["lost", "never came", "timed out"])
@pytest.mark.parametrize("later", [[Step(number, "error") for number in (3, 4, 5)], [Step(3, "throttled", amount=3)]])
def test_it_stays_unknown_where_each_repetition_fails_without_an_effect(fault, later):
    place = Place(nothing, fault, *later)
    with pytest.raises(Unavailable) as caught:
        place.append()
    assert (caught.value.effect_unknown, caught.value.retry) == (True, True)


def test_it_stays_unknown_where_somebody_holds_the_log_meanwhile():
    class Holding(MemoryStore):
        held = False

        def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
            if self.held:
                raise Held("somebody holds the log", log=log)
            return super().append(log, data, at=at)

    inner = Holding()
    log = RecordLog(Faulty(inner, plan=[LOST, Step(3, "slow")], sleep=lambda _: setattr(inner, "held", True)), "log")
    log.append("start", expect=1)
    with pytest.raises(Unavailable) as caught:
        log.append("message", b"mine")
    assert (caught.value.effect_unknown, caught.value.retry) == (True, True)
    inner.held = False
    assert [record.body for record in log] == [b"", b"mine"]


def test_the_creation_of_a_log_that_was_made_again_meanwhile_stays_unknown():
    inner = MemoryStore()
    log = RecordLog(Faulty(inner, plan=[Step(1, "lost"), Step(2, "slow")], sleep=lambda _: make_again(inner)), "log")
    with pytest.raises(Unavailable) as caught:
        log.append("start", b"first", expect=1)
    assert caught.value.effect_unknown


@pytest.mark.parametrize("meanwhile", [nothing, append_other])
def test_it_is_settled_by_its_own_bytes_at_the_place(meanwhile):
    place = Place(meanwhile, LOST)
    assert place.append() == 2
    assert place.bodies[:2] == [b"first", b"mine"]


def test_it_is_settled_by_other_bytes_at_the_place_in_the_same_run():
    place = Place(append_other, NEVER)
    assert place.append() == 3
    assert place.bodies == [b"first", b"other", b"mine"]


def test_what_was_settled_by_a_conflict_is_no_longer_unknown():
    place = Place(append_other, NEVER, Step(3, "slow"), *(Step(number, "error", "append") for number in (7, 8, 9)))
    with pytest.raises(Unavailable) as caught:
        place.append()
    assert not caught.value.effect_unknown
    assert place.bodies == [b"first", b"other"]


@pytest.mark.parametrize(("meanwhile", "error"), [(delete, NotFound), (make_again, Conflict)])
def test_a_refusal_is_told_as_it_is_where_nothing_was_unknown(meanwhile, error):
    place = Place(meanwhile, Step(2, "error"))
    with pytest.raises(error):
        place.append()
