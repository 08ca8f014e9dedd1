"""A storage that does not keep its promises is found out before anything of a log is written."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from statestore import NEW
from statestore.errors import Unavailable
from statestore_fsspec import Settings
from tests.faultproxy import Fault, FaultProxy
from tests.s3.raw import Place, asked, counted
from tests.servers import Rgw, S3Server

IGNORES = "takes the condition of an exclusive create and ignores it"


@pytest.fixture
def proxy(rgw: Rgw) -> Iterator[FaultProxy]:
    with FaultProxy(rgw.endpoint, secret_key=rgw.secret_key) as proxy:
        yield proxy


@pytest.fixture
def spot(rgw: Rgw, place: str) -> Place:
    return Place(rgw, place)


def test_a_server_that_ignores_the_condition_gets_no_byte_of_a_log(rclone):
    spot = Place(rclone, f"{rclone.new_bucket()}/root")
    with FaultProxy(rclone.endpoint) as proxy:
        store = spot.open(rclone.through(proxy))
        for _ in range(2):
            with pytest.raises(Unavailable, match=IGNORES) as caught:
                store.append("a", b"data", at=NEW)
            assert (caught.value.retry, caught.value.effect_unknown) == (False, False)
            assert "another storage" in caught.value.message
        with pytest.raises(Unavailable, match=IGNORES):
            store.maintenance.probe()
        names = counted(proxy)
    assert {name for name in names if name.split()[0] in ("create", "put", "copy")} == {"create probe"}


def test_a_server_that_forgets_the_condition_is_told_and_left_as_it_was(rgw, spot, proxy):
    proxy.inject(Fault.UNCONDITIONAL, method="PUT", times=None)
    store = spot.open(rgw.through(proxy))
    for call in (
        lambda: store.append("a", b"data", at=NEW),
        lambda: store.copy("a", "b"),
        lambda: store.delete("a"),
        lambda: store.maintenance.compact("a"),
    ):
        with pytest.raises(Unavailable, match=IGNORES):
            call()
        assert spot.keys() == []


def test_a_server_that_forgets_the_condition_among_rivals_is_told(rgw, spot, proxy):
    proxy.inject(Fault.UNCONDITIONAL, method="PUT", target="/race-", times=None)
    with pytest.raises(Unavailable, match="let several writers create one object"):
        spot.open(rgw.through(proxy)).append("a", b"data", at=NEW)
    assert spot.keys() == []


def test_a_root_that_is_moved_to_a_server_that_lies_is_not_written_to(rgw, spot, proxy):
    tail = spot.open().append("a", b"data", at=NEW)
    before = spot.tags()
    proxy.inject(Fault.UNCONDITIONAL, method="PUT", times=None)
    store = spot.open(rgw.through(proxy))
    assert store.read("a") == b"data"
    for call in (lambda: store.append("a", b"more", at=tail), lambda: store.delete("a", at=tail)):
        with pytest.raises(Unavailable, match=IGNORES):
            call()
    assert spot.tags() == before
    proxy.heal()
    assert store.append("a", b"more", at=tail).size == 8


def test_a_store_that_shall_not_try_the_storage_does_not(rgw, spot, proxy):
    store = spot.open(rgw.through(proxy), probe=False)
    store.append("a", b"data", at=NEW)
    assert asked(proxy) == [
        "get statestore",
        "create statestore",
        "get statestore",
        "list heads",
        "create data",
        "create heads",
    ]
    spot.open(rgw.through(proxy), probe=False).append("b", b"data", at=NEW)
    assert asked(proxy) == ["get statestore", "list heads", "create data", "create heads"]


@pytest.mark.parametrize(
    "fault",
    [Fault.REPLY_LOST, Fault.ERROR_AFTER, Fault.ERROR_BEFORE, Fault.DOUBLED_SECOND, Fault.CONFLICT],
    ids=lambda fault: fault.name,
)
def test_a_bad_network_is_not_taken_for_a_lie(rgw, spot, proxy, fault):
    store = spot.open(rgw.through(proxy))
    for _ in range(4):
        proxy.inject(fault, probability=0.25, times=None)
        store.maintenance.probe()
        assert [request for request in proxy.requests if request.fault]
        proxy.begin(len(proxy.requests))


def test_two_writers_may_make_one_root_at_the_same_moment(rgw, spot, proxy):
    proxy.inject(Fault.STALLED, method="PUT", target=r"statestore\.json")
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(spot.open(rgw.through(proxy), grace=7200).append, "a", b"late", at=NEW)
        proxy.wait_held()
        spot.open(grace=3600).append("b", b"data", at=NEW)
        proxy.release()
        error = late.exception(60)
    assert "another setting" in str(error)
    assert Settings.parse(spot.get("statestore.json")).grace == 3600
    assert [info.name for info in spot.open().list()] == ["b"]


def test_where_listings_come_in_another_order_names_are_sorted(seaweedfs: S3Server):
    spot = Place(seaweedfs, f"{seaweedfs.new_bucket()}/root")
    store = spot.open()
    names = sorted(["a", "a-b", "a/b", "a/b-c", "a/b/c", "a.b", "a0", "a~", "B", "b/z"])
    for name in reversed(names):
        store.append(name, name.encode(), at=NEW)
    assert not Settings.parse(spot.get("statestore.json")).sorted
    for reader in (store, spot.open()):
        assert [info.name for info in reader.list()] == names
        assert [(info.name, info.tail.size) for info in reader.list(tails=True)] == [(n, len(n)) for n in names]
        for after in ("", *names):
            assert [info.name for info in reader.list("a", after=after)] == [
                name for name in names if name > after and name.startswith("a")
            ]
        assert [reader.read(name) for name in names] == [name.encode() for name in names]
    store.delete("a/b")
    assert [info.name for info in store.list("a/")] == ["a/b-c", "a/b/c"]
    assert list(store.maintenance.check()) == []


def test_where_listings_come_in_another_order_a_log_is_read_in_its_own(seaweedfs: S3Server):
    spot = Place(seaweedfs, f"{seaweedfs.new_bucket()}/root")
    store = spot.open(windows=(64, 256))
    tail = NEW
    for number in range(12):
        tail = store.append("a", b"%032d" % number, at=tail)
    whole = b"".join(b"%032d" % number for number in range(12))
    assert store.read("a") == whole
    assert store.maintenance.compact("a") > 0
    assert store.read("a", 10, 300) == whole[10:300]
    assert store.copy("a", "b").size == len(whole)
    assert spot.open().read("b") == whole
