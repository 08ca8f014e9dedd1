"""What was counted is what went over the wire: the same work, seen by the watch and by a proxy before a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from statestore import NEW, Store, open_store
from statestore.bench import Bench, Sizes, Traffic, watched
from tests.faultproxy import FaultProxy
from tests.http1 import Message
from tests.s3.harness import options
from tests.servers import Rgw

SMALL = Sizes(records=3, size=100, logs=2, workers=2, rounds=2, batch=3)


class Scale(FaultProxy):
    """A proxy that also adds up the bodies of the answers, as the client gets them."""

    received = 0

    async def _answer(self, *args: Any) -> Message | None:
        answer = await super()._answer(*args)
        self.received += _length(answer) if answer else 0
        return answer

    def begin(self, seed: int = 0) -> None:
        super().begin(seed)
        self.received = 0

    @property
    def seen(self) -> Traffic:
        return Traffic(len(self.requests), sum(request.sent for request in self.requests), self.received)


def _length(answer: Message) -> int:
    """Return how long a body is, without what frames its pieces."""
    whole = b"".join(answer.body)
    if answer.get("transfer-encoding").lower() != "chunked":
        return len(whole)
    length = 0
    while whole:
        size, _, rest = whole.partition(b"\r\n")
        count = int(size.split(b";")[0], 16)
        length, whole = length + count, rest[count + 2 :]
        if not count:
            break
    return length


@pytest.fixture
def scale(rgw: Rgw) -> Iterator[Scale]:
    with Scale(rgw.endpoint) as scale:
        yield scale


@pytest.fixture
def place(rgw: Rgw, scale: Scale) -> Callable[[], Store]:
    """What opens a store in a bucket, through the proxy."""
    url = f"s3://{rgw.new_bucket()}/agents"
    return lambda: open_store(url, **options(rgw.through(scale)))


def loaded(place: Callable[[], Store]) -> Callable[[], Store]:
    """Have the libraries of a storage loaded and its root made."""
    with place() as store:
        store.append("there", b"data", at=NEW)
    return place


def test_each_operation_is_counted_as_a_proxy_sees_it(place: Callable[[], Store], scale: Scale) -> None:
    loaded(place)
    with watched() as watch, place() as store, Bench(store, SMALL, watch=watch) as bench:
        scale.begin()
        rows = [row for row in bench.run() if row]
        assert watch.seen() == scale.seen
    counted = {row.operation: row.traffic for row in rows}
    assert counted.pop("held") is None
    assert all(counted.values())
    assert counted["append"] == Traffic(requests=3, sent=counted["append"].sent)
    assert rows[0].size < counted["append"].sent < rows[0].size + 3 * 100
    assert counted["scan"].requests == 2 * (2 + 4)
    assert rows[3].size < counted["scan"].received


PAGE = Path(__file__).parents[2] / "docs" / "bench.md"
