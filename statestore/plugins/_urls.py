"""Where a store is: a path or a URL, taken apart and, for messages, made harmless."""

from __future__ import annotations

import os
import re
from collections.abc import Container
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from statestore.errors import PluginError

__all__ = ["Location", "bare", "parse", "redact", "split"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")
_WRAPPER = re.compile(r"([A-Za-z][A-Za-z0-9-]*)::")
_CHAIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*::)+(?=[A-Za-z][A-Za-z0-9+.-]*://)")
_OPTION_IN_PATH = re.compile(r"\?[A-Za-z_][A-Za-z0-9_]*=")


class Location(NamedTuple):
    """A URL taken apart.

    Attributes:
        scheme: in lower case.
        url: what a backend is given: the URL without its query.
        options: the query, decoded.
        slashes: whether ``//`` follows the scheme; what has none may be a path with a colon in it.
    """

    scheme: str
    url: str
    options: dict[str, str]
    slashes: bool = True


def split(where: str | os.PathLike[str], known: Container[str]) -> tuple[list[str], str | os.PathLike[str]]:
    """Take the known wrappers off the front of a path or a URL; return them, the outermost first, and the rest.

    What is a path stays one: it begins with no name and a colon, or is a :class:`pathlib.Path`.
    """
    wrappers: list[str] = []
    while isinstance(where, str) and (match := _WRAPPER.match(where)) and match[1].lower() in known:
        wrappers.append(match[1].lower())
        where = where[match.end() :]
    return wrappers, where


def parse(where: str | os.PathLike[str]) -> Location:
    """Take a path or a URL apart. What begins with a scheme and a colon is a URL, and all else a path.

    Raises:
        PluginError: it is neither.
        TypeError: it is neither a str nor a path.
    """
    match = _SCHEME.match(where) if isinstance(where, str) else None
    if match is None:
        return _path(where)
    scheme, slashes = match[1].lower(), match[2] is not None
    rest, _, query = str(where)[match.end() :].partition("?")
    if "#" in rest or "#" in query:
        raise PluginError("a store's URL has no fragment: write %23 for a # that belongs to it", url=redact(where))
    if scheme == "file" and slashes:
        host, slash, path = rest.partition("/")
        if host not in ("", "localhost") or not slash:
            raise PluginError(
                "a file URL has an absolute path and no host, as file:///srv/state; a relative one is a plain path",
                url=redact(where),
            )
        rest = f"/{path}"
    return Location(scheme, f"{scheme}:{'//' if slashes else ''}{rest}", _options(query, where), slashes)


def _path(where: str | os.PathLike[str]) -> Location:
    text = os.fspath(where)
    if not isinstance(text, str):
        raise TypeError(f"a path is a str or a pathlib.Path, not {type(text).__name__}")
    if not text or "\0" in text:
        raise PluginError("not a path: write one such as ./state, or a URL", path=text)
    if text.startswith("~"):
        raise PluginError(
            "~ is not expanded: write the whole path, or ./~ for a directory of that name", path=redact(text)
        )
    if isinstance(where, str) and _OPTION_IN_PATH.search(text):
        raise PluginError(
            "a plain path has no options: give keyword arguments, or a URL that begins with file:///; "
            "a pathlib.Path is taken as it is",
            path=redact(text),
        )
    try:
        # As a URL, since a name may hold any of ? # % and bytes that are no text.
        return Location("file", Path(text).absolute().as_uri(), {})
    except FileNotFoundError as error:
        raise PluginError("the working directory is gone: write the whole path", path=text) from error


def _options(query: str, where: object) -> dict[str, str]:
    options: dict[str, str] = {}
    for item in query.split("&") if query else ():
        # A + stays a plus: keys and tokens hold it oftener than an option holds a blank.
        key, equals, value = (unquote(part, errors="surrogateescape") for part in item.partition("="))
        if not equals or not key:
            raise PluginError(
                "an option in a URL is written name=value", option=key if equals else "***", url=redact(where)
            )
        if key in options:
            raise PluginError("the URL gives an option twice: leave one", option=key, url=redact(where))
        options[key] = value
    return options


def bare(url: str) -> str:
    """Return a URL without user, password and query: the same for everybody who means the same place."""
    return redact(url).partition("?")[0].replace("***@", "", 1)


def redact(url: object) -> str:
    """Return the URL for a message: without user and password, and without the values of its query."""
    text = str(url)
    if chain := _CHAIN.match(text):
        return chain[0] + redact(text[chain.end() :])
    match = _SCHEME.match(text)
    start = match.end() if match else 0
    rest = text[start:]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    place, question, query = rest.partition("?")
    # A password may hold an unescaped / ? # or @: better to hide a part of the path than to show a part of it.
    if match and "@" in rest and not {"@", ":"}.isdisjoint(authority):
        if "@" in query:
            return f"{text[:start]}***"
        place = "***@" + place.rpartition("@")[2]
    place, fragment, _ = place.partition("#")
    pairs = [item.partition("=") for item in query.split("&")] if query else []
    shown = "&".join(f"{key}=***" if equals else "***" for key, equals, _ in pairs)
    return text[:start] + place + (f"{fragment}***" if fragment else "") + question + shown
