"""The system calls that a program makes, step by step, as strace sees them.

The program says what is to be seen::

    with step("append"):
        store.append("log", b"x", at=tail)

and `trace` runs it and gives back the calls of each step. One call has many names, by architecture and C library:
here it is ``open`` and not ``openat``. What Python does of itself (memory, locks between threads, clocks) is left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
LINE = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
MARK = re.compile(r'-1, "(.*)", \d+')
PYTHON = {"brk", "clock_gettime", "futex", "getpid", "gettimeofday", "madvise", "mmap", "mprotect", "mremap", "munmap"}
SHORT = {
    "fcntl64": "fcntl",
    "getdents64": "getdents",
    "linkat": "link",
    "lstat": "stat",
    "mkdirat": "mkdir",
    "newfstatat": "stat",
    "openat": "open",
    "pread64": "pread",
    "renameat": "rename",
    "renameat2": "rename",
    "statx": "stat",
    "unlinkat": "unlink",
}


class Call(NamedTuple):
    """A system call: its name, its arguments as strace spells them, and what it returned; -1 where it failed."""

    name: str
    arguments: str
    result: int


class Calls(list[Call]):
    """What one step called."""

    @property
    def names(self) -> list[str]:
        return [call.name for call in self]

    def returned(self, *names: str) -> int:
        """Return the sum of what these calls returned: bytes, where they read or write."""
        return sum(call.result for call in self if call.name in names)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Have what is done meanwhile be seen as a step of this name; said by the program that is traced."""
    _mark(name)
    yield
    _mark("")


def _mark(text: str) -> None:
    with suppress(OSError):
        os.write(-1, text.encode())  # fails, and is seen


@cache
def _why_not() -> str:
    """Say why nothing can be traced here; "" where it can."""
    if shutil.which("strace") is None:
        return "no strace: install it with tests/services/install.sh"
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, text=True)
    return f"strace may trace nothing here: {tried.stderr.strip()}" if tried.returncode else ""


def trace(module: str, *arguments: object) -> dict[str, Calls]:
    """Run a module as a program and return the calls of its steps; skip, and say why, where that cannot be."""
    if why := _why_not():
        if os.environ.get("STATESTORE_SERVERS") == "required":
            pytest.fail(why)
        pytest.skip(why)
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", errors="replace") as file:
        program = [sys.executable, "-m", module, *map(str, arguments)]
        subprocess.run(["strace", "-qq", "-s", "99", "-o", file.name, *program], cwd=ROOT, check=True)
        return _steps(file)


def _steps(lines: Iterator[str]) -> dict[str, Calls]:
    steps: dict[str, Calls] = {}
    current = Calls()
    for line in lines:
        if (found := LINE.match(line)) is None:
            continue  # a signal, or how the process ended
        name, arguments = found["name"], found["arguments"]
        if name == "write" and (mark := MARK.fullmatch(arguments)):
            current = Calls()
            if mark[1]:
                assert mark[1] not in steps, f"two steps have one name: {mark[1]}"
                steps[mark[1]] = current
        elif name not in PYTHON:
            name = "fstat" if "AT_EMPTY_PATH" in arguments else SHORT.get(name, name)
            current.append(Call(name, arguments, int(found["result"])))
    return steps
