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

__all__ = ["Backend", "hookimpl"]

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
        # Whoever has a class of options has imported pydantic already; nobody else pays for it.
        from pydantic import BaseModel

        given: Any = self  # whatever an author wrote, checked or not
        if not isinstance(given.name, str) or not isinstance(given.summary, str):
            raise TypeError("a backend's name and summary are str")
        if not isinstance(given.schemes, tuple) or not all(isinstance(scheme, str) for scheme in given.schemes):
            raise TypeError(f"a backend's schemes are a tuple of str: {given.schemes!r}")
        if not (isinstance(given.options, type) and issubclass(given.options, BaseModel)):
            raise TypeError(f"a backend's options are a class, a pydantic.BaseModel: {given.options!r}")
        if not callable(given.open):
            raise TypeError(f"a backend's open is called with a URL and the options: {given.open!r}")
        if not isinstance(given.capabilities, Capabilities | None):
            raise TypeError(f"a backend's capabilities are Capabilities: {given.capabilities!r}")
        # STATESTORE_PLUGINS_… are not the options of a backend.
        if not _NAME.fullmatch(given.name) or given.name == "plugins":
            raise ValueError(f"a backend's name is a word of a-z, 0-9 and -, and not 'plugins': {given.name!r}")
        if not given.schemes or not all(map(_SCHEME.fullmatch, given.schemes)):
            raise ValueError(f"a scheme is two or more of a-z, 0-9, +, . and -; at least one: {given.schemes!r}")
        if not given.summary.isprintable() or not given.summary:
            raise ValueError(f"a backend's summary is one line: {given.summary!r}")
        aliased = [name for name, field in given.options.model_fields.items() if field.validation_alias is not None]
        if aliased:
            raise ValueError(f"an option is named as its field is, without an alias: {aliased}")
