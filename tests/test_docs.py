"""The pages are held to the code: what they list is what there is, and what they run prints what they show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from statestore import errors

DOCS = Path(__file__).parent.parent / "docs"
RUN = re.compile(r"^```python\n(?P<code>.*?)^```\n\n```text\n(?P<shown>.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_page_of_errors_lists_the_tree() -> None:
    listed = re.findall(r"^\| `(\w+)` \|(?: `(\w+)`)? \|", (DOCS / "errors.md").read_text(), re.MULTILINE)
    tree = {
        name: next((base.__name__ for base in kind.__bases__ if base.__module__ == "builtins"), "")
        for name in errors.__all__
        if issubclass(kind := getattr(errors, name), errors.StateStoreError) and kind is not errors.StateStoreError
    }
    assert dict(listed) == tree


@pytest.mark.parametrize("page", [page.name for page in DOCS.glob("*.md") if page.name != "sessions.md"])
def test_what_a_page_runs_prints_what_it_shows(page: str, tmp_path: Path) -> None:
    for example in RUN.finditer((DOCS / page).read_text()):
        ran = subprocess.run([sys.executable, "-c", example["code"]], cwd=tmp_path, capture_output=True, text=True)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout == example["shown"]
