"""Opening: from a path or a URL to a store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any, Final, NoReturn

from statestore.errors import PluginError, StateStoreError
from statestore.plugins._backend import Backend
from statestore.plugins._discovery import DISABLE, Plugin, discover
from statestore.plugins._options import Owner, kind, validate
from statestore.plugins._urls import Location, bare, parse, redact, split
from statestore.plugins._wrapping import Wrapping
from statestore.store import Store

__all__ = ["open_store"]

_FSSPEC: Final = "fsspec"  # the scheme of all that has none of its own

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

    A known wrapper's name and ``::`` before either wraps the store that is there: ``"cached::s3://bucket/x"``. Several
    are told from the outside to the inside. A wrapper's options begin with its name: ``cached_limit``.

    Args:
        url: where the store is.
        options: the backend's options, and the wrappers'. They win over the URL's query, which wins over the
            environment (``STATESTORE_<BACKEND>_<OPTION>``, ``STATESTORE_<WRAPPER>_<OPTION>``).

    Raises:
        PluginError: nobody serves the scheme or offers the wrapper, or two plugins do; an option that the backend or
            wrapper has not, or a value that it does not take; it failed to open. The message names it and what to do,
            and shows no password and no value of the query.
    """
    # A plain path has no wrappers, and is told wrong before any plugin is loaded.
    location = None if isinstance(url, str) and "::" in url else parse(url)
    plugins = discover()
    wrappers: list[Wrapping] = []
    if location is None:
        wrappers, where = _unwrap(url, plugins)  # the innermost first
        location = parse(where)
    backend = _choose(location, plugins, url)
    installed: list[Owner] = [each for plugin in plugins for each in plugin.backends]
    installed += [each for plugin in plugins for each in plugin.wrappers]
    owners: list[Owner] = [backend, *wrappers]
    shares = zip(owners, _share(location.options, wrappers), _share(options, wrappers), strict=True)
    models = []  # all of them before anything is opened
    for owner, query, keywords in shares:
        with _guarded(owner, url):
            models.append(validate(owner, query, keywords, installed))
    with _guarded(backend, url, _pip(location.scheme)):
        store = _check_store(backend, backend.open(location.url, models[0]))
    origin = bare(location.url)
    for wrapper, model in zip(wrappers, models[1:], strict=True):
        try:
            with _guarded(wrapper, url):
                store = _check_store(wrapper, wrapper.wrap(store, model, origin))
        except BaseException:
            store.close()
            raise
        # What a wrapper shows may depend on its options, which are told apart without being told.
        digest = blake2b(repr(model.model_dump()).encode(), digest_size=8).hexdigest()
        origin = f"{wrapper.name}({digest})::{origin}"
    return store


@contextmanager
def _guarded(owner: Owner, url: object, advice: str = "") -> Iterator[None]:
    """Make an error of ours of whatever a plugin raises."""
    try:
        yield
    except StateStoreError:
        raise
    except ImportError as error:
        raise PluginError(
            f"this {kind(owner)} needs a package that is not installed" + (f": {advice}" if advice else ""),
            **{kind(owner): owner.name},
            missing=error.name,
            url=redact(url),
        ) from error
    except Exception as error:
        raise PluginError(
            f"the {kind(owner)} failed to open the store: see the cause",
            **{kind(owner): owner.name},
            cause=type(error).__name__,
            url=redact(url),
        ) from error


def _check_store(owner: Owner, made: object) -> Store:
    if not isinstance(made, Store):
        facts = {kind(owner): owner.name, "got": type(made).__name__}
        raise PluginError(f"the {kind(owner)} opened something that is no Store", **facts)
    return made


def _unwrap(url: str | os.PathLike[str], plugins: tuple[Plugin, ...]) -> tuple[list[Wrapping], Any]:
    """Take the wrappers off the front of a URL; return them, the innermost first, and the rest."""
    known = {wrapper.name: wrapper for p in plugins for wrapper in p.wrappers}
    names, where = split(url, known)
    for name in names:
        _check_uncontested([name], plugins, url)
        if names.count(name) > 1:
            raise PluginError("the URL names a wrapper twice: leave one", wrapper=name, url=redact(url))
    return [known[name] for name in reversed(names)], where


def _share(options: Mapping[str, Any], wrappers: list[Wrapping]) -> list[dict[str, Any]]:
    """Return the backend's options, and then those of each wrapper, which begin with its name, without it."""
    shares: list[dict[str, Any]] = [{} for _ in range(len(wrappers) + 1)]
    prefixes = [wrapper.prefix for wrapper in wrappers]
    for option, value in options.items():
        # Of two names the longer one is meant.
        prefix = max((prefix for prefix in prefixes if option.startswith(prefix)), key=len, default="")
        share = shares[1 + prefixes.index(prefix)] if prefix else shares[0]
        share[option.removeprefix(prefix)] = value
    return shares


def _choose(location: Location, plugins: tuple[Plugin, ...], url: object) -> Backend:
    """Return the one backend that serves the scheme."""
    serving = [backend for p in plugins for backend in p.backends if location.scheme in backend.schemes]
    if not serving:
        _refuse_scheme(location, plugins, url)
    if not location.slashes:
        raise PluginError("a URL has // after its scheme; before a path that holds a colon write ./", url=redact(url))
    backend = serving[0]
    _check_uncontested([f"{location.scheme}://", backend.name], plugins, url)
    return backend


def _check_uncontested(claims: list[str], plugins: tuple[Plugin, ...], url: object) -> None:
    """Refuse what more than one plugin claims."""
    for claim in claims:
        rivals = [p.switch for p in plugins if claim in p.contested]
        if rivals:
            raise PluginError(
                f"more than one plugin claims this: name all but one in {DISABLE}, as they are named here",
                claim=claim,
                plugins=",".join(rivals),
                url=redact(url),
            )


def _refuse_scheme(location: Location, plugins: tuple[Plugin, ...], url: object) -> NoReturn:
    schemes = sorted({scheme for p in plugins for backend in p.backends for scheme in backend.schemes})
    other = "; before a URL of fsspec's write fsspec://" if _FSSPEC in schemes else ""
    if location.url.startswith(f"{location.scheme}::"):
        raise PluginError(
            "no plugin offers this wrapper: install the package that does, or use a known one; "
            f"before a path that holds a colon write ./{other}",
            wrapper=location.scheme,
            known=",".join(sorted(wrapper.name for p in plugins for wrapper in p.wrappers)),
            **_missing(plugins),
            url=redact(url),
        )
    if advice := _pip(location.scheme):
        pass
    elif location.scheme in _EXTRAS:
        advice = "this version of statestore has no backend for it: install a package that has one"
    elif location.slashes:
        advice = f"install the package that does, or use a known one{other}"
    else:
        advice = "before a path that holds a colon write ./"
    raise PluginError(
        f"no plugin serves this scheme: {advice}",
        scheme=location.scheme,
        known=",".join(schemes),
        **_missing(plugins),
        url=redact(url),
    )


def _missing(plugins: tuple[Plugin, ...]) -> dict[str, str | None]:
    """Return the facts about plugins that might have served."""
    return {
        "failed": ",".join(p.switch for p in plugins if p.error) or None,
        "disabled": ",".join(p.switch for p in plugins if p.disabled) or None,
    }


def _pip(scheme: str) -> str:
    """Return the command that installs what a scheme needs; nothing where this version offers no such extra."""
    extra = _EXTRAS.get(scheme)
    return f"pip install 'statestore[{extra}]'" if extra in _offered() else ""


def _offered() -> list[str]:
    try:
        return metadata("statestore").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return []
