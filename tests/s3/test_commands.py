"""``compact``, ``gc`` and ``verify`` in a bucket."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from statestore import RecordLog, draft, open_store
from statestore.cli.app import app
from statestore.store import Store
from statestore_fsspec import Settings
from tests.s3.raw import Place
from tests.servers import Rgw

Run = Callable[..., Result]


@pytest.fixture
def store(url: str) -> Store:
    store = open_store(url, windows=(64, 256))
    log = RecordLog(store, "a/log")
    log.append("message", b"0", expect=1)
    for number in range(1, 30):
        log.append("message", b"%d" % number)
    RecordLog(store, "b").append_many([draft("message", b"b")], expect=1)
    return store


def run(*args: str) -> Result:
    return CliRunner().invoke(app, args)


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_compact_leaves_fewer_pieces_and_the_same_bytes(url: str, store: Store) -> None:
    before = store.read("a/log")
    first = rows(run("compact", url, "--json"))
    assert [row["log"] for row in first] == ["a/log", "b"]
    assert first[0]["fewer"] > 15
    assert first[1]["fewer"] == 0
    assert store.read("a/log") == before
    assert rows(run("compact", url, "a/log", "--json")) == [{"log": "a/log", "fewer": 0}]
    assert run("compact", url, "none").exit_code == 1


def test_gc_shows_nothing_that_is_younger_than_the_grace_period(url: str, store: Store) -> None:
    run("compact", url)
    assert rows(run("gc", url, "--json")) == []
    assert "0 objects" in run("gc", url, "--yes").stdout


def test_gc_shows_what_would_go_and_removes_it_only_when_it_is_told_to(rgw: Rgw, place: str, url: str) -> None:
    spot = Place(rgw, place)
    spot.put("statestore.json", Settings(grace=1.0, windows=(64, 256)).spell())
    log = RecordLog(open_store(url), "a")
    for number in range(10):
        log.append("message", b"%d" % number, expect=number + 1)
    run("compact", url)
    before = spot.objects()
    for _ in range(100):
        shown = rows(run("gc", url, "--json"))
        if len(shown) >= 9:
            break
        threading.Event().wait(0.1)
    assert {row["removed"] for row in shown} == {False}
    assert "--yes does it" in run("gc", url).stdout
    assert spot.objects() == before

    done = rows(run("gc", url, "--yes", "--json"))
    assert {row["removed"] for row in done} == {True}
    assert {row["object"] for row in done} == {*before} - {*spot.keys()}
    assert {row["object"] for row in done} >= {row["object"] for row in shown}
    assert [record.body for record in RecordLog(open_store(url), "a")] == [b"%d" % number for number in range(10)]


def test_verify_finds_nothing_wrong_in_a_whole_store(url: str, store: Store) -> None:
    run("compact", url)
    done = run("verify", url)
    assert done.exit_code == 0
    assert done.stdout.startswith("ok          a/log  30 records, ")
    assert done.stdout.endswith(" bytes: 2 ok\n")


def test_verify_names_the_object_that_is_damaged(url: str, store: Store, rgw: Rgw) -> None:
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    client = rgw.client()
    key = client.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/data/b!")["Contents"][0]["Key"]
    body = client.get_object(Bucket=bucket, Key=key)["Body"].read()
    client.put_object(Bucket=bucket, Key=key, Body=body[:-2] + b"?\n")
    client.put_object(Bucket=bucket, Key=f"{prefix}/heads/notes.txt", Body=b"mine")
    done = run("verify", url, "--json")
    assert done.exit_code == 1
    damaged = [row for row in rows(done) if row.get("state") == "damaged"]
    assert {(row["log"], row["object"]) for row in damaged} == {
        ("b", key.removeprefix(f"{prefix}/")),
        ("", "heads/notes.txt"),
    }
    assert "heads/notes.txt" in run("verify", url).stdout


def test_a_store_that_needs_no_maintenance_says_so(tmp_path: Any) -> None:
    open_store(tmp_path / "here").close()
    for command in ("compact", "gc"):
        done = run(command, str(tmp_path / "here"))
        assert done.exit_code == 1
        assert "nothing to maintain" in done.stderr


def test_what_is_behind_an_error_is_told_by_its_kind_and_not_in_a_librarys_words(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESTORE_S3_ENDPOINT_URL", "http://127.0.0.1:1/secret-path")
    done = run("ls", url)
    error, cause = done.stderr.rstrip("\n").split("\n")
    assert error.startswith("error: the storage does not answer: see the cause")
    assert cause.startswith("cause: ")
    assert cause.endswith(": connection refused")
    assert "secret-path" not in cause
