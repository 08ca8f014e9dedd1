"""Stores that list wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterator

from statestore import names
from statestore.store import LogInfo, Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Full, Log, Space


@saboteur("an-empty-store-lists-nothing")
class ListsItsIndex(Full):
    """A file of the store's own shows as a log while there is no other."""

    def page(self, prefix: str, after: str) -> list[str]:
        return super().page(prefix, after) if self.space.logs else ["index"] * (after == "" and prefix == "")


@saboteur("a-listing-shows-every-log-once")
class HidesBesideFolders(Full):
    """A log is hidden by a folder of its name."""

    def page(self, prefix: str, after: str) -> list[str]:
        every = self.space.order
        return [name for name in super().page(prefix, after) if not any(o.startswith(name + "/") for o in every)]


@saboteur("a-listing-shows-every-log-once")
class ListsTwice(Full):
    """A log beside a folder of its name is listed as both."""

    def page(self, prefix: str, after: str) -> list[str]:
        every = self.space.order
        twice = [[name] * (1 + any(o.startswith(name + "/") for o in every)) for name in super().page(prefix, after)]
        return [name for some in twice for name in some]


@saboteur("a-listing-is-in-code-point-order")
class ListsAsATree(Full):
    """A listing walks folder by folder."""

    def page(self, prefix: str, after: str) -> list[str]:
        return sorted(super().page(prefix, after), key=lambda name: name.split("/"))


@saboteur("a-listing-is-in-code-point-order")
class ListsUnsorted(Full):
    """A listing is in the order of creation."""

    def page(self, prefix: str, after: str) -> list[str]:
        made = list(self.space.logs)
        return sorted(super().page(prefix, after), key=lambda name: (name == "~", made.index(name)))


@saboteur("a-listing-is-in-code-point-order")
class ListsFolded(Full):
    """A listing is in the order of a dictionary, upper and lower case alike."""

    def page(self, prefix: str, after: str) -> list[str]:
        return sorted(super().page(prefix, after), key=str.casefold)


@saboteur("a-prefix-is-text-and-no-folder")
class PrefixIsAFolder(Full):
    """A prefix is taken for a path."""

    def matches(self, name: str, prefix: str) -> bool:
        folder = prefix.rstrip("/")
        return not folder or name == folder or name.startswith(folder + "/")


@saboteur("a-prefix-is-text-and-no-folder")
class PrefixIsFolded(Full):
    """A prefix is matched in upper and lower case alike."""

    def matches(self, name: str, prefix: str) -> bool:
        return name.lower().startswith(prefix.lower())


@saboteur("a-prefix-is-no-pattern")
class PrefixIsAPattern(Full):
    """A prefix is matched by LIKE, where `_` is any character and `%` any text."""

    def matches(self, name: str, prefix: str) -> bool:
        pattern = re.escape(prefix).replace("_", ".").replace("%", ".*")
        return re.match(pattern, name) is not None


@saboteur("a-prefix-is-text-and-no-folder")
class PrefixIsARegularExpression(Full):
    """A prefix is matched as a regular expression."""

    def matches(self, name: str, prefix: str) -> bool:
        return re.match(prefix, name) is not None


@saboteur("a-listing-continues-after-a-name")
class AfterInclusive(Full):
    """A listing after a name begins with that name."""

    def _rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        if after in self.space.logs and after.startswith(prefix):
            yield self.row(after, tails)
        yield from super()._rows(prefix, after, tails)


@saboteur("a-listing-continues-after-a-name")
class AfterIgnored(Full):
    """A listing begins at the beginning, whatever `after` says."""

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        return super().list(prefix, tails=tails)


@saboteur("pages-joined-are-the-whole-listing")
class KeepsItsCursor(Full):
    """A listing that was left before its end makes the next one begin a row late."""

    def _rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        rows = super()._rows(prefix, after, tails)
        if self.space.notes.get("cursor"):
            next(rows, None)
        self.space.notes["cursor"] = "open"
        yield from rows
        self.space.notes["cursor"] = None


