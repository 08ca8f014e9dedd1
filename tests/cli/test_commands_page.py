"""``docs/commands.md`` is held to the code: its commands, its options, its examples, its JSON."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from statestore.cli.app import app

from .conftest import Run, on_a_terminal, plain

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
SECTIONS = {
    section.partition("\n")[0]: section for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
}
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


def test_the_page_has_a_section_for_each_command_in_the_order_of_the_help() -> None:
    assert list(SECTIONS) == ["What holds for all", *COMMANDS]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_section_lists_the_options_that_the_command_has(command: str) -> None:
    listed = re.findall(r"^\| `(--[a-z-]+)` \|", SECTIONS[command], re.MULTILINE)
    options = [param.opts[0] for param in COMMANDS[command].params if param.param_type_name == "option"]
    assert listed == [option for option in options if option != "--help"]


def test_each_example_prints_what_the_page_shows(
    run: Run, vectors: Path, damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def printed(line: str) -> str:
        if set(line) & set("|;>&"):
            return subprocess.run(["bash", "-c", shell + line], capture_output=True, text=True).stdout
        return run(*shlex.split(line)[1:]).out

    monkeypatch.chdir(vectors.parent)
    shell = f'statestore() {{ "{sys.executable}" -P -m statestore "$@"; }}\n'
    (vectors / "session-2000.state").unlink()
    (damaged / "other.state").unlink()
    page = PAGE.read_text()
    for where, block in re.findall(r"^```(console|terminal)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for example in re.findall(r"^\$ .*\n(?:(?!\$ ).*\n)*", block, re.MULTILINE):
            line, _, shown = example.partition("\n")
            args = shlex.split(line)[2:]
            out = plain(on_a_terminal(*args)) if where == "terminal" else printed(line[2:])
            if os.environ.get("UPDATE_SCREENS"):
                page = page.replace(example, f"{line}\n{out}", 1)
            else:
                assert out == shown, line
    if os.environ.get("UPDATE_SCREENS"):
        PAGE.write_text(page)


def keys(text: str) -> set[str]:
    return set(re.findall(r"`([a-z_]+)`", text))


def test_the_keys_of_plugins_and_of_the_demo_are_on_the_page(run: Run, spawn: Run) -> None:
    row = run("plugins", "--json").lines[0]
    named = keys(SECTIONS["plugins"])
    assert named == set(row) | set(row["backends"][0])
    (facts,) = spawn("demo", "--json").lines
    assert keys(SECTIONS["demo"]) == set(facts)
