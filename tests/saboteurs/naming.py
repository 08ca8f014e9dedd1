"""Stores in which two names are one log, or a name is not looked at."""

from __future__ import annotations

import re
import unicodedata
from typing import Any
from urllib.parse import unquote

from statestore import names
from statestore.store import Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Full


@saboteur("a-bad-name-is-refused-by-every-call")
class BoundaryUnchecked(Full):
    """One call does not look at the name."""

    def boundary(self, log: str, before: int) -> int:
        return super().boundary(log if names.is_name(log) else "none", before)


@saboteur("a-bad-name-is-refused-by-every-call")
class NormalisesNames(Full):
    """A name that is none is made one instead of being refused."""

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        return super().read("/".join(part for part in log.split("/") if part not in ("", ".", "..")), start, stop)


@saboteur("a-name-that-is-no-text-is-refused-by-every-call")
class SpellsNames(Full):
    """A name that is no text is spelled as one."""

    def _check(self, log: str) -> None:
        super()._check(str(log))


class _Alike(Full):
    """A log is also found by any other name with the same key."""

    def key(self, log: str) -> Any:
        raise NotImplementedError

    def known(self, log: str) -> str:
        if log in self.space.logs:
            return log
        key = self.key(log)
        return next((name for name in self.space.logs if self.key(name) == key), log)

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self._check(log)
        return super().append(self.known(log), data, at=at)

    def _find(self, log: str) -> Any:
        return super()._find(self.known(log))


@saboteur("names-that-begin-alike-are-logs-apart")
class JoinsSegments(_Alike):
    """The segments of a name are joined without anything between them."""

    def key(self, log: str) -> Any:
        return log.count("/"), log.replace("/", "")


@saboteur("a-log-may-lie-beside-a-folder-of-its-name")
class TakesSuffixes(_Alike):
    """A log whose name ends as the store's own temporary files do is the other log's temporary file."""

    def key(self, log: str) -> Any:
        return log.removesuffix(".tmp")


@saboteur("case-twins-are-logs-apart")
class FoldsFolders(_Alike):
    """Folders are the same in upper and lower case."""

    def key(self, log: str) -> Any:
        folder, slash, name = log.rpartition("/")
        return folder.lower() + slash + name


@saboteur("an-escape-in-a-name-stands-for-nothing")
class ResolvesEscapes(_Alike):
    """An escape is the character that it stands for."""

    def key(self, log: str) -> Any:
        return unquote(log, errors="surrogateescape")


@saboteur("quoted-ids-from-outside-are-logs-apart")
class ComposesAccents(_Alike):
    """A letter and its accent are the same as the accented letter."""

    def key(self, log: str) -> Any:
        text = re.sub("(?:%[89A-F][0-9A-F])+", lambda part: unquote(part[0], errors="surrogateescape"), log)
        return unicodedata.normalize("NFC", text)


@saboteur("the-longest-names-are-names")
class CutsNames(_Alike):
    """A name is cut after 255 characters."""

    def key(self, log: str) -> Any:
        return log[:255]


@saboteur("names-that-other-systems-reserve-are-names")
class StripsDots(_Alike):
    """Dots at the end of a name do not count."""

    def key(self, log: str) -> Any:
        return log.rstrip(".")
