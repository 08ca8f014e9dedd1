"""Any sequence of calls by two objects over one place agrees with a dictionary, on all that can be asked."""

from __future__ import annotations

import uuid
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from statestore.conversations import Conversations, ConversationState, Summary, _cache, _fold, _log
from statestore.errors import NotFound
from statestore_memory import MemoryStore
from tests.conversations.places import user

IDS = st.sampled_from(["a", "A", "b/..", "é"])
TEXTS = st.sampled_from(["x", "y", "z", ""])
BATCHES = st.lists(TEXTS, max_size=5)
WHO = st.integers(0, 1)
NOTHING: dict[str, Any] = {
    "user": "", "prompt": "", "tokens": 0, "metadata": {}, "messages": [], "summaries": [], "lists": {},
}  # fmt: skip


class Boundaries(MemoryStore):
    """Knows where its appends began."""

    def boundary(self, log: str, before: int) -> int:
        found = 0
        for record in _log.Scan(self.snapshot(log).read, log=log):
            if record.offset <= before:
                found = record.offset
        return found


class Talks(RuleBasedStateMachine):
    """Two objects with small caches and frequent snapshots, now and then opened again, and what they should say."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = 0
        self.name = uuid.uuid4().hex
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(_log, "INTERVAL", 3)
        self.patch.setattr(_log, "_SHARE", 0)
        self.patch.setattr(_log, "_REACH", 300)
        self.patch.setattr(_fold, "RECENT", 3)
        self.patch.setattr(_cache, "_KEPT", 2)
        self.both = [self.open(), self.open()]
        self.model: dict[str, dict[str, Any]] = {}

    def open(self) -> Conversations:
        self.opened += 1
        store = Boundaries(self.name)
        store.capabilities = replace(MemoryStore.capabilities, boundaries=self.opened % 2 == 0)
        return Conversations(store, cache=2000)

    def teardown(self) -> None:
        self.patch.undo()

    def there(self, conversation: str) -> dict[str, Any]:
        return self.model.setdefault(conversation, deepcopy(NOTHING))

    @rule(who=WHO)
    def open_again(self, who: int) -> None:
        self.both[who] = self.open()

    @rule(who=WHO, conversation=IDS, texts=BATCHES)
    def append_messages(self, who: int, conversation: str, texts: list[str]) -> None:
        self.both[who].append_messages(conversation, map(user, texts))
        self.there(conversation)["messages"] += texts

    @rule(who=WHO, conversation=IDS, start=st.integers(0, 12), texts=BATCHES)
    def log_append(self, who: int, conversation: str, start: int, texts: list[str]) -> None:
        count = len(self.model.get(conversation, NOTHING)["messages"])
        new = texts[max(count - start, 0) :]
        if new:
            self.there(conversation)["messages"] += new
        assert self.both[who].log_append(conversation, start, map(user, texts)) == count + len(new)

    @rule(who=WHO, conversation=IDS, key=TEXTS, value=st.none() | st.integers() | st.lists(TEXTS))
    def merge_metadata(self, who: int, conversation: str, key: str, value: Any) -> None:
        self.both[who].merge_metadata(conversation, {key: value})
        self.there(conversation)["metadata"][key] = value

    @rule(who=WHO, conversation=IDS, text=TEXTS)
    def save_summary(self, who: int, conversation: str, text: str) -> None:
        self.both[who].save_summary(conversation, Summary(content=text))
        self.there(conversation)["summaries"].append(text)

    @rule(who=WHO, conversation=IDS, name=st.sampled_from("lm"), items=st.lists(st.binary(max_size=3), max_size=3))
    def append_list(self, who: int, conversation: str, name: str, items: list[bytes]) -> None:
        self.both[who].append_list(conversation, name, items)
        if items:
            self.there(conversation)["lists"].setdefault(name, []).extend(items)

    @rule(who=WHO, conversation=IDS, keep=st.integers(0, 12), texts=BATCHES, name=TEXTS, sums=BATCHES, data=st.data())
    def save(
        self, who: int, conversation: str, keep: int, texts: list[str], name: str, sums: list[str], data: Any
    ) -> None:
        messages = self.model.get(conversation, NOTHING)["messages"][:keep] + texts
        metadata = data.draw(st.dictionaries(TEXTS, st.integers(), max_size=2))
        self.both[who].save(
            ConversationState(
                id=conversation,
                user_id=name,
                system_prompt=name,
                token_count=keep,
                messages=list(map(user, messages)),  # type: ignore[arg-type]
                summaries=[Summary(content=text) for text in sums],
                metadata=metadata,
            )
        )
        whole = {
            "user": name,
            "prompt": name,
            "tokens": keep,
            "messages": messages,
            "summaries": sums,
            "metadata": metadata,
        }
        self.there(conversation).update(deepcopy(whole))

    @rule(who=WHO, source=IDS, to=IDS)
    def fork(self, who: int, source: str, to: str) -> None:
        if source in self.model:
            self.both[who].fork(source, to)
            self.model[to] = deepcopy(self.model[source])
        else:
            with pytest.raises(NotFound):
                self.both[who].fork(source, to)

    @rule(who=WHO, conversation=IDS)
    def delete(self, who: int, conversation: str) -> None:
        self.both[who].delete(conversation)
        self.model.pop(conversation, None)

    @rule(who=WHO, conversation=IDS, n=st.integers(0, 12))
    def read_the_end(self, who: int, conversation: str, n: int) -> None:
        messages = self.model.get(conversation, NOTHING)["messages"]
        found = [message.content for message in self.both[who].log_load(conversation, n)]
        assert found == (messages[-n:] if n else messages)
        assert self.both[who].log_len(conversation) == len(messages)

    @precondition(lambda self: self.model)
    @rule(who=WHO, data=st.data())
    def read_all(self, who: int, data: Any) -> None:
        conversation = data.draw(st.sampled_from(sorted(self.model)))
        expected = self.model[conversation]
        talks = self.both[who]
        n = data.draw(st.integers(0, 12))
        recent = [message.content for message in talks.load_recent_messages(conversation, n)]
        assert recent == (expected["messages"][-n:] if n else [])
        assert {name: talks.load_list(conversation, name) for name in "lm"} == {"l": [], "m": []} | expected["lists"]
        found = talks.load(conversation)
        assert found.metadata == talks.load_metadata(conversation) == expected["metadata"]
        assert [summary.content for summary in found.summaries] == expected["summaries"]
        assert [message.content for message in found.messages] == expected["messages"]
        assert (found.user_id, found.system_prompt, found.token_count) == tuple(
            expected[name] for name in ("user", "prompt", "tokens")
        )

    @rule(who=WHO, name=TEXTS)
    def list_them(self, who: int, name: str) -> None:
        found = [one for one, state in self.model.items() if name in ("", state["user"])]
        assert self.both[who].list(user_id=name) == sorted(found)

    @invariant()
    def everything_agrees(self) -> None:
        for conversation in self.model:
            assert self.both[0].message_count(conversation) == len(self.model[conversation]["messages"])


TestTalks = Talks.TestCase
TestTalks.settings = settings(max_examples=40, stateful_step_count=40)
