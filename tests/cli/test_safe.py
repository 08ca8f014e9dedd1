"""Nothing that a log holds reaches a terminal raw, through whichever command."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import unicodedata
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from statestore.cli.app import app
from statestore.cli.safe import decode, safe
from statestore.cli.screen import Screen, binary, complain, emit
from statestore.records import KINDS, RecordLog
from statestore_local import LocalStore

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \x9b31m \x7f \u202eevil\u2066 \u2028\u2029 \ufeff\u200b [red]x[/red] \ud800 \r\n\t\0"
ATTRIBUTES = re.compile(r"\x1b\[[0-9;]*m")

anything = st.text(st.characters(), max_size=60)


def unsafe_characters(text: str) -> set[str]:
    """Judge by the Unicode categories, and not by the code under test."""
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return {hex(ord(char)) for char in text if unicodedata.category(char) in kinds and char not in "\u200c\u200d\n"}


@given(anything)
@example(HOSTILE)
def test_safe_text_holds_no_control_character_and_no_newline(text: str) -> None:
    shown = safe(text)
    assert not unsafe_characters(shown)
    assert "\n" not in shown


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs", "M"))))
def test_safe_text_of_letters_digits_and_signs_is_the_text(text: str) -> None:
    assert safe(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        ("\x9b", r"\x9b"),
        ("\x7f", r"\x7f"),
        ("\u202e", r"\u202e"),
        ("\u2028", r"\u2028"),
        ("\ud800", r"\ud800"),
        ("a\nb", r"a\nb"),
        ("\U000e0041", r"\U000e0041"),
        ("naïve 日本\u3000👩\u200d💻", "naïve 日本\u3000👩\u200d💻"),
        ("[red]markup[/red] :smile:", "[red]markup[/red] :smile:"),
    ],
)
def test_an_unsafe_character_is_spelled_as_an_escape(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.binary(max_size=60))
def test_any_bytes_become_safe_text(data: bytes) -> None:
    assert not unsafe_characters(safe(decode(data)))


@given(st.lists(anything, max_size=4), st.lists(anything, min_size=1, max_size=4), st.sampled_from([None, 1, 20, 80]))
@example([HOSTILE], [HOSTILE], 80)
def test_a_line_on_a_screen_is_safe_on_a_terminal_and_elsewhere(
    lead: list[str], parts: list[str], width: int | None
) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        Screen(width).put(*((part, "bold red") for part in parts), lead=lead)
    assert not unsafe_characters(ATTRIBUTES.sub("", out.getvalue()) if width else out.getvalue())


@given(anything)
@example(HOSTILE)
def test_a_complaint_is_one_safe_line(text: str) -> None:
    with contextlib.redirect_stderr(io.StringIO()) as err:
        complain(text)
    assert err.getvalue().count("\n") == 1
    assert not unsafe_characters(err.getvalue())


@given(anything)
@example(HOSTILE)
def test_json_is_one_line_of_printable_ascii_and_gives_the_text_back(text: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        emit({"text": text})
    line = out.getvalue()
    assert line.removesuffix("\n").isascii()
    assert line.removesuffix("\n").isprintable()
    assert json.loads(line) == {"text": text}


@given(st.binary(max_size=40))
@example(b"\xff\xfe")
def test_bytes_are_text_in_json_where_they_are_utf8_and_base64_elsewhere(data: bytes) -> None:
    value = binary(data)
    assert (value.encode() if isinstance(value, str) else base64.b64decode(value["base64"])) == data


@settings(max_examples=15, deadline=None)
@given(st.sampled_from([*KINDS, "note"]), anything, st.data())
@example("message", HOSTILE, None)
@example("note", HOSTILE, None)
def test_no_command_shows_what_a_hostile_record_holds(kind: str, text: str, data: st.DataObject | None) -> None:
    text = text.encode("utf-8", "replace").decode()
    body = data.draw(st.binary(max_size=80)) if data else HOSTILE.encode("utf-8", "surrogatepass")
    if data and data.draw(st.booleans()):
        body = json.dumps({"thinking": text, "name": text, "arguments": {text: [text]}, "stop_reason": text}).encode()
    with TemporaryDirectory() as root:
        with LocalStore(root, sync="never") as store:
            log = RecordLog(store, "log")
            log.append("start", expect=1)
            fields = {"type": text, "step": text, "via": text, "source": text, "for_": text, "model": text}
            log.append(kind, body, id=text, full_output=text, truncated=True, **fields)
            log.append(text or "x", body)
        for command in (["show"], ["show", "--full"], ["show", "--json"], ["ls", "--long"], ["verify"]):
            args = [*command, root] if command[0] != "show" else [*command, root, "log"]
            result = CliRunner().invoke(app, args)
            assert result.exit_code == 0, result.stderr
            # A tab parts the columns of ls, and no column holds one.
            columns = result.stdout_bytes.decode().split("\t", 3 if command[0] == "ls" else 0)
            assert not any(map(unsafe_characters, columns))
            assert not result.stderr


def test_a_name_from_the_command_line_is_safe_in_the_error(tmp_path: Path) -> None:
    for args in (
        ["show", str(tmp_path), HOSTILE.replace("\0", "").replace("\ud800", "")],
        ["show", "\x1b[31m\u202e.state"],
        ["ls", str(tmp_path / "\x1b[31m\u202e")],
        ["\x1b[31m\u202e"],
        ["ls", str(tmp_path), "--\x1b[31m\u202e"],
        ["append", str(tmp_path), "log", "--body", "x", "--expect", "\x1b\u202e"],
        ["append", str(tmp_path), "log", "--file", "\x1b[31m\u202e"],
    ):
        result = CliRunner().invoke(app, args)
        assert result.exit_code in (1, 2)
        assert result.stderr.startswith("error: ")
        assert not unsafe_characters(result.stderr)
