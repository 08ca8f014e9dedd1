"""The README's Python session does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()


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
    (session, _), (shown,) = blocks("python"), blocks("text")
    ran = subprocess.run([sys.executable, "-c", session], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == shown
    assert len(list((tmp_path / "state").glob("*.state"))) == 2


def test_every_page_that_is_named_is_there() -> None:
    pages = re.findall(r"\]\(([^)#]+)\)", README)
    assert pages
    assert not [page for page in pages if not (Path(__file__).parent.parent / page).is_file()]
