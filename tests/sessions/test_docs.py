"""``docs/sessions.md`` says what is so: its code runs and prints what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from statestore.sessions import Session, Sessions, Status, Transcript

PAGE = (Path(__file__).parents[2] / "docs" / "sessions.md").read_text(encoding="utf-8")


def test_the_code_on_the_page_prints_what_the_page_shows() -> None:
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == PAGE.count("```python") == PAGE.count("```text")
    scope: dict[str, Any] = {}
    for code, output in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, scope)
        assert printed.getvalue() == output
    scope["store"].close()


def test_the_page_has_every_public_name_of_the_surface() -> None:
    surface = (Sessions, Session, Transcript)
    names = {name for one in surface for name, value in vars(one).items() if name[0] != "_" and callable(value)}
    missing = {name for name in names if f"`{name}" not in PAGE and f".{name}(" not in PAGE}
    assert not missing
    assert all(f"`{status}`" in PAGE for status in Status)
