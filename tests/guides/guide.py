"""One guide of docs/guides: a page of a given shape."""

from __future__ import annotations

import re
from functools import cached_property

from tests.pages import DOCS, Page, Stand, run

__all__ = ["FOLDER", "GUIDES", "Guide", "Stand", "run"]

FOLDER = DOCS / "guides"


class Guide(Page):
    def __init__(self, name: str) -> None:
        super().__init__(FOLDER / f"{name}.md")

    @property
    def name(self) -> str:
        return self.path.stem

    @cached_property
    def sections(self) -> dict[str, str]:
        """The text of each section, by its heading."""
        parts = re.split(r"^## (.+)\n", self.text, flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2], strict=True))

    def block(self, language: str) -> str:
        """Return the one block in a language."""
        [text] = [block.text for block in self.blocks if block.language == language]
        return text

    def table(self, section: str) -> list[list[str]]:
        """Return the cells of the rows of the one table of a section, without its head."""
        lines = [line for line in self.sections[section].splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


GUIDES = [Guide(path.stem) for path in sorted(FOLDER.glob("*.md"))]
