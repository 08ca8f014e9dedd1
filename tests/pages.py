"""A page of documentation: its blocks, its links, and how it is run as its reader would.

All blocks of ``sh`` and ``python`` run in their order in one shell, in an empty home directory. Nothing in them is
changed but the names that each reader puts his own in place of, such as ``my-bucket``. A block of ``text`` is what the
block before it prints; ``…`` stands for what differs from run to run. A block that is not run says why, as its title:
```` ```sh title="not run: it takes an hour" ````.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
END = "\x1e"  # printed behind each block
RUN = ("sh", "python")
FENCE = re.compile(
    r"^(?P<mark>`{3,})(?P<language>[\w-]*)(?: (?P<title>[^\n]+))?\n(?P<text>.*?)^(?P=mark)$", re.DOTALL | re.MULTILINE
)


class Block(NamedTuple):
    language: str
    text: str
    title: str = ""
    section: str = ""

    @property
    def is_run(self) -> bool:
        return self.language in RUN and not self.title.startswith('title="not run: ')


@dataclass(frozen=True)
class Page:
    path: Path

    @property
    def name(self) -> str:
        """Where it is in the repository: ``docs/sync.md``."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def prose(self) -> str:
        """The text without its blocks and comments."""
        return re.sub(r"<!--.*?-->", "", FENCE.sub("", self.text), flags=re.DOTALL)

    @cached_property
    def blocks(self) -> list[Block]:
        parts = re.split(r"^## (.+)\n", self.text, flags=re.MULTILINE)
        return [
            Block(found["language"], found["text"], found["title"] or "", section)
            for section, part in zip(["", *parts[1::2]], parts[::2], strict=True)
            for found in FENCE.finditer(part)
        ]

    @cached_property
    def anchors(self) -> set[str]:
        """What a link to a part of the page may name."""
        found = set()
        for heading in re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE):
            title, _, given = heading.partition(" { #")
            found.add(given.removesuffix(" }") or re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-"))
        return found

    def links(self) -> Iterator[tuple[str, str]]:
        """Yield the page and the anchor of each link that leads to no other site; either may be empty."""
        prose = re.sub(r"`[^`\n]+`(?!\])", "", self.prose)
        for page, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", prose):
            if "://" not in page:
                yield page, anchor


PAGES = [Page(path) for path in sorted(DOCS.rglob("*.md"))]


@dataclass(frozen=True)
class Stand:
    """Where a page is run.

    Attributes:
        names: what stands on the page, and what its reader would have in its place.
        environ: what points at the server where the page means the provider's own.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)

    def put(self, text: str) -> str:
        for name, ours in self.names.items():
            text = text.replace(name, ours)
        return text


def run(page: Page, stand: Stand, home: Path, *, without: Sequence[str] = ()) -> None:
    """Run all of a page but some sections, and hold what is printed to what it shows."""
    for name in stand.names:
        assert name in page.text, f"the page has no {name} any more"
    blocks = [block for block in page.blocks if block.section not in without]
    ours = [block for block in blocks if block.is_run]
    script = ["set -euo pipefail"]
    for number, block in enumerate(ours):
        text = stand.put(block.text)
        if block.language == "python":
            (home / f"block-{number}.py").write_text(text)
            text = f"python block-{number}.py\n"
        script.append(f"{text}printf '{END}'")
    environ = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(home),
        # What is to be installed is there, with all that it needs, or pip fails: it may ask nobody.
        "PIP_NO_INDEX": "1",
        "PIP_DRY_RUN": "1",
        "PIP_QUIET": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
        **stand.environ,
    }
    ran = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=home,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    printed = ran.stdout.split(END)
    assert len(printed) == len(ours) + 1
    outputs = iter(printed)
    output = ""
    for block in blocks:
        if block.is_run:
            output = next(outputs)
        elif block.language == "text":
            shown = stand.put(block.text)
            assert re.fullmatch(re.escape(shown).replace("…", ".*"), output), (
                f"{shown}\nis shown, and printed is\n{output}"
            )
