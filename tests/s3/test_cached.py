"""A cache in front of a bucket: what is known costs the two requests that find where the log ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from statestore import NEW, Store, open_store
from statestore.errors import NotFound
from statestore.wrappers import Cached
from tests.faultproxy import FaultProxy
from tests.s3.harness import options
from tests.s3.raw import asked
from tests.servers import Rgw

FIND = ["list heads", "list data"]
SEGMENTS = [b"%06d " % number * 100 for number in range(50)]

Opener = Callable[[], Store]


@pytest.fixture
def proxy(rgw: Rgw) -> Iterator[FaultProxy]:
    with FaultProxy(rgw.endpoint) as proxy:
        yield proxy


@pytest.fixture
def reader(rgw: Rgw, place: str, proxy: FaultProxy, tmp_path: Path) -> Opener:
    """Open one more cached store, whose requests are counted from after it has read the settings."""

    def make() -> Store:
        store = open_store(f"s3://{place}", **options(rgw.through(proxy)))
        with pytest.raises(NotFound):
            store.tail("nothing")
        proxy.clear()
        return Cached(store, tmp_path / "cache", origin=f"s3://{place}")

    return make


def test_a_log_that_is_known_costs_two_requests_and_one_for_each_new_segment(rgw, place, proxy, reader):
    writer = open_store(f"s3://{place}", **options(rgw))
    tail = NEW
    for segment in SEGMENTS:
        tail = writer.append("log", segment, at=tail)
    assert reader().read("log") == b"".join(SEGMENTS)
    assert asked(proxy) == [*FIND, *["get data"] * 50]

    assert reader().read("log") == b"".join(SEGMENTS)
    assert asked(proxy) == FIND
    assert b"".join(reader().stream("log", 1000)) == b"".join(SEGMENTS)[1000:]
    assert asked(proxy) == FIND

    tail = writer.append("log", b"new", at=tail)
    store = reader()
    assert store.read("log") == b"".join([*SEGMENTS, b"new"])
    assert asked(proxy) == [*FIND, "get data"]
    assert store.read("log", tail.size - 5) == b"9 new" == store.snapshot("log").read(tail.size - 5)
    assert asked(proxy) == [*FIND, *FIND]

    writer.delete("log", at=tail)
    with pytest.raises(NotFound):
        store.read("log")
    writer.append("log", b"another", at=NEW)
    assert store.read("log") == reader().read("log") == b"another"


def test_what_was_merged_meanwhile_is_not_fetched_again(rgw, place, proxy, reader):
    writer = open_store(f"s3://{place}", windows=(100, 1000), **options(rgw))
    tail = NEW
    for number in range(100):
        tail = writer.append("log", b"%010d" % number, at=tail)
    whole = reader().read("log")
    asked(proxy)
    assert writer.maintenance
    assert writer.maintenance.compact("log")
    assert reader().read("log") == whole
    assert asked(proxy) == FIND


def test_the_url_of_a_cached_bucket_opens_what_another_store_of_that_url_has_kept(rgw, place, proxy, tmp_path):
    url, where = f"cached::s3://{place}", {"cached_directory": tmp_path / "cache"}
    with open_store(url, **where, **options(rgw)) as store:
        store.append("log", b"data", at=NEW)
        assert store.read("log") == b"data"
    with open_store(url, **where, **options(rgw.through(proxy))) as store:
        assert store.read("log") == b"data"
        assert "get data" not in asked(proxy)
    with open_store(f"{url}/below", **where, **options(rgw)) as store:
        assert list(store.list()) == []
        with pytest.raises(NotFound):
            store.read("log")
