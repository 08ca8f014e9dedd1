"""What an import costs is counted in modules, not in milliseconds."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"asyncio", "fsspec", "google", "pluggy", "pydantic", "rich", "sqlite3", "typer"}


LITTLE = {  # of Python's own: what `typing` and `contextlib` load
    "collections", "contextlib", "copyreg", "enum", "functools", "importlib", "itertools", "keyword", "operator", "re",
    "reprlib", "types", "typing", "warnings",
}  # fmt: skip
OURS = {"statestore", "statestore_fsspec", "statestore_local", "statestore_memory"}
RECORDS = {"msgspec", "typing_extensions"}
PLUGINS = {"annotated_types", "pluggy", "pydantic", "pydantic_core", "typing_inspection"}
COMMANDS = {"annotated_doc", "click", "shellingham", "typer"}


def modules(statement: str) -> set[str]:
    """Return the modules that a fresh process has after the statement."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    # -I: no PYTHONPATH, no user site, no current directory.
    answer = subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True)
    return set(answer.stdout.split())


def loaded(statement: str) -> set[str]:
    """Return the top-level names of these modules."""
    return {name.partition(".")[0] for name in modules(statement)}


def others(packages: set[str]) -> set[str]:
    """Return the packages that are neither ours nor Python's own."""
    return {name for name in packages - OURS - sys.stdlib_module_names if name[0] != "_"}


def command(*words: str) -> str:
    """Return the statement that runs a command, whose answer nobody sees."""
    program = f"""
import contextlib, io
from statestore.cli import main
sys.argv[1:] = {words!r}
with contextlib.redirect_stdout(io.StringIO()):
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
"""
    return f"exec({program!r})"


def test_the_package_loads_its_errors_and_little_of_python():
    found = modules("import statestore")
    assert {name for name in found if name.startswith("statestore.")} == {"statestore.errors"}
    assert {name for name in found if name[0] != "_" and "." not in name} <= {"statestore"} | LITTLE


@pytest.mark.parametrize(
    ("statement", "packages"),
    [
        ("from statestore import Record, RecordLog, Sessions, Store, draft", RECORDS),
        ("from statestore_local import LocalStore", RECORDS),
        ("from statestore import open_store", RECORDS | {"pluggy"}),
        ("import statestore.aio", RECORDS | PLUGINS),
        (command("--help"), COMMANDS),
    ],
    ids=["records", "local", "open_store", "aio", "help"],
)
def test_nothing_else_is_loaded_than_these_packages(statement, packages):
    assert others(loaded(statement)) <= packages


def test_a_command_on_a_local_store_loads_nothing_that_only_a_bucket_needs(tmp_path):
    (tmp_path / "log.state").write_bytes(b"x")
    found = loaded(command("ls", str(tmp_path)))
    assert others(found) <= RECORDS | PLUGINS | COMMANDS
    assert not found & {"asyncio", "multiprocessing", "sqlite3", "ssl"}


def test_a_store_in_s3_loads_s3fs_and_nothing_of_other_storages():
    # Nothing is sent before the first call.
    found = loaded("import statestore; statestore.open_store('s3://bucket/x', key='k', secret='s', region='r')")
    assert {"aiobotocore", "fsspec", "s3fs"} <= found
    assert not found & {"adlfs", "azure", "boto3", "gcsfs", "google", "paramiko", "sqlite3", "typer"}


@pytest.mark.parametrize("module", ["statestore.store", "statestore.names", "statestore.errors", "statestore_memory"])
def test_a_backend_and_its_ground_load_nothing_heavy(module):
    assert not loaded(f"import {module}") & HEAVY


def test_the_plugin_marker_does_not_load_pydantic():
    assert not loaded("from statestore.plugins import Backend, hookimpl, open_store") & (HEAVY - {"pluggy"})


def test_the_plugin_for_buckets_loads_nothing_that_only_a_bucket_needs():
    # Whoever opens any store loads every plugin.
    assert not loaded("import pydantic, statestore_fsspec.plugin") & {"asyncio", "fsspec", "s3fs", "botocore"}
    modules = "import sys, statestore_fsspec.plugin; assert 'statestore_fsspec._store' not in sys.modules"
    assert subprocess.run([sys.executable, "-I", "-c", modules]).returncode == 0


def test_an_adapter_loads_its_framework_only_when_it_is_used():
    assert "google" not in loaded("import statestore.adapters.adk, statestore.ops, statestore.cli")


def test_a_module_that_is_loaded_is_counted():
    assert "pydantic" in loaded("import pydantic")
