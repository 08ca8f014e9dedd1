"""What the guides say is so: their shape, the names in them, their figures, and the links to them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from statestore_fsspec import _options
from statestore_fsspec._layout import PREAMBLE
from statestore_fsspec._table import ROWS, Row
from tests.guides.guide import FOLDER, GUIDES, Guide

ROOT = FOLDER.parents[1]
HEADINGS = [
    "Install",
    "URL",
    "Credentials",
    "Rights",
    "Try it",
    "What was verified",
    "What it costs",
    "What to watch",
]
LANGUAGES = {"sh", "python", "text", "json", "sshd"}  # run, run, compared; the others are tried in test_rights.py
LIBRARIES = {"s3": ("botocore",), "gcs": ("google.auth",), "azure": ("adlfs", "azure.identity"), "sftp": ()}

each_guide = pytest.mark.parametrize("guide", GUIDES, ids=[guide.name for guide in GUIDES])


def row(guide: Guide) -> Row:
    """Return the row of the table of file systems that a guide is about."""
    [found] = [row for row in ROWS if row.name == guide.name.partition("-")[0]]
    return found


def test_there_is_a_guide_for_each_file_system_that_many_may_write_to() -> None:
    assert {guide.name for guide in GUIDES} == {row.name for row in ROWS} | {"s3-compatible"}


@each_guide
def test_all_have_one_shape_and_are_short(guide: Guide) -> None:
    assert list(guide.sections) == HEADINGS
    assert 60 <= len(guide.text.splitlines()) <= 120


@each_guide
def test_every_block_is_run_compared_or_parsed(guide: Guide) -> None:
    assert {block.language for block in guide.blocks} <= LANGUAGES
    assert len(guide.blocks) == guide.text.count("\n```") / 2, "a block is indented, or not closed"
    assert guide.blocks[0].language == "sh"
    commands = "".join(block.text for block in guide.blocks if block.language == "sh")
    for command in ("pip install", "statestore doctor", "statestore sync ./state"):
        assert command in commands


@each_guide
def test_the_extra_is_one_of_the_package(guide: Guide) -> None:
    extras = re.findall(r"\[(\w+)\]'", guide.sections["Install"])
    assert extras == [row(guide).extra] * 2, "once from an index, once in a checkout"
    assert row(guide).extra in (metadata("statestore").get_all("Provides-Extra") or [])


@each_guide
def test_every_url_has_a_scheme_of_the_file_system(guide: Guide) -> None:
    schemes = set(re.findall(r"(?<![\w:])(?:cached::)?(\w+)://(?!s3\.example)", guide.text))
    assert schemes
    assert schemes <= set(row(guide).schemes)


@each_guide
def test_the_options_that_are_named_are_there_with_their_variables(guide: Guide) -> None:
    fields = getattr(_options, row(guide).options).model_fields
    table = guide.table("Credentials")
    assert table
    for option, variable, _ in table:
        name = option.strip("`")
        assert name in fields
        assert variable == f"`STATESTORE_{row(guide).name}_{name}`".upper()
    named = {cells[1].strip("`") for cells in table}
    assert set(re.findall(r"STATESTORE_\w+", guide.text)) == named
    for option in re.findall(r"`([a-z_]+)=", guide.text):
        assert option in fields, option


def sources(package: str) -> Iterator[Path]:
    spec = find_spec(package)
    assert spec
    for place in spec.submodule_search_locations or ():
        yield from Path(place).rglob("*.py")


@each_guide
def test_the_variables_of_others_are_read_by_their_libraries(guide: Guide) -> None:
    libraries = LIBRARIES[row(guide).name]
    for library in libraries:
        pytest.importorskip(library)
    named = set(re.findall(r"\b(?:AWS|AZURE|GOOGLE)_[A-Z_]+\b", guide.text))
    assert bool(named) == bool(libraries)
    texts = [path.read_text() for library in libraries for path in sources(library)]
    for name in named:
        # botocore also makes the names of a service's own variables from parts.
        assert any(re.search(rf"\b{name}\b", text) for text in texts), name


def rights_of(guide: Guide) -> dict[str, str]:
    """Return how the drive calls the rights, by what they are for."""
    module = import_module(row(guide).opens.partition(":")[0])
    names = getattr(module, "_RIGHTS", {})
    return {right: names.get(right, right) for right in ("list", "get", "put", "delete")}


@each_guide
def test_the_rights_are_those_that_the_errors_name(guide: Guide) -> None:
    pytest.importorskip(row(guide).files.partition(":")[0])
    rights = rights_of(guide)
    table = {who.strip("`"): set(re.findall(r"`([^`]+)`", cell)) for who, cell, *_ in guide.table("Rights")}
    more = {"delete"} if guide.name == "sftp" else set()  # whose writer may delete what he made
    assert table["reader"] == {rights["list"], rights["get"]}
    assert table["writer"] == {rights["put"]} | more
    assert table["gc"] == {rights["delete"]} - more
    spelled = re.findall(r"\bs3:[A-Z]\w+|\bstorage\.objects\.\w+", guide.text)
    assert set(spelled) <= set(rights.values())


def actions(text: str) -> set[str]:
    """Return what a policy or a role in JSON allows."""
    said: Any = json.loads(text)
    found = set(said.get("includedPermissions", said.get("DataActions", ())))
    return found | {statement["Action"] for statement in said.get("Statement", ())}


def test_the_roles_and_policies_allow_what_is_needed_and_no_more() -> None:
    blobs = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/"
    writer = ("list", "get", "put")
    for name in ("s3", "s3-compatible"):
        assert actions(Guide(name).block("json")) == set(rights_of(Guide(name)).values())
    pytest.importorskip("gcsfs")
    assert actions(Guide("gcs").block("json")) == {rights_of(Guide("gcs"))[right] for right in writer}
    # Azure's roles know no right to list apart from that to read.
    azure = {"List": "read", "Read": "read", "Write": "write"}
    assert actions(Guide("azure").block("json")) == {
        blobs + azure[rights_of(Guide("azure"))[right]] for right in writer
    }


@each_guide
def test_the_costs_are_those_of_the_page_on_object_storage(guide: Guide) -> None:
    page = (ROOT / "docs" / "object-storage.md").read_text().splitlines()
    costs = [line for line in guide.sections["What it costs"].splitlines() if line.startswith("|")]
    assert len(costs) >= 5
    assert set(costs) <= set(page)
    for size in re.findall(r"bytes\s+and (\d+) for each append", guide.text):
        assert int(size) == PREAMBLE


@each_guide
def test_it_says_that_no_real_cloud_was_touched(guide: Guide) -> None:
    verified = " ".join(guide.sections["What was verified"].split())
    assert "Not verified:" in verified
    assert "no real cloud was touched" in verified or guide.name == "sftp"


@each_guide
@pytest.mark.parametrize(("page", "below"), [("README.md", "docs/guides/"), ("docs/object-storage.md", "guides/")])
def test_each_guide_is_linked_from(page: str, below: str, guide: Guide) -> None:
    assert f"]({below}{guide.name}.md)" in (ROOT / page).read_text()
