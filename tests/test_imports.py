"""What an import costs is counted in modules, not in milliseconds."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"asyncio", "fsspec", "google", "pluggy", "pydantic", "rich", "sqlite3", "typer"}


def loaded(statement: str) -> set[str]:
    """Return the top-level names of the modules that a fresh process has after the statement."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    # -I: no PYTHONPATH, no user site, no current directory.
    answer = subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True)
    return {name.partition(".")[0] for name in answer.stdout.split()}


def test_the_package_loads_nothing_heavy():
    assert not loaded("import statestore") & HEAVY


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
