"""Acceptance case A88: conversations come in from PromptKit's layout and go out to it, and nothing is dropped."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from statestore import Store, Tail
from statestore.conversations import Conversations, ConversationState, Summary, promptkit
from statestore.conversations.promptkit import Moved, bring_in, directories, give_out
from statestore.errors import Corrupt, Exists
from statestore.wrappers import Wrapper
from statestore_memory import MemoryStore
from tests.conversations.places import Place, contents, records, user

STATE = b'{"id":"shape","user_id":"u","last_accessed_at":"2026-11-30T10:23:54.846Z","metadata":{"n":1}}'
MESSAGES = [
    b'{"role":"assistant","tool_calls":[{"id":"t1","name":"f","args":{}}],"timestamp":"0001-01-01T00:00:00Z"}',
    (
        b'{"role":"tool","tool_result":{"id":"t1","name":"f","parts":[{"type":"text","text":"res"}],"latency_ms":0},'
        b'"timestamp":"0001-01-01T00:00:00Z"}'
    ),
]
SUMMARY = b'{"StartTurn":1,"EndTurn":2,"Content":"s","TokenCount":3,"CreatedAt":"0001-01-01T00:00:00Z"}'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The layout's example, with a list."""
    directory = tmp_path / "promptkit" / "conv-shape"
    (directory / "lists").mkdir(parents=True)
    (directory / "state.json").write_bytes(STATE)
    (directory / "messages.jsonl").write_bytes(b"".join(message + b"\n" for message in MESSAGES))
    (directory / "summaries.jsonl").write_bytes(SUMMARY + b"\n")
    (directory / "lists" / "a.b.jsonl").write_bytes(b"1\n\nthree\xff\n")
    return tmp_path / "promptkit"


def test_A88_the_layout_comes_in_as_the_same_state(place: Place, root: Path) -> None:
    talks = place.open()
    [directory] = directories(root)
    assert bring_in(talks, directory) == Moved("shape", 2, 1, 1, 3)
    for one in (talks, place.open()):
        found = one.load("shape")
        assert (found.user_id, found.metadata, found.system_prompt, found.token_count) == ("u", {"n": 1}, "", 0)
        assert found.last_accessed_at == datetime(2026, 11, 30, 10, 23, 54, 846000, tzinfo=UTC)
        assert contents(found.messages) == ["", "res"]
        assert found.messages[0].tool_calls == [{"id": "t1", "name": "f", "args": {}}]
        assert found.summaries == [Summary(start_turn=1, end_turn=2, content="s", token_count=3)]
        assert one.load_list("shape", "a.b") == [b"1", b"", b"three\xff"]
        assert one.list(user_id="u") == ["shape"]
    with pytest.raises(Exists):
        bring_in(talks, directory)
    assert records(talks, "shape").count() == 1


def test_A88_what_came_in_goes_out_byte_for_byte(root: Path, tmp_path: Path) -> None:
    talks = Conversations(MemoryStore())
    bring_in(talks, directories(root)[0])
    out = tmp_path / "out"
    out.mkdir()
    assert give_out(talks, "shape", out) == Moved("shape", 2, 1, 1, 3)
    for path in root.rglob("*.jsonl"):
        assert (out / path.relative_to(root)).read_bytes() == path.read_bytes()
    assert json.loads((out / "conv-shape" / "state.json").read_bytes()) == json.loads(STATE)
    with pytest.raises(Exists):
        give_out(talks, "shape", out)


class Altering(Wrapper):
    """Stores something else than it is given."""

    def __init__(self, store: Store, old: bytes, new: bytes) -> None:
        super().__init__(store)
        self.change = old, new

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        assert self.change[0] in data
        return super().append(log, data.replace(*self.change), at=at)


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("messages", b'"res"', b'"rex"'),
        ("messages", b'"messages":[', b'"massages":['),
        ("summaries", b'"Content":"s"', b'"Content":"S"'),
        ("metadata", b'"n":1}', b'"n":2}'),
        ("profile", b'"u"', b'"v"'),
        ("lists", b'"MQ=="', b'"Mg=="'),
    ],
)
def test_what_is_read_again_is_compared_with_what_came_in(root: Path, part: str, old: bytes, new: bytes) -> None:
    talks = Conversations(Altering(MemoryStore(), old, new))
    with pytest.raises(Corrupt, match="cannot be understood" if b"massages" in new else f"not what.*part={part}"):
        bring_in(talks, root / "conv-shape")


