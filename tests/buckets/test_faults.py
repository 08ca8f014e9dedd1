"""What the network does to requests costs time and nothing else, on Google's, Microsoft's and SFTP storages too.

To Azurite and fake-gcs-server it is done request by request, in the words in which Microsoft's and Google's own
servers fail. To OpenSSH it is done message by message, to bytes that nobody can read: connections that are reset,
answers that are lost, messages that come when their client has long gone, and server processes that are killed.

STATESTORE_FAULTS=1000 in the environment tries every fault at every request of every call, and lets so many storms
rage on each; otherwise it is a sample, which differs from fault to fault.

What the emulators can't show: they fail where they are told to and no more often under load, they throttle nobody, and
each of them is one process, so that a listing can't be older than the last write.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from statestore.errors import Unavailable
from statestore_fsspec import Drive, FsspecStore, Settings
from statestore_fsspec._layout import SETTINGS as SETTINGS_KEY
from statestore_fsspec._steps import Outcome
from tests.buckets.places import PLACES, Place
from tests.proxy import Fault, Proxy
from tests.storms.aim import SFTP
from tests.storms.calls import CALLS, CHANGES, grown
from tests.storms.storm import CLIENTS, HASTY, SETTINGS, Storm, settings_of
from tests.storms.sweep import sweep

WISH = int(os.environ.get("STATESTORE_FAULTS", "0"))
FULL = WISH >= 1000
SEEDS = range(WISH) if WISH else (4, 5)
PATIENCE = 2.0  # seconds that a client waits for an answer
NEVER = (Fault.SLOW_DOWN, Fault.CONFLICT, Fault.RESET, Fault.ERROR_BEFORE)


@dataclass
class Ground:
    """A root, and the ways to it that are open already.

    Attributes:
        place: where it is.
        proxy: what does the harm.
        beside: what goes past the proxy.
        harmed: several that go through it.
    """

    place: Place
    proxy: Proxy
    beside: Drive
    harmed: list[Drive]

    def store(self, drive: Drive) -> FsspecStore:
        """Return a store with these connections; it must not be closed."""
        return FsspecStore(lambda: drive, self.place.url, probe=False, tries=6, backoff=0.005)

    def plain(self) -> FsspecStore:
        """Return a store that goes past the proxy."""
        return self.store(self.beside)

    def stricken(self) -> FsspecStore:
        """Return a store that goes through it."""
        return self.store(self.harmed[0])

    def dial(self) -> Drive:
        """Return a new way through the proxy."""
        return self.place.drive(**self.place.through(self.proxy), timeout=PATIENCE)


@contextmanager
def root(place: Place, proxy: Proxy, settings: Settings) -> Iterator[Ground]:
    """Make a root with these settings, and open the ways to it."""
    place.put(SETTINGS_KEY, settings.spell())
    ground = Ground(place, proxy, place.drive(), [])
    ground.harmed += [ground.dial() for _ in range(CLIENTS)]
    yield ground
    proxy.begin(0)
    for drive in (ground.beside, *ground.harmed):
        drive.close()


@pytest.fixture(scope="module")
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    """A root on one of the file systems, for the whole module: each test has logs of its own."""
    place: Place = PLACES[request.param](request.getfixturevalue(request.param))
    with place.proxy() as proxy, root(place, proxy, SETTINGS) as ground:
        yield ground


# ---- one fault at a time, at each request of each call ----


def chosen(*, slow: bool = False) -> list[Any]:
    """Return file systems, faults and calls."""
    cases = []
    for place, kind in sorted(PLACES.items()):
        for number, name in enumerate(CALLS):
            faults = kind.aim.sudden
            if slow:
                faults = kind.aim.slow if name in CHANGES and (FULL or name == "append") else ()
            elif not FULL:
                faults = kind.aim.often if name in CHANGES else (faults[number % len(faults)],)
            cases += [pytest.param(place, fault, name, id=f"{place}-{fault.name}-{name}") for fault in faults]
    return cases


@pytest.mark.parametrize(("ground", "fault", "name"), chosen(), indirect=["ground"])
def test_one_fault_at_any_request_changes_nothing_that_a_caller_sees(ground: Ground, fault: Fault, name: str) -> None:
    step = 1 if FULL else ground.place.aim.step
    first = 1 + sum((fault.name + name).encode()) % step
    done = sweep(ground.place.aim, ground.proxy, ground.plain, ground.stricken, fault, name, first=first, step=step)
    assert done >= 2 - CALLS[name].warm


@pytest.mark.parametrize(("ground", "fault", "name"), chosen(slow=True), indirect=["ground"])
def test_one_write_that_is_never_answered_changes_nothing_that_a_caller_sees(
    ground: Ground, fault: Fault, name: str
) -> None:
    aim = ground.place.aim
    sample = {} if FULL or aim.step == 1 else {"first": 5, "step": 60}
    assert sweep(aim, ground.proxy, ground.plain, ground.stricken, fault, name, method=aim.write, **sample) >= 1


@pytest.mark.parametrize("ground", ["sftp"], indirect=True)
@pytest.mark.parametrize("fault", SFTP.sudden if FULL else SFTP.often, ids=lambda fault: fault.name)
def test_a_connection_that_is_lost_while_it_is_made_may_be_made_again(ground: Ground, fault: Fault) -> None:
    for nth in itertools.count(1):
        drive = ground.dial()
        ground.proxy.begin(nth)
        ground.proxy.inject(fault, nth=nth)
        failure = None
        try:
            drive.fetch(SETTINGS_KEY)
        except Unavailable as error:
            failure = error
        finally:
            drive.close()
        assert failure is None or failure.retry, f"piece {nth}: {failure}"
        ground.proxy.release()
        if not any(request.fault for request in ground.proxy.requests):
            break
    assert nth > 8


# ---- what cannot be settled is said ----


@pytest.mark.parametrize(
    ("ground", "fault", "word"),
    [
        ("azure", Fault.SLOW_DOWN, "ServerBusy"),
        ("azure", Fault.CONFLICT, "PendingCopyOperation"),
        ("azure", Fault.ERROR_BEFORE, "InternalError"),
        ("gcs", Fault.SLOW_DOWN, "rateLimitExceeded"),
        ("gcs", Fault.CONFLICT, "conflict"),
        ("gcs", Fault.ERROR_BEFORE, "backendError"),
    ],
    indirect=["ground"],
)
def test_a_failure_is_told_in_the_storages_own_word(ground: Ground, fault: Fault, word: str) -> None:
    ground.proxy.begin(0)
    ground.proxy.inject(fault)
    with pytest.raises(Unavailable, match=word) as caught:
        ground.harmed[0].fetch("nothing")
    assert caught.value.retry
    ground.proxy.inject(fault)
    outcome, error = ground.harmed[0].create(f"words/{fault.name}", b"data")
    assert outcome is Outcome.UNKNOWN
    assert error is not None


@pytest.mark.parametrize(
    ("ground", "fault"),
    [
        pytest.param(place, fault, id=f"{place}-{fault.name}")
        for place, kind in sorted(PLACES.items())
        for fault in NEVER
        if fault in kind.aim.sudden
    ],
    indirect=["ground"],
)
def test_an_append_that_is_never_answered_leaves_its_outcome_open(ground: Ground, fault: Fault) -> None:
    log, store, plain = f"open/{fault.name}", ground.stricken(), ground.plain()
    ground.proxy.begin(0)
    tail = grown(store, log)
    ground.proxy.inject(fault, method=ground.place.aim.write, times=None)
    with pytest.raises(Unavailable) as caught:
        store.append(log, b"third.", at=tail)
    assert (caught.value.retry, caught.value.effect_unknown) == (True, True)
    assert caught.value.__cause__ is not None
    ground.proxy.heal()
    assert plain.tail(log) == tail
    assert store.append(log, b"third.", at=tail).size == 19
    assert plain.read(log) == b"first.second.third."


# ---- storms ----


@pytest.mark.parametrize("ground", sorted(PLACES), indirect=True)
@pytest.mark.parametrize("seed", SEEDS)
def test_four_writers_in_a_storm_lose_nothing_that_was_acknowledged(ground: Ground, seed: int) -> None:
    with ExitStack() as stack:
        place, proxy = ground.place, ground.proxy
        if settings_of(seed) is HASTY:
            ground = stack.enter_context(root(type(place)(place.server), proxy, HASTY))
        clients = [ground.store(drive) for drive in ground.harmed]
        Storm(seed, ground.place, place.aim, proxy, clients, ground.plain()).rage()
