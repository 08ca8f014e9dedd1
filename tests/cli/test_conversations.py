"""``conversations``, ``import`` and ``export``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from select import select
from typing import Any

import pytest

from statestore.cli.conversations import app, rebuild
from statestore.conversations import Conversations, ConversationState, Message, Summary
from statestore.records import RecordLog
from statestore_local import LocalStore

from .conftest import Run, on_a_terminal, plain


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "state"
    with LocalStore(root, sync="never") as store, Conversations(store, catalog=tmp_path / "catalog") as talks:
        messages = [
            Message(role="user", content="two\nlines \x1b[31m"),
            Message(role="assistant", tool_calls=[{"name": "f"}]),
        ]
        talks.save(
            ConversationState(
                id="a b",
                user_id="alice",
                system_prompt="be kind",
                token_count=7,
                messages=messages,
                summaries=[Summary(start_turn=1, end_turn=2, content="short")],
                metadata={"seats": 2},
            )
        )
        talks.append_messages("b", [])
        talks.save(ConversationState(id="c", user_id="bob"))
        old = RecordLog(store, "conversations/old")
        old.append("conversation.messages", b'{"messages":[]}', expect=1, time="2020-01-01T00:00:00Z")
    return root


def test_every_command_has_examples_and_json_and_fits_80_columns(run: Run) -> None:
    names = [command.callback.__name__ for command in app.registered_commands if command.callback]
    assert names == ["ls", "show", "fork", "rm", "sweep", "rebuild"]
    for name in names:
        told = run("conversations", name, "--help").out
        assert f"Examples:\n    statestore conversations {name}" in told
        assert "--json" in told
        assert all(len(line) <= 80 or "statestore" in line for line in told.split("\n"))


def test_ids_are_listed_filtered_sorted_and_paged(run: Run, root: Path) -> None:
    def ids(*options: object) -> list[str]:
        return run("conversations", "ls", root, *options).out.split("\n")[:-1]

    assert ids() == ["a b", "b", "c", "old"]
    assert ids("--reverse") == ["old", "c", "b", "a b"]
    assert ids("--user", "alice") == ["a b"]
    assert ids("--limit", "2", "--offset", "1") == ["b", "c"]
    assert ids("--sort", "updated")[-1] == "old"
    assert ids("--sort", "created", "--reverse")[0] == "old"
    assert ids("--prefix", "elsewhere") == []
    assert run("conversations", "ls", root, "--user", "bob", "--json").lines == [{"id": "c"}]
    assert run("conversations", "ls", root, "--limit", "0").status == 2
    assert run("conversations", "ls", root, "--user", "").status == 2


def test_a_conversation_is_shown_and_nothing_in_it_drives_the_terminal(run: Run, root: Path) -> None:
    shown = run("conversations", "show", root, "a b").out
    for part in (
        "a b",
        "user alice",
        "prompt be kind",
        "seats: 2",
        "summary 1-2  short",
        "calls f",
        "2 messages",
        "\\x1b[31m",
    ):
        assert part in shown
    assert "\x1b" not in shown
    assert "two" not in run("conversations", "show", root, "a b", "--last", "1").out
    [row] = run("conversations", "show", root, "a b", "--json").lines
    assert row["messages"][1] == {"role": "assistant", "tool_calls": [{"name": "f", "args": {}}]}
    missing = run("conversations", "show", root, "missing", "--json")
    assert (missing.status, missing.error["error"]) == (1, "NotFound")
    assert not (root.parent / "none").exists()
    assert run("conversations", "ls", root.parent / "none").status == 1
    assert not (root.parent / "none").exists()


def test_conversations_are_forked_and_removed(run: Run, root: Path) -> None:
    assert run("conversations", "fork", root, "a b", "d", "--json").lines == [
        {"id": "d", "source": "a b", "messages": 2}
    ]
    refused = run("conversations", "fork", root, "a b", "c", "--json")
    assert (refused.status, refused.error["error"]) == (1, "Exists")
    assert run("conversations", "fork", root, "a b", "c", "--overwrite").out == "c  2 messages\n"
    assert run("conversations", "rm", root, "d").out == "d  removed\n"
    assert run("conversations", "rm", root, "d").status == 1
    assert run("conversations", "ls", root).out == "a b\nb\nc\nold\n"


def test_what_nobody_has_written_for_long_is_shown_and_then_removed(run: Run, root: Path) -> None:
    ran = run("conversations", "sweep", root, "90d")
    assert ran.out == "2020-01-01 00:00:00  old\n1 conversation would be removed: --yes does it\n"
    assert "old" in run("conversations", "ls", root).out
    assert run("conversations", "sweep", root, "90d", "--yes", "--json").lines == [
        {"id": "old", "written": "2020-01-01T00:00:00+00:00", "removed": True}
    ]
    assert run("conversations", "sweep", root, "90d", "--yes").out == "0 conversations removed\n"
    for bad in ("90", "0d", "d", "-1d", "1w"):
        assert run("conversations", "sweep", root, "--", bad).status == 2


def test_what_is_kept_is_made_anew_and_what_is_damaged_is_named(run: Run, root: Path) -> None:
    assert run("conversations", "rebuild", root).out == "4 conversations read again, 0 damaged\n"
    assert run("conversations", "rebuild", root, "--json").lines == [{"conversations": 4, "damaged": []}]
    file = root / "conversations" / "b.state"
    file.write_bytes(file.read_bytes().replace(b'"messages"', b'"massages"'))
    ran = run("conversations", "rebuild", root)
    assert (ran.status, ran.out) == (1, "4 conversations read again, 1 damaged\n")
    assert "cannot be understood" in ran.err
    assert ran.err.endswith("conversation=b\n")
    [row] = run("conversations", "rebuild", root, "--json").lines
    assert [(one["id"], one["error"]["error"]) for one in row["damaged"]] == [("b", "Corrupt")]
    assert run("conversations", "ls", root).out == "a b\nb\nc\nold\n"


def test_a_bar_tells_how_much_is_made_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    made, seen = Conversations.rebuild, b""

    def half(self: Conversations) -> Iterator[Any]:
        """Do half of the work, and go on when the bar says so."""
        nonlocal seen
        rows = list(made(self))
        yield from rows[:2]
        while b" 50%" not in seen:
            assert select([ours], [], [], 30)[0], seen
            seen += os.read(ours, 65536)
        yield from rows[2:]

    monkeypatch.setattr(Conversations, "rebuild", half)
    monkeypatch.setenv("TERM", "xterm-256color")
    with open(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        monkeypatch.setattr(sys, "stderr", terminal)
        rebuild(store=str(root))
        monkeypatch.undo()
        terminal.flush()
        seen += os.read(ours, 65536)
    os.close(ours)
    assert plain(seen).endswith("4 conversations read again, 0 damaged\r\n")


def test_conversations_go_out_and_come_in_and_none_is_dropped_silently(run: Run, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = run("export", "promptkit", root, out)
    assert ran.status == 0
    assert ran.out.endswith("4 of 4 conversations, read again and the same: 2 messages, 1 summaries, 0 list items\n")
    again = tmp_path / "again"
    assert run("import", "promptkit", out, again, "--json").lines[0] == {
        "id": "a b", "messages": 2, "summaries": 1, "lists": 0, "items": 0, "left": [], "torn": 0,
    }  # fmt: skip
    for id_ in ("a b", "old"):
        shown = [run("conversations", "show", one, id_, "--json").lines[0] for one in (root, again)]
        assert shown[0] == shown[1]
    assert run("conversations", "sweep", again, "90d", "--json").lines[0]["id"] == "old"

    (out / "conv-broken").mkdir()
    (out / "conv-broken" / "state.json").write_bytes(b'{"id":5}')
    (out / "conv-empty").mkdir()
    (out / "conv-new").mkdir()
    (out / "conv-new" / "state.json").write_bytes(json.dumps({"id": "new"}).encode())
    (out / "conv-new" / "notes").touch()
    ran = run("import", "promptkit", out, again)
    assert ran.status == 1
    assert ran.err.count("error: ") == 6
    assert (
        ran.out == "new  0 messages, left out: notes\n"
        "1 of 7 conversations, read again and the same: 0 messages, 0 summaries, 0 list items\n"
    )
    assert run("import", "other", out, again).status == 2


def test_a_bar_is_shown_on_a_terminal(root: Path, tmp_path: Path) -> None:
    shown = plain(on_a_terminal("export", "promptkit", root, tmp_path / "out"))
    assert "4 of 4 conversations" in shown
