"""Acceptance cases A56 to A101: forks, deletions, shapes of messages, listings, ids, time to live, closing, races."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from statestore import RecordLog
from statestore.conversations import Conversations, ConversationState, ListOptions, Message, Summary
from statestore.errors import Closed, Exists, InvalidName, NotFound
from tests.conversations.places import Place, contents, records, user

WHOLE = ConversationState(
    id="src",
    user_id="u",
    system_prompt="p",
    token_count=7,
    messages=[user("a"), user("b")],  # type: ignore[list-item]
    summaries=[Summary(content="s")],
    metadata={"k": [1]},
)


def whole(talks: Conversations, conversation: str) -> dict[str, Any]:
    """Return all that a conversation is, but for its name and time."""
    found = talks.load(conversation).model_dump(exclude={"id", "last_accessed_at"})
    return found | {"lists": {name: talks.load_list(conversation, name) for name in ("l", "m")}}


def test_A56_a_fork_has_all_that_its_source_has(place: Place) -> None:
    talks = place.open()
    talks.save(WHOLE)
    talks.append_list("src", "l", [b"1", b"\n"])
    source = whole(talks, "src")
    talks.fork("src", "dst")
    assert whole(talks, "dst") == source
    assert talks.load("dst").id == "dst"
    assert whole(place.open(), "dst") == whole(talks, "src") == source
    assert talks.list() == ["dst", "src"]


def test_A58_a_fork_and_its_source_go_on_alone(talks: Conversations) -> None:
    talks.save(WHOLE)
    talks.append_list("src", "l", [b"1"])
    talks.fork("src", "dst")
    source = whole(talks, "src")
    talks.append_messages("dst", [user("c")])
    talks.append_list("dst", "l", [b"2"])
    talks.merge_metadata("dst", {"k": 2})
    assert whole(talks, "src") == source
    copy = whole(talks, "dst")
    talks.append_messages("src", [user("z")])
    assert whole(talks, "dst") == copy


def test_A58_a_replaced_target_and_its_source_go_on_alone(talks: Conversations) -> None:
    talks.save(WHOLE)
    talks.append_list("src", "l", [b"1"])
    talks.append_messages("dst", [])
    talks.fork("src", "dst")
    source = whole(talks, "src")
    talks.append_list("dst", "l", [b"2"])
    talks.append_list("dst", "m", [b"3"])
    talks.append_messages("dst", [user("c")])
    talks.merge_metadata("dst", {"k": 2})
    talks.save_summary("dst", Summary(content="t"))
    assert whole(talks, "src") == source


def test_A57_a_fork_of_nothing_makes_nothing(talks: Conversations) -> None:
    for overwrite in (True, False):
        with pytest.raises(NotFound, match="missing"):
            talks.fork("missing", "dst", overwrite=overwrite)
        with pytest.raises(NotFound, match="missing"):
            talks.fork("missing", "missing", overwrite=overwrite)
    assert talks.list() == []


def test_A59_a_fork_replaces_its_target_whole(place: Place) -> None:
    talks = place.open()
    talks.save(WHOLE)
    talks.append_list("src", "l", [b"1"])
    talks.save(
        WHOLE.model_copy(update={"id": "dst", "user_id": "other", "messages": [Message(role="user", content="z")]})
    )
    talks.append_list("dst", "m", [b"old"])
    talks.save_summary("dst", Summary(content="old"))
    with pytest.raises(Exists, match="overwrite"):
        talks.fork("src", "dst", overwrite=False)
    assert talks.load("dst").user_id == "other"
    talks.fork("src", "dst")
    assert whole(talks, "dst") == whole(talks, "src")
    assert whole(place.open(), "dst") == whole(talks, "src")


def test_A60_a_fork_onto_itself_changes_nothing(talks: Conversations) -> None:
    talks.save(WHOLE)
    before = whole(talks, "src")
    tail = talks.store.tail(records(talks, "src").name)
    talks.fork("src", "src")
    assert whole(talks, "src") == before
    assert talks.store.tail(records(talks, "src").name) == tail
    with pytest.raises(Exists):
        talks.fork("src", "src", overwrite=False)


def test_A61_a_fork_without_overwriting_makes_a_new_one(talks: Conversations) -> None:
    talks.save(WHOLE)
    talks.fork("src", "dst", overwrite=False)
    assert whole(talks, "dst") == whole(talks, "src")


def test_A63_forks_back_and_forth_do_not_wait_for_each_other(talks: Conversations) -> None:
    talks.append_messages("a", [user("a")])
    talks.append_messages("b", [user("b")])

    def back_and_forth(pair: tuple[str, str]) -> None:
        for _ in range(5):
            talks.fork(*pair)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(back_and_forth, [("a", "b"), ("b", "a")]))
    for conversation in "ab":
        assert contents(talks.load(conversation).messages) in (["a"], ["b"])


def test_A64_a_deletion_removes_everything(talks: Conversations) -> None:
    talks.save(WHOLE)
    talks.append_list("src", "l", [b"1"])
    talks.delete("src")
    with pytest.raises(NotFound):
        talks.load("src")
    assert talks.load_list("src", "l") == []
    assert talks.list() == []
    talks.delete("src")
    talks.delete("missing")
    with pytest.raises(NotFound, match="missing"):
        talks.delete("missing", missing_ok=False)


def test_A65_what_is_made_again_begins_empty(place: Place) -> None:
    talks, other = place.open(), place.open()
    talks.save(WHOLE)
    talks.append_list("src", "l", [b"1"])
    assert other.message_count("src") == 2
    talks.delete("src")
    talks.append_messages("src", [user("new")])
    for one in (talks, other, place.open()):
        assert contents(one.load("src").messages) == ["new"]
        assert one.load_list("src", "l") == []
        assert one.load("src").user_id == ""
        assert one.list() == ["src"]


def test_A67_arguments_that_were_cut_off_become_none(talks: Conversations) -> None:
    given = [{"args": args} for args in ("", '{"x":', "NaN", '{"x":1}', None, [1])]
    talks.append_messages("c", [{"role": "assistant", "tool_calls": [{"id": "t"}, *given]}])
    calls = talks.load("c").messages[0].tool_calls
    assert calls is not None
    assert [call["args"] for call in calls] == [{}, {}, {}, {}, '{"x":1}', None, [1]]


def test_A68_a_tools_answer_has_the_text_of_its_parts(talks: Conversations) -> None:
    parts = [{"type": "text", "text": "re"}, {"type": "image", "media": {}}, {"type": "text", "text": "s"}]
    message = {"role": "tool", "content": "", "tool_result": {"id": "t", "name": "f", "parts": parts, "latency_ms": 0}}
    talks.append_messages(
        "c", [message, {**message, "content": "otherwise"}, {"role": "tool", "tool_result": {"id": "t"}}]
    )
    assert contents(talks.load("c").messages) == ["res", "otherwise", ""]
    tail = talks.store.tail(records(talks, "c").name).size
    talks.save(talks.load("c"))
    assert talks.store.tail(records(talks, "c").name).size - tail < 400
    assert contents(talks.load("c").messages) == ["res", "otherwise", ""]


def test_A69_where_a_message_came_from_is_not_stored(talks: Conversations) -> None:
    talks.append_messages("c", [user("a", source="statestore"), Message(role="user", source="x")])  # type: ignore[call-arg]
    assert b"source" not in records(talks, "c").last(1)[0].body
    assert "source" not in talks.load("c").messages[0].model_dump()


def test_A70_content_stays_what_the_caller_gave(talks: Conversations) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image", "media": {"mime_type": "image/png"}}]
    talks.append_messages("c", [{"role": "user", "parts": parts}, user("own words", parts=parts)])
    first, second = talks.load("c").messages
    assert (first.content, second.content, second.parts) == ("", "own words", parts)


def test_A71_keys_that_nobody_knows_survive_byte_for_byte(talks: Conversations) -> None:
    given = b'{"x_new": {"b":1.10,"a":  1e2, "n":123456789012345678901234567890}, "role":"user","esc":"\\u00e9<"}'
    talks.append_messages("c", [given])
    body = records(talks, "c").last(1)[0].body
    assert given in body
    extra = talks.load("c").messages[0].model_extra
    assert extra == {"x_new": {"b": 1.1, "a": 100.0, "n": 123456789012345678901234567890}, "esc": "é<"}
    talks.save(talks.load("c"))
    talks.fork("c", "d")
    talks.append_messages("e", [])
    talks.fork("c", "e")
    assert given in records(talks, "e").last(1)[0].body
    for bad in (
        b'{"role":"user","x":NaN}',
        b'{"role":"user","x":1e999}',
        b'{"role":"user","x":"\\ud800"}',
        b"[]",
        b"\xff",
    ):
        with pytest.raises(ValueError):
            talks.append_messages("c", [bad])


def test_A71_a_message_has_a_role_and_fields_of_their_types(talks: Conversations) -> None:
    for bad in ({"content": "a"}, user("a", tool_calls="f"), {"role": 1}, user("a", latency_ms="1")):
        with pytest.raises(ValueError):
            talks.append_messages("c", [bad])
    with pytest.raises(TypeError, match="a message is"):
        talks.append_messages("c", ["text"])  # type: ignore[list-item]
    talks.append_messages("c", [{"role": "assistant", "content": None, "tool_calls": None}])
    assert talks.load("c").messages[0].content is None


def test_A72_any_text_comes_back(talks: Conversations) -> None:
    text = "emoji 🎉 line \u2028 para \u2029 nul \x00 <&> é e\u0301 \x7f \uffff"
    talks.append_messages("c", [user(text)])
    talks.merge_metadata("c", {text: text})
    assert contents(talks.load("c").messages) == [text]
    assert talks.load_metadata("c") == {text: text}
    with pytest.raises(ValueError, match="surrogates"):
        talks.append_messages("c", [user("\ud83d")])


def test_A73_times_keep_their_offset_and_all_their_digits(talks: Conversations) -> None:
    time = datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=timezone(timedelta(hours=-5, minutes=-30)))
    nanoseconds = "2026-01-02T03:04:05.123456789+02:00"
    talks.append_messages("c", [user("a", timestamp=time), user("b", timestamp=nanoseconds)])
    talks.append_messages("c", [Message(role="user", timestamp=time)])  # type: ignore[arg-type]
    talks.save_summary("c", Summary(created_at=time))
    found = [message.timestamp for message in talks.load("c").messages]
    assert found == ["2026-01-02T03:04:05.123456-05:30", nanoseconds, "2026-01-02T03:04:05.123456-05:30"]
    back = talks.load_summaries("c")[0].created_at
    assert (back, back.utcoffset()) == (time, time.utcoffset())
    with pytest.raises(ValueError, match="time zone"):
        talks.append_messages("c", [user("a", timestamp=datetime(2026, 1, 1))])


def test_A74_a_listing_shows_a_hundred_ids_in_order_unless_told(talks: Conversations) -> None:
    assert talks.list() == []
    many = 120 if not talks.store.capabilities.boundaries else 5
    ids = [f"{n:03}" for n in range(many)]
    for conversation in reversed(ids):
        talks.append_messages(conversation, [])
    assert talks.list() == ids[:100]
    assert talks.list(limit=many) == ids
    assert talks.list(ListOptions(limit=2, offset=1)) == ids[1:3]
    assert talks.list(limit=2, sort_order="DESC") == ids[:-3:-1]


def test_A76_what_was_written_last_comes_first(talks: Conversations) -> None:
    for number, conversation in enumerate("bca"):
        records(talks, conversation).append(
            "conversation.messages", b'{"messages":[]}', expect=1, time=f"2026-01-01T00:00:0{number}Z"
        )
    assert talks.list(sort_by="updated_at") == ["a", "c", "b"]
    for order in ("asc", "ASC"):
        assert talks.list(sort_by="updated_at", sort_order=order) == ["b", "c", "a"]
    talks.append_list("b", "l", [b"1"])
    assert talks.list(sort_by="updated_at") == ["b", "a", "c"]


def test_A77_a_conversation_is_as_old_as_its_first_message(talks: Conversations) -> None:
    now = datetime.now(UTC)
    for conversation, hours in (("1", 3), ("2", 1), ("3", 2)):
        talks.append_messages(conversation, [user("a", timestamp=now - timedelta(hours=hours)), user("b")])
    assert talks.list(sort_by="created_at", sort_order="desc") == ["2", "3", "1"]
    assert talks.list(sort_by="created_at") == ["2", "3", "1"]


def test_A78_without_a_time_it_is_as_old_as_its_log_and_ids_break_ties(talks: Conversations) -> None:
    old = "2026-01-01T00:00:00Z"
    for conversation in "bac":
        body = b'{"messages":[{"role":"user","timestamp":"0001-01-01T00:00:00Z"}]}'
        records(talks, conversation).append("conversation.messages", body, expect=1, time=old)
    talks.append_messages("d", [user("a", timestamp="2025-01-01T00:00:00Z")])
    talks.append_messages("e", [user("a", timestamp="no time")])
    assert talks.list(sort_by="created_at", sort_order="asc") == ["d", "a", "b", "c", "e"]
    assert talks.list(sort_by="created_at") == ["e", "a", "b", "c", "d"]
    talks.save(ConversationState(id="a", messages=[Message(role="user", timestamp="2024-01-01T00:00:00Z")]))
    assert talks.list(sort_by="created_at", sort_order="asc", limit=2) == ["a", "d"]


def test_A79_options_that_mean_nothing_are_refused(talks: Conversations) -> None:
    talks.append_messages("c", [])
    assert talks.list(offset=5) == []
    for bad in ({"offset": -1}, {"limit": -1}, {"sort_by": "bogus"}, {"sort_order": "up"}, {"unknown": 1}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            talks.list(**bad)
    with pytest.raises(TypeError, match="not both"):
        talks.list(ListOptions(), limit=1)


def test_A81_a_conversation_goes_with_its_user(talks: Conversations) -> None:
    talks.save(ConversationState(id="a", user_id="u1"))
    talks.save(ConversationState(id="b", user_id="u"))
    talks.save(ConversationState(id="a", user_id="u2"))
    assert talks.list(user_id="u1") == []
    assert talks.list(user_id="u2") == ["a"]
    assert talks.list(user_id="u") == ["b"]


HOSTILE = [
    *("../outside", "x/../../outside", "q/..", "a/b", "a", "A", ".", "..", "...", ".hidden", "a.", "a ", " a", "a%2Fb"),
    *(
        "%41",
        "%",
        "a\x00b",
        "a\nb",
        "é",
        "e\u0301",
        "É",
        "CON",
        "con",
        "a\\b",
        "~",
        "-rf",
        "*",
        "🎉",
        "\ud800",
        "Straße",
    ),
    *("STRASSE", "conversations/a", "\ufb01", "fi", "\u0130", "i\u0307", "x" * 200, "X" * 66),
]


def test_A82_any_id_comes_back_or_is_refused_and_no_two_are_one(talks: Conversations) -> None:
    kept = HOSTILE if not talks.store.capabilities.boundaries else HOSTILE[:12]
    for conversation in kept:
        talks.append_messages(conversation, [user(ascii(conversation))])
    assert talks.list(limit=100) == sorted(kept)
    for conversation in kept:
        assert contents(talks.load(conversation).messages) == [ascii(conversation)]
        assert talks.load(conversation).id == conversation
    logs = [info.name for info in talks.store.list()]
    assert len({unicodedata.normalize("NFKC", log).casefold() for log in logs}) == len(kept) == len(logs)
    assert all(log.startswith("conversations/") for log in logs)
    talks.delete(kept[0])
    assert talks.list(limit=100) == sorted(kept[1:])
    for conversation in ("x" * 201, "X" * 67, "é" * 34):
        with pytest.raises(InvalidName, match="too long"):
            talks.append_messages(conversation, [])
    with pytest.raises(TypeError, match="int"):
        talks.load(1)  # type: ignore[arg-type]


def test_A83_two_scopes_know_nothing_of_each_other(place: Place) -> None:
    scopes = [place.open(prefix=prefix) for prefix in ("teams/a", "teams/a/b", "teams/ab", "teams/%41")]
    for number, scope in enumerate(scopes):
        with pytest.raises(NotFound):
            scope.load("c")
        scope.save(ConversationState(id="c", user_id="u", metadata={"n": number}))
        scope.append_list("c", "l", [b"%d" % number])
        scope.fork("c", "d")
    scopes[0].delete("c")
    assert scopes[0].list() == ["d"]
    assert scopes[0].load_list("c", "l") == []
    for number, scope in enumerate(scopes[1:], 1):
        assert scope.list(user_id="u") == ["c", "d"]
        assert scope.load_metadata("c") == {"n": number}
        assert scope.load_list("d", "l") == [b"%d" % number]
        assert scope.log_len("c") == 0


def test_A83_logs_that_are_no_conversations_are_not_listed(talks: Conversations) -> None:
    talks.append_messages("c", [])
    for name in ("conversations/a/b", "conversations/A", "conversations/%FF", "conversation", "other/c"):
        RecordLog(talks.store, name).append("message", b"", expect=1)
    assert talks.list() == ["c"]


def test_A89_what_nobody_has_written_for_long_is_swept(place: Place) -> None:
    talks = place.open()
    now = datetime.now(UTC)
    for conversation, hours in (("old", 48), ("revived", 48), ("young", 1)):
        time = (now - timedelta(hours=hours)).isoformat()
        records(talks, conversation).append("conversation.messages", b'{"messages":[]}', expect=1, time=time)
    talks.append_list("revived", "l", [b"1"])
    talks.fork("old", "forked")
    assert list(talks.sweep(0, dry_run=False)) == []
    assert [swept for swept, _ in talks.sweep(timedelta(hours=24))] == ["old"]
    assert talks.list() == ["forked", "old", "revived", "young"]
    [(swept, written)] = talks.sweep(24 * 3600, dry_run=False)
    assert (swept, (now - written).total_seconds()) == ("old", pytest.approx(48 * 3600, abs=1))
    assert talks.list() == ["forked", "revived", "young"]
    with pytest.raises(NotFound):
        talks.fork("old", "again")


def test_A89_what_is_written_while_others_are_swept_stays(talks: Conversations) -> None:
    for conversation in "abc":
        records(talks, conversation).append(
            "conversation.messages", b'{"messages":[]}', expect=1, time="2026-01-01T00:00:00Z"
        )
    swept = talks.sweep(1, dry_run=False)
    assert next(swept)[0] == "a"
    talks.append_messages("b", [user("just now")])
    assert [conversation for conversation, _ in swept] == ["c"]
    assert talks.list() == ["b"]


def test_A91_reading_keeps_nothing_alive(talks: Conversations) -> None:
    time = "2026-01-01T00:00:00Z"
    records(talks, "c").append("conversation.messages", b'{"messages":[]}', expect=1, time=time)
    tail = talks.store.tail(records(talks, "c").name)
    talks.load("c")
    talks.load_recent_messages("c", 1)
    talks.load_metadata("c")
    assert talks.store.tail(records(talks, "c").name) == tail
    assert [swept for swept, _ in talks.sweep(1)] == ["c"]


def test_A92_parts_of_a_second_count(talks: Conversations) -> None:
    talks.append_messages("c", [])
    written = talks.load("c").last_accessed_at
    assert list(talks.sweep(0.1, now=written + timedelta(milliseconds=100), dry_run=False)) == []
    assert [swept for swept, _ in talks.sweep(0.1, now=written + timedelta(milliseconds=101), dry_run=False)] == ["c"]
    with pytest.raises(NotFound):
        talks.fork("c", "d")


def test_A93_A94_a_closed_object_refuses_every_call(talks: Conversations) -> None:
    talks.append_messages("c", [])
    talks.close()
    talks.close()
    calls = [
        lambda: talks.load("c"),
        lambda: talks.save(ConversationState(id="c")),
        lambda: talks.fork("c", "d"),
        lambda: talks.delete("c"),
        lambda: talks.list(),
        lambda: talks.sweep(1),
        lambda: talks.rebuild(),
        lambda: talks.append_messages("c", []),
        lambda: talks.log_append("c", 0, []),
        lambda: talks.log_load("c"),
        lambda: talks.log_len("c"),
        lambda: talks.load_recent_messages("c", 1),
        lambda: talks.message_count("c"),
        lambda: talks.merge_metadata("c", {}),
        lambda: talks.load_metadata("c"),
        lambda: talks.save_summary("c", Summary()),
        lambda: talks.load_summaries("c"),
        lambda: talks.append_list("c", "l", []),
        lambda: talks.load_list("c", "l"),
        lambda: talks.list_len("c", "l"),
    ]
    public = {name for name in dir(Conversations) if name[0] != "_"} - {"close", "store", "prefix"}
    assert len(calls) == len(public)
    for call in calls:
        with pytest.raises(Closed):
            call()
    assert talks.store.list() is not None  # the store is the caller's


def test_A95_a_wrong_argument_is_refused_before_a_closed_object(talks: Conversations) -> None:
    talks.close()
    with pytest.raises(TypeError):
        talks.save(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidName):
        talks.load("")
    with pytest.raises(ValueError, match="list name"):
        talks.append_list("c", "", [])
    with pytest.raises(ValueError, match="-1"):
        talks.log_append("c", -1, [])
    with pytest.raises(TypeError):
        talks.append_messages("c", [object()])  # type: ignore[list-item]


def test_A97_what_one_has_written_another_sees_at_once(place: Place) -> None:
    one, other = place.open(), place.open()
    for number in range(5):
        one.append_messages("c", [user(str(number))])
        assert other.message_count("c") == number + 1
        other.merge_metadata("c", {f"k{number}": number})
        assert len(one.load_metadata("c")) == number + 1
    assert whole(one, "c") == whole(other, "c")


def test_A100_threads_that_append_the_same_store_it_once(talks: Conversations) -> None:
    ten = [user(str(n)) for n in range(10)]
    with ThreadPoolExecutor(8) as pool:
        totals = list(pool.map(lambda _: talks.log_append("c", 0, ten), range(8)))
    assert totals == [10] * 8
    assert contents(talks.log_load("c")) == [str(n) for n in range(10)]


def test_A101_writers_in_objects_that_know_nothing_of_each_other_lose_nothing(place: Place) -> None:
    times = 20 if not place.open().store.capabilities.boundaries else 3

    def work(number: int) -> None:
        talks = place.open()
        for time in range(times):
            talks.merge_metadata("c", {f"{number}:{time}": time})
            talks.append_messages("c", [user(f"{number}:{time}")])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    found = place.open().load("c")
    expected = {f"{number}:{time}" for number in range(4) for time in range(times)}
    assert set(found.metadata) == expected
    assert sorted(contents(found.messages)) == sorted(expected)
