"""Completion as a shell asks for it."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from statestore.cli.app import app
from statestore.cli.targets import complete_log

from .conftest import Run

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")

ASK = """
statestore() { "$PYTHON" -P -m statestore "$@"; }
env() { command env "${@:1:3}" "$PYTHON" -P -m statestore; }  # what is called is no program on the path here
eval "$(statestore completion bash)"
while IFS= read -r line; do
    IFS=$'\\t' read -ra COMP_WORDS <<< "$line"
    [[ $line == *$'\\t' ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _statestore_completion statestore
    echo "${COMPREPLY[*]}"
done
"""


def completed(*lines: tuple[object, ...]) -> list[list[str]]:
    """What bash offers for the last word of each line."""
    asked = "".join("\t".join(map(str, ("statestore", *line))) + "\n" for line in lines)
    env = os.environ | {"PYTHON": sys.executable}
    ran = subprocess.run(
        ["bash", "--norc", "-c", ASK], input=asked, capture_output=True, check=True, env=env, text=True
    )
    assert ran.stderr == ""
    return [line.split() for line in ran.stdout.split("\n")[:-1]]


def test_bash_completes_commands_options_and_names_of_logs(vectors: Path, tmp_path: Path) -> None:
    command, options, names, others, missing = completed(
        ("ver",),
        ("show", vectors, "--"),
        ("show", vectors, "session-2"),
        ("diff", vectors, "session-12", "session-12"),
        ("show", tmp_path / "missing", ""),  # then the shell offers files
    )
    assert command == ["verify"]
    assert {"--full", "--last", "--json"} <= set(options)
    assert names == ["session-200", "session-2000"]
    assert others == ["session-12"]
    assert missing == []
    assert not (tmp_path / "missing").exists()


def test_a_store_that_is_far_away_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr("statestore.cli.targets.open_for", asked.append)
    context = typer.Context(get_command(app))
    context.params = {"store": "s3://bucket"}
    assert complete_log(context, "") == []
    assert asked == []
    context.params = {"store": "here"}
    assert complete_log(context, "") == []
    assert asked == ["here"]


def test_a_person_presses_tab(tmp_path: Path) -> None:
    program = tmp_path / "statestore"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m statestore "$@"\n')
    program.chmod(0o755)
    ours, theirs = os.openpty()
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TERM": "xterm", "PS1": "> "}
    bash = ["bash", "--norc", "--noprofile", "-i"]
    with subprocess.Popen(bash, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True) as shell:
        os.close(theirs)
        os.write(ours, b'eval "$(statestore completion bash)"; echo re""ady\n')
        shown = b""

        def wait_for(text: bytes) -> None:
            nonlocal shown
            while text not in shown:
                assert select.select([ours], [], [], 60)[0], shown
                shown += os.read(ours, 65536)

        wait_for(b"ready")
        os.write(ours, b"statestore veri\t")
        wait_for(b"statestore verify")
        shell.kill()
    os.close(ours)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(run: Run, shell: str) -> None:
    script = run("completion", shell).out
    assert f"_STATESTORE_COMPLETE=complete_{shell}" in script
    assert run("completion", shell, "--json").lines == [{"shell": shell, "script": script}]


def test_another_shell_is_refused(run: Run) -> None:
    assert run("completion", "tcsh").err.startswith("error: SHELL is bash, zsh or fish, not 'tcsh'")
