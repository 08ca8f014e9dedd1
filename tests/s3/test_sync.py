"""A store that is copied to a bucket, on to another one, and back, on a real server."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from statestore import RecordLog, draft, open_store
from statestore.cli.app import app
from statestore.store import Store
from statestore.sync import Known, sync
from tests.faultproxy import FaultProxy
from tests.s3.harness import options
from tests.servers import Rgw
from tests.sync.stores import contents


@pytest.fixture
def laptop(tmp_path: Path) -> Path:
    """A local store of logs of several sizes, one of them of more than one piece."""
    store = open_store(tmp_path / "laptop", sync="never")
    for name, size, count in (("a", 10, 1), ("team/b", 1000, 30), ("large", 3 << 20, 3)):
        drafts = [draft("message", bytes([number % 256]) * size) for number in range(count)]
        RecordLog(store, name).append_many(drafts, expect=1)
    return tmp_path / "laptop"


def run(*args: object) -> Result:
    return CliRunner().invoke(app, ["sync", *map(str, args), "--json"])


def summary(result: Result) -> dict[str, Any]:
    return json.loads(result.stdout.splitlines()[-1])["summary"]


def test_a_laptop_a_bucket_another_bucket_and_back_are_byte_for_byte_the_same(
    url: str, laptop: Path, tmp_path: Path
) -> None:
    state = ("--state", tmp_path / "state")
    done = run(laptop, url, *state)
    assert (done.exit_code, summary(done)["copied"]) == (0, 3)
    second = f"{url}-{uuid.uuid4().hex}"
    assert run(url, second, "--no-state").exit_code == 0
    assert run(second, tmp_path / "back", "--no-state").exit_code == 0
    assert contents(open_store(tmp_path / "back")) == contents(open_store(laptop))
    RecordLog(open_store(laptop), "a").append("message", b"more")
    again = summary(run(laptop, url, *state))
    assert (again["copied"], again["equal"]) == (1, 2)
    assert contents(open_store(url)) == contents(open_store(laptop))


def test_a_log_that_a_stranger_appended_to_in_the_bucket_is_told(url: str, laptop: Path) -> None:
    run(laptop, url, "--no-state")
    bucket = open_store(url)
    tail = bucket.append("a", b"mine", at=bucket.tail("a"))
    RecordLog(open_store(laptop), "a").append("message", b"more")
    done = run(laptop, url, "--no-state")
    assert (done.exit_code, summary(done)["diverged"]) == (1, 1)
    assert bucket.tail("a") == tail


def test_an_unchanged_bucket_costs_no_more_than_its_listing(rgw: Rgw, bucket: str, laptop: Path) -> None:
    with FaultProxy(rgw.endpoint) as proxy:
        source = open_store(laptop)
        target: Store = open_store(f"s3://{bucket}/{uuid.uuid4().hex}", **options(rgw.through(proxy)))
        known = Known()
        list(sync(source, target, known=known))
        before = len(proxy.requests)
        assert {row.state for row in sync(source, target, known=known)} == {"equal"}
        # Heads and segments, a page each.
        assert len(proxy.requests) - before == 2


def test_a_key_pair_that_may_only_read_fails_log_by_log_and_reads(
    rgw: Rgw, url: str, laptop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(laptop, url, "--no-state")
    reader = rgw.limited(url.removeprefix("s3://").partition("/")[0], "s3:PutObject", "s3:DeleteObject")
    monkeypatch.setenv("STATESTORE_S3_KEY", reader.access_key)
    monkeypatch.setenv("STATESTORE_S3_SECRET", reader.secret_key)
    RecordLog(open_store(laptop), "a").append("message", b"more")
    done = run(laptop, url, "--no-state")
    assert (done.exit_code, summary(done)["failed"], summary(done)["equal"]) == (1, 1, 2)
    assert "s3:PutObject" in done.stdout
    assert run(url, tmp_path / "back", "--no-state").exit_code == 0
