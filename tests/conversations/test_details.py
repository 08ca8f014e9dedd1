"""Acceptance cases A34 to A55: metadata, copies, lists."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from statestore.conversations import Conversations, ConversationState, Summary
from statestore.errors import NotFound
from tests.conversations.places import Place, contents, user

UNICODE_NAME = "Grüße 你好 🎉/../\\\x00\n"


def test_A34_a_merge_sets_what_it_names(talks: Conversations) -> None:
    talks.merge_metadata("c", {"a": 1, "b": "x"})
    talks.merge_metadata("c", {"b": "y", "c": True})
    assert talks.load_metadata("c") == {"a": 1, "b": "y", "c": True}


def test_A35_a_merge_touches_nothing_else(talks: Conversations) -> None:
    whole = ConversationState(
        id="c",
        user_id="u",
        system_prompt="p",
        token_count=7,
        messages=[user("a")],  # type: ignore[list-item]
        summaries=[Summary(content="s")],
    )
    talks.save(whole)
    talks.append_list("c", "l", [b"1"])
    talks.merge_metadata("c", {"k": "v"})
    found = talks.load("c")
    expected = whole.model_dump(exclude={"last_accessed_at"}) | {"metadata": {"k": "v"}}
    assert found.model_dump(exclude={"last_accessed_at"}) == expected
    assert talks.load_list("c", "l") == [b"1"]


def test_A36_ints_of_any_size_stay_ints(place: Place) -> None:
    numbers = {
        "large": 10**400,
        "small": -(2**63) - 1,
        "edge": 2**64,
        "one": 1,
        "float": 1.0,
        "tenth": 0.1,
        "yes": True,
    }
    place.open().merge_metadata("c", numbers)
    found = place.open().load_metadata("c")
    assert found == numbers
    assert {key: type(value) for key, value in found.items()} == {key: type(value) for key, value in numbers.items()}


def test_A37_a_nested_value_is_replaced_whole(talks: Conversations) -> None:
    talks.merge_metadata("c", {"d": {"x": 1}})
    talks.merge_metadata("c", {"d": {"y": 2}})
    assert talks.load_metadata("c") == {"d": {"y": 2}}


def test_A38_none_is_a_value(talks: Conversations) -> None:
    talks.merge_metadata("c", {"k": 1})
    talks.merge_metadata("c", {"k": None})
    assert talks.load_metadata("c") == {"k": None}


BAD: list[tuple[Any, type[Exception]]] = [
    (object(), TypeError),
    ({1: "a number as a key"}, TypeError),
    (b"bytes", TypeError),
    ({1, 2}, TypeError),
    (datetime.now(UTC), TypeError),
    (float("nan"), ValueError),
    (float("-inf"), ValueError),
    ("\ud800", ValueError),
    ({"\udfff": 1}, ValueError),
]


def test_A39_A43_what_json_cannot_say_is_refused_and_nothing_changed(talks: Conversations) -> None:
    talks.merge_metadata("c", {"k": 1})
    for value, error in [(value, error) for bad, error in BAD for value in (bad, [bad], {"deep": [{"deeper": bad}]})]:
        with pytest.raises(error):
            talks.merge_metadata("c", {"fine": 1, "k": value})
        with pytest.raises(error):
            talks.merge_metadata("new", {"k": value})
        with pytest.raises(error):
            talks.append_messages("c", [user("fine"), user("a", meta={"k": value})])
        with pytest.raises(error):
            talks.save(ConversationState(id="c", metadata={"k": value}))
    assert talks.load_metadata("c") == {"k": 1}
    assert talks.load("c").messages == []
    assert talks.list() == ["c"]


def test_A39_values_that_are_nested_too_deep_are_refused(talks: Conversations) -> None:
    deep: Any = 1
    for _ in range(98):
        deep = [deep]
    talks.merge_metadata("c", {"k": deep})
    assert talks.load_metadata("c") == {"k": deep}
    with pytest.raises(ValueError, match="100 deep"):
        talks.merge_metadata("c", {"k": [[deep]]})


def test_A41_an_empty_merge_makes_nothing(talks: Conversations) -> None:
    talks.merge_metadata("c", {})
    with pytest.raises(NotFound):
        talks.load("c")


def test_A42_threads_that_merge_lose_nothing(talks: Conversations) -> None:
    with ThreadPoolExecutor(50) as pool:
        list(pool.map(lambda n: talks.merge_metadata("c", {f"k{n}": n}), range(50)))
    assert talks.load_metadata("c") == {f"k{n}": n for n in range(50)}


def test_A44_what_the_caller_changes_afterwards_is_not_stored(talks: Conversations) -> None:
    meta = {"a": [1]}
    message: dict[str, Any] = {
        "role": "assistant",
        "meta": meta,
        "tool_calls": [{"id": "t", "name": "f", "args": {"x": 1}}],
        "parts": [{"type": "image", "media": {"url": "u"}}],
    }
    talks.append_messages("c", [message])
    talks.merge_metadata("c", {"m": meta})
    stored = talks.load("c").model_dump()

    meta["a"].append(2)
    message["tool_calls"][0]["args"]["x"] = 2
    message["parts"][0]["media"]["url"] = "other"
    assert talks.load("c").model_dump() == stored

    found = talks.load("c")
    assert found.messages[0].tool_calls is not None
    found.messages[0].tool_calls[0]["args"]["x"] = 3
    found.metadata["m"]["a"].append(3)
    talks.load_metadata("c")["m"]["a"].append(3)
    assert talks.load("c").model_dump() == stored


def test_A45_bytes_that_change_afterwards_are_stored_as_they_were(talks: Conversations) -> None:
    item = bytearray(b"abc")
    talks.append_list("c", "l", [item, memoryview(b"view")])
    item[0] = 0
    assert talks.load_list("c", "l") == [b"abc", b"view"]
    talks.load_list("c", "l").append(b"not stored")
    assert talks.list_len("c", "l") == 2


def test_A47_items_come_behind_each_other_in_their_list_alone(talks: Conversations) -> None:
    talks.append_list("c", "l", [b"1", b"2"])
    talks.append_list("c", "l", [b"3"])
    talks.append_list("c", "other", [b""])
    assert talks.load_list("c", "l") == [b"1", b"2", b"3"]
    assert (talks.list_len("c", "l"), talks.list_len("c", "other"), talks.list_len("c", "none")) == (3, 1, 0)
    talks.append_list("d", "l", [b"elsewhere"])
    assert talks.list_len("c", "l") == 3


def test_A48_an_item_is_any_bytes(talks: Conversations) -> None:
    items = [b"two\nlines", b"end\r", b"", bytes(range(256)), b'{"n":1}\n']
    talks.append_list("c", "l", items)
    assert talks.load_list("c", "l") == items
    for bad in ("text", 5, None):
        with pytest.raises(TypeError, match="bytes"):
            talks.append_list("c", "l", [b"fine", bad])  # type: ignore[list-item]
    assert talks.list_len("c", "l") == len(items)


def test_A49_a_list_has_a_name(talks: Conversations) -> None:
    for call in (
        lambda: talks.append_list("c", "", [b"1"]),
        lambda: talks.load_list("c", ""),
        lambda: talks.list_len("c", ""),
    ):
        with pytest.raises(ValueError, match="list name"):
            call()


def test_A50_a_missing_conversation_has_no_items_unless_one_is_strict(talks: Conversations) -> None:
    assert talks.load_list("c", "l") == []
    assert talks.list_len("c", "l") == 0
    with pytest.raises(NotFound):
        talks.load_list("c", "l", strict=True)
    with pytest.raises(NotFound):
        talks.list_len("c", "l", strict=True)


def test_A51_no_items_make_nothing(talks: Conversations) -> None:
    talks.append_list("c", "l", [])
    assert talks.list() == []


def test_A52_a_list_has_any_name(place: Place) -> None:
    names = ["workflow.history", "with spaces", UNICODE_NAME, "x" * 200, ".", "../messages", "A", "a"]
    first = place.open()
    for number, name in enumerate(names):
        first.append_list("c", name, [b"%d" % number])
    again = place.open()
    assert [again.load_list("c", name) for name in names] == [[b"%d" % number] for number in range(len(names))]
    assert again.message_count("c") == 0


def test_A54_threads_that_append_keep_their_own_order(talks: Conversations) -> None:
    threads, times = (16, 50) if not talks.store.capabilities.boundaries else (4, 10)

    def add(thread: int) -> None:
        for number in range(times):
            talks.append_list("c", "l", [b"%d:%d" % (thread, number)])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(add, range(threads)))
    items = talks.load_list("c", "l")
    assert len(items) == threads * times
    for thread in range(threads):
        mine = [item for item in items if item.startswith(b"%d:" % thread)]
        assert mine == [b"%d:%d" % (thread, number) for number in range(times)]


def test_A55_a_large_message_and_a_large_item_are_read_again(place: Place) -> None:
    large = "x" * (9 << 20)
    first = place.open()
    first.append_messages("c", [user(large)])
    first.append_list("c", "l", [b"\n" * (9 << 20)])
    again = place.open()
    assert contents(again.load_recent_messages("c", 1)) == [large]
    assert again.load_list("c", "l") == [b"\n" * (9 << 20)]
