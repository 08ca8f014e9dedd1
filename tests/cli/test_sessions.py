"""``sessions``: what an operator types, and what nothing that is stored can do to the screen or the shell."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statestore import names
from statestore.cli.safe import is_safe
from statestore.cli.sessions import app
from statestore.cli.shell import quoted, word
from statestore.conversations import Conversations
from statestore.ops import SessionsSource, SyncOperator, request_input
from statestore.records import RecordLog
from statestore.sessions import Sessions
from statestore_local import LocalStore

from .conftest import Run, on_a_terminal, plain
from .test_screens import compare
from .test_usage import snapshot

IDLE, PAUSED, GONE = "0000000a", "0000000b", "0000000c"
EVIL = "x\x1b[2J\nforged  alice  -  now  idle\t\u202e"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "state"
    with LocalStore(root, sync="never") as store:
        for hour, (id_, place) in enumerate({IDLE: "", PAUSED: "bob/", GONE: ""}.items(), 10):
            log = RecordLog(store, place + id_)
            log.append("start", expect=1, time=f"2026-09-28T{hour}:00:00Z")
            log.append("message", b"hello", time=f"2026-09-28T{hour}:30:00.25Z")
        schema = {"type": "object", "required": ["approved"]}
        request = request_input("approve-1", "May I?", response_schema=schema, payload=[1], author="clerk")
        body = request.rest.partition(b"\n")[2][:-1]
        RecordLog(store, f"bob/{PAUSED}").append("input.requested", body, time="2026-09-28T11:45:00Z")
        with SyncOperator(SessionsSource(store)) as operator:
            operator.abort(GONE, "wrong customer")
    return root


def test_every_command_has_examples_and_json_and_fits_80_columns(run: Run) -> None:
    commands = [command.callback.__name__ for command in app.registered_commands if command.callback]
    assert commands == ["ls", "show", "abort", "resume", "interrupted"]
    for name in commands:
        told = run("sessions", name, "--help").out
        assert f"Examples:\n    statestore sessions {name}" in told
        assert "--json" in told
        assert all(len(line) <= 80 or "statestore" in line for line in told.split("\n"))


def test_b41_a_listing_has_a_header_and_a_row_for_each_session(run: Run, root: Path) -> None:
    ran = run("sessions", "ls", root)
    assert ran.status == 0
    assert ran.out.split("\n") == [
        "SESSION   USER  APP  LAST EVENT            STATE    PENDING",
        "0000000c  -     -    2026-09-28T12:30:00Z  aborted  (aborted: wrong customer)",
        "0000000b  bob   -    2026-09-28T11:45:00Z  paused   approve-1",
        "0000000a  -     -    2026-09-28T10:30:00Z  idle     -",
        "",
    ]
    assert run("sessions", "ls", root, "--user", "bob").out.count("\n") == 2
    assert plain(on_a_terminal("sessions", "ls", root, width=100)) == ran.out


def test_b42_a_state_narrows_and_none_says_so(run: Run, root: Path) -> None:
    def states(state: str) -> list[str]:
        return [row["id"] for row in json.loads(run("sessions", "ls", root, "--state", state, "--json").out)]

    assert states("paused") == [PAUSED]
    assert states("aborted") == [GONE]
    assert states("idle") == [IDLE]
    ran = run("sessions", "ls", root, "--state", "interrupted")
    assert (ran.status, ran.out) == (0, "SESSION  USER  APP  LAST EVENT  STATE  PENDING\n(no sessions)\n")
    assert json.loads(run("sessions", "ls", root, "--scan", "--json").out) == json.loads(
        run("sessions", "ls", root, "--json").out
    )


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["ls", ".", "--state", "running"], "--state is paused, aborted, interrupted or idle, not 'running'"),
        (["ls"], "STORE"),
        (["show", "."], "ID"),
        (["abort", "."], "ID"),
        (["resume", "."], "ID"),
        (["resume", ".", "x", "--response", "1"], "--interrupt"),
        (["resume", ".", "x", "--interrupt", "a"], "--response"),
        (["resume", ".", "x", "--interrupt", "a", "--response", "{nope"], "--response is JSON"),
        (["resume", ".", "x", "--interrupt", "a", "--response", "NaN"], "--response is JSON"),
        ([], "command"),
        (["nonsense"], "nonsense"),
        (["ls", ".", "surplus"], "surplus"),
        (["show", ".", "x", "surplus"], "surplus"),
        (["ls", ".", "--times", "2"], "--times belongs to --watch"),
        (["ls", ".", "--watch", "0"], "--watch is a whole number from 1 on"),
        (["interrupted", ".", "--clear"], "name it"),
        (["interrupted", ".", "x"], "--reason"),
        (["interrupted", ".", "x", "--reason", "why", "--clear"], "--clear"),
    ],
)
def test_b43_b49_and_b50_wrong_usage_is_named_and_is_2(run: Run, args: list[str], told: str) -> None:
    ran = run("sessions", *args)
    assert (ran.status, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_b44_options_stand_before_or_behind(run: Run, root: Path) -> None:
    assert (
        run("sessions", "show", root, PAUSED, "--user", "bob").out
        == run("sessions", "show", "--user", "bob", root, PAUSED).out
    )


def test_b45_a_look_shows_what_is_asked_and_how_to_answer(run: Run, root: Path) -> None:
    ran = run("sessions", "show", root, PAUSED)
    assert ran.status == 0
    assert ran.out.split("\n") == [
        "Session:    0000000b",
        "App:        -",
        "User:       bob",
        "State:      paused",
        "Last event: 2026-09-28T11:45:00Z",
        "Events:     2",
        "",
        "Pending input:",
        "  Interrupt:  approve-1",
        "  Author:     clerk",
        "  Raised:     2026-09-28T11:45:00Z",
        "  Message:    May I?",
        '  Schema:     {"type":"object","required":["approved"]}',
        "  Payload:    [1]",
        f"  Resume:     statestore sessions resume --user=bob --interrupt=approve-1 --response=JSON {root} 0000000b",
        "",
    ]
    assert "Aborted:    wrong customer" in run("sessions", "show", root, GONE).out


def test_the_hint_answers_as_soon_as_an_answer_is_written_into_it(run: Run, root: Path) -> None:
    hint = run("sessions", "show", root, PAUSED).out.rstrip("\n").split("\n")[-1].partition("statestore ")[2]
    assert run(*shlex.split(hint)).status == 2
    told = run(*shlex.split(hint.replace("=JSON", "={}")), "--json")
    assert (told.status, told.error["error"], told.error["facts"]["path"]) == (1, "InvalidAnswer", "$")
    done = run(*shlex.split(hint.replace("=JSON", """='{"approved": true}'""")), "--json")
    assert done.lines == [
        {
            "id": PAUSED,
            "interrupt_id": "approve-1",
            "written": True,
            "content": {
                "kind": "input.answered",
                "for": "approve-1",
                "type": "application/json",
                "body": '{"approved": true}',
            },
        }
    ]
    assert "idle" in run("sessions", "show", root, PAUSED).out


def test_b46_what_is_not_there_is_1(run: Run, root: Path) -> None:
    for command in (["show"], ["abort"], ["resume", "--interrupt", "a", "--response", "1"], ["interrupted", "--clear"]):
        ran = run("sessions", *command, root, "00000000", "--json")
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.startswith(f"statestore sessions {command[0]}: there is no such session session=00000000")
        assert ran.error["error"] == "NotFound"


def test_b47_and_b37_a_missing_place_is_named_and_not_made(run: Run, tmp_path: Path) -> None:
    for command in (["ls"], ["show", "x"], ["abort", "x"]):
        ran = run("sessions", command[0], tmp_path / "missing", *command[1:])
        assert ran.status == 1
        assert str(tmp_path / "missing") in ran.err
    assert not (tmp_path / "missing").exists()


def test_b37_looking_changes_nothing(run: Run, root: Path) -> None:
    before = snapshot(root)
    for args in (["ls"], ["ls", "--scan"], ["show", PAUSED], ["interrupted"]):
        assert run("sessions", args[0], root, *args[1:]).status == 0
    assert snapshot(root) == before


def test_b49_an_abort_has_a_default_reason(run: Run, root: Path) -> None:
    assert run("sessions", "abort", root, IDLE, "--json").lines == [
        {"id": IDLE, "done": "aborted", "reason": "operator abort"}
    ]
    assert "Aborted:    operator abort" in run("sessions", "show", root, IDLE).out


def test_b50_json_is_what_programs_read_also_where_there_is_nothing(run: Run, root: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run("sessions", "ls", tmp_path / "empty", "--json").out == "[]\n"
    assert run("sessions", "interrupted", tmp_path / "empty", "--json").out == "[]\n"
    aborted, paused, idle = json.loads(run("sessions", "ls", root, "--json").out)
    assert idle == {
        "id": IDLE,
        "app_name": "",
        "user_id": "",
        "last_event_time": "2026-09-28T10:30:00.25Z",
        "state": "idle",
    }
    assert aborted["abort_reason"] == "wrong customer"
    (seen,) = run("sessions", "show", root, PAUSED, "--json").lines
    assert seen == {
        **paused,
        "event_count": 2,
        "pending": [
            {
                "interrupt_id": "approve-1",
                "message": "May I?",
                "author": "clerk",
                "raised_at": "2026-09-28T11:45:00Z",
                "response_schema": {"type": "object", "required": ["approved"]},
                "payload": [1],
            }
        ],
    }
    for args in ([], ["ls"], ["show"]):
        assert run("sessions", *args, "-h").status == 0


def test_b51_an_abort_needs_no_daemon_and_a_second_one_is_told(run: Run, root: Path) -> None:
    assert run("sessions", "abort", root, IDLE, "--reason", "first").out == f"{IDLE}  aborted\n"
    ran = run("sessions", "abort", root, IDLE, "--reason", "second")
    assert ran.status == 1
    assert "aborted already" in ran.err
    assert "first" in ran.err


def test_interruptions_are_marked_listed_and_cleared(run: Run, root: Path) -> None:
    assert run("sessions", "interrupted", root, IDLE, "--reason", "shutdown").out == f"{IDLE}  interrupted\n"
    assert "(interrupted: shutdown)" in run("sessions", "interrupted", root).out
    (row,) = json.loads(run("sessions", "interrupted", root, "--json").out)
    assert (row["id"], row["interrupt_reason"]) == (IDLE, "shutdown")
    assert "interrupted_at" in row
    assert run("sessions", "interrupted", root, IDLE, "--clear").out == f"{IDLE}  cleared\n"
    assert "(no sessions)" in run("sessions", "interrupted", root).out


def test_an_id_under_two_users_names_both(run: Run, root: Path) -> None:
    with LocalStore(root, sync="never") as store:
        Sessions(store, "alice").start(id=PAUSED).close()
    ran = run("sessions", "abort", root, PAUSED, "--json")
    assert (ran.status, ran.error["error"]) == (1, "Ambiguous")
    assert "users=alice,bob" in ran.err
    assert run("sessions", "abort", root, PAUSED, "--user", "alice").status == 0
    assert "paused" in run("sessions", "show", root, PAUSED, "--user", "bob").out


def test_a_damaged_session_is_a_row_of_its_own(run: Run, root: Path) -> None:
    with LocalStore(root, sync="never") as store:
        store.append(IDLE, b"this is no record\n", at=store.tail(IDLE))
    rows = run("sessions", "ls", root).out.split("\n")
    assert len(rows) == 5
    assert rows[3].startswith(f"{IDLE}  -     -    -                     unreadable  (error: ")
    assert json.loads(run("sessions", "ls", root, "--json").out)[-1].keys() == {"id", "app_name", "user_id", "error"}
    assert run("sessions", "show", root, IDLE).status == 1


def test_e10_nothing_stored_forges_a_row_or_drives_the_terminal(run: Run, tmp_path: Path) -> None:
    root = tmp_path / "state"
    with LocalStore(root, sync="never") as store:
        with Sessions(store, names.quote(EVIL)).start(id=IDLE) as session:
            session.append_many([request_input(EVIL, EVIL, author=EVIL, payload=EVIL, response_schema={"title": EVIL})])
        with SyncOperator(SessionsSource(store)) as operator:
            told = run("sessions", "show", root, IDLE)
            listed = run("sessions", "ls", root)
            hint = told.out.rstrip("\n").split("\n")[-1].partition("Resume:")[2].strip()
            code = f"statestore() {{ printf '%s\\0' \"$@\"; }}; {hint}"
            words = subprocess.run(["bash", "-c", code], capture_output=True, check=True).stdout.decode().split("\0")
            assert f"--interrupt={EVIL}" in words
            assert f"--user={EVIL}" in words
            operator.abort(IDLE, EVIL)
            aborted = run("sessions", "ls", root)
    for ran in (told, listed, aborted):
        assert ran.out.replace("\n", "").isprintable()
        assert "\n" not in ran.out.replace("\n", "", ran.out.count("\n"))
        assert not any(line.startswith("forged") for line in ran.out.split("\n"))
    assert listed.out.count("\n") == aborted.out.count("\n") == 2
    assert told.out.count("\n") == 15


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
@example(EVIL)
@example("'")
@example("-x")
@example("")
def test_a_pasted_word_is_the_text_and_shows_nothing_that_drives(text: str) -> None:
    shown = quoted(text)
    assert all(map(is_safe, shown))
    if not shown.startswith("$'"):
        assert shlex.split(shown) == [text]


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1, max_size=30))
@example([EVIL, "$'", "a\\'b\x1b", "\x7f1"])
def test_a_shell_takes_what_is_pasted_for_the_text(texts: list[str]) -> None:
    code = "printf '%s\\0' " + " ".join(map(quoted, texts))
    ran = subprocess.run(["bash", "-c", code], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    assert ran.stdout.decode().split("\0")[:-1] == texts


def test_a_word_in_a_row_is_one_word() -> None:
    assert [word(text) for text in ("a", "", "-", "a b", "a\tb", "a\u00a0b")] == [
        "a",
        "-",
        "'-'" if shlex.quote("-") != "-" else "-",
        "'a b'",
        "a\\tb",
        "'a\u00a0b'",
    ]


def test_conversations_are_sessions_too(run: Run, root: Path) -> None:
    with LocalStore(root, sync="never") as store, Conversations(store) as talks:
        talks.append_messages("a trip", [{"role": "assistant", "tool_calls": [{"id": "c1", "name": "f"}]}])
    url = f"conversations+{root.as_uri()}"
    rows = json.loads(run("sessions", "ls", url, "--json").out)
    assert [(row["id"], row["app_name"], row["state"]) for row in rows] == [("a trip", "conversations", "paused")]
    assert run("sessions", "show", url, "a trip").out.endswith(f"--interrupt=c1 --response=JSON {url} 'a trip'\n")
    with LocalStore(root, sync="never") as store, Conversations(store) as talks:
        talks.append_messages("-x", [{"role": "assistant", "tool_calls": [{"id": "-y", "name": "f"}]}])
    hint = run("sessions", "show", url, "--", "-x").out.rstrip("\n").split("\n")[-1].partition("statestore ")[2]
    assert run(*shlex.split(hint.replace("=JSON", "=1"))).out == "-x  -y answered\n"
    assert run("sessions", "abort", url, "a trip").status == 0
    assert "'a trip'" in run("sessions", "ls", url).out
    assert run("sessions", "ls", f"nonsense+{root.as_uri()}").status == 1


def test_watching_shows_them_again_and_ends_when_told(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[int] = []

    def sleep(seconds: int) -> None:
        slept.append(seconds)
        run("sessions", "abort", root, IDLE)

    monkeypatch.setattr("time.sleep", sleep)
    lines = run("sessions", "ls", root, "--watch", "7", "--times", "2", "--json").out.split("\n")
    before, after = (json.loads(line) for line in lines[:-1])
    assert slept == [7]
    assert [row["state"] for row in before] == ["aborted", "paused", "idle"]
    assert [row["state"] for row in after] == ["aborted", "paused", "aborted"]


def test_an_interrupt_ends_watching_quietly(root: Path) -> None:
    command: list[Any] = [sys.executable, "-P", "-m", "statestore", "sessions", "ls", root, "--watch", "600", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(json.loads(process.stdout.readline())) == 3
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == b""
        assert process.stderr.read() == b""
    assert process.returncode == 130


def test_the_reserved_name_is_refused_by_every_command_that_writes(run: Run, root: Path) -> None:
    assert run("sessions", "abort", root, IDLE).status == 0
    before = snapshot(root)
    for args in (
        ["append", root, f"{IDLE}/~ops", "--body", "x"],
        ["append", root, "~ops", "--create", "--body", "x"],
        ["fork", root, IDLE, f"{PAUSED}/~ops"],
        ["sessions", "ls", root, "--app", "~ops"],
        ["conversations", "fork", root, "x", "~ops"],
    ):
        ran = run(*args)
        assert ran.status == 1
        assert "reserved" in ran.err
    for command in (["abort"], ["interrupted", "--reason", "why"], ["show"]):
        assert run("sessions", *command, "--user", "~ops", root, IDLE).status == 1
        assert run("sessions", *command, root, f"{IDLE}/~ops").status == 1
    assert snapshot(root) == before
    assert run("ls", root).out.split("\n") == [IDLE, f"{IDLE}/~ops", GONE, f"{GONE}/~ops", f"bob/{PAUSED}", ""]


def test_of_operators_in_processes_of_their_own_exactly_one_aborts(run: Run, root: Path) -> None:
    command: list[Any] = [sys.executable, "-P", "-m", "statestore", "sessions", "abort", root, IDLE, "--reason"]
    started = [subprocess.Popen([*command, f"by {n}"], stderr=subprocess.PIPE, text=True) for n in range(4)]
    told = [process.communicate()[1] for process in started]
    (winner,) = (n for n, process in enumerate(started) if process.returncode == 0)
    assert all("aborted already" in error for n, error in enumerate(told) if n != winner)
    assert f"Aborted:    by {winner}\n" in run("sessions", "show", root, IDLE).out


@pytest.mark.parametrize("width", [100, 60])
def test_a_terminal_shows_sessions_and_wraps_what_waits(run: Run, root: Path, width: int) -> None:
    with LocalStore(root, sync="never") as store:
        for n in range(2, 6):
            RecordLog(store, f"bob/{PAUSED}").append(
                "input.requested", b'{"interrupt_id": "approve-%d"}' % n, time="2026-09-28T11:50:00Z"
            )
    compare(f"terminal-sessions-{width}", plain(on_a_terminal("sessions", "ls", root, width=width)))
