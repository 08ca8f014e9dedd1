"""How the command line behaves as a whole: what it says first, how it fails, what it does to pipes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from statestore.cli.app import app

from .conftest import Run, interrupted

COMMANDS = [
    "demo",
    "ls",
    "show",
    "tail",
    "cat",
    "grep",
    "append",
    "fork",
    "diff",
    "verify",
    "repair",
    "stats",
    "compact",
    "gc",
    "sync",
    "doctor",
    "plugins",
    "conform",
    "bench",
    "new-backend",
    "import",
    "export",
    "completion",
]


def test_without_arguments_it_says_what_to_do_first(run: Run) -> None:
    ran = run()
    assert ran.status == 0
    assert "statestore demo" in ran.out


def test_every_command_is_there_with_examples_and_json(run: Run) -> None:
    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    assert [name.replace("_", "-") for name in names] == COMMANDS
    listed = run("--help").out
    for command in COMMANDS:
        assert f"\n  {command} " in listed
        told = run(command, "--help").out
        assert f"Examples:\n    statestore {command}" in told
        assert "--json" in told


def test_every_line_of_help_fits_80_columns_but_for_examples(run: Run) -> None:
    for command in COMMANDS:
        for line in run(command, "--help").out.splitlines():
            assert len(line) <= 80 or "statestore" in line


def test_version(run: Run) -> None:
    from statestore import __version__

    assert run("--version").out == f"statestore {__version__}\n"


@pytest.mark.parametrize(
    "args", [["nonsense"], ["ls"], ["ls", ".", "--nonsense"], ["ls", ".", "--limit", "0"], ["show", "."]]
)
def test_wrong_usage_is_one_line_that_says_where_help_is_and_2(run: Run, args: list[str]) -> None:
    ran = run(*args)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("error: ")
    assert "--help shows what it takes" in ran.err
    ran = run(*args, "--json")
    assert ran.error["error"] == "Usage"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["show", ".", "log", "--last", "0"], "--last is a whole number from 1 on, not '0'"),
        (["show", ".", "log", "--last", "-3"], "--last is a whole number from 1 on, not '-3'"),
        (["show", ".", "log", "--last", "ten"], "--last is a whole number from 1 on, not 'ten'"),
        (["show", ".", "log", "--last", "²"], "--last is a whole number from 1 on, not '²'"),
        (["show", ".", "log", "--last", ""], "--last is a whole number from 1 on, not ''"),
        (["ls", ".", "--limit", "1.5"], "--limit is a whole number from 1 on, not '1.5'"),
        (
            ["ls", ".", "--limit", "9223372036854775808"],
            "--limit is a whole number from 1 on of at most 64 bits, not 9223372036854775808",
        ),
        (["cat", ".", "log", "--record", "0"], "--record is a whole number from 1 on, not '0'"),
        (["append", ".", "log", "--expect", "0"], "--expect is a whole number from 1 on, not '0'"),
        (["append", ".", "log", "--exit", "one"], "--exit is a whole number, not 'one'"),
        (["append", ".", "log", "--upto", "1e3"], "--upto is a whole number, not '1e3'"),
        (
            ["append", ".", "log", "--usage", '{"input": 1.5}'],
            (
                '--usage is a JSON object such as {"input": 301, "output": 714}: '
                "whole numbers for input, output, cache_read, cache_write"
            ),
        ),
        (["fork", ".", "log", "--before", "1"], "--before is a whole number from 2 on, not '1'"),
        (["conform", ".", "--seed", "x"], "--seed is a whole number, not 'x'"),
    ],
)
def test_a_value_that_an_option_does_not_take_is_told_in_our_words(run: Run, args: list[str], told: str) -> None:
    ran = run(*args, "--json")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {told}; statestore {args[0]} --help shows what it takes\n")
    assert ran.error == {"error": "Usage", "message": told, "facts": {"command": f"statestore {args[0]}"}}


def snapshot(root: Path) -> dict[str, object]:
    """Return all that a command could change below a directory; that it was read is no change."""

    def look(path: Path) -> object:
        found = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        return found.st_ino, found.st_mode, found.st_nlink, found.st_uid, found.st_gid, found.st_mtime_ns, data

    return {str(path.relative_to(root)): look(path) for path in [root, *root.rglob("*")]}


LOOKING = {
    "ls": [["damaged"], ["damaged", "--long"], ["damaged", "--json", "--long"], ["damaged/missing"]],
    "show": [
        *([f"damaged/{log}.state"] for log in ("whole", "torn", "corrupt", "other", "empty", "missing")),
        ["damaged", "whole", "--json", "--last", "2"],
        ["missing", "log"],
    ],
    "tail": [["damaged", "whole"], ["damaged", "corrupt", "-f"], ["damaged", "missing", "-f"]],
    "cat": [["damaged", "torn"], ["damaged", "whole", "--record", "4", "--body"], ["damaged", "missing"]],
    "verify": [["damaged"], ["damaged", "torn"], ["damaged", "--json"], ["damaged", "missing"]],
    "grep": [["list", "damaged"], ["list", "damaged", "-l", "--json"], ["x", "damaged", "missing"]],
    "diff": [["damaged", "torn", "whole"], ["damaged", "corrupt", "whole", "--json"], ["damaged", "whole", "missing"]],
    "stats": [["damaged"], ["damaged", "--json"], ["damaged", "torn"], ["damaged", "missing"]],
    "gc": [["damaged"], ["damaged", "--json"]],
    "plugins": [[], ["--json"]],
    "completion": [["bash"], ["zsh", "--json"], ["tcsh"]],
}
WRITING = {"demo", "append", "fork", "repair", "compact", "sync", "conform", "bench", "doctor", "new-backend", "import"}
WRITING |= {"export"}


def test_every_command_looks_or_writes() -> None:
    assert sorted([*LOOKING, *WRITING]) == sorted(COMMANDS)


@pytest.mark.parametrize("command", LOOKING)
def test_a_command_that_looks_changes_nothing(
    run: Run, damaged: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (damaged / "empty.state").touch()
    monkeypatch.chdir(damaged.parent)
    before = snapshot(damaged.parent)
    for args in LOOKING[command]:
        ran = run(command, *args)
        assert ran.status == 0 or ran.out or ran.err.startswith("error: ")
        assert snapshot(damaged.parent) == before, args


def test_the_same_as_a_process_of_its_own(spawn: Run, vectors: Path) -> None:
    assert spawn("ls", vectors).status == 0
    assert spawn("show", vectors, "nope").status == 1
    assert spawn("nonsense").status == 2
    assert spawn().out.startswith("statestore keeps")


def test_help_loads_no_backend_and_nothing_that_shows_tables() -> None:
    code = """
