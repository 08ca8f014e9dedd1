"""What the network does to requests costs time and nothing else.

STATESTORE_FAULTS=1000 in the environment lets so many storms rage, and tries every fault at every request of every
call; otherwise 10 storms, of calls that change little the most common faults, and of calls of many requests each at
every second one.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from statestore import NEW, Store, open_store
from statestore.errors import Conflict, NotFound, Unavailable
from statestore_fsspec import FsspecStore, Settings, _drive
from statestore_fsspec._steps import Outcome
from tests.faultproxy import Fault, FaultProxy
from tests.s3.harness import options
from tests.s3.raw import Place, connection
from tests.servers import Rgw
from tests.storms.aim import S3
from tests.storms.calls import CALLS, CHANGES, collect, grown
from tests.storms.storm import BATCH, CLIENTS, HASTY, SETTINGS, Storm, settings_of
from tests.storms.sweep import sweep

STORMS = int(os.environ.get("STATESTORE_FAULTS", "10"))
FULL = STORMS >= 1000
LONG = ("copy", "copy one segment", "compact")  # many requests each


@pytest.fixture(scope="session")
def proxy(rgw: Rgw) -> Iterator[FaultProxy]:
    with FaultProxy(rgw.endpoint) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def files(rgw: Rgw) -> Any:
    return connection(rgw)


@pytest.fixture(scope="session")
def harmed(rgw: Rgw, proxy: FaultProxy) -> list[Any]:
    """Several connections through the proxy, which wait for an answer for a second."""
    return [connection(rgw.through(proxy), timeout=1.0) for _ in range(CLIENTS)]


def stores(spot: Place, settings: Settings, harmed: list[Any]) -> list[Store]:
    spot.put("statestore.json", settings.spell())
    return [spot.quick(one, tries=6, backoff=0.005) for one in harmed]


def quick(spot: Place, files: Any, **more: Any) -> FsspecStore:
    return spot.quick(files, tries=6, backoff=0.005, **more)


@pytest.fixture
def spot(rgw: Rgw, place: str, proxy: FaultProxy) -> Place:
    """A place with settings, and a proxy that does nothing yet."""
    proxy.begin(0)
    spot = Place(rgw, place)
    spot.put("statestore.json", SETTINGS.spell())
    return spot


# ---- one fault at a time, at each request of each call ----


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        pytest.param(fault, name, id=f"{fault.name}-{name}")
        for name in CALLS
        for fault in (S3.sudden if FULL or name in CHANGES else S3.often)
    ],
)
def test_one_fault_at_any_request_changes_nothing_that_a_caller_sees(spot, proxy, files, harmed, fault, name):
    plain, stricken = partial(quick, spot, files), partial(quick, spot, harmed[0])
    step = 1 if FULL or name not in LONG else 2
    first = 1 + sum(fault.name.encode()) % step
    assert sweep(S3, proxy, plain, stricken, fault, name, first=first, step=step) >= 2 - CALLS[name].warm


@pytest.mark.parametrize("name", ["create", "append", "delete", "copy"])
@pytest.mark.parametrize("fault", S3.slow, ids=lambda fault: fault.name)
def test_one_write_that_is_never_answered_changes_nothing_that_a_caller_sees(spot, proxy, files, harmed, fault, name):
    plain, stricken = partial(quick, spot, files), partial(quick, spot, harmed[0])
    assert sweep(S3, proxy, plain, stricken, fault, name, method="PUT") >= 1


def test_a_read_that_is_never_answered_is_sent_again(spot, proxy, files, harmed):
    grown(quick(spot, files), "a")
    proxy.inject(Fault.HANG_BEFORE, method="GET", target="/data/")
    assert quick(spot, harmed[0]).read("a") == b"first.second."


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 100 Continue\r\n\r\n"], ids=["nothing", "go on"])
def test_an_upload_that_nobody_reads_is_not_waited_for_without_end(rgw, monkeypatch, said):
    monkeypatch.setattr(_drive, "_SLOWEST", 1 << 30)
    connected, ended = threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as pool, socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)

        def accept() -> None:
            connection, _ = server.accept()
            connected.set()
            with connection:
                connection.sendall(said)
                ended.wait(60)

        pool.submit(accept)
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        store: Any = open_store("s3://bucket/x", **{**options(rgw), "endpoint_url": endpoint, "timeout": 0.3})
        try:
            while not connected.is_set():  # on a busy machine the time may be over before there is a connection
                outcome, failure = pool.submit(store._engine.drive.create, "key", bytes(16 << 20)).result(20)
        finally:
            ended.set()
        store.close()
    assert outcome is Outcome.UNKNOWN
    assert failure is not None


def test_a_page_without_keys_is_not_the_end_of_a_listing(spot, files, monkeypatch):
    grown(quick(spot, files), "a")
    call, empty = files.call_s3, {"": "one", "one": "two"}

    def call_s3(method: str, **given: Any) -> Any:
        if method == "list_objects_v2" and (token := empty.get(given.get("ContinuationToken", ""))):
            return {"IsTruncated": True, "NextContinuationToken": token}
        given.pop("ContinuationToken", None)
        return call(method, **given)

    monkeypatch.setattr(files, "call_s3", call_s3)
    store = quick(spot, files)
    assert [(info.name, info.tail.size) for info in store.list(tails=True) if info.tail] == [("a", 13)]
    assert store.read("a") == b"first.second."


def test_a_writer_that_is_told_to_slow_down_again_and_again_goes_on(spot, proxy, files, harmed):
    tail = grown(quick(spot, files), "a")
    proxy.inject(Fault.SLOW_DOWN, times=12, probability=0.7)
    assert quick(spot, harmed[0]).append("a", b"third.", at=tail).size == 19
    assert quick(spot, files).read("a") == b"first.second.third."


# ---- what cannot be settled is said ----


@pytest.mark.parametrize(
    "fault", [Fault.SLOW_DOWN, Fault.CONFLICT, Fault.RESET, Fault.ERROR_BEFORE], ids=lambda f: f.name
)
def test_an_append_that_is_never_answered_leaves_its_outcome_open(spot, proxy, files, harmed, fault):
    store = quick(spot, harmed[0])
    tail = grown(store, "a")
    proxy.inject(fault, method="PUT", times=None)
    with pytest.raises(Unavailable) as caught:
        store.append("a", b"third.", at=tail)
    assert (caught.value.retry, caught.value.effect_unknown) == (True, True)
    assert caught.value.__cause__ is not None
    proxy.heal()
    assert quick(spot, files).tail("a") == tail
    assert store.append("a", b"third.", at=tail).size == 19
    assert quick(spot, files).read("a") == b"first.second.third."


def test_an_append_that_never_went_out_has_had_no_effect(spot, proxy, files, harmed):
    tail = grown(quick(spot, files), "a")
    store = quick(spot, harmed[0])
    proxy.inject(Fault.SLOW_DOWN, method="GET", times=None)
    with pytest.raises(Unavailable) as caught:
        store.append("a", b"third.", at=tail)
    assert (caught.value.retry, caught.value.effect_unknown) == (True, False)
    assert [request for request in proxy.requests if request.method == "PUT"] == []


def test_a_connection_that_is_refused_after_a_write_leaves_its_outcome_open(rgw, spot, files):
    """The HTTP library sends a request again by itself when its old connection ends, and may find nobody there."""
    tail = grown(quick(spot, files), "a")
    with FaultProxy(rgw.endpoint) as gone:
        store = spot.quick(connection(rgw.through(gone), timeout=1.0), tries=2, backoff=0.0)
        tail = store.append("a", b"third.", at=store.tail("a"))
    with pytest.raises(Unavailable) as caught:
        store.append("a", b"fourth.", at=tail)
    assert (caught.value.retry, caught.value.effect_unknown) == (True, True)


def test_other_bytes_at_the_place_are_a_conflict_and_the_same_bytes_are_success(spot, proxy, files, harmed):
    store, other = quick(spot, harmed[0]), quick(spot, files)
    tail = grown(store, "a")
    behind = other.append("a", b"third.", at=other.tail("a"))
    proxy.clear()
    with pytest.raises(Conflict) as caught:
        store.append("a", b"other.", at=tail)
    assert (caught.value.expected, caught.value.found) == (tail, behind)
    assert [request.status for request in proxy.requests if request.method == "PUT"] == [412]
    assert store.append("a", b"third.", at=tail) == behind
    assert other.read("a") == b"first.second.third."


# ---- a request that comes when its writer has long been replaced ----


def stalled(proxy: FaultProxy, pool: ThreadPoolExecutor, target: str, call: Callable[[], Any]) -> Future[Any]:
    """Begin a call whose next write does not arrive before it is released."""
    proxy.inject(Fault.STALLED, method="PUT", target=target)
    future = pool.submit(call)
    proxy.wait_held()
    return future


@pytest.fixture
def patient(rgw: Rgw, proxy: FaultProxy, spot: Place) -> Store:
    """A store through the proxy that waits as long as it takes."""
    return quick(spot, connection(rgw.through(proxy), timeout=60.0))


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def test_a_late_append_does_not_reach_a_place_that_is_taken(spot, proxy, files, patient, pool):
    tail, other = grown(patient, "a"), quick(spot, files)
    late = stalled(proxy, pool, "/data/", lambda: patient.append("a", b"late.", at=tail))
    behind = other.append("a", b"third.", at=other.tail("a"))
    assert [request.answers for request in proxy.release()] == [[412]]
    with pytest.raises(Conflict) as caught:
        late.result(60)
    assert caught.value.found == behind
    assert other.read("a") == b"first.second.third."


def test_a_late_append_whose_writer_has_gone_is_there_once_or_not_at_all(spot, proxy, files, harmed):
    store, other = quick(spot, harmed[0]), quick(spot, files)
    tail = grown(store, "a")
    proxy.inject(Fault.LATE, method="PUT", times=None)
    with pytest.raises(Unavailable):
        store.append("a", b"late.", at=tail)
    proxy.heal()
    behind = other.append("a", b"third.", at=other.tail("a"))
    assert {answer for request in proxy.release() for answer in request.answers} == {412}
    assert other.tail("a") == behind
    assert other.read("a") == b"first.second.third."


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "deleted and made again"])
def test_a_late_append_does_not_reach_another_log_of_that_name(spot, proxy, files, patient, pool, again):
    tail, other = grown(patient, "a"), quick(spot, files)
    late = stalled(proxy, pool, "/data/", lambda: patient.append("a", b"late.", at=tail))
    other.delete("a")
    if again:
        other.append("a", b"x" * tail.size, at=NEW)
    assert [request.answers for request in proxy.release()] == [[412]]
    with pytest.raises(Conflict if again else NotFound):
        late.result(60)
    if again:
        assert other.read("a") == b"x" * tail.size
    else:
        assert list(other.list()) == []


def test_a_late_append_into_a_run_that_went_on_and_was_deleted_leaves_its_outcome_open(
    spot, proxy, files, patient, pool
):
    tail, other = grown(patient, "a"), quick(spot, files)
    late = stalled(proxy, pool, "/data/", lambda: patient.append("a", b"late.", at=tail))
    other.append("a", b"third.", at=other.tail("a"))
    other.delete("a")
    proxy.release()
    with pytest.raises(Unavailable) as caught:
        late.result(60)
    assert caught.value.effect_unknown


def test_a_late_append_into_a_run_that_was_collected_is_not_believed(rgw, place, proxy, files, pool):
    spot = Place(rgw, place)
    spot.put("statestore.json", HASTY.spell())
    proxy.begin(0)
    store, other = quick(spot, connection(rgw.through(proxy), timeout=60.0)), quick(spot, files)
    tail = grown(store, "a")
    late = stalled(proxy, pool, "/data/", lambda: store.append("a", b"late.", at=tail))
    other.delete("a")
    while spot.keys("data/"):
        collect(other, "a")
    assert [request.answers for request in proxy.release()] == [[200]]
    with pytest.raises(NotFound):
        late.result(60)
    assert list(other.list()) == []
    assert other.append("a", b"new", at=NEW).size == 3
    assert other.read("a") == b"new"


@pytest.mark.parametrize("target", ["/data/", "/heads/"])
def test_a_late_creation_finds_the_log_of_whoever_was_faster(spot, proxy, files, patient, pool, target):
    other = quick(spot, files)
    late = stalled(proxy, pool, target, lambda: patient.append("a", b"late.", at=NEW))
    tail = other.append("a", b"first.", at=NEW)
    proxy.release()
    with pytest.raises(Conflict) as caught:
        late.result(60)
    assert caught.value.found == tail
    assert other.read("a") == b"first."


def test_a_late_deletion_spares_what_was_appended_meanwhile(spot, proxy, files, patient, pool):
    tail, other = grown(patient, "a"), quick(spot, files)
    late = stalled(proxy, pool, "/data/", lambda: patient.delete("a", at=tail))
    other.append("a", b"third.", at=other.tail("a"))
    proxy.release()
    with pytest.raises(Conflict):
        late.result(60)
    assert other.read("a") == b"first.second.third."


def test_a_late_deletion_does_not_reach_another_log_of_that_name(spot, proxy, files, patient, pool):
    tail, other = grown(patient, "a"), quick(spot, files)
    late = stalled(proxy, pool, "/heads/", lambda: patient.delete("a", at=tail))
    with pytest.raises(NotFound):
        other.append("a", b"third.", at=tail)
    other.append("a", b"new", at=NEW)
    proxy.release()
    assert late.result(60) is None
    assert other.read("a") == b"new"


# ---- storms ----


@pytest.mark.parametrize("batch", range(0, STORMS, BATCH))
def test_four_writers_in_a_storm_lose_nothing_that_was_acknowledged(rgw, place, proxy, files, harmed, batch):
    spots = {settings: Place(rgw, f"{place}/{settings.grace:.0f}") for settings in (SETTINGS, HASTY)}
    clients = {settings: stores(spots[settings], settings, harmed) for settings in spots}
    for seed in range(batch, min(batch + BATCH, STORMS)):
        settings = settings_of(seed)
        Storm(seed, spots[settings], S3, proxy, clients[settings], spots[settings].quick(files)).rage()
