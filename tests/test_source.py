"""What the source never does near records: text, appends through modes, and looking before a create."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NEAR_RECORDS = sorted(
    path
    for place in (
        "statestore/records",
        "statestore/sessions",
        "statestore/conversations",
        "statestore/wrappers",
        "backends",
    )
    for path in (ROOT / place).rglob("*.py")
    if path.name != "faultyfs.py"  # a file system itself: it passes on what it is asked
)


SINGLE_WRITER = "_other.py"  # it writes only where the caller says that nobody else does, and so may look first


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Call):
            yield (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")), node


@pytest.mark.parametrize("path", NEAR_RECORDS, ids=[str(path.relative_to(ROOT)) for path in NEAR_RECORDS])
def test_records_are_bytes_and_no_create_is_preceded_by_a_look(path: Path) -> None:
    for name, call in calls(path):
        assert name not in {"splitlines", "read_text", "write_text", "readline", "readlines"}, ast.unparse(call)
        if path.name != SINGLE_WRITER:
            looks = {"exists", "is_file", "isfile", "lexists"}
            assert name not in looks or "entry" in ast.unparse(call), ast.unparse(call)
        if name == "open" and isinstance(call.func, ast.Name):
            modes = [ast.unparse(argument) for argument in call.args[1:2]]
            assert modes, f"text mode: {ast.unparse(call)}"
            assert all("b" in mode and "a" not in mode for mode in modes), ast.unparse(call)


def test_reading_a_body_that_would_run_in_other_systems_imports_and_calls_nothing() -> None:
    """A stored state is bytes: no pickle, no type tags, nothing that is looked up by a name in the data."""
    code = """
import sys
from statestore import RecordLog, Sessions, open_store
store = open_store("memory://")
bodies = [
    b"cos\\nsystem\\n(S'touch owned'\\ntR.",
    b'{"py/object": "antigravity.This", "__class__": "antigravity"}',
    b'{"lc": 1, "type": "constructor", "id": ["antigravity", "x"]}',
    b"!!python/object/apply:os.system ['touch owned']",
]
with Sessions(store).start() as session:
    for body in bodies:
        session.append("message", body, type="application/json")
loaded = set(sys.modules)
transcript = Sessions(store).load(session.id)
assert [record.body for record in transcript.context()] == bodies
assert transcript.status() == "open"
new = set(sys.modules) - loaded
assert not new & {"antigravity", "pickle", "yaml", "marshal", "shelve"}, new
assert "antigravity" not in sys.modules
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
