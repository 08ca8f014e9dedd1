"""The page for authors says everything that there is to say."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import pytest

from statestore import plugins
from statestore.plugins import Backend, Wrapping, hookspecs

DOCS = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()
HOOKS = [hook for hook in vars(hookspecs).values() if hasattr(hook, "statestore_spec")]


def test_there_are_two_hooks():
    assert [hook.__name__ for hook in HOOKS] == ["statestore_backends", "statestore_wrappers"]


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_documented_with_its_signature(hook):
    signature = str(inspect.signature(hook)).replace("'", "")
    assert f"### `{hook.__name__}{signature}`" in DOCS
    assert len(inspect.getdoc(hook).split("\n")) == 1


@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field.name) for kind in (Backend, Wrapping) for field in dataclasses.fields(kind)]
)
def test_every_field_is_documented_on_the_page_and_in_its_docstring(kind, field):
    section = DOCS.split(f"\n## `{kind.__name__}`\n")[1].split("\n## ")[0]
    assert f"| `{field}` |" in section
    assert f"\n    {field}: " in inspect.getdoc(kind)


def test_what_is_public_is_sorted_and_has_a_docstring():
    assert plugins.__all__ == sorted(plugins.__all__)
    for name in plugins.__all__:
        assert name == "hookimpl" or inspect.getdoc(getattr(plugins, name)).split("\n")[0].endswith(".")
