"""What may be a name, and how any text becomes a part of one."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statestore.errors import InvalidName
from statestore.names import MAX_NAME, MAX_SEGMENT, check, check_prefix, is_name, quote, unquote

ANY_TEXT = st.text(st.characters(codec=None), max_size=66)  # surrogates too
NAME_TEXT = st.text("aZ09._~-%2F/é\n", max_size=12)

NAMES = [
    "a",
    "session-1",
    "A",
    "_",
    "~",
    "-",
    "a.b",
    "a..b",
    "a.",
    "a/b/c",
    "%2F",
    "%2E%2E",
    "a%FF",
    "x.state/y",
    "CON",
    "s" * 200,
    "%41" * 66 + "ab",
    "s" * 197 + "%20",
    "/".join(["s" * 174] * 4) + "a",
]

HOSTILE = [
    "",
    ".",
    "..",
    "...",
    ".hidden",
    "a/.b",
    "a/..",
    "../a",
    "a/../b",
    "/",
    "/a",
    "a/",
    "a//b",
    "a\\b",
    "a b",
    " a",
    "a ",
    "a\n",
    "\na",
    "a\0",
    "\0",
    "a\r",
    "a\tb",
    "a\x7f",
    "a\x1b[31m",
    "a:b",
    "a?b",
    "a#b",
    "a*b",
    "a|b",
    'a"b',
    "a'b",
    "a!b",
    "a+b",
    "a@b",
    "a,b",
    "a;b",
    "a$b",
    "a&b",
    "a(b)",
    "a<b>",
    "a=b",
    "[a]",
    "{a}",
    "a^b",
    "a`b",
    "é",
    "a\u2028b",
    "\u202ea",
    "\ud800",
    "１",  # a digit to Unicode
    "ａ",  # a letter to Unicode
    "a\u0301",
    "%",
    "a%",
    "%2",
    "%2f",
    "%2g",
    "%G0",
    "%%20",
    "a%/b",
    "%2/F",
    "s" * 201,
    "a/" + "s" * 201,
    "%41" * 67,
    "s" * 300,
    "/".join(["s" * 174] * 4) + "aa",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_given_back_as_it_is(name):
    assert is_name(name)
    assert check(name) is name


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_name_is_refused_with_the_reason(name):
    assert not is_name(name)
    with pytest.raises(InvalidName) as caught:
        check(name)
    assert str(caught.value).startswith("not a log's name: ")
    assert len(caught.value.facts["name"]) <= 80
    assert str(caught.value).isprintable()
    assert str(caught.value).isascii()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        ("a//b", "a segment is empty"),
        ("a/.b", "begins with a dot"),
        ("s" * 201, "201 characters and 200"),
        ("s/" * 350 + "s", "701 characters and 700"),
        ("a b", "names.quote"),
        ("a%2f", "upper-case escapes"),
    ],
)
def test_the_reason_says_what_is_wrong(name, reason):
    with pytest.raises(InvalidName, match=reason):
        check(name)


@pytest.mark.parametrize("name", [None, 3, b"a", ["a"]])
def test_what_is_no_text_is_a_type_error(name):
    with pytest.raises(TypeError, match="is a str"):
        check(name)
    with pytest.raises(TypeError, match="is a str"):
        check_prefix(name)


def test_a_segment_has_at_most_200_characters_and_a_name_700():
    assert (MAX_SEGMENT, MAX_NAME) == (200, 700)
    assert is_name("s" * 200)
    assert not is_name("s" * 201)
    assert is_name("s/" * 349 + "ss")
    assert not is_name("s/" * 350 + "s")


@given(NAME_TEXT)
def test_a_name_is_what_the_description_says(text):
    def segment(part: str) -> bool:
        plain = part
        for escape in ("%29", "%92", "%22", "%99", "%F2", "%2F", "%9F", "%F9", "%FF", "%00", "%02", "%20", "%90",
                       "%09", "%0F", "%F0"):  # fmt: skip
            plain = plain.replace(escape, "0")
        return 1 <= len(part) <= 200 and part[0] != "." and set(plain) <= set("aZ029F._~-")

    assert is_name(text) == all(segment(part) for part in text.split("/"))


@given(ANY_TEXT)
@example("")
@example(".")
@example("..")
@example("\ud800")
@example("\udfff\ud800")
@example("\U0001f600")
@example("%FF")
@example("%2E")
@example("a/b")
@example("\0\n\x85\u2028")
def test_any_text_becomes_a_segment_and_comes_back(text):
    try:
        segment = quote(text)
    except InvalidName:
        assert len(text.encode("utf-8", "surrogatepass")) * 3 > MAX_SEGMENT
        return
    assert is_name(segment)
    assert "/" not in segment
    assert unquote(segment) == text


@given(ANY_TEXT.filter(lambda text: len(text) <= 16), ANY_TEXT.filter(lambda text: len(text) <= 16))
@example("", "\xff")
@example("", "%FF")
@example(".", "%2E")
@example("a", "A")
@example("\ud83d\ude00", "\U0001f600")
def test_two_texts_never_share_a_segment(one, two):
    assert (quote(one) == quote(two)) == (one == two)


@given(NAME_TEXT)
@example("%FF")
@example("%2E")
@example("a%41")
@example("%C3")
@example("%c3%a9")
def test_a_segment_is_unquoted_only_if_quote_makes_it(segment):
    try:
        text = unquote(segment)
    except InvalidName:
        return
    assert quote(text) == segment


@pytest.mark.parametrize(
    "segment", ["", ".", ".a", "a%41", "%C3", "%c3%a9", "a b", "a/b", "%", "%2", "%FF%FF", "é", "\ud800"]
)
def test_what_quote_never_makes_is_refused(segment):
    with pytest.raises(InvalidName):
        unquote(segment)


def test_plain_text_stands_for_itself():
    assert quote("Session_1.a~b-c") == "Session_1.a~b-c"
    assert quote("a/b c") == "a%2Fb%20c"
    assert (quote(""), quote("."), quote("..")) == ("%FF", "%2E", "%2E.")


def test_a_text_that_is_too_long_is_refused_escapes_counted():
    assert len(quote("s" * 200)) == 200
    assert len(quote("é" * 33)) == 198
    for text, length in [("s" * 201, 201), ("é" * 34, 204), ("." + "s" * 198, 201)]:
        with pytest.raises(InvalidName, match="shorten or hash") as caught:
            quote(text)
        assert caught.value.facts["length"] == length


@pytest.mark.parametrize("name", NAMES)
def test_every_beginning_of_a_name_may_be_a_prefix(name):
    for end in range(len(name) + 1):
        assert check_prefix(name[:end]) == name[:end]


@pytest.mark.parametrize(
    "prefix",
    [".", "..", "/", "a//", "a/.", "a b", "é", "%f", "%G", "a\n", "a\0", "s" * 201, "\ud800", "s/" * 350 + "s"],
)
def test_what_no_name_begins_with_is_no_prefix(prefix):
    with pytest.raises(InvalidName):
        check_prefix(prefix)


@given(NAME_TEXT, st.integers(0, 12))
def test_a_prefix_of_a_name_is_never_refused(text, end):
    if is_name(text):
        check_prefix(text[:end])


def test_names_sort_alike_as_text_and_as_bytes():
    names = sorted(NAMES)
    assert sorted(names, key=str.encode) == names


def test_a_refusal_survives_pickling():
    with pytest.raises(InvalidName) as caught:
        check("../a")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.facts) == (str(caught.value), caught.value.facts)
