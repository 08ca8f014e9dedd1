"""Opening: from a path or a URL to a store."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any, Final, NoReturn

from statestore.errors import PluginError, StateStoreError
from statestore.plugins._backend import Backend
from statestore.plugins._discovery import DISABLE, Plugin, discover
from statestore.plugins._options import validate
from statestore.plugins._urls import Location, parse, redact
from statestore.store import Store

__all__ = ["open_store"]

# The extra that brings what a scheme needs.
_EXTRAS: Final = {
    "abfs": "azure",
    "abfss": "azure",
    "az": "azure",
    "gcs": "gcs",
    "gs": "gcs",
    "s3": "s3",
    "s3a": "s3",
    "sftp": "sftp",
    "ssh": "sftp",
}


def open_store(url: str | os.PathLike[str], /, **options: Any) -> Store:
    """Open the store at a path or a URL.

    ``"./state"``, ``"/srv/state"`` and a :class:`pathlib.Path` are directories of the local backend, whatever
    characters they hold; ``~`` is refused and not expanded. ``"file:///srv/state?sync=never"`` and
    ``"memory://name"`` are URLs: the scheme finds the backend, the query holds options.

    Args:
        url: where the store is.
        options: the backend's options. They win over the URL's query, which wins over the environment
            (``STATESTORE_<BACKEND>_<OPTION>``).

    Raises:
        PluginError: nobody serves the scheme, or two plugins do; an option that the backend has not, or a value
            that it does not take; the backend failed to open. The message names it and what to do, and shows no
            password and no value of the query.
    """
    location = parse(url)
    plugins = discover()
    backend = _choose(location, plugins, url)
    try:
        model = validate(backend, location.options, options, [one for plugin in plugins for one in plugin.backends])
        store = backend.open(location.url, model)
    except StateStoreError:
        raise
    except ImportError as error:
        advice = _pip(location.scheme)
        raise PluginError(
            "this backend needs a package that is not installed" + (f": {advice}" if advice else ""),
            backend=backend.name,
            missing=error.name,
            url=redact(url),
        ) from error
    except Exception as error:
        raise PluginError(
            "the backend failed to open the store: see the cause",
            backend=backend.name,
            cause=type(error).__name__,
            url=redact(url),
        ) from error
    if not isinstance(store, Store):
        raise PluginError(
            "the backend opened something that is no Store", backend=backend.name, got=type(store).__name__
        )
    return store


def _choose(location: Location, plugins: tuple[Plugin, ...], url: object) -> Backend:
    """Return the one backend that serves the scheme."""
    serving = [backend for p in plugins for backend in p.backends if location.scheme in backend.schemes]
    if not serving:
        _refuse_scheme(location, plugins, url)
    if not location.slashes:
        raise PluginError("a URL has // after its scheme; before a path that holds a colon write ./", url=redact(url))
    backend = serving[0]
    for claim in (f"{location.scheme}://", backend.name):
        rivals = [p.switch for p in plugins if claim in p.contested]
        if rivals:
            raise PluginError(
                f"more than one plugin claims this: name all but one in {DISABLE}, as they are named here",
                claim=claim,
                plugins=",".join(rivals),
                url=redact(url),
            )
    return backend


def _refuse_scheme(location: Location, plugins: tuple[Plugin, ...], url: object) -> NoReturn:
    if advice := _pip(location.scheme):
        pass
    elif location.scheme in _EXTRAS:
        advice = "this version of statestore has no backend for it: install a package that has one"
    elif location.slashes:
        advice = "install the package that does, or use a known one"
    else:
        advice = "before a path that holds a colon write ./"
    raise PluginError(
        f"no plugin serves this scheme: {advice}",
        scheme=location.scheme,
        known=",".join(sorted({scheme for p in plugins for backend in p.backends for scheme in backend.schemes})),
        failed=",".join(p.switch for p in plugins if p.error) or None,
        disabled=",".join(p.switch for p in plugins if p.disabled) or None,
        url=redact(url),
    )


def _pip(scheme: str) -> str:
    """Return the command that installs what a scheme needs; nothing where this version offers no such extra."""
    extra = _EXTRAS.get(scheme)
    return f"pip install 'statestore[{extra}]'" if extra in _offered() else ""


def _offered() -> list[str]:
    try:
        return metadata("statestore").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return []
