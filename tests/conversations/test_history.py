"""Acceptance cases A18 to A33: adding to a history and reading its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from statestore.conversations import Conversations, ConversationState
from statestore.errors import InvalidName, NotFound
from tests.conversations.places import Place, contents, records, user

ABC = [user("a"), user("b"), user("c")]


def test_A18_messages_are_added_in_order(talks: Conversations) -> None:
    assert talks.log_append("c", 0, ABC) == 3
    assert talks.log_len("c") == 3
    assert contents(talks.log_load("c", 0)) == ["a", "b", "c"]


def test_A19_what_is_there_is_not_added_again(talks: Conversations) -> None:
    talks.log_append("c", 0, ABC)
    assert talks.log_append("c", 0, [*ABC, user("d"), user("e")]) == 5
    assert contents(talks.log_load("c")) == list("abcde")


def test_A20_a_place_at_the_end_adds_all(talks: Conversations) -> None:
    talks.log_append("c", 0, ABC)
    assert talks.log_append("c", 3, [user("d"), user("e")]) == 5


def test_A21_a_place_beyond_the_end_is_the_end_unless_one_is_strict(talks: Conversations) -> None:
    talks.log_append("c", 0, [user("a")])
    assert talks.log_append("c", 99, [user("b")]) == 2
    with pytest.raises(ValueError, match=r"start_seq=3, and there are 2"):
        talks.log_append("c", 3, [user("d")], strict=True)
    with pytest.raises(ValueError, match="there are 0"):
        talks.log_append("new", 1, [user("d")], strict=True)
    assert talks.log_append("c", 2, [user("c")], strict=True) == 3


def test_A22_where_nothing_is_new_nothing_is_written(talks: Conversations) -> None:
    talks.log_append("c", 0, [user("a")])
    tail = talks.store.tail(records(talks, "c").name)
    assert talks.log_append("c", 0, [user("a")]) == 1
    assert talks.log_append("c", 0, [user("other")]) == 1
    assert talks.store.tail(records(talks, "c").name) == tail


def test_A23_a_place_below_zero_is_refused(talks: Conversations) -> None:
    with pytest.raises(ValueError, match="start_seq=-1"):
        talks.log_append("c", -1, ABC)
    assert talks.log_len("c") == 0


def test_A24_no_messages_make_no_conversation(talks: Conversations) -> None:
    assert talks.log_append("c", 0, []) == 0
    with pytest.raises(NotFound):
        talks.load("c")


def test_A25_a_message_that_is_there_stays(talks: Conversations) -> None:
    talks.log_append("c", 0, ABC)
    assert talks.log_append("c", 2, [user("x"), user("d"), user("e")]) == 5
    assert contents(talks.log_load("c")) == list("abcde")


def test_A26_an_append_makes_the_conversation(place: Place) -> None:
    place.open().log_append("c", 0, [user("a")])
    found = place.open().load("c")
    assert (found.id, found.user_id, found.system_prompt, found.metadata) == ("c", "", "", {})
    assert contents(found.messages) == ["a"]


def test_A28_the_last_messages_are_read_in_order(talks: Conversations) -> None:
    talks.append_messages("c", [user(str(n)) for n in range(10)])
    assert contents(talks.load_recent_messages("c", 3)) == ["7", "8", "9"]
    assert contents(talks.log_load("c", 3)) == ["7", "8", "9"]
    assert len(talks.load_recent_messages("c", 100)) == 10


def test_A29_none_of_them_is_none_and_fewer_is_refused(talks: Conversations) -> None:
    talks.append_messages("c", ABC)
    assert talks.load_recent_messages("c", 0) == []
    assert len(talks.log_load("c", 0)) == 3
    for read in (talks.load_recent_messages, talks.log_load):
        with pytest.raises(ValueError, match="-1"):
            read("c", -1)


def test_A30_what_a_missing_conversation_answers(talks: Conversations) -> None:
    with pytest.raises(NotFound):
        talks.message_count("c")
    with pytest.raises(NotFound):
        talks.load_recent_messages("c", 5)
    assert talks.log_load("c") == []
    assert talks.log_len("c") == 0
    assert talks.load_summaries("c") == []
    with pytest.raises(NotFound):
        talks.load_metadata("c")


EVERY: dict[str, Callable[[Conversations, str], Any]] = {
    "load": lambda talks, id_: talks.load(id_),
    "load_recent_messages": lambda talks, id_: talks.load_recent_messages(id_, 1),
    "message_count": lambda talks, id_: talks.message_count(id_),
    "append_messages": lambda talks, id_: talks.append_messages(id_, []),
    "log_append": lambda talks, id_: talks.log_append(id_, 0, []),
    "log_load": lambda talks, id_: talks.log_load(id_),
    "log_len": lambda talks, id_: talks.log_len(id_),
    "load_metadata": lambda talks, id_: talks.load_metadata(id_),
    "merge_metadata": lambda talks, id_: talks.merge_metadata(id_, {}),
    "load_summaries": lambda talks, id_: talks.load_summaries(id_),
    "save_summary": lambda talks, id_: talks.save_summary(id_, {}),
    "append_list": lambda talks, id_: talks.append_list(id_, "l", []),
    "load_list": lambda talks, id_: talks.load_list(id_, "l"),
    "list_len": lambda talks, id_: talks.list_len(id_, "l"),
    "fork from": lambda talks, id_: talks.fork(id_, "d"),
    "fork to": lambda talks, id_: talks.fork("c", id_),
    "delete": lambda talks, id_: talks.delete(id_),
    "save": lambda talks, id_: talks.save(ConversationState(id=id_)),
}


def test_A31_an_empty_id_and_one_that_is_too_long_are_refused_and_closed_comes_after(talks: Conversations) -> None:
    talks.append_messages("c", [])
    talks.close()
    for call in EVERY.values():
        for bad in ("", "x" * 201, "/" * 67):
            with pytest.raises(InvalidName):
                call(talks, bad)


def test_A32_a_conversation_without_messages_has_none(talks: Conversations) -> None:
    talks.save(ConversationState(id="c"))
    assert talks.message_count("c") == 0
    assert talks.load_recent_messages("c", 5) == []
    talks.append_messages("d", [])
    assert talks.load("d").messages == []


def test_A33_a_plain_append_adds_the_same_twice(talks: Conversations) -> None:
    talks.append_messages("c", ABC)
    talks.append_messages("c", ABC)
    assert contents(talks.load("c").messages) == list("abcabc")


def test_A33_a_batch_is_added_whole_or_not_at_all(talks: Conversations) -> None:
    talks.append_messages("c", ABC)
    with pytest.raises(TypeError, match="object"):
        talks.append_messages("c", [user("d"), user("e", meta={"bad": object()}), user("f")])
    assert talks.message_count("c") == 3
