"""The table of file systems: what it says is so, and the page shows it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

from statestore.plugins import discover
from statestore_fsspec._table import OTHERS, ROWS, Row, load

PAGE = Path(__file__).parents[2] / "docs" / "object-storage.md"


def shown(row: Row) -> str:
    """Return a row as the page has it."""
    schemes = ", ".join(f"`{scheme}://`" for scheme in row.schemes)
    extra = f"`[{row.extra}]`" if row.extra else "what the URL needs"
    cells = (row.title, schemes, extra, f"`{row.files}`", row.creates, row.pages, row.reads, row.limits)
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("row", [*ROWS, OTHERS], ids=lambda row: row.name)
def test_each_row_stands_on_the_page(row: Row) -> None:
    assert shown(row) in PAGE.read_text().splitlines()


def test_the_page_has_no_other_rows() -> None:
    section = re.search(r"^## File systems\n(.*?)^## ", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert section
    rows = [line for line in section[1].splitlines() if line.startswith("| ")][2:]
    assert rows == [shown(row) for row in (*ROWS, OTHERS)]


def test_each_row_is_a_backend() -> None:
    [plugin] = [plugin for plugin in discover() if plugin.name == "fsspec"]
    assert plugin.error is None
    assert [(one.name, one.schemes) for one in plugin.backends] == [(row.name, row.schemes) for row in (*ROWS, OTHERS)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_row_has_an_extra_and_a_class_that_is_there(row: Row) -> None:
    assert row.extra in (metadata("statestore").get_all("Provides-Extra") or [])
    pytest.importorskip(row.files.partition(":")[0].partition(".")[0])
    assert load(row.files).__name__ == row.files.partition(":")[2]
    assert callable(load(row.opens))


@pytest.mark.parametrize(
    ("url", "package", "extra"),
    [
        ("az://container/x", "adlfs", "azure"),
        ("gs://bucket/x", "gcsfs", "gcs"),
        ("s3://bucket/x", "s3fs", "s3"),
        ("sftp://host/x", "paramiko", "sftp"),
    ],
)
def test_what_is_not_installed_is_named_with_the_command(url: str, package: str, extra: str) -> None:
    program = f"""
import sys
sys.modules[{package!r}] = None
from statestore import open_store
from statestore.errors import PluginError
try:
    open_store({url!r})
except PluginError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert f"pip install 'statestore[{extra}]'" in said
    assert f"missing={package}" in said
