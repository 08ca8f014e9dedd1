"""Running commands: in this process for most tests, as real processes where that is what is tested."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from statestore.cli.app import app
from statestore.errors import Unavailable
from statestore_local import LocalStore

VECTORS = Path(__file__).parents[1] / "vectors" / "statefile"


@dataclass
class Ran:
    """What a command did."""

    status: int
    data: bytes
    err: str

    @property
    def out(self) -> str:
        return self.data.decode()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.split("\n") if line]

    @property
    def error(self) -> dict[str, Any]:
        """The last line of standard error as JSON."""
        return json.loads(self.err.rstrip("\n").split("\n")[-1])


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache directory, which is the test's own."""
    place = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    return place


@pytest.fixture
def run() -> Run:
    """Run a command in this process."""

    def invoke(*args: object, stdin: bytes = b"") -> Ran:
        result = CliRunner().invoke(app, [str(arg) for arg in args], input=stdin, prog_name="statestore")
        assert "Traceback" not in result.stderr, result.stderr
        return Ran(result.exit_code, result.stdout_bytes, result.stderr)

    return invoke


@pytest.fixture
def spawn() -> Run:
    """Run a command as a process of its own."""

    def start(*args: object, stdin: bytes = b"", env: dict[str, str] | None = None) -> Ran:
        command = [sys.executable, "-P", "-m", "statestore", *map(str, args)]
        result = subprocess.run(command, input=stdin, capture_output=True, env=os.environ | (env or {}), timeout=60)
        return Ran(result.returncode, result.stdout, result.stderr.decode())

    return start


def on_a_terminal(*args: object, width: int = 80, typed: bytes = b"", status: int = 0, **env: str) -> bytes:
    """Run a command whose standard input, output and error are a terminal, and return what that was sent."""
    return python_on_a_terminal("-m", "statestore", *args, width=width, typed=typed, status=status, **env)


def python_on_a_terminal(*args: object, width: int = 80, typed: bytes = b"", status: int = 0, **env: str) -> bytes:
    """Run Python whose standard input, output and error are a terminal, and return what that was sent."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    command = [sys.executable, "-P", *map(str, args)]
    env = clean | {"TERM": "xterm-256color"} | env
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        os.write(ours, typed)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:
            pass  # a terminal whose other side has been closed ends so
    os.close(ours)
    assert process.returncode == status, shown
    return shown.replace(b"\r\n", b"\n")


def plain(shown: bytes) -> str:
    """Return what a terminal was sent as text without colours, and without what NO_COLOR leaves: bold and dim."""
    return re.sub(rb"\x1b\[[0-9;]*m", b"", shown).decode()


def lines_on_screen(shown: bytes) -> list[str]:
    """Return what stands on a terminal in the end, by what the few controls mean that a command may send."""
    lines, row, column = [""], 0, 0
    for control, text in re.findall(r"(\x1b\[[?0-9;]*[A-Za-z]|[\x00-\x1f])|([^\x00-\x1f]+)", shown.decode()):
        if text:
            lines[row] = f"{lines[row][:column]:{column}}{text}{lines[row][column + len(text) :]}"
            column += len(text)
        elif control == "\n":
            row, column = row + 1, 0
            lines += [""] * (row == len(lines))
        elif control == "\r":
            column = 0
        elif control == "\t":
            column += 8 - column % 8
        elif control == "\x1b[2K":
            lines[row] = ""
        elif control.endswith("A"):
            row -= int(control[2:-1])
        else:
            assert control.endswith("m") or control in ("\x1b[?25l", "\x1b[?25h"), control
    return lines


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """A store of the vectors' session files."""
    root = tmp_path / "sessions"
    root.mkdir()
    for file in VECTORS.glob("*.state"):
        shutil.copy(file, root)
    return root


@pytest.fixture
def unreadable(vectors: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same store, on a disk that refuses to give out session-200."""
    real = LocalStore.read

    def read(store: LocalStore, log: str, start: int = 0, stop: int | None = None) -> bytes:
        if log == "session-200":
            raise Unavailable("the disk says no", log=log)
        return real(store, log, start, stop)

    monkeypatch.setattr(LocalStore, "read", read)
    return vectors


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A store of one whole log, one with a torn end, one with damage in the middle, one that never was a log."""
    root = tmp_path / "damaged"
    root.mkdir()
    data = (VECTORS / "session-12.state").read_bytes()
    (root / "whole.state").write_bytes(data)
    (root / "torn.state").write_bytes(data[:-10])
    middle = data.index(b'{"n":6,')
    (root / "corrupt.state").write_bytes(data[:middle] + b"\x1b" + data[middle + 1 :])
    (root / "other.state").write_bytes(b"\x1b[31mhello\n")
    return root


def interrupted(*args: object) -> int:
    """Interrupt a command as soon as it has written a line, see that it ends quietly, and return its status."""
    command = [sys.executable, "-P", "-m", "statestore", *map(str, args)]
    env = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.stderr.read() == b""
    return process.returncode
