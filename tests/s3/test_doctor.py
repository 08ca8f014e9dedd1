"""``doctor``: what it says of a storage that is in order, and of ones that are not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from statestore import open_store
from statestore.cli.app import app
from tests.faultproxy import Fault, FaultProxy
from tests.s3.harness import options
from tests.servers import Rgw


def doctor(monkeypatch: pytest.MonkeyPatch, server: Any, place: str, *args: str) -> Result:
    for name, value in options(server).items():
        monkeypatch.setenv(f"STATESTORE_S3_{name.upper()}", str(value))
    return CliRunner().invoke(app, ["doctor", f"s3://{place}", *args])


def rows(result: Result) -> dict[str, dict[str, Any]]:
    return {row["check"]: row for row in map(json.loads, result.stdout.splitlines())}


def objects(server: Rgw, place: str) -> list[str]:
    bucket, _, prefix = place.partition("/")
    return [row["Key"] for row in server.client().list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", ())]


def test_of_a_real_server_everything_is_as_it_should_be_and_nothing_is_left(
    rgw: Rgw, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = doctor(monkeypatch, rgw, place, "--json")
    assert told.exit_code == 0
    found = rows(told)
    assert all(row["ok"] for row in found.values())
    assert len(found) == 13
    assert objects(rgw, place) == []
    told = doctor(monkeypatch, rgw, place)
    assert "Safe: several writers" in told.stdout
    assert rgw.secret_key not in told.output


@pytest.mark.parametrize(
    ("denied", "check"),
    [("PutObject", "right to put"), ("GetObject", "right to get"), ("DeleteObject", "right to delete")],
)
def test_a_missing_right_is_named(rgw: Rgw, denied: str, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = rgw.new_bucket()
    limited = rgw.limited(bucket, f"s3:{denied}")
    told = doctor(monkeypatch, limited, f"{bucket}/x", "--json")
    assert told.exit_code == 1
    row = rows(told)[check]
    assert not row["ok"]
    assert f"s3:{denied}" in row["message"]
    left = [key for key in objects(rgw, f"{bucket}/x") if "/doctor-" in key]
    assert bool(left) == (denied == "DeleteObject")
    assert all(f"place={bucket}/{key.rpartition('/')[0]}/" in row["message"] for key in left)


def test_where_there_is_no_bucket_nothing_else_is_tried(rgw: Rgw, monkeypatch: pytest.MonkeyPatch) -> None:
    told = doctor(monkeypatch, rgw, "no-such-bucket-anywhere/x", "--json")
    assert told.exit_code == 1
    found = rows(told)
    assert list(found) == ["right to list", "right to put", "right to get", "right to delete"]
    assert not any(row["ok"] for row in found.values())
    assert doctor(monkeypatch, rgw, "no-such-bucket-anywhere/x").stdout.endswith(
        "\nNothing works there yet: mend what fails above.\n"
    )


def test_a_server_that_ignores_the_condition_is_not_safe_to_write_to(
    rgw: Rgw, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultProxy(rgw.endpoint, secret_key=rgw.secret_key) as proxy:
        proxy.inject(Fault.UNCONDITIONAL, times=None)
        told = doctor(monkeypatch, rgw.through(proxy), place)
    assert told.exit_code == 1
    assert "ignores it" in told.stdout
    assert "Not safe: writing." in told.stdout


def test_a_store_on_this_machine_is_told_by_what_it_can_do(tmp_path: Any) -> None:
    open_store(tmp_path / "here").close()
    told = CliRunner().invoke(app, ["doctor", str(tmp_path / "here")])
    assert told.exit_code == 0
    assert told.stdout.startswith("Nothing was tried: this is what such a store promises")
    assert "Safe: several writers" in told.stdout
    assert "survives the loss of power" in told.stdout
