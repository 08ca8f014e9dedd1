"""Acceptance cases A1 to A16: saving and loading whole conversations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from statestore.conversations import Conversations, ConversationState, Message, Summary
from statestore.errors import InvalidName, NotFound, NotSupported
from tests.conversations.places import Place, contents, records, user


def state(history: list[Any] = [], **more: Any) -> ConversationState:  # noqa: B006 - it is not changed
    return ConversationState(**{"id": "c", "messages": history, **more})


def loaded(conversations: Conversations) -> dict[str, Any]:
    """Return what a conversation is, but for its time."""
    return conversations.load("c").model_dump(exclude={"last_accessed_at"})


WHOLE = state(
    [user("hi"), user("hello")],
    user_id="alice",
    system_prompt="P",
    token_count=42,
    metadata={"k": "v", "n": {"m": [1]}},
)


def test_A1_what_was_saved_is_loaded_and_the_time_is_now(talks: Conversations) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    talks.save(WHOLE)
    found = talks.load("c")
    assert found.model_dump(exclude={"last_accessed_at"}) == WHOLE.model_dump(exclude={"last_accessed_at"})
    assert before <= found.last_accessed_at <= datetime.now(UTC)


def test_A2_what_is_not_there_is_not_found_and_an_empty_id_is_none(talks: Conversations) -> None:
    with pytest.raises(NotFound, match=r"there is no such conversation id=missing"):
        talks.load("missing")
    with pytest.raises(InvalidName, match="not empty"):
        talks.load("")


def test_A3_only_a_state_with_an_id_is_saved(talks: Conversations) -> None:
    with pytest.raises(TypeError, match="ConversationState"):
        talks.save(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidName):
        talks.save(ConversationState(id=""))


def test_A4_a_history_that_goes_on_is_saved_again(talks: Conversations) -> None:
    talks.save(state([user("a")]))
    talks.save(state([user("a"), user("b")]))
    assert contents(talks.load("c").messages) == ["a", "b"]


def test_A5_a_shorter_history_replaces_a_longer_one(talks: Conversations) -> None:
    talks.save(state([user("a"), user("b"), user("c")]))
    talks.save(state([user("z")]))
    assert contents(talks.load("c").messages) == ["z"]
    talks.save(state())
    assert talks.load("c").messages == []


def test_A6_the_time_given_is_ignored_and_the_state_given_is_not_changed(talks: Conversations) -> None:
    given = state([user("a")], last_accessed_at=datetime(1999, 1, 1, tzinfo=UTC))
    copy = given.model_copy(deep=True)
    talks.save(given)
    assert talks.load("c").last_accessed_at.year > 1999
    assert given == copy


def test_A7_saving_leaves_lists_as_they_are(talks: Conversations) -> None:
    talks.append_list("c", "l", [b"1"])
    talks.save(state())
    assert talks.load_list("c", "l") == [b"1"]


def test_A8_no_metadata_clears_them_and_no_user_clears_the_user(talks: Conversations) -> None:
    talks.save(state(metadata={"a": 1}, user_id="u"))
    talks.save(state(metadata=None))
    assert talks.load_metadata("c") == {}
    assert talks.load("c").user_id == ""


def test_A9_summaries_come_back_in_order_and_are_replaced(talks: Conversations) -> None:
    three = [
        Summary(
            start_turn=n, end_turn=n + 1, content=f"s{n}", token_count=n, created_at=datetime(2026, 1, n, tzinfo=UTC)
        )
        for n in (1, 2, 3)
    ]
    for saved in (three, three[:1], []):
        talks.save(state(summaries=saved))
        assert talks.load_summaries("c") == saved
        assert talks.load("c").summaries == saved
    talks.save_summary("c", three[2])
    talks.save_summary("c", {"StartTurn": 1, "Content": "s"})
    assert [(summary.start_turn, summary.content) for summary in talks.load_summaries("c")] == [(3, "s3"), (1, "s")]


def test_A10_everything_is_there_when_it_is_opened_again(place: Place) -> None:
    first = place.open()
    first.save(WHOLE)
    first.append_list("c", "l", [b"\x00\n\xff"])
    first.save_summary("c", Summary(content="s"))
    again = place.open()
    assert loaded(again) == loaded(first)
    assert again.load("c") == first.load("c")
    assert (again.load_list("c", "l"), again.load_summaries("c")) == ([b"\x00\n\xff"], [Summary(content="s")])


def test_A13_as_many_summaries_of_another_content_replace(talks: Conversations) -> None:
    talks.save(state(summaries=[Summary(content="s1")]))
    talks.save(state(summaries=[Summary(content="s2")]))
    assert talks.load_summaries("c") == [Summary(content="s2")]


def test_A13_as_many_messages_of_another_content_replace(talks: Conversations) -> None:
    talks.save(state([user("a"), user("b")]))
    talks.save(state([user("a"), user("B")]))
    assert contents(talks.load("c").messages) == ["a", "B"]
    talks.save(state([user("x"), user("B"), user("c")]))
    assert contents(talks.load("c").messages) == ["x", "B", "c"]


def test_A14_a_save_behind_appends_doubles_nothing(talks: Conversations) -> None:
    talks.log_append("c", 0, [user("a"), user("b"), user("c")])
    talks.save(state([user(letter) for letter in "abcde"], user_id="u"))
    assert contents(talks.load("c").messages) == list("abcde")
    assert talks.load("c").user_id == "u"


def test_A14_a_save_writes_only_what_is_new(talks: Conversations) -> None:
    talks.log_append("c", 0, [user("x" * 1000) for _ in range(50)])
    before = talks.store.tail(records(talks, "c").name).size
    found = talks.load("c")
    found.messages.append(Message(role="user", content="new"))
    talks.save(found)
    assert talks.store.tail(records(talks, "c").name).size - before < 1000
    assert talks.load("c").messages == found.messages


@pytest.mark.parametrize("opener", ["s3"], indirect=True)
def test_what_is_larger_than_an_append_is_refused_and_the_error_says_what_to_do(place: Place) -> None:
    talks = place.open()
    limit = talks.store.capabilities.max_append
    assert limit is not None
    half = "x" * (limit * 5 // 8)
    large = state([user(half), user(half)], user_id="u")
    with pytest.raises(NotSupported, match=rf"append_messages, then save; .*limit={limit} id=c"):
        talks.save(large)
    assert talks.log_len("c") == 0
    talks.append_messages("c", large.messages[:1])
    talks.append_messages("c", large.messages[1:])
    talks.save(large)
    assert loaded(talks) == large.model_dump(exclude={"last_accessed_at"})
    talks.append_messages("d", [user("old")])
    with pytest.raises(NotSupported, match=r"delete the target, then fork .*id=d"):
        talks.fork("c", "d")
    assert contents(place.open().load("d").messages) == ["old"]
    talks.delete("d")
    talks.fork("c", "d")
    assert talks.message_count("d") == 2


def test_A16_a_shortened_history_is_short_for_everybody(place: Place) -> None:
    first = place.open()
    first.save(state([user("a"), user("b"), user("c")]))
    first.save(state([user("a")]))
    again = place.open()
    assert contents(again.load("c").messages) == ["a"]
    assert again.log_len("c") == 1
    assert again.log_append("c", 1, [user("z")]) == 2
    assert contents(again.load("c").messages) == ["a", "z"]
    assert contents(first.log_load("c")) == ["a", "z"]


def test_every_change_is_one_record(talks: Conversations) -> None:
    talks.append_messages("c", [user("a"), user("b")])
    talks.save(WHOLE)
    talks.merge_metadata("c", {"a": 1, "b": 2})
    talks.append_list("c", "l", [b"1", b"2"])
    talks.save_summary("c", Summary(content="s"))
    talks.save(state([user("z")]))
    kinds = [record.kind.partition(".")[2] for record in records(talks, "c")]
    assert kinds == ["messages", "saved", "metadata", "items", "summaries", "saved"]
