"""The base of wrappers passes on every call of the contract, with all that was given, and gives back the answer."""

from __future__ import annotations

import inspect
from unittest.mock import create_autospec

import pytest

from statestore.store import NEW, Capabilities, Store, Tail
from statestore.wrappers import Wrapper

PUBLIC = [name for name in vars(Store) if not name.startswith("_")]
CALLS = {
    "append": (("a", b"1"), {"at": NEW}),
    "read": (("a", 1, 2), {}),
    "copy": (("a", "b"), {"stop": 3}),
    "list": (("a",), {"after": "a1", "tails": True}),
    "tail": (("a",), {}),
    "snapshot": (("a",), {}),
    "stream": (("a", 1, 2), {}),
    "wait": (("a", Tail(1, "r"), 0.5), {}),
    "boundary": (("a", 7), {}),
    "delete": (("a",), {"at": Tail(1, "r")}),
    "hold": (("a",), {}),
    "holder": (("a",), {}),
    "location": (("a",), {}),
    "flush": (("a",), {}),
    "cut": (("a", 1), {"at": Tail(2, "r")}),
    "sidecar": (("a",), {}),
    "close": ((), {}),
}


@pytest.fixture
def inner():
    store = create_autospec(Store, instance=True)
    store.capabilities = Capabilities(cuts=True, max_append=7)
    store.maintenance = object()
    return store


def test_every_public_name_of_the_contract_is_passed_on():
    assert {name for name in PUBLIC if name not in vars(Wrapper)} == set()
    assert set(PUBLIC) == {*CALLS, "maintenance"}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_taken_as_the_contract_has_it(name):
    assert inspect.signature(getattr(Wrapper, name)) == inspect.signature(getattr(Store, name))


@pytest.mark.parametrize("name", CALLS)
def test_a_call_and_its_answer_are_passed_on_whole(inner, name):
    positional, named = CALLS[name]
    answer = getattr(Wrapper(inner), name)(*positional, **named)
    called = getattr(inner, name)
    called.assert_called_once()
    meant = inspect.signature(getattr(Store, name)).bind(None, *positional, **named)
    asked = inspect.signature(getattr(Store, name)).bind(None, *called.call_args.args, **called.call_args.kwargs)
    asked.apply_defaults()
    meant.apply_defaults()
    assert asked == meant
    assert answer is (None if name == "close" else called.return_value)


def test_capabilities_and_maintenance_are_the_inner_stores(inner):
    assert Wrapper(inner).capabilities is inner.capabilities
    assert Wrapper(inner).maintenance is inner.maintenance


def test_a_repr_shows_what_is_wrapped(inner):
    inner.__repr__ = lambda self: "Inner()"
    assert repr(Wrapper(Wrapper(inner))) == "Wrapper(Wrapper(Inner()))"


def test_nothing_that_needs_more_packages_is_loaded_with_the_wrappers():
    import subprocess
    import sys

    code = "import sys, statestore.wrappers; print({'fsspec', 'pydantic', 'rich'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
