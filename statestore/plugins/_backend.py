"""What a backend tells about itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pluggy

from statestore.store import Capabilities, Store

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Backend", "check_words", "hookimpl"]

hookimpl: Final = pluggy.HookimplMarker("statestore")
"""Marks a plugin's function as the implementation of the hook of that name."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# One letter before a colon is a drive.
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+")


@dataclass(frozen=True, kw_only=True)
class Backend:
    """One kind of store, and how to open one.

    Attributes:
        name: a word of ``a-z 0-9 -``; the backend's environment variables are ``STATESTORE_<NAME>_<OPTION>``.
        schemes: the URL schemes that it serves, in lower case, at least one.
        options: a pydantic model of the options. URL query, keyword arguments and environment are validated into
            it. Secrets are fields of type ``SecretStr``; aliases are not used.
        open: is called with the URL, without its query, and the validated options; returns an open store.
        summary: one line that tells a reader of ``statestore plugins`` what it is.
        capabilities: what its stores can do with the options at their defaults, for that listing; None where that
            depends on the storage.

    Raises:
        TypeError: a field is not of its type.
        ValueError: a name, scheme, option or summary is not spelled so.
    """

    name: str
    schemes: tuple[str, ...]
    options: type[BaseModel]
    open: Callable[[str, Any], Store]
    summary: str
    capabilities: Capabilities | None = None

    def __post_init__(self) -> None:
        given: Any = self  # whatever an author wrote, checked or not
        check_words("backend", given.name, given.options, given.summary)
        if not isinstance(given.schemes, tuple) or not all(isinstance(scheme, str) for scheme in given.schemes):
            raise TypeError(f"a backend's schemes are a tuple of str: {given.schemes!r}")
        if not callable(given.open):
            raise TypeError(f"a backend's open is called with a URL and the options: {given.open!r}")
        if not isinstance(given.capabilities, Capabilities | None):
            raise TypeError(f"a backend's capabilities are Capabilities: {given.capabilities!r}")
        if not given.schemes or not all(map(_SCHEME.fullmatch, given.schemes)):
            raise ValueError(f"a scheme is two or more of a-z, 0-9, +, . and -; at least one: {given.schemes!r}")


def check_words(kind: str, name: Any, options: Any, summary: Any) -> None:
    """Check what a backend and a wrapper tell alike, whatever an author wrote.

    Raises:
        TypeError: one is not of its type.
        ValueError: one is not spelled as it must be.
    """
    # Whoever has a class of options has imported pydantic already; nobody else pays for it.
    from pydantic import BaseModel

    if not isinstance(name, str) or not isinstance(summary, str):
        raise TypeError(f"a {kind}'s name and summary are str")
    if not (isinstance(options, type) and issubclass(options, BaseModel)):
        raise TypeError(f"a {kind}'s options are a class, a pydantic.BaseModel: {options!r}")
    # STATESTORE_PLUGINS_… are the options of nobody.
    if not _NAME.fullmatch(name) or name == "plugins":
        raise ValueError(f"a {kind}'s name is a word of a-z, 0-9 and -, and not 'plugins': {name!r}")
    if not summary.isprintable() or not summary:
        raise ValueError(f"a {kind}'s summary is one line: {summary!r}")
    aliased = [field for field, info in options.model_fields.items() if info.validation_alias is not None]
    if aliased:
        raise ValueError(f"an option is named as its field is, without an alias: {aliased}")
