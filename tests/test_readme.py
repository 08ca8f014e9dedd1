"""The README's Python session does what it says."""

from __future__ import annotations

import re
from pathlib import Path

from tests.pages import ROOT, Page, Stand, run

PAGE = Page(ROOT / "README.md")
README = PAGE.text


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_there_are_two_commands_and_ten_lines() -> None:
    assert len(blocks("sh")) == 2
    session, _ = blocks("python")
    assert len([line for line in session.splitlines() if line.strip()]) == 10


def test_in_a_bucket_they_are_the_same_ten_lines() -> None:
    here, there = blocks("python")
    assert here.replace('"./state"', '"s3://my-bucket/agents"') == there
    assert "pip install 'statestore[s3]'" in blocks("console")[0]


def test_the_session_prints_what_the_readme_shows(tmp_path: Path) -> None:
    """Its two commands are run by ``.ci/run``, and what is in a bucket by ``tests/s3/test_readme.py``."""
    run(PAGE, Stand(), tmp_path, without=("Two commands", "The same in a bucket"))
    assert len(list((tmp_path / "state").glob("*.state"))) == 2
