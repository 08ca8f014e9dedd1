"""Docstrings as the site shows them: Sphinx's roles become links, and its literal blocks Markdown's."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|data|func|meth|mod):`(~?)([\w.]+)`")
LITERAL = re.compile(r"^ *::\n|(?<=\S):(?=:$)", re.MULTILINE)


def _link(role: re.Match[str]) -> str:
    short, path = role.groups()
    name = path.rpartition(".")[2]
    shown = f"`{name if short else path}`"
    ours = path.startswith("statestore") or "." not in path
    return f"[{shown}][{path}]" if ours and not name.startswith("_") else shown


class Docstrings(griffe.Extension):
    """Rewrites the docstring of each object that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one."""
        if obj.docstring:
            obj.docstring.value = LITERAL.sub("", ROLE.sub(_link, obj.docstring.value))

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Rewrite that of a package at the top, which is no object of another one."""
        self.on_object(obj=pkg)
