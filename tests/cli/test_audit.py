"""What every command promises, asked of each: JSON, examples, a store, colours, and that nothing stored drives it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from statestore.cli.app import app
from statestore.conversations import Conversations, ConversationState, Message, Summary
from statestore.records import RecordLog
from statestore_local import LocalStore

from .conftest import Run, lines_on_screen, python_on_a_terminal
from .test_commands_page import SECTIONS
from .test_safe import HOSTILE, unsafe_characters

# Each text begins with what would be a row of its own if it could begin a line.
EVIL = HOSTILE.replace("\ud800", "") + "\nFORGED\n\x1b[1A\x1b[2K\rFORGED" + " FORGED" * 15
FILE_NAME = "\x1b[31m\u202eFORGED"

# One or more ways to run each command on the stores below: `store`, `other`, and `out`, which is not there yet.
CASES: dict[str, list[list[str]]] = {
    "ls": [["store"], ["store", "--long"]],
    "show": [["store", "1a2b3c4d"], ["store", "1a2b3c4d", "--full"], ["store", "evil", "--last", "3"]],
    "tail": [["store", "1a2b3c4d"], ["store", "evil", "-n", "2"]],
    "cat": [["store", "evil"], ["store", "1a2b3c4d", "--record", "3", "--body"]],
    "grep": [["FORGED", "store"], ["(?s).+", "store", "--count"], ["\x1b", "store", "--logs"], ["(", "store"]],
    "append": [
        ["out", "log", "--create", "--kind", EVIL.replace("\0", ""), "--id", EVIL.replace("\0", ""), "--body", "x"]
    ],
    "fork": [["store", "evil", "fork"], ["store", "evil", "fork"]],
    "diff": [["store", "1a2b3c4d", "5e6f7a8b"], ["store", "evil", "1a2b3c4d"], ["store", "evil", "evil"]],
    "verify": [["store"], ["store", "evil"], ["store", "torn"]],
    "repair": [["store", "torn", "--dry-run"], ["store", "corrupt", "--to", "saved", "--yes"]],
    "stats": [["store"], ["store", "evil"]],
    "compact": [["store"]],
    "gc": [["store"]],
    "sync": [["store", "out"], ["store", "other"]],
    "doctor": [["store"]],
    "plugins": [[]],
    "conform": [["--list"]],
    "bench": [["out", "--records", "2", "--logs", "2"], ["store", "--only", "last", "--records", "2"]],
    "import": [
        ["claude-code", "agents", "out"],
        ["claude-code", "agents", "out"],
        ["codex", f"agents/{FILE_NAME}.jsonl", "out"],
        ["jsonl", f"agents/{FILE_NAME}.jsonl", "out", "log"],
        ["jsonl", f"{FILE_NAME}.jsonl", "out"],
    ],
    "export": [["jsonl", "store", "evil"], ["jsonl", "store", "torn", "out.jsonl"], ["promptkit", "store", "kit"]],
    "completion": [["bash"]],
    "conversations ls": [["store"]],
    "conversations show": [["store", "evil \x1b[31m"]],
    "conversations fork": [["store", "evil \x1b[31m", "new \x1b[31m\nFORGED"]],
    "conversations rm": [["store", "new \x1b[31m\nFORGED"]],
    "conversations rebuild": [["store"]],
    "conversations sweep": [["store", "1s"]],
}
# These show nothing that is stored anywhere.
ALONE = {"demo", "new-backend"}
# Those with tests like these of their own.
ELSEWHERE = {"sessions"}


def leaves(commands: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in commands.items():
        if inner := getattr(command, "commands", None):
            yield from leaves(inner, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


COMMANDS = {
    name: command
    for name, command in leaves(get_command(app).commands)  # type: ignore[attr-defined]
    if name.split()[0] not in ELSEWHERE
}


def test_every_command_is_asked() -> None:
    missing = COMMANDS.keys() - CASES.keys() - ALONE
    assert not missing, "say in CASES how they are run on a store that holds hostile things"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_json_examples_a_store_and_its_shape_on_the_page(run: Run, name: str) -> None:
    told = run(*name.split(), "--help").out
    assert "--json" in told
    assert f"Examples:\n    statestore {name}" in told
    arguments = {param.metavar for param in COMMANDS[name].params if param.param_type_name == "argument"}
    if name not in ALONE | {"plugins", "completion"}:
        assert {"STORE", "STORE A [OTHER] B", "SRC"} & {str(metavar).strip("[]") for metavar in arguments}
    section = SECTIONS[name.split()[0]]
    assert "`--json`" in section
    if name.split()[0] != "conversations":
        assert re.search(r"^\| `--json` \| print", section, re.MULTILINE)


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with stores and files in which everything that can be evil is."""
    monkeypatch.chdir(tmp_path)
    fields: dict[str, Any] = {"type": EVIL, "step": "s", "via": EVIL, "source": EVIL, "for_": EVIL, "model": EVIL}
    body = EVIL.encode() + b"\xff\n"
    call = json.dumps({"name": EVIL, "arguments": {EVIL: [EVIL]}, "thinking": EVIL, "stop_reason": EVIL}).encode()
    for place in ("store", "other"):
        with LocalStore(tmp_path / place, sync="never") as store:
            for name, kinds in (("1a2b3c4d", ("text", "call")), ("5e6f7a8b", ("thinking",)), ("evil", ("a", EVIL))):
                log = RecordLog(store, name)
                log.append("start" if name != "evil" else "note", expect=1, id=EVIL, source=EVIL)
                log.append("config", call)
                for kind in ("message", "system", *kinds):
                    log.append(kind, call if kind in ("call", "thinking") else body, id=EVIL, **fields)
                log.append("step", call, id="s", model=EVIL, harness=EVIL)
                log.append("result", body, **fields | {"for_": EVIL}, truncated=True, full_output=EVIL)
                log.append("error", body, **fields)
            with Conversations(store, catalog=tmp_path / f"catalog-{place}") as talks:
                talks.save(
                    ConversationState(
                        id="evil \x1b[31m",
                        user_id=EVIL,
                        system_prompt=EVIL,
                        messages=[Message(role=EVIL, content=EVIL, tool_calls=[{"name": EVIL}])],
                        summaries=[Summary(start_turn=1, end_turn=1, content=EVIL)],
                        metadata={EVIL: EVIL},
                    )
                )
    data = (tmp_path / "store" / "evil.state").read_bytes()
    (tmp_path / "store" / "torn.state").write_bytes(data[:-5])
    (tmp_path / "store" / "corrupt.state").write_bytes(b'{"n":1,"time":"\x1b[31mFORGED"}\n\n')
    (tmp_path / "store" / f"{FILE_NAME}.state").write_bytes(data)
    rows = [
        {"type": EVIL},
        {"type": "system", "subtype": EVIL},
        {"type": "user", "uuid": EVIL, "message": {"content": [{"type": "text", "text": EVIL}, {"type": EVIL}]}},
        {"type": "response_item", "payload": {"type": EVIL}},
        {"type": "response_item", "payload": {"type": "message", "role": EVIL, "content": EVIL}},
    ]
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / f"{FILE_NAME}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


