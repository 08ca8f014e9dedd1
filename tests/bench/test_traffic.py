"""What was counted is what went over the wire: the same work, seen by the watch and by a proxy before a real server."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from statestore import NEW, Store, open_store
from statestore.bench import Bench, Sizes, Traffic, watched
from statestore.cli.app import app
from tests.dialects import AZURE, GCS
from tests.faultproxy import Fault, FaultProxy
from tests.http1 import Message
from tests.s3.harness import options
from tests.servers import Azure, Gcs, Rgw

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


@pytest.fixture(scope="module")
def url(rgw: Rgw) -> str:
    """A root in a bucket; all that it needs is loaded."""
    url = f"s3://{rgw.new_bucket()}/agents"
    with open_store(url, **options(rgw)) as store:
        store.append("there", b"data", at=NEW)
    return url


@pytest.fixture
def place(rgw: Rgw, scale: Scale, url: str) -> Callable[[], Store]:
    """What opens a store there, through the proxy."""
    return partial(open_store, url, **options(rgw.through(scale)))


def test_each_operation_is_counted_as_a_proxy_sees_it(place: Callable[[], Store], scale: Scale) -> None:
    with watched() as watch, place() as store, Bench(store, SMALL, watch=watch) as bench:
        scale.begin()
        for row in bench.run():
            assert watch.seen() == scale.seen, row
    rows = {row.operation: row for row in bench.rows}
    assert rows.pop("held").traffic is None
    appended, scanned = rows["append"].traffic, rows["scan"].traffic
    assert all(row.traffic for row in rows.values())
    assert appended
    assert scanned
    assert (appended.requests, appended.received) == (SMALL.records, 0)
    assert rows["append"].size < appended.sent
    assert (scanned.requests % SMALL.rounds, scanned.sent) == (0, 0)
    assert rows["scan"].size < scanned.received
    assert bench.describe()["counted"]
    (left,) = bench.left
    assert re.fullmatch(rf"objects of \d+ deleted logs stay below {bench.prefix} until gc removes them", left)


def test_a_request_that_is_sent_again_counts_again(place: Callable[[], Store], scale: Scale) -> None:
    with watched() as watch, place() as store:
        scale.begin()
        tail = store.append("log", b"data", at=NEW)
        before, seen = watch.seen(), scale.seen
        scale.inject(Fault.SLOW_DOWN)
        store.append("log", b"more", at=tail)
        assert watch.seen() == scale.seen
        assert (watch.seen() - before).requests == (scale.seen - seen).requests > 1


def test_sessions_that_are_made_later_are_not_watched(place: Callable[[], Store], scale: Scale) -> None:
    with watched() as watch:
        pass
    with place() as store:
        scale.begin()
        assert store.read("there") == b"data"
    assert scale.seen.requests > 0
    assert (watch.sessions, watch.seen()) == (0, Traffic())


@pytest.mark.parametrize("kind", ["gcs", "azure"])
def test_other_clouds_are_counted_too(request: pytest.FixtureRequest, kind: str) -> None:
    server: Gcs | Azure = request.getfixturevalue(kind)
    if isinstance(server, Gcs):
        url, dialect = f"gs://{server.new_bucket()}/agents", GCS
    else:
        url, dialect = f"az://{server.new_container()}/agents", AZURE
    with Scale(server.endpoint, dialect=dialect) as scale:
        with open_store(url, **server.through(scale).options()) as store:
            tail = store.append("log", b"d" * 1000, at=NEW)
        with watched() as watch, open_store(url, **server.through(scale).options()) as store:
            scale.begin()
            tail = store.append("log", b"e" * 500, at=tail)
            assert store.read("log", 990) == b"d" * 10 + b"e" * 500
            assert [info.name for info in store.list()] == ["log"]
            assert watch.seen() == scale.seen
        assert watch.seen().requests > 3
        assert watch.seen().sent > 500
        assert watch.seen().received > 510


def test_where_nothing_is_loaded_that_could_be_counted_nothing_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "aiohttp", raising=False)
    with watched() as watch, open_store("memory://watched") as store:
        store.append("log", b"data", at=NEW)
        assert "aiohttp" not in sys.modules
    assert (watch.sessions, watch.seen()) == (0, Traffic())


def test_the_command_counts_on_a_bucket_and_shows_no_credential(
    rgw: Rgw, scale: Scale, url: str, tmp_path: Path
) -> None:
    given = options(rgw.through(scale))
    args = ["bench", url, *(word for key, value in given.items() for word in ("--option", f"{key}={value}"))]
    small = ["--records", "3", "--size", "100", "--logs", "2", "--output", str(tmp_path / "run.json")]
    scale.begin()
    ran = CliRunner().invoke(app, [*args, *small])
    assert ran.exit_code == 0, ran.stderr
    assert rgw.secret_key not in ran.output + (tmp_path / "run.json").read_text()
    found = json.loads((tmp_path / "run.json").read_bytes())
    assert found["counted"]
    assert found["backend"] == "s3"
    assert found["options"]["backoff"] == 0.01
    assert not {"key", "secret", "endpoint_url"} & set(found["options"])
    asked = {row["operation"]: row["requests"] for row in found["rows"]}
    assert (asked["append"], asked["held"]) == (1, None)
    # The page shows such a run: the same lines with other numbers.
    page = (Path(__file__).parents[2] / "docs" / "bench.md").read_text()
    shown = page.partition("```text\n")[2].partition("```")[0]

    def begins(text: str) -> list[str]:
        return [re.split(r" |'", line.replace("OF ONE", "OF-ONE"))[0] for line in text.splitlines()]

    assert begins(ran.stdout) == begins(shown)
    heads = [line for line in shown.splitlines() if line.startswith("O")]
    assert [line for line in ran.stdout.splitlines() if line.startswith("O")] == heads
