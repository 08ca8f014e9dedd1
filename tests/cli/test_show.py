"""``show``: a log told as a story."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from statestore.records import RecordLog, Usage, scan
from statestore.sessions import Conf, Sessions
from statestore.store import NEW
from statestore_local import LocalStore

from .conftest import VECTORS, Run

FILES = [json.loads(line) for line in (VECTORS / "files.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("facts", FILES, ids=lambda facts: facts["file"])
def test_the_summary_of_a_session_is_what_the_vectors_say(run: Run, vectors: Path, facts: dict[str, object]) -> None:
    ran = run("show", vectors / str(facts["file"]), "--json")
    assert ran.status == 0
    summary = ran.lines[-1]["summary"]
    assert summary["records"] == facts["records"]
    assert summary["status"] == facts["derive"]
    assert summary["waiting"] == facts["waiting_ns"]
    assert summary["prompt_tokens"] == facts["prompt"]


def test_json_has_each_record_with_its_fields_and_its_body(run: Run, vectors: Path) -> None:
    records = list(scan((vectors / "session-200.state").read_bytes()))
    *rows, _ = run("show", vectors, "session-200", "--json").lines
    assert len(rows) == len(records)
    for row, record in zip(rows, records, strict=True):
        fields = dict(row["record"])
        body = fields.pop("body")
        assert fields.pop("offset") == record.offset
        assert (base64.b64decode(body["base64"]) if isinstance(body, dict) else body.encode()) == record.body
        header = json.loads(record.line)
        if "cache" in header:
            assert json.loads(fields.pop("cache")) == header.pop("cache")
        usage = header.get("usage")
        if usage:
            header["usage"] = {"cache_read": 0, "cache_write": 0} | usage
        assert fields == header


def test_last_shows_the_last_records_and_the_same_summary(run: Run, vectors: Path) -> None:
    all_lines = run("show", vectors, "session-200", "--json").lines
    assert run("show", vectors, "session-200", "--last", 3, "--json").lines == all_lines[-4:]
    told = run("show", vectors, "session-200").out
    last = run("show", vectors, "session-200", "--last", 3).out
    assert told.endswith(last.lstrip("\n"))
    assert last.split()[0] == "198"


def test_a_long_body_is_shortened_and_full_shows_all_of_it(run: Run, tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(1, 50)]
    with LocalStore(tmp_path) as store:
        RecordLog(store, "log").append("note", "\n".join(lines).encode() + b"\n" + b"w" * 5000, expect=1)
    short, full = run("show", tmp_path, "log").out, run("show", tmp_path, "log", "--full").out
    assert "line 3 (+47 lines, 5,383 bytes in all)" in short
    assert "line 4" not in short
    assert all(line in full for line in lines)
    assert "w" * 5000 in full


def test_a_body_that_is_no_text_is_described(run: Run, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        log = RecordLog(store, "log")
        log.append("note", b"\x89PNG\r\n\x1a\n" + b"\0" * 100, type="image/png", expect=1)
        log.append("note", b"\xff")
    told = run("show", tmp_path, "log").out
    assert "image/png, 108 bytes: 89 50 4e 47 0d 0a 1a 0a …" in told
    assert "no text, 1 byte: ff\n" in told


def test_results_are_told_with_the_calls_that_they_answer(run: Run, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        sessions = Sessions(store)
        with sessions.start(Conf(model="m", tools="default", workers=None, context=1, input=None)) as session:
            session.append("message", b"do two things", via="cli")
            for call, name in (("c1", "read"), ("c2", "write")):
                body = json.dumps({"name": name, "arguments": {"path": "a b", "n": 1}}).encode()
                session.append("call", body, id=call, step="s1")
            session.append("step", b"{}", id="s1", upto=3, usage=Usage(input=5, output=6, cache_read=7, cache_write=8))
            session.append("result", b"done", for_="c2", exit=0)
            session.append("result", b"again", for_="c2")
            id_ = session.id
    told = run("show", tmp_path, id_).out
    assert 'read  path="a b" n=1' in told
    assert "result    for 5 write, exit 0: done" in told
    assert "result    for c2, answers no waiting call: again" in told
    assert "5 in + 7 cached + 8 to the cache, 6 out" in told
    assert "status      interrupted\nwaiting     4 read\n" in told
    summary = run("show", tmp_path, id_, "--json").lines[-1]["summary"]
    assert (summary["status"], summary["waiting"], summary["prompt_tokens"]) == ("interrupted", [4], 20)


def test_tokens_that_no_step_says_are_unknown_and_not_none(run: Run, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store, Sessions(store).start() as session:
        session.append("step", b"{}", id="s1", upto=1)
        told = run("show", tmp_path, session.id)
        assert "tokens      unknown in 1 step\n" in told.out
        assert "prompt" not in told.out
        summary = run("show", tmp_path, session.id, "--json").lines[-1]["summary"]
        assert (summary["steps"], summary["usage"], summary["prompt_tokens"]) == (1, None, None)
        session.append("step", b"{}", id="s2", upto=1, usage=Usage(input=5, output=6))
        told = run("show", tmp_path, session.id)
        assert "tokens      5 in, 6 out in 1 of 2 steps\nprompt      5 tokens at the last step\n" in told.out
        session.append("step", b"{}", id="s3", upto=1)
        told = run("show", tmp_path, session.id)
        assert "tokens      5 in, 6 out in 1 of 3 steps\n" in told.out
        assert "prompt" not in told.out
        session.append("step", b"{}", id="s4", upto=1, usage=Usage())
        told = run("show", tmp_path, session.id)
        assert "tokens      5 in, 6 out in 2 of 4 steps\nprompt      0 tokens at the last step\n" in told.out


def test_a_session_that_somebody_holds_is_stepping_and_its_holder_named(run: Run, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store, Sessions(store).start() as session:
        ran = run("show", tmp_path, session.id)
        assert "status      stepping, held by process " in ran.out


def test_a_turn_that_never_ended_is_told(run: Run, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store, Sessions(store).start() as session:
        session.append("text", b"half a thought", step="s1")
        assert "unfinished  2: no step closes them" in run("show", tmp_path, session.id).out


def test_a_log_that_is_no_session_is_shown_without_a_status(run: Run, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        RecordLog(store, "log").append("a-kind-of-my-own", b"anything", expect=1)
    ran = run("show", tmp_path, "log")
    assert "a-kind-of-my-own  anything" in ran.out
    assert "status" not in ran.out
    assert run("show", tmp_path, "log", "--json").lines[-1]["summary"]["status"] is None


def test_damage_is_shown_behind_what_stands_before_it_and_fails(run: Run, damaged: Path) -> None:
    ran = run("show", damaged, "corrupt", "--json")
    assert ran.status == 1
    assert [line["record"]["n"] for line in ran.lines[:-1]] == [1, 2, 3, 4, 5]
    assert ran.lines[-1]["summary"]["corrupt"]["record"] == 6
    assert (ran.error["error"], ran.error["facts"]["record"]) == ("Corrupt", 6)
    told = run("show", damaged, "corrupt")
    assert told.status == 1
    assert "    5  " in told.out
    assert "corrupt     record 6 at byte " in told.out


def test_a_torn_end_is_shown_and_is_no_failure(run: Run, damaged: Path) -> None:
    ran = run("show", damaged, "torn")
    assert ran.status == 0
    assert "torn        128 bytes behind the last record" in ran.out
    assert run("show", damaged, "torn", "--json").lines[-1]["summary"]["torn"] == 128


def test_a_log_of_a_torn_creation_has_no_record_to_show(run: Run, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        store.append("log", b'{"n":1,', at=NEW)
    ran = run("show", tmp_path, "log")
    assert ran.status == 0
    assert ran.out.startswith("torn        7 bytes")


def test_bodies_of_awkward_json_are_told_as_text(run: Run, tmp_path: Path) -> None:
    bodies = [
        b"{",
        b"[" * 50_000,
        b'{"a":' * 50_000,
        b'{"name":[1],"arguments":"x"}',
        b'{"thinking":7}',
        b"{}",
        b"null",
    ]
    with LocalStore(tmp_path) as store:
        log = RecordLog(store, "log")
        log.append("start", expect=1)
        for kind in ("config", "thinking", "call", "step", "result", "error"):
            for body in bodies:
                log.append(kind, body)
    assert run("show", tmp_path, "log").status == 0
    assert run("show", tmp_path, "log", "--full").status == 0


@pytest.mark.parametrize("args", [[], ["--json"]])
def test_a_log_that_is_not_there_fails(run: Run, vectors: Path, args: list[str]) -> None:
    for target in ([vectors, "nope"], [vectors / "nope.state"]):
        ran = run("show", *target, *args)
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.startswith("error: no such log log=nope")


@pytest.mark.parametrize("name", ["a b", "..", "a//b", "x" * 300, "é", ""])
def test_a_name_that_is_none_is_refused_by_name(run: Run, vectors: Path, name: str) -> None:
    ran = run("show", vectors, name)
    assert ran.status == 1
    assert ran.err.startswith("error: not a log's name")
    if name and "/" not in name:
        assert run("show", vectors / f"{name}.state").err.startswith("error: not a log's name")


def test_the_path_of_a_log_below_a_directory_opens_that_directory(run: Run, vectors: Path) -> None:
    (vectors / "team a?x=1").mkdir()
    (vectors / "session-12.state").rename(vectors / "team a?x=1" / "s.state")
    assert run("show", vectors / "team a?x=1" / "s.state").status == 0


def test_two_paths_at_once_are_wrong_usage(run: Run, vectors: Path) -> None:
    ran = run("show", vectors / "session-12.state", vectors / "session-200.state")
    assert ran.status == 2
    assert "one .state file at a time" in ran.err


def test_where_calls_share_an_id_each_result_is_told_for_the_oldest(run: Run, tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store, Sessions(store).start() as session:
        for name in ("first", "second"):
            session.append("call", json.dumps({"name": name}).encode(), id="same", step="s1")
        session.append("step", b"{}", id="s1", upto=1)
        session.append("result", b"one", for_="same")
        session.append("result", b"two", for_="same")
        told = run("show", tmp_path, session.id).out
    assert "for 2 first: one" in told
    assert "for 3 second: two" in told
