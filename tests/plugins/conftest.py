"""Distributions as the installer leaves them: a module, and a .dist-info beside it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from statestore.plugins import discover

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution of one module into this process; all are gone after the test."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    modules = []

    def make(distribution: str, code: str, *, point: str = "", version: str = "1.0") -> None:
        module = distribution.replace("-", "_")
        modules.append(module)
        (site / f"{module}.py").write_text(code)
        info = site / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[statestore]\n{point or module} = {module}\n")
        (info / "RECORD").write_text("")
        discover(refresh=True)

    yield make
    monkeypatch.undo()
    for module in modules:
        sys.modules.pop(module, None)
    discover(refresh=True)


BACKEND = """
from typing import Any, Literal, Optional
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from statestore.plugins import Backend, hookimpl
from statestore_memory import MemoryStore

opened = []

class Inner(BaseModel):
    token: SecretStr = Field(default=SecretStr(""), max_length=3)

class Pair(BaseModel):
    first: int

class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    side: Literal["left", "right"] = "left"
    depth: int = Field(default=1, ge=1)
    {fields}

def open_it(url: str, options: Any) -> Any:
    opened.append((url, options))
    {before}
    return MemoryStore()

@hookimpl
def statestore_backends():
    return [Backend(name={name!r}, schemes={schemes!r}, options=Options, open=open_it, summary="for tests")]
"""


@pytest.fixture
def backend(install: Install) -> Callable[..., list[tuple[str, object]]]:
    """Install a plugin with one backend; return the list of what its open is called with."""

    def make(
        name: str = "shelf",
        *,
        schemes: tuple[str, ...] | None = None,
        distribution: str = "",
        fields: str = "",
        before: str = "",
        point: str = "",
    ) -> list[tuple[str, object]]:
        code = BACKEND.format(name=name, schemes=schemes or (name,), fields=fields, before=before)
        distribution = distribution or f"dist-{name}"
        install(distribution, code, point=point)
        opened: list[tuple[str, object]] = sys.modules[distribution.replace("-", "_")].opened
        return opened

    return make


WRAPPER = """
from pydantic import BaseModel, ConfigDict, SecretStr
from statestore.plugins import Wrapping, hookimpl
from statestore.wrappers import Wrapper

wrapped = []

class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    depth: int = 1
    key: SecretStr = SecretStr("")

def wrap(store, options, origin):
    wrapped.append((store, options, origin))
    {before}
    return Wrapper(store)

@hookimpl
def statestore_wrappers():
    return [Wrapping(name=name, options=Options, wrap=wrap, summary="for tests") for name in {names!r}]
"""


@pytest.fixture
def wrapper(install: Install) -> Callable[..., list[tuple[Any, Any, str]]]:
    """Install a plugin with wrappers of these names; return the list of what they are called with."""

    def make(*names: str, distribution: str = "dist-wrapper", before: str = "") -> list[tuple[Any, Any, str]]:
        install(distribution, WRAPPER.format(names=names, before=before))
        wrapped: list[tuple[Any, Any, str]] = sys.modules[distribution.replace("-", "_")].wrapped
        return wrapped

    return make
