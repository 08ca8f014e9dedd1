"""Sessions made of the files of coding agents, and what is said of the lines that did not come over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statestore.errors import Exists
from statestore.records import MESSAGE, RecordLog
from statestore.sessions import Sessions, Status, Usage
from statestore.sessions.importing import AGENTS, Report, bring_in, files
from statestore_memory import MemoryStore

VECTORS = Path(__file__).parents[1] / "vectors" / "agents"
CLAUDE = VECTORS / "claude-code/projects/-home-ada-shop/7b0f4c1e-52a9-4f6d-9a54-1d2c3b4a5f60.jsonl"
SUBAGENT = CLAUDE.with_suffix("") / "subagents" / "agent-e4f5a6b.jsonl"
(OLDEST, CODEX) = sorted((VECTORS / "codex/sessions/2026/03/04").iterdir())


def lines_of(path: Path) -> int:
    data = path.read_bytes()
    return data.count(b"\n") + (not data.endswith(b"\n"))


def check(report: Report) -> None:
    """Every line is carried over or lost, and counted once."""
    assert report.lines == lines_of(report.path)
    assert report.lines == sum(report.carried.values()) + sum(report.lost.values())


def told(store: MemoryStore, log: str) -> list[tuple[str, str]]:
    return [(record.kind, record.body.decode("utf-8", "replace")) for record in RecordLog(store, log)]


@pytest.mark.parametrize("agent", AGENTS)
def test_every_line_of_a_file_is_carried_over_or_lost_with_a_reason(agent: str) -> None:
    store = MemoryStore()
    for path in files(agent, VECTORS / agent):
        check(bring_in(agent, store, path))
    for session in Sessions(store).list():
        transcript = Sessions(store).load(session)
        assert [record.n for record in transcript] == list(range(1, len(transcript) + 1))
        transcript.context(unpaired="keep")


def test_the_losses_of_a_file_of_claude_code_are_named() -> None:
    report = bring_in("claude-code", MemoryStore(), CLAUDE)
    assert report.carried == {
        "user": 8,
        "assistant": 8,
        "user of a side chain": 1,
        "assistant of a side chain": 1,
    }
    assert report.lost == {
        "summary": 1,
        "file-history-snapshot": 1,
        "progress": 1,
        "queue-operation": 1,
        "system turn_duration": 1,
        "system compact_boundary": 1,
        "user taken back": 1,
        "assistant taken back": 1,
        "user said before": 1,
        "assistant with nothing in it": 1,
        "no JSON": 1,
        "no object": 1,
        "empty": 1,
        "cut off at the end": 1,
    }
    assert report.parts == {"toolUseResult": 3, "block image": 1, "block server_tool_use": 1}
    assert report.torn == len(CLAUDE.read_bytes().rpartition(b"\n")[2])


def test_an_answer_of_claude_code_is_one_step_with_all_its_parallel_calls_and_their_results_behind_it() -> None:
    store = MemoryStore()
    main, side = bring_in("claude-code", store, CLAUDE).sessions
    transcript = Sessions(store).load(main.log)
    kinds = [record.kind for record in transcript]
    assert kinds[:11] == [
        "start", "config", "system", "message", "thinking", "text", "call", "call", "step", "result", "result",
    ]  # fmt: skip
    step = transcript.records[8].header
    assert (step.upto, step.model, step.harness) == (4, "claude-opus-4-6", "2.1.12")
    assert step.usage == Usage(12, 143, 14000, 800)
    assert [record.header.exit for record in transcript if record.kind == "result"] == [None, 1, None]
    assert [call.id for call in transcript.waiting()] == ["toolu_04"]
    bodies = [record.body for record in transcript]
    assert b"Delete the file." not in bodies  # it was taken back
    assert any(body.startswith(b"\x89PNG") for body in bodies)
    assert [record.body for record in transcript if record.kind == "error"] == [b"API Error: 529 overloaded"]
    conf = transcript.conf()
    assert conf is not None
    assert (conf.model, conf.workers and conf.workers[0].drives) == ("anthropic/claude-opus-4-6", ["/home/ada/shop"])
    assert told(store, side.log)[2:4] == [("message", "Where are prices rounded?"), ("text", "In money.py, line 7.")]
    context = [record.kind for record in transcript.context()]
    assert context.count("call") == context.count("result") == 3


def test_a_file_that_is_a_side_chain_alone_is_a_session_of_its_own() -> None:
    store = MemoryStore()
    (made,) = bring_in("claude-code", store, SUBAGENT).sessions
    assert made.source.endswith(":agent-e4f5a6b")
    assert Sessions(store).status(made.log) == Status.CLOSED


def test_a_file_of_codex_becomes_a_session_with_its_calls_results_and_tokens() -> None:
    store = MemoryStore()
    report = bring_in("codex", store, CODEX)
    assert report.lost["event_msg token_count"] == 1  # it was told twice
    assert report.parts == {"content input_image": 1, "replacement_history": 1}
    transcript = Sessions(store).load(report.sessions[0].log)
    assert [record.kind for record in transcript] == [
        "start", "config", "system", "system", "system", "message", "message",
        "thinking", "text", "call", "call", "step", "result", "result",
        "call", "step", "result", "call", "step", "result", "text", "step",
        "system", "message", "call", "step",
    ]  # fmt: skip
    steps = [record.header for record in transcript if record.kind == "step"]
    assert [step.usage for step in steps] == [
        Usage(3280, 328, 9600),
        None,
        Usage(1200, 60, 12800),
        Usage(2000, 40, 13000),
        None,
    ]
    results = {record.header.for_: record for record in transcript if record.kind == "result"}
    assert results["call_2"].header.exit == 0
    assert results["call_4"].body == b"cart.py"
    assert json.loads(results["call_3"].body)[0]["text"] == "Done"
    calls = {record.id: json.loads(record.body) for record in transcript if record.kind == "call"}
    assert calls["call_1"] == {"name": "exec_command", "arguments": {"cmd": "cat cart.py"}}
    assert calls["call_5"]["arguments"] == "not json"
    assert json.loads(transcript.records[7].body) == {"thinking": "**Looking**", "encrypted_content": "gAAAAABo"}
    assert [call.id for call in transcript.waiting()] == ["call_5"]


def test_the_oldest_files_of_codex_have_no_payloads() -> None:
    store = MemoryStore()
    report = bring_in("codex", store, OLDEST)
    assert report.lost == {"state": 1}
    assert told(store, report.sessions[0].log)[2:5] == [
        ("system", "Be brief."),
        ("message", "hello"),
        ("text", "Hello."),
    ]


@pytest.mark.parametrize("agent", AGENTS)
def test_the_same_file_becomes_the_same_session_and_is_not_made_twice(agent: str) -> None:
    path = files(agent, VECTORS / agent)[-1]
    one, other = MemoryStore(), MemoryStore()
    first = bring_in(agent, one, path, prefix="teams/a")
    bring_in(agent, other, path, prefix="teams/a")
    for made in first.sessions:
        assert made.new
        assert made.log.startswith("teams/a/")
        assert one.read(made.log) == other.read(made.log)
        assert sum(made.records.values()) == len(list(RecordLog(one, made.log)))
    before = {info.name: info.tail for info in one.list(tails=True)}
    again = bring_in(agent, one, path, prefix="teams/a")
    assert [made.new for made in again.sessions] == [False] * len(again.sessions)
    assert {info.name: info.tail for info in one.list(tails=True)} == before


def test_another_session_that_has_the_id_already_is_no_hindrance() -> None:
    store = MemoryStore()
    (made,) = bring_in("codex", MemoryStore(), OLDEST).sessions
    Sessions(store).start(id=made.log).close()
    (moved,) = bring_in("codex", store, OLDEST).sessions
    assert moved.new
    assert moved.log != made.log
    (again,) = bring_in("codex", store, OLDEST).sessions
    assert (again.log, again.new) == (moved.log, False)


def test_where_no_id_is_left_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statestore.sessions.importing._bring._TRIES", 1)
    store = MemoryStore()
    (made,) = bring_in("codex", MemoryStore(), OLDEST).sessions
    Sessions(store).start(id=made.log).close()
    with pytest.raises(Exists, match="taken"):
        bring_in("codex", store, OLDEST)


def test_a_file_in_which_nobody_speaks_makes_no_session(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"type":"summary","summary":"x"}\n')
    store = MemoryStore()
    assert bring_in("claude-code", store, path).sessions == []
    assert list(store.list()) == []


def test_a_line_that_is_whole_but_for_its_newline_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"type":"user","message":{"content":"hello"}}')
    report = bring_in("claude-code", MemoryStore(), path)
    assert (report.carried, report.torn) == ({"user": 1}, 0)


def test_the_kinds_of_line_that_a_file_invents_are_counted_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"type": f"{'x' * 500}{number}"}) + "\n" for number in range(3))
                    + "".join(json.dumps({"type": f"y{number}"}) + "\n" for number in range(1000)))  # fmt: skip
    report = bring_in("claude-code", MemoryStore(), path)
    check(report)
    assert len(report.lost) <= 101
    assert max(map(len, report.lost)) <= 60


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def mutated(draw: st.DrawFn, path: Path) -> list[bytes]:
    """A file's lines in another order, some of them twice, with some values put in place of others."""

    def change(value: Any) -> Any:
        if draw(st.integers(0, 9)) == 0:
            return draw(values)
        if isinstance(value, dict):
            return {name: change(member) for name, member in value.items()}
        return [change(member) for member in value] if isinstance(value, list) else value

    rows = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1] if line.startswith(b"{")]
    chosen = draw(st.lists(st.sampled_from(rows), max_size=12))
    return [json.dumps(change(row)).encode() for row in chosen]


@pytest.mark.parametrize(("agent", "path"), [("claude-code", CLAUDE), ("codex", CODEX)])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_a_file_holds_it_is_counted_and_never_a_crash(
    agent: str, path: Path, data: st.DataObject, tmp_path: Path
) -> None:
    file = tmp_path / "rollout-a.jsonl"
    file.write_bytes(b"\n".join(data.draw(mutated(path))))
    store = MemoryStore()
    report = bring_in(agent, store, file)
    assert report.lines == sum(report.carried.values()) + sum(report.lost.values())
    for made in report.sessions:
        transcript = Sessions(store).load(made.log)
        transcript.context()
        transcript.conf()
        assert transcript.status()


def test_messages_are_messages() -> None:
    # A session that came from elsewhere goes on here like any other.
    store = MemoryStore()
    (made,) = bring_in("codex", store, OLDEST).sessions
    with Sessions(store).open(made.log) as session:
        session.append(MESSAGE, b"and now?")
        assert session.transcript().status() == Status.OPEN
