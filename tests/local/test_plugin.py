"""The local backend as a plugin: its URLs and options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from statestore.errors import PluginError
from statestore.store import NEW
from statestore_local import LocalStore
from statestore_local.plugin import LocalOptions, statestore_backends


def test_a_url_and_options_open_the_directory(tmp_path: Path) -> None:
    (backend,) = statestore_backends()
    assert (backend.name, backend.schemes) == ("local", ("file",))
    options = backend.options.model_validate({"sync": "never", "create": "true", "lock_timeout": "0.5"})
    for host in ("", "localhost"):
        store = backend.open(f"file://{host}{tmp_path}/a%20b%23%3f", options)
        assert isinstance(store, LocalStore)
        store.append(f"log{host}", b"1", at=NEW)
    assert (tmp_path / "a b#?" / "log.state").read_bytes() == b"1"
    assert not store.capabilities.flushes


@pytest.mark.parametrize("url", ["file://other/path", "file:relative", "file://", "http:///path", "file:///a%00b"])
def test_a_url_that_names_no_directory_of_this_machine_is_refused(url: str) -> None:
    (backend,) = statestore_backends()
    with pytest.raises(PluginError):
        backend.open(url, LocalOptions())


@pytest.mark.parametrize("wrong", [{"sync": "sometimes"}, {"lock_timeout": -1}, {"lock_timeout": "nan"}, {"color": 1}])
def test_a_wrong_option_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        LocalOptions.model_validate(wrong)


def test_the_store_refuses_wrong_options_itself(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="always, on_flush, never"):
        LocalStore(tmp_path / "a", sync="sometimes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lock_timeout"):
        LocalStore(tmp_path / "a", lock_timeout=float("nan"))
    assert not (tmp_path / "a").exists()


def test_the_store_can_be_used_without_pydantic() -> None:
    program = "import sys, statestore_local; assert 'pydantic' not in sys.modules and 'pluggy' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
