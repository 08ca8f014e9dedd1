"""The bar: there after a while on a terminal, never on the line of anything else, gone in the end."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .conftest import lines_on_screen, python_on_a_terminal

# Each item comes only once the bar is seen; what is printed meanwhile must not share its line.
SLOW = """
import sys, time
from statestore.cli import progress, screen
progress._AFTER = 0.02
def items():
    for number in range(3):
        while sys.stderr.isatty() and not progress._shown._visible:
            time.sleep(0.005)
        yield number
for number in progress.progress(items(), "work", 3):
    screen.Screen().put(f"row {number}", " and more" * 8)
    screen.emit({"n": number})
    screen.complain(f"error {number}")
    screen.columns("a", "b")
    screen.write(b"bytes\\n")
"""
ROWS = ["row {}" + " and more" * 8, '{{"n": {}}}', "error {}", "a\tb", "bytes"]


@pytest.mark.parametrize("colour", [True, False])
def test_a_bar_is_shown_on_a_terminal_and_shares_no_line_with_what_is_printed(colour: bool) -> None:
    shown = python_on_a_terminal("-c", SLOW, width=100, **({} if colour else {"NO_COLOR": "1"}))
    assert shown.count(b"work \x1b" if colour else b"work ") >= 3
    assert (b"\x1b[38;5" in shown or b"\x1b[36m" in shown) == colour
    rows = [row.format(number) for number in range(3) for row in ROWS]
    assert lines_on_screen(shown) == [*(row.expandtabs() for row in rows), ""]
    assert shown.count(b"\x1b[?25l") == shown.count(b"\x1b[?25h")


def test_what_is_done_at_once_shows_no_bar() -> None:
    code = "from statestore.cli.progress import progress\nfor _ in progress(range(3), 'work'): print('row')"
    assert python_on_a_terminal("-c", code) == b"row\n" * 3


def test_an_error_in_the_middle_takes_the_bar_away() -> None:
    code = SLOW.replace('"a", "b")', '"a", "b"); progress.end(); break')
    shown = python_on_a_terminal("-c", code, width=100)
    assert lines_on_screen(shown)[-2:] == ["a       b", ""]


def test_something_that_cannot_be_counted_is_shown_too() -> None:
    code = """
import time
from statestore.cli import progress
progress._AFTER = 0.02
with progress.busy("fork"):
    while not progress._shown._visible:
        time.sleep(0.005)
print("done")
"""
    shown = python_on_a_terminal("-c", code)
    assert b"fork" in shown
    assert lines_on_screen(shown) == ["done", ""]


def test_elsewhere_there_is_none() -> None:
    ran = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, check=True)
    assert ran.stderr == b"error 0\nerror 1\nerror 2\n"


def test_a_program_that_gets_the_output_may_have_the_terminal_for_itself() -> None:
    ours, theirs = os.openpty()
    code = SLOW.replace("while sys.stderr.isatty() and not progress._shown._visible:", "for _ in range(10):")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs) as process:
        assert process.stdout is not None
        assert process.stdout.read().startswith(b"row 0")
    os.close(theirs)
    assert os.read(ours, 1000) == b"error 0\r\nerror 1\r\nerror 2\r\n"
    os.close(ours)
