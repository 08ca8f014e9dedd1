"""All commands, one by one, made of their help: ``python -m tests.cli.reference > docs/reference/commands.md``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from statestore.cli.app import app

HEAD = """\
# Commands, one by one { #commands }

<!-- Made by `python -m tests.cli.reference`; a test compares it with the commands. -->

What `--help` says of each. [Commands](../commands.md) has what holds for all of them, what they print, and their JSON.
"""


def _plain(text: str) -> str:
    """Return help as Markdown: what a terminal shows as it stands, and a page would take for markup, as code."""
    text = inspect.cleandoc(text.replace("\b", ""))
    paragraphs, _, examples = text.partition("Examples:\n")
    shown = paragraphs.strip().replace("<", "&lt;").replace("*", r"\*")
    if examples:
        shown += f"\n\n```console\n{inspect.cleandoc(examples).strip()}\n```"
    return shown


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;")


def _table(head: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    if rows:
        yield f"\n| {head} | |\n| --- | --- |\n"
        yield from (f"| {name} | {_cell(told)} |\n" for name, told in rows)


def _spelled(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    names = ", ".join(f"`{name}{_cell(value)}`" for name in option.opts)
    return names + "".join(f", `{name}`" for name in option.secondary_opts)


def _section(name: str, command: Any, level: int) -> Iterator[str]:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option" and "--help" not in param.opts]
    yield f"\n{'#' * level} {name}\n\n{_plain(command.help)}\n"
    yield from _table("argument", [(f"`{each.metavar or each.name.upper()}`", each.help or "") for each in arguments])
    yield from _table("option", [(_spelled(each), each.help or "") for each in options])
    for sub in getattr(command, "commands", {}).values():
        yield from _section(f"{name} {sub.name}", sub, level + 1)


def page() -> str:
    """Return the page."""
    commands = get_command(app).commands  # type: ignore[attr-defined]
    return HEAD + "".join(part for name, command in commands.items() for part in _section(name, command, 2))


if __name__ == "__main__":
    print(page(), end="")
