"""Real distributions, built and installed by pip, as a process of its own finds them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()
PROJECT, SHELF = re.findall(r"^```(?:toml|python)\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)

RIVAL = """
from pydantic import BaseModel
from statestore.plugins import Backend, hookimpl

class Options(BaseModel):
    pass

@hookimpl
def statestore_backends():
    return [Backend(name="rival", schemes=("memory", "rival"), options=Options, open=lambda *_: None, summary="no")]
"""

PLUGINS = {
    "shelf": SHELF,
    "raises": "raise RuntimeError('no shelf today')",
    "needs": "import a_module_that_nobody_has",
    "rival": RIVAL,
}

LOOK = """
import json
from statestore.plugins import discover, open_store

def opens(url):
    try:
        open_store(url).close()
        return "opened"
    except Exception as error:
        return f"{type(error).__name__}: {error}"

plugins = {
    plugin.switch: [plugin.version, repr(plugin.error), [backend.name for backend in plugin.backends], plugin.disabled]
    for plugin in discover()
}
urls = ["shelf://oak?side=right", "shelf://oak?side=up", "memory://x", "rival://x"]
print(json.dumps([plugins, {url: opens(url) for url in urls}]))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build and install all of PLUGINS with pip; return the directory that they are in."""
    pytest.importorskip("pip", reason="pip installs the distributions of this test")
    pytest.importorskip("hatchling", reason="hatchling builds the distributions of this test")
    root = tmp_path_factory.mktemp("plugins")
    for name, code in PLUGINS.items():
        project = root / name
        project.mkdir()
        (project / "pyproject.toml").write_text(PROJECT.replace("shelf", name))
        (project / f"statestore_{name}.py").write_text(code)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation", "--no-deps",
         "--disable-pip-version-check", "--root-user-action=ignore", "--target", root / "site",
         *(root / name for name in PLUGINS)],
        check=True,
        cwd=root,
    )  # fmt: skip
    return root / "site"


def look(site: Path, **environment: str) -> tuple[dict[str, list[object]], dict[str, str]]:
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOOK],
        check=True,
        capture_output=True,
        cwd=site,
        env={**os.environ, "PYTHONPATH": str(site), **environment},
    )
    plugins, opened = json.loads(answer.stdout)
    return plugins, opened


def test_installed_plugins_work_or_are_shown_with_what_is_wrong(site):
    plugins, opened = look(site)
    assert plugins["statestore-shelf:shelf"] == ["1.0", "None", ["shelf"], False]
    assert plugins["statestore-raises:raises"] == ["1.0", "RuntimeError('no shelf today')", [], False]
    version, error, *_ = plugins["statestore-needs:needs"]
    assert (version, "a_module_that_nobody_has" in str(error)) == ("1.0", True)
    assert plugins["statestore-rival:rival"] == ["1.0", "None", ["rival"], False]
    assert plugins["statestore:memory"][1:] == ["None", ["memory"], False]
    assert opened["shelf://oak?side=right"] == "opened"
    assert "option=side given=up source=URL" in opened["shelf://oak?side=up"]
    assert "got=NoneType" in opened["rival://x"]  # it was found, and opens nothing
    assert "plugins=statestore-rival:rival,statestore:memory" in opened["memory://x"]


def test_a_contested_scheme_opens_once_its_rival_is_disabled(site):
    plugins, opened = look(site, STATESTORE_PLUGINS_DISABLE="statestore-rival:rival")
    assert plugins["statestore-rival:rival"] == ["1.0", "None", [], True]
    assert opened["memory://x"] == "opened"
    assert "no plugin serves this scheme" in opened["rival://x"]
