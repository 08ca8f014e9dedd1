"""One guide of docs/guides: its sections, its blocks, and how they are run as its reader would.

All blocks of ``sh`` and ``python`` run in their order in one shell, in an empty home directory. Nothing in them is
changed but the names that each reader puts his own in place of, such as ``my-bucket``. A block of ``text`` is what the
block before it prints; ``…`` stands for what differs from run to run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[2] / "docs" / "guides"
END = "\x1e"  # printed behind each block
RUN = ("sh", "python")


class Block(NamedTuple):
    language: str
    text: str


@dataclass(frozen=True)
class Guide:
    name: str

    @cached_property
    def text(self) -> str:
        return (FOLDER / f"{self.name}.md").read_text()

    @cached_property
    def sections(self) -> dict[str, str]:
        """The text of each section, by its heading."""
        parts = re.split(r"^## (.+)\n", self.text, flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2], strict=True))

    @cached_property
    def blocks(self) -> list[Block]:
        return [Block(*found) for found in re.findall(r"^```(\w*)\n(.*?)^```$", self.text, re.DOTALL | re.MULTILINE)]

    def block(self, language: str) -> str:
        """Return the one block in a language."""
        [text] = [block.text for block in self.blocks if block.language == language]
        return text

    def table(self, section: str) -> list[list[str]]:
        """Return the cells of the rows of the one table of a section, without its head."""
        lines = [line for line in self.sections[section].splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


GUIDES = [Guide(path.stem) for path in sorted(FOLDER.glob("*.md"))]


@dataclass(frozen=True)
class Stand:
    """Where a guide is run.

    Attributes:
        names: what stands in the guide, and what its reader would have in its place.
        environ: what points at the server where the guide means the provider's own.
    """

    names: Mapping[str, str]
    environ: Mapping[str, str] = field(default_factory=dict)

    def put(self, text: str) -> str:
        for name, ours in self.names.items():
            text = text.replace(name, ours)
        return text


def run(guide: Guide, stand: Stand, home: Path) -> None:
    """Run all of a guide, and hold what is printed to what it shows."""
    for name in stand.names:
        assert name in guide.text, f"the guide has no {name} any more"
    ours = [block for block in guide.blocks if block.language in RUN]
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
    for block in guide.blocks:
        if block.language in RUN:
            output = next(outputs)
        elif block.language == "text":
            shown = stand.put(block.text)
            assert re.fullmatch(re.escape(shown).replace("…", ".*"), output), (
                f"{shown}\nis shown, and printed is\n{output}"
            )
