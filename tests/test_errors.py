"""The tree of errors: one root, facts for programs, one line for people."""

from __future__ import annotations

import copy
import pickle
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statestore import errors
from statestore.errors import (
    Conflict,
    Corrupt,
    Exists,
    Held,
    InvalidName,
    NotFound,
    PluginError,
    StateStoreError,
    Unavailable,
)
from statestore.store import Holder, Tail

KINDS = [getattr(errors, name) for name in errors.__all__]


def drawn() -> dict[str, set[str]]:
    """Return the tree in the module's docstring: each error, and what it also is."""
    rows = re.findall(r"^    [├└]── (\w+) +(?:\(also (\w+)\))?", errors.__doc__, re.MULTILINE)
    return {name: {also} if also else set() for name, also in rows}


def test_the_tree_that_is_drawn_is_the_tree_that_is():
    real = {
        kind.__name__: {base.__name__ for base in kind.__bases__ if base is not StateStoreError}
        for kind in KINDS
        if kind is not StateStoreError
    }
    assert drawn() == real
    assert all(StateStoreError in kind.__bases__ for kind in KINDS if kind is not StateStoreError)
    assert StateStoreError.__bases__ == (Exception,)


def test_every_error_of_the_module_is_public_and_listed_in_order():
    defined = {
        name for name, thing in vars(errors).items() if isinstance(thing, type) and thing.__module__ == errors.__name__
    }
    assert defined == set(errors.__all__)
    assert errors.__all__ == sorted(errors.__all__)


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [(NotFound, LookupError), (Exists, FileExistsError), (InvalidName, ValueError)],
)
def test_an_error_is_also_the_builtin_that_people_catch(kind, builtin):
    with pytest.raises(builtin):
        raise kind("no", log="a")


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_is_followed_by_its_facts_in_the_order_given(kind):
    error = kind("do this", log="a/b", offset=3, expected=Tail(1, "r"), reason="two words", nothing=None, empty="")
    assert str(error).startswith("do this log=a/b offset=3 expected=1@r reason='two words' empty=''")
    assert error.message == "do this"
    assert error.facts == {"log": "a/b", "offset": 3, "expected": Tail(1, "r"), "reason": "two words", "empty": ""}
    assert re.search(r" \w+=\S+$", str(error))


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_without_facts_is_its_message(kind):
    assert str(kind("do this")).startswith("do this")
    assert kind("do this").facts == {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_an_error_survives_pickling_and_copying(kind, again):
    error = kind("do this", log="a", found=Tail(3, "r"))
    other = again(error)
    assert type(other) is kind
    assert (str(other), other.message, other.facts) == (str(error), error.message, error.facts)


@pytest.mark.parametrize(
    "flags", [{}, {"retry": True}, {"effect_unknown": True}, {"retry": True, "effect_unknown": True}]
)
def test_unavailable_says_whether_to_try_again_and_survives_pickling(flags):
    error = Unavailable("the disk is full", log="a", **flags)
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert (one.retry, one.effect_unknown) == (flags.get("retry", False), flags.get("effect_unknown", False))
        assert ("retry=yes" in str(one)) == one.retry
        assert ("retry=no" in str(one)) != one.retry
        assert ("effect=unknown" in str(one)) == one.effect_unknown
        assert one.facts == {"log": "a"}


@given(st.text(st.characters(codec=None)))
@example("a=b")
@example("'")
@example('"')
@example("a b")
@example("a\nlast=end")
@example("\x1b[2J")
@example("")
def test_no_fact_can_forge_a_line_or_another_fact(text):
    shown = str(PluginError("do this", first=text, last="end"))
    assert shown.isprintable()
    assert shown.isascii()
    assert shown.startswith("do this first=")
    assert shown.endswith(" last=end")
    # What stands between the first fact and the last is one word, or one quoted text.
    value = shown.removeprefix("do this first=").removesuffix(" last=end")
    if value[:1] in ("'", '"'):
        assert eval(value) == text
    else:
        assert value == text
        assert not set(value) & set(" '\"=")


def test_a_fact_that_is_no_text_is_shown_on_one_line_too():
    class Odd:
        def __str__(self) -> str:
            return "a\nb=c"

    assert str(PluginError("do this", odd=Odd())) == r"do this odd='a\nb=c'"


def test_what_a_program_needs_has_a_name():
    conflict = Conflict("no", expected=Tail(1, "r"), found=Tail(2, "r"))
    assert (conflict.expected, conflict.found) == (Tail(1, "r"), Tail(2, "r"))
    holder = Holder(7, "host", "2026-09-28T12:00:00Z")
    assert Held("no", holder=holder).holder is holder
    assert "holder='process 7 on host since 2026-09-28T12:00:00Z'" in str(Held("no", holder=holder))
    corrupt = Corrupt("no", record=3, offset=120)
    assert (corrupt.record, corrupt.offset) == (3, 120)
    for error in (Conflict("no"), Held("no"), Corrupt("no")):
        assert {getattr(error, name) for name in ("found", "holder", "record") if hasattr(error, name)} == {None}


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_says_what_it_means(kind):
    assert kind.__doc__
    assert kind.__doc__.split("\n")[0].endswith((".", "refuses or fails at."))
