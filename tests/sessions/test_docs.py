"""``docs/sessions.md`` has every public name."""

from __future__ import annotations

from pathlib import Path

from statestore.sessions import Session, Sessions, Status, Transcript

PAGE = (Path(__file__).parents[2] / "docs" / "sessions.md").read_text(encoding="utf-8")


def test_the_page_has_every_public_name_of_the_surface() -> None:
    surface = (Sessions, Session, Transcript)
    names = {name for one in surface for name, value in vars(one).items() if name[0] != "_" and callable(value)}
    missing = {name for name in names if f"`{name}" not in PAGE and f".{name}(" not in PAGE}
    assert not missing
    assert all(f"`{status}`" in PAGE for status in Status)
