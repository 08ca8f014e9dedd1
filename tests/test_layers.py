"""A backend has no privilege: it imports what a stranger's would, and nothing else of ours."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ALLOWED = {"statestore.store", "statestore.names", "statestore.errors", "statestore.plugins"}
BACKENDS = sorted(path.name for path in (ROOT / "backends").iterdir() if (path / "__init__.py").is_file())


def imports(path: Path) -> set[str]:
    """The modules that a file imports; ``from statestore import names`` counts as ``statestore.names``."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            whole = node.module == "statestore"
            found.update(f"statestore.{alias.name}" for alias in node.names) if whole else found.add(node.module)
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_imports_the_contract_and_the_plugin_marker_alone(backend: str) -> None:
    files = list((ROOT / "backends" / backend).rglob("*.py"))
    assert files
    ours = {name for path in files for name in imports(path) if name.split(".")[0] == "statestore"}
    assert ours
    assert ours <= ALLOWED
    others = {name.split(".")[0] for path in files for name in imports(path)} & (set(BACKENDS) - {backend})
    assert not others


@pytest.mark.parametrize("top", ["statestore.bench", "statestore.conformance"])
def test_only_the_command_line_imports_what_tries_stores(top: str) -> None:
    for path in (ROOT / "statestore").rglob("*.py"):
        if path.is_relative_to(ROOT / top.replace(".", "/")) or path.is_relative_to(ROOT / "statestore" / "cli"):
            continue
        assert not {name for name in imports(path) if name == top or name.startswith(f"{top}.")}, path


def test_the_framework_imports_no_backend() -> None:
    for path in (ROOT / "statestore").rglob("*.py"):
        assert not {name.split(".")[0] for name in imports(path)} & set(BACKENDS), path
