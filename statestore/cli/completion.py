"""``completion``: what makes a shell complete commands, options, files and the names of logs."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from statestore.cli.screen import emit
from statestore.cli.targets import Json

__all__ = ["VARIABLE", "completion"]

_SHELLS: Final = ("bash", "zsh", "fish")
VARIABLE: Final = "_STATESTORE_COMPLETE"
"""The environment variable by which a shell asks."""


def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    json: Json = False,
) -> None:
    """Print the script by which a shell completes commands, options and names of logs.

    \b
    Examples:
      statestore completion bash > ~/.local/share/bash-completion/completions/statestore
      statestore completion zsh > ~/.zfunc/_statestore
      statestore completion fish > ~/.config/fish/completions/statestore.fish
    """
    if shell not in _SHELLS:
        raise typer.BadParameter(f"SHELL is {', '.join(_SHELLS[:-1])} or {_SHELLS[-1]}, not '{shell}'")
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="statestore", complete_var=VARIABLE, shell=shell).strip() + "\n"
    if json:
        emit({"shell": shell, "script": script})
    else:
        sys.stdout.write(script)
