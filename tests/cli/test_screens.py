"""The screens as a person sees them, kept as files. UPDATE_SCREENS=1 writes them anew: then look at each."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from statestore.plugins import Backend, Plugin, Wrapping
from statestore.records import RecordLog
from statestore.store import Capabilities
from statestore.wrappers.plugin import CachedOptions
from statestore_local import LocalStore
from statestore_memory.plugin import MemoryOptions

from .conftest import Run, on_a_terminal, plain

SCREENS = Path(__file__).parent / "screens"


def compare(name: str, text: str) -> None:
    file = SCREENS / f"{name}.txt"
    if os.environ.get("UPDATE_SCREENS"):
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("show", ["show", "vectors", "session-12"]),
        ("show-last", ["show", "vectors", "session-200", "--last", "9"]),
        ("show-full", ["show", "vectors", "session-12", "--full"]),
        ("show-torn", ["show", "damaged", "torn", "--last", "3"]),
        ("show-corrupt", ["show", "damaged", "corrupt", "--last", "3"]),
        ("tail", ["tail", "vectors", "session-200", "-n", "4"]),
        ("tail-corrupt", ["tail", "damaged", "corrupt", "-n", "2", "-f"]),
        ("ls", ["ls", "vectors"]),
        ("ls-long", ["ls", "damaged", "--long"]),
        ("verify", ["verify", "vectors"]),
        ("verify-damaged", ["verify", "damaged"]),
        ("repair-dry-run", ["repair", "damaged", "corrupt", "--keep", "damage.bin", "--dry-run"]),
        ("repair-to", ["repair", "damaged", "torn", "--to", "new", "--yes"]),
        ("repair-whole", ["repair", "damaged", "whole", "--yes"]),
        ("stats", ["stats", "vectors"]),
        ("stats-damaged", ["stats", "damaged"]),
        ("start", []),
        ("help", ["--help"]),
    ],
)
def test_a_screen_is_as_it_was_when_somebody_looked(
    run: Run, vectors: Path, damaged: Path, name: str, args: list[str]
) -> None:
    places = {"vectors": str(vectors), "damaged": str(damaged)}
    ran = run(*(places.get(arg, arg) for arg in args))
    compare(name, ran.out + (f"---- standard error\n{ran.err}" if ran.err else ""))


def test_the_screen_of_plugins(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def backend(name: str, schemes: tuple[str, ...], capabilities: Capabilities | None, summary: str) -> Backend:
        return Backend(
            name=name,
            schemes=schemes,
            options=MemoryOptions,
            open=lambda url, options: SimpleNamespace(),
            summary=summary,
            capabilities=capabilities,
        )

    memory = backend("memory", ("memory",), Capabilities(atomic_append=True, max_append=1 << 20), "in this process")
    cached = Wrapping(name="cached", options=CachedOptions, wrap=lambda *_: SimpleNamespace(), summary="keeps bytes")
    bucket = backend("bucket", ("s3", "s3a"), None, "objects in a bucket")
    found = (
        Plugin(name="bucket", distribution="acme-buckets", version="2.1", backends=(bucket,), contested=("s3://",)),
        Plugin(name="shelf", distribution="shelf", version="0.9", error=ModuleNotFoundError("No module named 'wood'")),
        Plugin(name="old", distribution="statestore-old", version="1.0", disabled=True),
        Plugin(name="builtin", distribution="statestore", version="0.1.0", backends=(memory,), wrappers=(cached,)),
    )
    monkeypatch.setattr("statestore.plugins.discover", lambda: found)
    compare("plugins", run("plugins").out)


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_wraps_below_the_beginning_of_the_text_and_respects_no_color(
    vectors: Path, width: int, colour: bool
) -> None:
    env = {} if colour else {"NO_COLOR": "1"}
    shown = on_a_terminal("show", vectors, "session-200", "--last", 9, width=width, **env)
    assert (b"\x1b[36m" in shown) == colour
    compare(f"terminal-{width}", plain(shown))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("terminal-ls", ["vectors"]),
        ("terminal-ls-limit", ["vectors", "--limit", "2"]),
        ("terminal-ls-long", ["damaged", "--long"]),
        ("terminal-ls-empty", ["vectors", "--prefix", "nothing"]),
    ],
)
def test_a_terminal_gets_the_logs_as_a_table(vectors: Path, damaged: Path, name: str, args: list[str]) -> None:
    places = {"vectors": vectors, "damaged": damaged}
    compare(name, plain(on_a_terminal("ls", places[args[0]], *args[1:])))


AGENT_FILES = Path(__file__).parents[1] / "vectors" / "agents"


@pytest.mark.parametrize("width", [100, 40])
def test_the_screens_of_grep_diff_and_import(
    vectors: Path, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with LocalStore(vectors) as store:
        fork = RecordLog(store, "session-200").copy("retry", before=22)
        fork.append("message", b"another way", id="1", time="2026-09-28T12:00:00Z")
    shown = [
        plain(on_a_terminal("grep", "copy.{4}a", "sessions", "session-200", width=width)),
        plain(on_a_terminal("diff", "sessions", "session-200", "retry", "--limit", 2, width=width, status=1)),
        plain(on_a_terminal("import", "claude-code", AGENT_FILES / "claude-code", "new", width=width)),
    ]
    compare(f"terminal-grep-diff-import-{width}", "\n".join(shown))