import contextlib, io, sys
from statestore.cli import main
sys.argv[1:] = ["--help"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
heavy = {"pydantic", "msgspec", "rich", "statestore_local", "statestore_memory", "statestore.records", "pluggy"}
print(sorted(heavy & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert result.stdout == b"[]\n"


def test_importing_the_command_line_loads_no_command() -> None:
    code = "import sys, statestore.cli; print(sorted({'typer', 'statestore.cli.app'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("args", [["cat"], ["show"], ["show", "--json"], ["show", "--full"]], ids=" ".join)
def test_a_reader_that_goes_ends_a_command_quietly(vectors: Path, args: list[str], unbuffered: str) -> None:
    command, *options = args
    code = [sys.executable, "-P", "-m", "statestore", command, str(vectors), "session-2000", *options]
    with subprocess.Popen(
        code, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": unbuffered}
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["--help", "ls", "verify", "cat"])
def test_a_full_disk_behind_the_output_is_a_failure(vectors: Path, command: str, unbuffered: str) -> None:
    args = {"--help": [], "cat": [str(vectors), "session-12"]}.get(command, [str(vectors)])
    code = [sys.executable, "-P", "-m", "statestore", command, *args]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            code, stdout=full, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": unbuffered}
        )
    assert result.returncode == 1
    assert result.stderr == b"error: no space left on device\n"


def test_output_to_a_pipe_has_no_colour_and_does_not_depend_on_the_width(spawn: Run, vectors: Path) -> None:
    for args in (["show", vectors, "session-200"], ["plugins"]):
        wide = spawn(*args, env={"COLUMNS": "300", "FORCE_COLOR": "1", "TERM": "xterm-256color"})
        narrow = spawn(*args, env={"COLUMNS": "30", "NO_COLOR": "1"})
        assert wide.data == narrow.data
        assert b"\x1b" not in wide.data


def test_a_locale_that_lacks_a_character_gets_its_escape(spawn: Run, vectors: Path) -> None:
    ran = spawn("show", vectors, "session-12", env={"PYTHONIOENCODING": "ascii"})
    assert ran.status == 0
    assert "\\U0001f600" in ran.out


def test_a_fault_of_ours_is_told_without_raw_characters(vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("\x1b[31m evil")

    monkeypatch.setattr("statestore.plugins.open_store", broken)
    result = CliRunner().invoke(app, ["ls", str(vectors)])
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "please report it" in result.stderr
    assert "\x1b" not in result.stderr


def test_a_plugin_that_fails_to_open_fails_by_its_name(run: Run) -> None:
    ran = run("ls", "nosuch://place", "--json")
    assert ran.status == 1
    assert ran.error["error"] == "PluginError"
    assert ran.error["facts"]["scheme"] == "nosuch"


def test_a_url_is_a_store_too(run: Run, vectors: Path) -> None:
    assert run("ls", vectors.as_uri()).out == run("ls", vectors).out
    assert run("show", vectors.as_uri(), "session-12").out == run("show", vectors, "session-12").out
    assert run("show", f"{vectors.as_uri()}/session-12.state").status == 2


def test_an_interrupt_ends_a_command_quietly_with_130(vectors: Path) -> None:
    # It is in the midst of its work: more is to come than a pipe holds.
    assert interrupted("show", vectors, "session-2000", "--json") == 130