@saboteur("a-listing-with-tails-tells-where-each-log-ends")
class ListsFirstTails(Full):
    """A listed tail is that of the log's creation."""

    def row(self, name: str, tails: bool) -> LogInfo:
        found: Log = self.space.logs[name]
        return LogInfo(name, Tail([*found.starts, len(found.data)][1], found.run) if tails else None)


@saboteur("a-listing-with-tails-tells-where-each-log-ends")
class ListsNoTails(Full):
    """A listing never has tails."""

    def row(self, name: str, tails: bool) -> LogInfo:
        return LogInfo(name)


@saboteur("a-listing-is-lazy")
class ListsAtOnce(Full):
    """A listing is a list and not an iterator."""

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        return [*super().list(prefix, after=after, tails=tails)]  # type: ignore[return-value]


@saboteur("two-listings-do-not-disturb-each-other")
class OneBufferOfRows(Full):
    """A store object has one buffer for the rows of all its listings."""

    buffer: list[LogInfo]

    def _rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        self.buffer = [*super()._rows(prefix, after, tails)]
        while self.buffer:
            yield self.buffer.pop(0)


@saboteur("a-listing-shows-what-was-just-made")
class CachesListings(Full):
    """A listing is kept until something is appended or deleted, and a copy does not count."""

    def sync(self, log: str) -> None:
        super().sync(log)
        self.space.notes.pop("cache", None)

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        cache = self.space.notes.get("cache")
        tail = super().put_copy(target, found, size)
        if cache is not None:
            self.space.notes["cache"] = cache
        return tail

    def page(self, prefix: str, after: str) -> list[str]:
        cache = self.space.notes.setdefault("cache", list(self.space.order))
        return [name for name in super().page(prefix, after) if name in cache]


@saboteur("a-listing-keeps-what-was-there-throughout")
class PagesByNumber(Full):
    """A listing asks for each page by the number of its first row."""

    def _rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        seen = 0
        while some := [name for name in self.space.order if self.matches(name, prefix) and name > after][seen:]:
            yield from (self.row(name, tails) for name in some[:5])
            seen += 5


@saboteur("a-listing-survives-deletions-meanwhile")
class PagesByNumberOnce(Full):
    """A listing asks for each page by a number, and leaves out what it has shown already."""

    def _rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        seen, last = 0, after
        while some := [name for name in self.space.order if self.matches(name, prefix) and name > after][seen:]:
            for name in some[:5]:
                if name > last and name in self.space.logs:
                    last = name
                    yield self.row(name, tails)
            seen += 5


@saboteur("a-bad-prefix-is-refused-by-the-call")
class ChecksAtTheFirstRow(Full):
    """The arguments of a listing are checked at its first row and not by the call."""

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        yield from super().list(prefix, after=after, tails=tails)


@saboteur("a-bad-prefix-is-refused-by-the-call")
class NoSuchPrefix(Full):
    """A prefix with which no name can begin lists nothing."""

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        try:
            names.check_prefix(prefix)
        except names.InvalidName:
            return iter(())
        return super().list(prefix, after=after, tails=tails)


@saboteur("a-listing-shows-what-another-store-object-made")
class CachesItsOwnListings(Full):
    """A store object keeps its listing until it has changed something itself."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.cache: list[str] | None = None

    def sync(self, log: str) -> None:
        super().sync(log)
        self.cache = None

    def page(self, prefix: str, after: str) -> list[str]:
        if self.cache is None:
            self.cache = list(self.space.order)
        cache = self.cache
        return [name for name in super().page(prefix, after) if name in cache]


@saboteur("listed-tails-cost-no-further-requests")
class AsksForEachTail(Full):
    """A listing asks the storage for each tail, though the store says that tails are cheap."""

    def row(self, name: str, tails: bool) -> LogInfo:
        self.space.requests += tails
        return super().row(name, tails)


@saboteur("a-listing-shows-what-another-store-object-made")
class KeepsListedTails(Full):
    """A store object keeps each tail that it has listed until it has written the log itself."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.seen: dict[str, LogInfo] = {}

    def row(self, name: str, tails: bool) -> LogInfo:
        return self.seen.setdefault(name, super().row(name, tails)) if tails else super().row(name, tails)

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self.seen.pop(log, None)
        return super().append(log, data, at=at)

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        self.seen.pop(log, None)
        super().delete(log, at=at)
