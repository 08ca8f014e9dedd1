"""``plugins``: every backend, and why one does not work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import Run


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    """A directory with a distribution whose plugin fails on import and one that claims a taken scheme, installed."""
    twin = (
        "from statestore.plugins import Backend, hookimpl\n"
        "from statestore_memory.plugin import MemoryOptions\n"
        "@hookimpl\n"
        "def statestore_backends():\n"
        "    schemes = ('memory', 'twin')\n"
        "    return [Backend(name='twin', schemes=schemes, options=MemoryOptions, open=print, summary='two')]\n"
    )
    for name, code in (("broken", "raise RuntimeError('\\x1b[31mno such luck')"), ("twin", twin)):
        (tmp_path / f"{name}_plugin.py").write_text(code)
        info = tmp_path / f"{name}_plugin-2.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-plugin\nVersion: 2.5\n")
        (info / "entry_points.txt").write_text(f"[statestore]\n{name} = {name}_plugin\n")
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])}


def test_every_backend_is_shown_with_where_it_comes_from(run: Run) -> None:
    rows = {row["plugin"]: row for row in run("plugins", "--json").lines}
    assert rows["local"]["distribution"] == rows["memory"]["distribution"] == "statestore"
    (memory,) = rows["memory"]["backends"]
    assert memory["schemes"] == ["memory"]
    assert memory["capabilities"]["holds"] is True
    assert memory["capabilities"]["durable"] is False
    assert rows["local"]["backends"][0]["schemes"] == ["file"]
    (cached,) = [each for each in rows["wrappers"]["wrappers"] if each["name"] == "cached"]
    assert (cached["name"], cached["options"]) == ("cached", ["cached_directory", "cached_limit"])
    assert rows["memory"]["wrappers"] == rows["wrappers"]["backends"] == []
    told = run("plugins").out
    assert "cached  cached::\n" in told
    assert "memory  memory://\n" in told
    assert "\n  can      atomic_append, " in told
    assert run("plugins", "--strict").status == 0


def test_one_that_fails_is_shown_with_the_reason_and_the_others_work(spawn: Run, site: dict[str, str]) -> None:
    ran = spawn("plugins", env=site)
    assert (ran.status, ran.err) == (0, "")
    assert (
        "broken  failed to load\n  from     broken-plugin 2.5\n  why      RuntimeError: \\x1b[31mno such luck"
        in ran.out
    )
    assert "local  file://" in ran.out
    assert spawn("plugins", "--strict", env=site).status == 1
    rows = {row["plugin"]: row for row in spawn("plugins", "--json", env=site).lines}
    assert rows["broken"]["error"] == "RuntimeError: \x1b[31mno such luck"
    assert rows["broken"]["backends"] == []
    assert rows["twin"]["contested"] == ["memory://"]
    assert rows["memory"]["contested"] == ["memory://"]


def test_one_that_is_disabled_is_shown_so(spawn: Run, site: dict[str, str]) -> None:
    env = site | {"STATESTORE_PLUGINS_DISABLE": "broken,twin"}
    ran = spawn("plugins", "--strict", env=env)
    assert ran.status == 0
    assert "broken  disabled" in ran.out
    assert [row["plugin"] for row in spawn("plugins", "--json", env=env).lines if row["disabled"]] == ["broken", "twin"]
