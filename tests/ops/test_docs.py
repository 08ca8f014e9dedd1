"""The page of operators has every call, every member of what comes back, and the format every kind of record."""

from __future__ import annotations

import inspect
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from statestore.ops import Detail, Operator, PendingInput, Source, Summary, SyncOperator
from statestore.ops._markers import KINDS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "operator.md").read_text(encoding="utf-8")


def calls(kind: type) -> dict[str, inspect.Signature]:
    return {name: inspect.signature(call) for name, call in vars(kind).items() if name[0] != "_" and callable(call)}


def test_the_page_has_every_call_with_its_arguments() -> None:
    listed = dict(re.findall(r"^\| `(\w+)\((.*)\)` \|", PAGE.partition("## The calls")[2], re.MULTILINE))
    listed = {name: re.findall(r"(\w+)(?:=[^,]*)?(?:, |$)", arguments) for name, arguments in listed.items()}
    there = {name: list(signature.parameters)[1:] for name, signature in calls(Operator).items()}
    assert {name: listed[name] for name in there} == there


def test_the_face_for_scripts_has_the_same_calls() -> None:
    def shape(signature: inspect.Signature) -> list[Any]:
        return [(each.name, each.kind, each.default) for each in signature.parameters.values()]

    there = {name: shape(signature) for name, signature in calls(Operator).items()}
    there["close"] = there.pop("aclose")
    assert {name: shape(signature) for name, signature in calls(SyncOperator).items()} == there


@pytest.mark.parametrize(
    ("model", "inherited"), [(Summary, set()), (Detail, set(Summary.model_fields)), (PendingInput, set())]
)
def test_the_page_has_every_member(model: Any, inherited: set[str]) -> None:
    (row,) = re.findall(rf"^\| `{model.__name__}` \| (.*) \|$", PAGE, re.MULTILINE)
    listed = [name for name in re.findall(r"`(\w+)`", row) if name != "Summary"]
    assert listed == [name for name in model.model_fields if name not in inherited]


def test_the_format_has_every_kind_of_marker() -> None:
    page = (DOCS / "format.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(ops\.\w+)` \|", page, re.MULTILINE) == list(KINDS)


def test_a_source_has_as_many_calls_as_the_page_says() -> None:
    there = [name for name, call in vars(Source).items() if name[0] != "_" and callable(call)]
    assert len(there) == 7
    assert "seven coroutines" in PAGE


def test_a_time_is_spelled_in_utc_whatever_zone_it_is_of() -> None:
    zone = timezone(timedelta(hours=2))
    row = Summary(id="a", last_event_time=datetime(2026, 9, 28, 14, 0, 0, 500_000, zone))
    assert row.model_dump(mode="json")["last_event_time"] == "2026-09-28T12:00:00.5Z"
