"""``new-backend``: what it writes installs, is found and conforms; and the tutorial that begins with it."""

from __future__ import annotations

import os
import re
import shlex
import site
import subprocess
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Run

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
MEMORY = Path("/dev/shm")


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment of its own, which sees what is installed here: for bash, in which pip asks no network."""
    pytest.importorskip("pip", reason="pip installs the package of this test")
    pytest.importorskip("hatchling", reason="hatchling builds the package of this test")
    pytest.importorskip("editables", reason="pip install -e of what hatchling builds needs it")
    root = tmp_path / "env"
    venv.create(root, symlinks=True)
    (packages,) = (root / "lib").glob("python*/site-packages")
    also = "".join(f"import site; site.addsitedir({place!r})\n" for place in site.getsitepackages())
    (packages / "all_of_this.pth").write_text(also)
    python = shlex.quote(str(root / "bin" / "python"))
    for name, line in {
        "pip": '-m pip "$1" --no-index --no-build-isolation --disable-pip-version-check "${@:2}"',
        "pytest": '-m pytest -p no:cacheprovider "$@"',
        "statestore": '-P -m statestore "$@"',
    }.items():
        script = root / "bin" / name
        script.write_text(f"#!/usr/bin/env bash\nexec {python} {line}\n")
        script.chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "STATESTORE_"))}
    return env | {
        "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_ROOT_USER_ACTION": "ignore",
        # Thousands of logs are made here to be read once: where there is memory for them, no disk has to keep them.
        "TMPDIR": str(MEMORY if os.access(MEMORY, os.W_OK) else tmp_path),
    }


def bash(lines: str, where: Path, env: dict[str, str]) -> tuple[str, Path]:
    """Run a block of a page; return what it prints and the directory that it ends in."""
    command = ["bash", "-euo", "pipefail", "-c", f"{lines}\npwd >&2"]
    done = subprocess.run(command, cwd=where, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{lines}{done.stdout}{done.stderr}"
    *told, end = done.stderr.rstrip("\n").split("\n")
    assert told == [], done.stderr
    return done.stdout, Path(end)


def test_what_it_writes_installs_is_found_and_conforms(run: Run, shell: dict[str, str], tmp_path: Path) -> None:
    ran = run("new-backend", "my_shelf", "--dir", tmp_path, "--json")
    assert ran.status == 0
    (told,) = ran.lines
    package = Path(told["directory"])
    assert package == tmp_path / "statestore-my-shelf"
    assert sorted(told["files"]) == sorted(
        str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()
    )
    suite = package / "tests" / "test_conformance.py"
    suite.write_text(suite.read_text().replace("conformance(harness)", "conformance(harness, sample=0.02)"))
    bash("pip install --quiet -e '.[test]'", package, shell)
    found, _ = bash("statestore plugins --strict", package, shell)
    assert "my-shelf  my-shelf://\n" in found
    shown, _ = bash("statestore conform my-shelf://place --sample 0.02", package, shell)
    assert "level       concurrent" in shown
    tested, _ = bash("pytest -q", package, shell)
    assert "level concurrent, heavy clauses at 0.02 of their size" in tested
    assert " failed" not in tested


def test_it_says_what_to_do_next(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "a b"
    ran = run("new-backend", "shelf", "--dir", place)
    assert ran.status == 0
    assert f"\n  cd '{place}/statestore-shelf'\n  pip install -e '.[test]'\n  statestore plugins\n" in ran.out
    assert "\n  statestore conform shelf://try\n  pytest\n" in ran.out


@pytest.mark.parametrize("name", ["Shelf", "my-shelf", "../shelf", "9shelf", "s", "shelf_", "a__b", "", "x" * 41])
def test_a_bad_name_is_wrong_usage_and_writes_nothing(run: Run, tmp_path: Path, name: str) -> None:
    ran = run("new-backend", name, "--dir", tmp_path)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("error: a backend's name is 2 to 40 lower-case letters")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_there_is_left_as_it_is(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "statestore-shelf"
    place.mkdir()
    (place / "mine.txt").write_text("mine")
    ran = run("new-backend", "shelf", "--dir", tmp_path)
    assert (ran.status, ran.out) == (2, "")
    assert f"error: there is something at {place} already: nothing was written" in ran.err
    assert [path.name for path in place.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(("name", "why"), [("memory", "the backend memory"), ("file", "the backend local")])
def test_a_name_that_an_installed_backend_has_is_refused(run: Run, tmp_path: Path, name: str, why: str) -> None:
    ran = run("new-backend", name, "--dir", tmp_path)
    assert ran.status == 2
    assert f"error: {name} is taken: statestore has {why}" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_made_is_a_failure(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = run("new-backend", "shelf", "--dir", tmp_path / "file", "--json")
    assert ran.status == 1
    assert ran.error["error"] == "NotADirectoryError"


def still(text: str) -> str:
    """Return what a page shows without what differs from run to run: numbers, and the name of a scratch place."""
    text = re.sub(r"conformance-[0-9a-f]{12}", "conformance-0", text)
    text = re.sub(r" in ([\d.]+s) \([\d:]+\)", r" in \1", text)  # so pytest tells what took longer than a minute
    return re.sub(r"\d[\d.,]*", "0", text)


@pytest.fixture
def desk(shell: dict[str, str]) -> Iterator[Path]:
    """An empty directory for a reader of the tutorial, in memory where there is some."""
    with tempfile.TemporaryDirectory(dir=shell["TMPDIR"]) as place:
        yield Path(place)


def test_the_tutorial_to_the_letter(shell: dict[str, str], desk: Path) -> None:
    page = TUTORIAL.read_text()
    where, out, tried = desk, "", 0
    block = re.compile(r"(?:^`(\S+)`:\n\n)?^```(sh|py|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    for found in block.finditer(page):
        path, kind, text = found.groups()
        if kind == "py":
            # A file that is named is replaced as a whole, or is new and the reader's own.
            assert (where / path).is_file() or "/" not in path
            (where / path).write_text(text)
        elif kind == "sh":
            out, where = bash(text, where, shell)
        elif os.environ.get("UPDATE_SCREENS") and still(out) != still(text):
            page = page.replace(found[0], f"```text\n{out}```", 1)
        else:
            assert still(out) == still(text)
        tried += 1
    assert tried == len(re.findall("^```", page, re.MULTILINE)) / 2
    if os.environ.get("UPDATE_SCREENS"):
        TUTORIAL.write_text(page)
    report = (where / "report.html").read_text()
    assert "Level: model" in report
    assert (where / "live.html").is_file()