@pytest.mark.parametrize("name", ["state.json", "messages.jsonl", "summaries.jsonl", "a.b.jsonl"])
def test_what_is_read_again_is_compared_with_what_went_out(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    talks = Conversations(MemoryStore())
    bring_in(talks, root / "conv-shape")
    create = promptkit._create

    def alter(path: Path, data: bytes, mode: int) -> None:
        create(path, data.replace(b"1", b"2") if path.name == name else data, mode)

    monkeypatch.setattr(promptkit, "_create", alter)
    with pytest.raises(Corrupt, match=rf"not what was written.*{name}"):
        give_out(talks, "shape", tmp_path)


def test_what_has_no_place_in_a_conversation_is_named(root: Path) -> None:
    directory = root / "conv-shape"
    (directory / "notes.txt").touch()
    (directory / "lists" / "old").mkdir()
    (directory / "state.json").write_bytes(STATE[:-1] + b',"owner":"x"}')
    moved = bring_in(Conversations(MemoryStore()), directory)
    assert moved == Moved("shape", 2, 1, 1, 3, left=("state.json: owner", "notes.txt", "lists/old"))


def test_a_conversation_that_is_larger_than_an_append_comes_in_by_several(place: Place, root: Path) -> None:
    talks = place.open()
    directory = root / "conv-shape"
    limit = talks.store.capabilities.max_append or 1 << 20
    item = bytes(range(32, 127)) * (limit * 4 // 5 // 95)  # and base64 is longer
    (directory / "lists" / "a.b.jsonl").write_bytes(item + b"\n")
    assert bring_in(talks, directory) == Moved("shape", 2, 1, 1, 1)
    assert talks.load_list("shape", "a.b") == [item]
    with pytest.raises(Exists):
        bring_in(talks, directory)


def test_a_line_that_a_crash_cut_off_is_counted_and_left_out(root: Path) -> None:
    path = root / "conv-shape" / "messages.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])  # the newline alone
    assert bring_in(Conversations(MemoryStore()), root / "conv-shape") == Moved("shape", 2, 1, 1, 3)
    path.write_bytes(whole[:-20])
    torn = len(MESSAGES[1]) + 1 - 20
    assert bring_in(Conversations(MemoryStore()), root / "conv-shape") == Moved("shape", 1, 1, 1, 3, torn=torn)


def test_a_damaged_line_is_told_and_nothing_is_made(root: Path) -> None:
    path = root / "conv-shape" / "messages.jsonl"
    path.write_bytes(b'{"role":\n' + MESSAGES[0] + b"\n")
    talks = Conversations(MemoryStore())
    with pytest.raises(Corrupt, match=r"no message.*line=1"):
        bring_in(talks, root / "conv-shape")
    (root / "conv-shape" / "state.json").write_bytes(b'{"user_id":"u"}')
    with pytest.raises(Corrupt, match="no id"):
        bring_in(talks, root / "conv-shape")
    assert talks.list() == []


@pytest.mark.parametrize(("conversation", "name", "item"), [("a/b", "l", b""), ("a", "../l", b""), ("a", "l", b"1\n2")])
def test_what_the_layout_cannot_hold_is_refused_and_nothing_is_written(
    tmp_path: Path, conversation: str, name: str, item: bytes
) -> None:
    talks = Conversations(MemoryStore())
    talks.append_list(conversation, name, [item])
    with pytest.raises(ValueError, match="in this layout"):
        give_out(talks, conversation, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_messages_with_newlines_between_their_tokens_are_one_line_each(tmp_path: Path) -> None:
    talks = Conversations(MemoryStore())
    talks.append_messages("c", [b'{"role":"user",\n"content":"a\\nb"}', user("c")])
    talks.save(
        ConversationState(**{**talks.load("c").model_dump(exclude={"messages"}), "messages": talks.load("c").messages})
    )
    give_out(talks, "c", tmp_path)
    assert (tmp_path / "conv-c" / "messages.jsonl").read_bytes().count(b"\n") == 2
    again = Conversations(MemoryStore())
    bring_in(again, tmp_path / "conv-c")
    assert again.load("c").messages == talks.load("c").messages
