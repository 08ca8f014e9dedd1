"""The charts in docs/charts are what the recorded runs give."""

from __future__ import annotations

import json
import tomllib
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.charts import CHARTS, RECORDED, ROOT, draw

FOLDER = ROOT / "docs" / "charts"
SVG = "{http://www.w3.org/2000/svg}"

GROWN = {"of": "records", "calls": 1, "bytes": 1, "requests": 13, "median_us": 8.0, "p25_us": 7.0, "p75_us": 9.0}
COMPARED = {"items": 10, "rounds": 5, "median_us": 8.0, "p25_us": 7.0, "p75_us": 9.0, "syncs_per_item": 1, "note": ""}
SAMPLES: dict[str, list[dict[str, Any]]] = {
    "growth.json": [
        {"store": store, "operation": operation, "size": size} | GROWN
        for store in ("local", "s3", "s3, compacted")
        for operation in ("append a record", "last(10)")
        for size in (10, 100)
    ],
    "floors.json": [
        {"name": "append_one[never-held]", "against": "os.write", "ratio": 2.4, "bar": 2.5},
        {"name": "scan", "against": "bytes.find", "ratio": 6.0, "bar": 5.0},
        {"name": "load", "against": "bytes.find", "ratio": 11.9, "bar": None},
    ],
    "peers.json": [
        {"peer": "statestore local", "durability": "always", "operation": "append", "ratio": 1.0} | COMPARED,
        {"peer": "JSON <lines>", "durability": "always", "operation": "append", "ratio": 1.5} | COMPARED,
    ],
}
SHOWN = {
    "growth.svg": ["append a record", "last(10)", "records", "local", "1 ms"],
    "requests.svg": ["append a record", "last(10)", "requests", "compacted"],
    "floors.svg": ["append one (never-held)", "2.40, bar 2.5  (os.write)", "6.00, over 5.0  (bytes.find)", "11.90"],
    "peers.svg": ["statestore local", "JSON <lines>", "synced each time", "8 µs", "8 µs  ×1.5"],
}


@pytest.fixture
def pinned() -> None:
    """Only with the matplotlib that the extra [bench] names are the same bytes drawn."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (pin,) = [each for each in extras["bench"] if each.startswith("matplotlib==")]
    try:
        found = version("matplotlib")
    except PackageNotFoundError:
        found = "none"
    if pin != f"matplotlib=={found}":
        pytest.skip(f"charts are drawn with {pin}, and here is {found}")


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_carries_the_digest_of_the_run_that_it_is_made_of(chart: str) -> None:
    source = RECORDED / CHARTS[chart][0]
    assert source.exists() == (FOLDER / chart).exists(), "run: python -m benchmarks.charts"
    if source.exists():
        told = ElementTree.parse(FOLDER / chart).getroot().findtext(f"{SVG}desc")
        digest = sha256(source.read_bytes()).hexdigest()
        assert told == f"made of {source.name} sha256:{digest}", "run: python -m benchmarks.charts"
        assert (FOLDER / chart).stat().st_size < 60_000


def test_there_are_no_other_charts() -> None:
    assert {path.name for path in FOLDER.iterdir()} <= set(CHARTS)


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_is_what_is_drawn_now(chart: str) -> None:
    if not (RECORDED / CHARTS[chart][0]).exists():
        pytest.skip(f"benchmarks/recorded/{CHARTS[chart][0]} was not recorded")
    assert draw(chart) == (FOLDER / chart).read_bytes(), "run: python -m benchmarks.charts"


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_shows_its_rows_as_text_and_is_the_same_each_time(chart: str, tmp_path: Path) -> None:
    source, _, title = CHARTS[chart]
    (tmp_path / source).write_text(json.dumps({"machine": {}, "rows": SAMPLES[source]}))
    data = draw(chart, tmp_path)
    assert data == draw(chart, tmp_path)
    root = ElementTree.fromstring(data)
    texts = {"".join(text.itertext()) for text in root.iter(f"{SVG}text")}
    assert all(any(shown in text for text in texts) for shown in SHOWN[chart]), texts
    assert root.findtext(f"{SVG}title") == title
    assert b"prefers-color-scheme: dark" in data
