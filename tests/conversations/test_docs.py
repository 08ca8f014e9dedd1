"""The pages say what is so: every call, every kind of record and what its body holds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec

from statestore.conversations import Conversations
from statestore.conversations._changes import KINDS, MEDIA_TYPE
from statestore.conversations._fold import RECENT
from statestore.conversations._log import _SHARE, INTERVAL

DOCS = Path(__file__).parents[2] / "docs"
FORMAT = (DOCS / "format.md").read_text(encoding="utf-8").partition("## Conversations")[2]


def test_the_page_has_every_call() -> None:
    page = (DOCS / "conversations.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(\w+)\(", page, re.MULTILINE))
    assert listed == {name for name, value in vars_of(Conversations).items() if name[0] != "_" and callable(value)}


def vars_of(kind: type) -> dict[str, object]:
    return {name: getattr(kind, name) for name in dir(kind)}


def test_the_format_has_every_kind_and_every_member() -> None:
    rows = re.findall(r"^\| `(conversation\.\w+)` \| ([^|]*) \|", FORMAT, re.MULTILINE)
    listed = {kind: re.findall(r"`(\w+)`", members) for kind, members in rows}
    assert listed == {
        kind: [field.encode_name for field in msgspec.structs.fields(change)] for kind, change in KINDS.items()
    }


def test_the_format_has_the_numbers() -> None:
    words = " ".join(FORMAT.split())
    assert f"once {INTERVAL} records and {'eight' if _SHARE == 8 else _SHARE} times as many bytes" in words
    assert f"far enough for {RECENT} messages" in words
    assert MEDIA_TYPE in words


def test_the_package_alone_loads_no_pydantic_and_conversations_do() -> None:
    code = """
import sys, statestore
assert "pydantic" not in sys.modules and "Conversations" in dir(statestore)
assert statestore.Conversations.__module__.startswith("statestore.conversations")
assert "pydantic" in sys.modules
"""
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
