"""Listing asks for what has changed and nothing else; what the catalog says can be made anew."""

from __future__ import annotations

from pathlib import Path

from statestore import NEW, RecordLog
from statestore.catalog import Catalog
from statestore.conversations import Conversations, ConversationState
from statestore.conversations._brief import Brief, BriefFold
from statestore.errors import Corrupt
from statestore_local import LocalStore
from statestore_memory import MemoryStore
from tests.conversations.places import user
from tests.sync.stores import Counting

MANY = 10_000
CHANGED = range(0, MANY, 500)


def test_of_ten_thousand_conversations_the_twenty_that_have_changed_are_read_and_nothing_else() -> None:
    store = Counting(MemoryStore())
    other, talks = Conversations(store.inner), Conversations(store)
    other.save(ConversationState(id="model", user_id="bob"))
    data = store.read("conversations/model")
    for number in range(MANY):
        of = data if number % 1000 == 0 else data.replace(b'"bob"', b'"amy"')
        store.append(f"conversations/{number:05}", of, at=NEW)
    other.delete("model")
    assert len(talks.list(user_id="bob")) == 10
    store.calls.clear()
    for number in CHANGED:
        other.save(ConversationState(id=f"{number:05}", user_id="carol"))
    assert talks.list(user_id="carol") == [f"{number:05}" for number in CHANGED]
    assert store.calls == {"list": 1, "snapshot": 20, "read": 20}
    store.calls.clear()
    assert talks.list(user_id="bob") == []
    assert len(talks.list(user_id="amy", sort_by="updated_at", limit=MANY)) == MANY - len(CHANGED)
    assert list(talks.sweep(3600)) == []
    assert store.calls == {"list": 3}


def test_a_catalog_that_says_what_is_not_so_is_made_anew(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "state", sync="never")
    file = tmp_path / "catalog"

    class Lying(BriefFold):
        def step(self, state: Brief, record: object) -> Brief:
            return Brief("mallory", None, "2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z")

    with Conversations(store, catalog=file) as talks:
        for name in ("a", "b", "c"):
            talks.save(ConversationState(id=name, user_id="alice"))
    with Catalog(store, Lying(), path=file) as catalog:
        assert len(list(catalog.refresh("conversations/"))) == 3
    with Conversations(store, catalog=file) as talks:
        assert talks.list(user_id="mallory") == ["a", "b", "c"]
        assert list(talks.rebuild()) == [("a", None), ("b", None), ("c", None)]
        assert talks.list(user_id="alice") == ["a", "b", "c"]
    with Conversations(store, catalog=file) as talks:
        assert talks.list(user_id="alice") == ["a", "b", "c"]


def test_making_the_catalog_anew_reads_each_conversation_and_names_what_is_damaged() -> None:
    store = Counting(MemoryStore())
    talks = Conversations(store)
    for name in ("a", "b", "c"):
        talks.append_messages(name, [user(name)])
    RecordLog(store, "conversations/b").append("conversation.saved", b"no JSON")
    RecordLog(store, "conversations/A").append("message", b"no conversation", expect=1)
    talks.list()
    store.calls.clear()
    found = talks.rebuild()
    assert not store.calls
    assert {name: type(damage) for name, damage in found} == {"a": type(None), "b": Corrupt, "c": type(None)}
    assert store.calls["read"] >= 4
