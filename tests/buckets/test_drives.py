"""What the protocol needs of each file system: objects created once, listed in order, read in part, any bytes.

What the emulators can't show: fake-gcs-server and Azurite are not Google's and Microsoft's servers; that theirs honour
the same conditions stands in their documentation alone. fake-gcs-server ignores ``ifGenerationMatch`` on uploads of
any kind but the one that is used here. Neither has zonal buckets or hierarchical accounts.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from statestore import NEW, open_store
from statestore_fsspec import Drive
from statestore_fsspec._engine import entries
from statestore_fsspec._settings import MAX_APPEND, Settings
from statestore_fsspec._steps import Outcome
from tests.buckets.places import AzurePlace, Place, SftpPlace
from tests.faultproxy import Fault, FaultProxy
from tests.servers import Azure

pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")

CREATED, REFUSED = (Outcome.CREATED, None), (Outcome.REFUSED, None)
KEYS = [
    "heads/a!0000000001",
    "heads/a!0000000002",
    "heads/a-b!0000000001",
    "heads/a/b!0000000001",
    "heads/ab!0000000001",
]
KEYS += [f"data/a!0000000001.0123456789abcdef/t/{n:015d}" for n in range(7)] + ["statestore.json"]


@pytest.fixture
def drive(place: Place) -> Iterator[Drive]:
    drive = place.drive()
    yield drive
    drive.close()


@pytest.fixture
def proxied(place: Place) -> Iterator[tuple[Drive, FaultProxy]]:
    """A drive whose requests can be counted and hurt."""
    if isinstance(place, SftpPlace):
        pytest.skip("not HTTP")
    server: Any = place.server  # type: ignore[attr-defined]
    with FaultProxy(server.endpoint) as proxy:
        store: Any = open_store(place.url, **server.through(proxy).options(timeout=1.0))
        yield store._engine.drive, proxy
        store.close()


def verb(place: Place) -> str:
    """Return by which method a storage is told to make an object."""
    return "PUT" if isinstance(place, AzurePlace) else "POST"


def test_an_object_is_created_once_and_stays_as_it_is(drive: Drive, place: Place) -> None:
    assert drive.create("a/b", b"first") == CREATED
    assert drive.create("a/b", b"second") == REFUSED
    assert drive.create("a/b", b"first") == REFUSED
    assert place.objects() == {"a/b": b"first"}


def test_of_racing_creations_one_wins_and_is_whole(drive: Drive, place: Place) -> None:
    other = place.drive()
    values = [bytes([n]) * (100_000 + n) for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for turn in range(4):
            key = f"race/{turn}"
            came = list(pool.map(lambda n, key=key: (drive, other)[n % 2].create(key, values[n]), range(8)))
            assert Counter(one for one, _ in came) == {Outcome.CREATED: 1, Outcome.REFUSED: 7}
            assert drive.fetch(key) == values[came.index(CREATED)]
    other.close()


def test_keys_come_in_byte_order_behind_any_key_and_below_any_prefix(drive: Drive, place: Place) -> None:
    for key in random.Random(5).sample(KEYS, len(KEYS)):
        place.put(key, key.encode())
    listed = {entry.key: entry for entry in drive.page("", "").entries}
    assert list(listed) == sorted(KEYS)
    assert all(entry.size == len(key) for key, entry in listed.items())
    assert max(entry.modified for entry in listed.values()) - min(entry.modified for entry in listed.values()) < 600
    for prefix in ("heads/", "heads/a!", "heads/a", "data/a!0000000001.", "nothing/", "heads/a/"):
        for after in ("", KEYS[1], KEYS[3], KEYS[1] + "x", "heads/a!~", "zzz"):
            found = [entry.key for entry in drive.page(prefix, after).entries]
            assert found == [key for key in sorted(KEYS) if key.startswith(prefix) and key > after], (prefix, after)


def test_a_listing_goes_on_where_its_page_ended(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (("_azure", "PAGE"), ("_azure", "_LARGEST_PAGE"), ("_gcs", "PAGE"), ("_sftp", "_PAGE")):
        monkeypatch.setattr(f"statestore_fsspec.{module}.{name}", 3)
    for key in KEYS:
        place.put(key, b"x")
    store: Any = open_store(place.url, **place.options)
    engine = store._engine
    pages = list(engine.pages(""))
    assert len(pages) > 1
    assert [entry.key for entry in entries(pages)] == sorted(KEYS)
    # Whoever has not seen the pages before gets the same.
    for after in KEYS:
        fresh = place.drive()
        assert [entry.key for entry in fresh.page("", after).entries][:1] == [
            key for key in sorted(KEYS) if key > after
        ][:1]
        fresh.close()
    store.close()


def test_a_part_of_an_object_is_what_a_slice_is(drive: Drive) -> None:
    data = random.Random(6).randbytes(100_000)
    drive.create("k", data)
    for start, stop in (
        (0, 1),
        (5, 70_000),
        (99_999, 100_000),
        (0, 100_000),
        (10, 200_000),
        (99_990, None),
        (24, None),
    ):
        assert drive.fetch("k", start, stop) == data[start:stop], (start, stop)
    assert drive.fetch("k", 100_000, 100_010) == b""
    assert drive.fetch("k") == data


LOOK_ALIKES = (
    bytes(range(256)) * 3,
    b"--==0==--",
    b"\r\n--==0==\r\n",
    b"a\n--==0==\nContent-Type: application/octet-stream\n\nb\n--==0==--\n",
    b"\r\n\r\n0\r\n\r\n",
    b"\xff\xfe\x00",
    b"\n",
    b" ",
)


def test_any_bytes_are_data(drive: Drive, place: Place) -> None:
    for number, data in enumerate(LOOK_ALIKES):
        assert drive.create(f"k{number}", data) == CREATED
        assert drive.create(f"k{number}", data) == REFUSED
        assert drive.fetch(f"k{number}") == data
    assert place.objects() == {f"k{number}": data for number, data in enumerate(LOOK_ALIKES)}


def test_the_largest_append_is_one_request_on_the_condition_and_comes_back(place: Place) -> None:
    data = os.urandom(MAX_APPEND)
    store = open_store(place.url, **{**place.options, "probe": False})
    tail = store.append("log", data, at=NEW)
    assert store.read("log") == data
    assert store.append("log", data, at=NEW) == tail
    store.close()


def test_what_is_not_there_is_an_answer(drive: Drive) -> None:
    assert drive.fetch("no/such") is None
    assert not drive.copy("no/such", "target")
    drive.remove("no/such")
    assert drive.page("", "") == ((), False)


def test_a_copy_is_the_same_and_a_removal_is_for_good(drive: Drive, place: Place) -> None:
    drive.create("from", b"data")
    assert drive.copy("from", "to/here")
    drive.remove("from")
    assert place.objects() == {"to/here": b"data"}
    assert drive.create("from", b"again") == CREATED


def test_a_copy_that_is_asked_for_again_is_there(drive: Drive, place: Place) -> None:
    drive.create("from", b"data")
    assert drive.copy("from", "to")
    assert drive.copy("from", "to")
    assert place.objects() == {"from": b"data", "to": b"data"}


def test_on_azure_a_copy_touches_nothing_that_is_there(azure: Azure) -> None:
    place = AzurePlace(azure)
    drive = place.drive()
    drive.create("from", b"data")
    drive.create("to", b"other")
    assert drive.copy("from", "to")
    assert place.objects()["to"] == b"other"
    assert not drive.copy("none", "to")
    drive.close()


def test_the_probe_finds_no_fault_and_leaves_nothing(place: Place) -> None:
    with open_store(place.url, **place.options) as store:
        store.append("log", b"data", at=NEW)
        kinds = {key.partition("/")[0] for key in place.objects()}
        assert kinds == {"statestore.json", "heads", "data"}
        assert Settings.parse(place.objects()["statestore.json"]).sorted


def test_a_call_is_one_request(proxied: tuple[Drive, FaultProxy]) -> None:
    drive, proxy = proxied
    drive.create("k", b"x" * 100)  # a client that is new may ask for more
    for call in (
        lambda: drive.create("other", bytes(3 << 20)),
        lambda: drive.create("k", b"x"),
        lambda: drive.fetch("k"),
        lambda: drive.fetch("k", 3, 9),
        lambda: drive.fetch("no"),
        lambda: drive.page("", ""),
        lambda: drive.copy("k", "copied"),
        lambda: drive.remove("k"),
    ):
        proxy.clear()
        call()
        assert len(proxy.requests) == 1, proxy.requests


@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.ERROR_BEFORE, Fault.ERROR_AFTER, Fault.HANG_AFTER])
def test_a_failure_is_not_repeated_here_and_its_outcome_is_unknown(
    proxied: tuple[Drive, FaultProxy], place: Place, fault: Fault
) -> None:
    drive, proxy = proxied
    drive.fetch("warm")
    proxy.clear()
    proxy.inject(fault, method=verb(place))
    outcome, failure = drive.create("key", b"data")
    assert outcome is Outcome.UNKNOWN
    assert failure is not None
    assert len(proxy.requests) == 1


@pytest.mark.parametrize("fault", [Fault.REPLY_LOST, Fault.ERROR_AFTER, Fault.DOUBLED_SECOND, Fault.RESET])
def test_a_lost_answer_costs_no_append_and_doubles_none(place: Place, fault: Fault) -> None:
    if isinstance(place, SftpPlace):
        pytest.skip("not HTTP")
    server: Any = place.server  # type: ignore[attr-defined]
    with (
        FaultProxy(server.endpoint) as proxy,
        open_store(place.url, **server.through(proxy).options(probe=False)) as store,
    ):
        tail = store.append("log", b"one,", at=NEW)
        proxy.inject(fault, method=verb(place))
        tail = store.append("log", b"two,", at=tail)
        assert store.append("log", b"three", at=tail).size == 13
        assert store.read("log") == b"one,two,three"
        assert any(request.fault is fault for request in proxy.requests)


def test_a_store_in_a_forked_child_has_connections_of_its_own(place: Place) -> None:
    with open_store(place.url, **place.options) as store:
        tail = store.append("log", b"parent,", at=NEW)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if store.append("log", b"child,", at=tail).size == 13 else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert store.append("log", b"parent", at=store.tail("log")).size == 19
        assert store.read("log") == b"parent,child,parent"