ALL = [(name, args) for name, cases in CASES.items() for args in cases]
SCRIPT = """
import json, sys
from statestore.cli.app import app
for number, args in enumerate(json.load(open(sys.argv[1]))):
    sys.stdout.write(f"@@{number}\\n")
    sys.stdout.flush()
    try:
        app(args, prog_name="statestore")
    except SystemExit as end:
        if end.code not in (0, 1, 2):
            raise
"""


def on_a_terminal_each(place: Path, commands: list[list[str]], width: int = 100, **env: str) -> list[bytes]:
    """What each command sends to a terminal, all of them run by one process."""
    (place / "commands.json").write_text(json.dumps(commands))
    (place / "script.py").write_text(SCRIPT)
    shown = python_on_a_terminal(place / "script.py", place / "commands.json", width=width, **env)
    parts = re.split(rb"^@@[0-9]+\n", shown, flags=re.MULTILINE)[1:]
    assert len(parts) == len(commands)
    assert b"Traceback" not in shown
    return parts


@pytest.mark.parametrize(("width", "chosen"), [(100, CASES), (40, ("show", "tail", "grep", "diff", "verify"))])
def test_nothing_that_is_stored_drives_a_terminal_or_begins_a_line(
    hostile: Path, width: int, chosen: Collection[str]
) -> None:
    cases = [(name, args) for name, args in ALL if name in chosen]
    shown = on_a_terminal_each(hostile, [[*name.split(), *args] for name, args in cases], width)
    for (name, args), part in zip(cases, shown, strict=True):
        for line in lines_on_screen(part):  # which refuses every other control
            assert not unsafe_characters(line), (name, args, line)
            assert name == "cat" or not line.startswith("FORGED"), (name, args, line)


@pytest.mark.parametrize("as_json", [False, True])
def test_nothing_that_is_stored_breaks_a_pipe(run: Run, hostile: Path, as_json: bool) -> None:
    for name, cases in CASES.items():
        args = cases[-1 if as_json else 0]
        ran = run(*name.split(), *args, *(["--json"] if as_json else []))
        assert ran.status in (0, 1, 2), ran.err
        assert not unsafe_characters(ran.err), (name, args)
        if name == "cat" and not as_json:
            continue  # the exact bytes
        if as_json:
            for row in ran.out.split("\n")[:-1]:
                assert row.isascii()
                assert row.isprintable()
                assert isinstance(json.loads(row), dict)
        else:
            lines = [line for line in ran.out.split("\n") if not line.startswith("FORGED")]
            assert lines == ran.out.split("\n"), (name, args)
            assert not any(map(unsafe_characters, ran.out.split("\t"))), (name, args)


COLOURED = [
    "show",
    "tail",
    "grep",
    "diff",
    "verify",
    "sync",
    "plugins",
    "import",
    "ls",
    "fork",
    "append",
    "conversations show",
]


def test_colours_are_there_on_a_terminal_but_not_with_no_color_and_never_in_json(hostile: Path) -> None:
    chosen = {name: next(args for args in CASES[name]) for name in COLOURED}
    commands = [[*name.split(), *args] for name, args in chosen.items()]
    for part, name in zip(on_a_terminal_each(hostile, commands), chosen, strict=True):
        assert b"\x1b[" in part, name
    colour = re.compile(rb"\x1b\[(?:[0-9]+;)*(?:3[0-7]|38;[0-9;]+|4[0-7]|9[0-7])(?:;[0-9]+)*m")
    again = [[*command, "--json"] for command in commands]
    for part, command in zip(
        on_a_terminal_each(hostile, commands + again, NO_COLOR="1"), commands + again, strict=True
    ):
        assert not colour.search(part), command
        if "--json" in command:
            assert all(unicodedata.category(char) != "Cc" for char in part.decode().replace("\n", "")), command
