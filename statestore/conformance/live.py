"""Tries a live store, found by its URL: in a scratch place of its own, cleaned up behind it."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from statestore.conformance.harness import Harness
from statestore.conformance.registry import LEVELS
from statestore.conformance.report import Report, Result
from statestore.conformance.runner import LIMIT, run
from statestore.errors import StateStoreError
from statestore.plugins import open_store
from statestore.store import Store

__all__ = ["run_url", "scratch_url"]


def run_url(
    url: str,
    options: Mapping[str, Any] | None = None,
    *,
    levels: Collection[str] = LEVELS,
    only: Collection[str] | None = None,
    sample: float = 1.0,
    seed: int | None = None,
    limit: float = LIMIT,
    progress: Callable[[Result, int, int], None] | None = None,
) -> Report:
    """Try whether the store at a URL keeps the promises, and return the report.

    Everything happens below one new folder of the store's place, each clause in a folder of its own. Logs are
    deleted again where the store can delete; what is left behind is told in ``report.remarks``. No part of the
    harness reaches under a live store, so the clauses that need one are not run. An interrupted run is cleaned up
    too; what it leaves behind is then a note of the exception.

    Args:
        url: the store, as ``open_store`` takes it.
        options: the backend's options.
        levels: the levels to run.
        only: the names of the clauses to run, of those levels; by default all of them.
        sample: how much of the full size of the heavy clauses to run, from above 0 to 1.
        seed: what random operations are drawn from; by default the same ones are tried in every run.
        limit: seconds after which a clause counts as hanging.
        progress: called with each result, its number from 1, and how many there will be.

    Raises:
        PluginError: the store cannot be opened at all.
        ValueError: a level, a clause or the sample is none.
    """
    given = dict(options or {})
    open_store(url, **given).close()  # a wrong URL is one error, and not one for each clause
    folder = f"conformance-{secrets.token_hex(6)}"
    left: list[str] = []
    numbers = iter(range(1, 1 << 30))

    def harness(_: Path) -> Iterator[Harness]:
        number = next(numbers)
        place = scratch_url(url, f"{folder}/{number}")
        opener: Callable[[], Store] = partial(open_store, place, **given)
        try:
            yield Harness(open=opener, reopen=opener, spawn=opener, crash=_drop, secrets=_secrets(url, given))
        finally:
            left.extend(_clean(opener, number))

    try:
        report = run(harness, levels=levels, only=only, sample=sample, seed=seed, limit=limit, progress=progress)
    except BaseException as error:
        for remark in _left_behind(left, folder):
            error.add_note(remark)
        raise
    finally:
        _remove_folder(url, folder)
    return replace(report, remarks=_left_behind(left, folder))


def _left_behind(left: list[str], folder: str) -> tuple[str, ...]:
    if not left:
        return ()
    where = "the store cannot delete, or failed to" if len(left) > 3 else ", ".join(left)
    logs = "1 scratch log is" if len(left) == 1 else f"{len(left)} scratch logs are"
    return (f"{logs} left below {folder}/: {where}",)


def scratch_url(url: str, folder: str) -> str:
    """Return the URL of a folder below the place of another URL, with the same options."""
    if "://" not in url:
        return str(Path(url, folder))
    place, question, query = url.partition("?")
    return f"{place.rstrip('/') if not place.endswith('://') else place}/{folder}{question}{query}"


def _remove_folder(url: str, folder: str) -> None:
    """Remove what a directory of this machine keeps of the scratch place besides logs: folders and helper files."""
    parts = urlsplit(url) if "://" in url else None
    if parts is None:
        shutil.rmtree(Path(url, folder), ignore_errors=True)
    elif parts.scheme == "file":
        shutil.rmtree(Path(unquote(parts.path), folder), ignore_errors=True)


def _drop(store: Store) -> None:
    """Crash a store object, as far as that goes without its process: nobody uses or closes it any more."""


def _secrets(url: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    words = ("password", "secret", "token", "key")
    given = {**dict(parse_qsl(urlsplit(url).query) if "://" in url else ()), **options}
    found = [str(value) for name, value in given.items() if value and any(word in name.lower() for word in words)]
    password = urlsplit(url).password if "://" in url else None
    if password:
        found += [password, unquote(password)]
    return tuple(found)


def _clean(opener: Callable[[], Store], number: int) -> list[str]:
    """Delete all logs of a scratch place; return the names of those that could not be."""
    left = []
    try:
        with opener() as store:
            for row in store.list():
                try:
                    store.delete(row.name)
                except StateStoreError:
                    left.append(f"{number}/{row.name}")
    except Exception as error:  # a store under test may fail anywhere; what failed is told, not hidden
        left.append(f"{number} could not be listed ({type(error).__name__})")
    return left
