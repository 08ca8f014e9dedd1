"""Stores that list, name or delete wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from statestore.errors import NotFound
from statestore.store import NEW, LogInfo, Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.reference import Bare, Log, Reference


class _Lister(Reference):
    def page(self, prefix: str, after: str) -> Any:
        return self.spoilt(super().page(prefix, after), prefix, after)

    def spoilt(self, page: list[str], prefix: str, after: str) -> Any:
        raise NotImplementedError


@saboteur("an-empty-store-lists-nothing")
class ShowsItsOwnFiles(Reference):
    """A listing shows a file of the store's own."""

    def rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        yield from super().rows(prefix, after, tails)
        if not self.place.logs and not after:
            yield LogInfo("index", NEW if tails else None)


@saboteur("a-listing-shows-every-log-once")
class ListsTwice(Reference):
    """A listing shows the first log of a page again."""

    def rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        rows = list(super().rows(prefix, after, tails))
        return iter(rows[:3] + rows[2:])


@saboteur("a-listing-shows-every-log-once", "ten-thousand-logs-are-listed")
class ListsOnePage(Reference):
    """A listing ends with its first page."""

    def rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        return iter(list(super().rows(prefix, after, tails))[:20])


@saboteur("a-listing-is-in-code-point-order")
class WalksTheTree(Reference):
    """A listing is in the order of a walk through folders."""

    def rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        return iter(sorted(super().rows(prefix, after, tails), key=lambda row: row.name.split("/")))


@saboteur("a-listing-is-in-code-point-order")
class SortsAsMade(Reference):
    """A listing is in the order of creation."""

    def rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        order = list(self.place.logs)
        return iter(sorted(super().rows(prefix, after, tails), key=lambda row: order.index(row.name)))


@saboteur("a-prefix-is-text-and-no-folder", "a-listing-is-in-code-point-order")
class PrefixIsFolder(Reference):
    """A prefix is taken for a folder."""

    def matches(self, name: str, prefix: str) -> bool:
        return not prefix or name == prefix or name.startswith(prefix.rstrip("/") + "/")


@saboteur("a-prefix-is-no-pattern")
class PrefixIsPattern(Reference):
    """A prefix is taken for a pattern in which `.` stands for any character."""

    def matches(self, name: str, prefix: str) -> bool:
        return re.match(prefix, name) is not None


@saboteur("a-prefix-is-no-pattern")
class PrefixIsLike(Reference):
    """A prefix goes into an SQL LIKE, in which `_` stands for any character."""

    def matches(self, name: str, prefix: str) -> bool:
        return re.match(re.escape(prefix).replace("_", "."), name) is not None


@saboteur("a-listing-continues-after-a-name")
class AfterInclusive(Reference):
    """A page begins with the last name of the page before."""

    def rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        if after in self.place.logs and after.startswith(prefix):
            yield LogInfo(after, self.tail(after) if tails else None)
        yield from super().rows(prefix, after, tails)


@saboteur("a-listing-continues-after-a-name", "pages-joined-are-the-whole-listing")
class AfterByFolder(Reference):
    """A page leaves out what lies below the last name of the page before."""

    def rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        rows = super().rows(prefix, after, tails)
        return (row for row in rows if not after or not row.name.startswith(after + "/"))


@saboteur("a-listing-with-tails-tells-where-each-log-ends")
class ListsOldTails(Reference):
    """A listing tells the tail of each log's first append."""

    def rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        for row in super().rows(prefix, after, tails):
            yield LogInfo(row.name, row.tail and Tail(self.place.logs[row.name].ends[0], row.tail.run))


@saboteur("a-listing-is-lazy")
class ListsAtOnce(Reference):
    """A listing is a list."""

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Any:
        return list(super().list(prefix, after=after, tails=tails))


@saboteur("two-listings-do-not-disturb-each-other")
class OneCursor(Reference):
    """All listings share one cursor."""

    def rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        self.cursor = after
        while page := self.page(prefix, self.cursor)[:1]:
            self.cursor = page[0]
            yield LogInfo(page[0], self.tail(page[0]) if tails else None)


@saboteur("a-listing-shows-what-was-just-made")
class ListsFromCache(Reference):
    """A store object lists once and remembers it."""

    seen: Any = None

    def page(self, prefix: str, after: str) -> Any:
        if self.seen is None or len(self.seen) < len(self.place.logs) % 3:
            self.seen = super().page("", "")
        return [name for name in self.seen if name in self.place.logs and name.startswith(prefix) and name > after]


@saboteur("a-listing-keeps-what-was-there-throughout")
class PagesByNumber(Reference):
    """A listing counts its rows to find the next."""

    def rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        row = 0
        while row < len(page := self.page(prefix, after)):
            yield LogInfo(page[row], self.tail(page[row]) if tails else None)
            row += 1


@saboteur("a-listing-survives-deletions-meanwhile")
class BreaksOffOnDeletion(Reference):
    """A listing goes on from the log that it has shown last, and fails where that has gone."""

    def rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        for row in super().rows(prefix, after, tails):
            yield row
            self.find(row.name)


@saboteur("a-bad-prefix-is-refused-by-the-call")
class AnyPrefix(Reference):
    """A prefix that no name can have lists nothing."""

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        self._check_open()
        return self.rows(prefix, after, tails)


@saboteur("a-listing-shows-what-another-store-object-made")
class ListsItsOwn(Reference):
    """A store object lists the logs that it has listed or made."""

    seen: Any = None

    def page(self, prefix: str, after: str) -> Any:
        if self.seen is None or self.mine:
            self.seen = set(super().page("", ""))
        return sorted(name for name in self.seen & set(self.place.logs) if name.startswith(prefix) and name > after)

    mine = False

    def made(self, log: str) -> Log:
        self.mine = True
        return super().made(log)

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        self.mine = True
        return super().put_copy(target, found, size)


@saboteur("listed-tails-cost-no-further-requests")
class AsksForEachTail(Reference):
    """A listing with tails sends one more request for each log."""

    def rows(self, prefix: str, after: str, tails: bool) -> Iterator[LogInfo]:
        for row in super().rows(prefix, after, tails):
            self.place.requests += tails
            yield row


class _Namer(Reference):
    """Stores logs under other names than they were given."""

    def spelled(self, log: str) -> str:
        raise NotImplementedError

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self._check(log)
        return super().append(self.spelled(log), data, at=at)

    def find(self, log: str) -> Log:
        return super().find(self.spelled(log))


@saboteur("a-bad-name-is-refused-by-every-call")
class UncheckedTail(Reference):
    """One of the calls does not look at the name."""

    def tail(self, log: str) -> Tail:
        self._check_open()
        return self.find(log).tail


@saboteur("a-name-that-is-no-text-is-refused-by-every-call")
class NamesMadeText(Reference):
    """A name that is no text is made text."""

    def _check(self, log: Any) -> None:
        super()._check(str(log).replace("'", "").replace("(", "").replace(",)", ""))


@saboteur("names-that-begin-alike-are-logs-apart")
class NamesToTheDot(_Namer):
    """What follows a dot in a name is taken for an extension."""

    def spelled(self, log: str) -> str:
        return log.partition(".")[0] if log in ("a.b", "a") else log


@saboteur("a-log-may-lie-beside-a-folder-of-its-name")
class ExtensionIsDropped(_Namer):
    """`x.state` and `x` are one file."""

    def spelled(self, log: str) -> str:
        return log.removesuffix(".state")


@saboteur("a-listing-shows-every-log-once", "case-twins-are-logs-apart")
class FoldsCase(_Namer):
    """Names that differ in case are one log, as on some file systems."""

    def spelled(self, log: str) -> str:
        return log.lower()


@saboteur("an-escape-in-a-name-stands-for-nothing", "quoted-ids-from-outside-are-logs-apart")
class Unquotes(_Namer):
    """Escapes in names are undone."""

    def spelled(self, log: str) -> str:
        return log.replace("%2F", "/").replace("%41", "A").replace("%2E", "x").replace("%25", "%")


@saboteur("the-longest-names-are-names")
class CutsLongNames(_Namer):
    """Names are cut at 199 characters."""

    def spelled(self, log: str) -> str:
        return log[:199]


@saboteur("quoted-ids-from-outside-are-logs-apart")
class DropsControlCharacters(_Namer):
    """Escapes of control characters are dropped."""

    def spelled(self, log: str) -> str:
        return re.sub("%00|%0A|%F0.*|%ED.*", "%20", log) if (log != "a%0Ab" and log != "%00") or self.cold() else log

    def cold(self) -> bool:
        return "%2E." in self.place.logs


@saboteur("names-that-other-systems-reserve-are-names")
class ReservesNames(Reference):
    """Names that another system reserves fail as if the storage had failed."""

    def _check(self, log: str) -> None:
        super()._check(log)
        if log in ("con", "nul") or log.startswith("-r"):
            raise OSError(22, "invalid argument")


@saboteur("a-deleted-log-is-gone")
class DeletesFromTheListing(Reference):
    """A deleted log is gone from listings only."""

    def remove(self, log: str) -> None:
        self.hidden = getattr(self, "hidden", set()) | {log}

    def page(self, prefix: str, after: str) -> Any:
        return [name for name in super().page(prefix, after) if name not in getattr(self, "hidden", ())]


@saboteur("a-deletion-takes-no-other-log")
class DeletesTheFolder(Reference):
    """A deletion takes all that lies below the name."""

    def remove(self, log: str) -> None:
        for name in [name for name in self.place.logs if name == log or name.startswith(log + "/")]:
            super().remove(name)


@saboteur("a-deletion-of-a-missing-log-is-not-found")
class DeletesNothingGladly(Reference):
    """A deletion of a missing log succeeds."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        self._check(log)
        try:
            super().delete(log, at=at)
        except NotFound:
            return


@saboteur("a-deletion-at-another-tail-is-refused")
class DeletesAtAnyTail(Reference):
    """A deletion does not look at its tail."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        super().delete(log)


@saboteur("a-log-made-again-begins-at-nothing")
class DeletionLeavesBytes(Reference):
    """A log that is made again begins with the bytes that were deleted."""

    def remove(self, log: str) -> None:
        self.left = self.place.logs[log] if log == "log" else None
        super().remove(log)

    left: Log | None = None

    def made(self, log: str) -> Log:
        made = super().made(log)
        if self.left and len(self.left.pieces) == 2 and self.left.pieces[1] == b"!":
            made.add(self.left.pieces[0])
        self.left = None
        return made


@saboteur("a-creation-repeated-after-a-deletion-creates-again")
class RemembersDeletions(Reference):
    """A creation equal to that of a deleted log counts as its repetition."""

    first: dict[tuple[str, bytes], Tail] = {}  # noqa: RUF012

    def remove(self, log: str) -> None:
        found = self.place.logs[log]
        self.gone = {(log, b"".join(found.pieces)): found.tail} if len(found.pieces) == 1 else {}
        super().remove(log)

    gone: dict[tuple[str, bytes], Tail] = {}  # noqa: RUF012

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        if log not in self.place.logs and at == NEW and (log, data) in self.gone:
            return self.gone[log, data]
        return super().append(log, data, at=at)


@saboteur("a-copy-may-take-a-deleted-name")
class TombstonesStopCopies(Reference):
    """A name that was deleted cannot be copied to."""

    def remove(self, log: str) -> None:
        super().remove(log)
        self.dead = getattr(self, "dead", set()) | {log}

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        if target in getattr(self, "dead", ()):
            raise NotFound("no such log", log=target)
        return super().copy(source, target, stop=stop)


@saboteur("a-deletion-shows-to-another-store-object")
class ReadsFromCache(Reference):
    """A store object goes on reading a log that another has deleted."""

    def find(self, log: str) -> Log:
        kept = self.__dict__.setdefault("kept", {})
        if log in self.place.logs:
            kept[log] = super().find(log)
        elif log not in kept or self.own:
            return super().find(log)
        return kept[log]

    own = False

    def remove(self, log: str) -> None:
        self.own = True
        super().remove(log)


@saboteur("a-log-made-again-is-another-run", "an-old-writer-is-refused-by-a-log-made-again")
class RunIsTheName(Reference):
    """A log that is made again has the same run."""

    def run(self, log: str) -> str:
        return "r-" + log.replace("/", "-")


@saboteur("an-old-writer-is-refused-by-a-log-made-again")
class ComparesSizesOnly(Reference):
    """An append looks at the size of its tail and not at the run."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        found = self.place.logs.get(log)
        same = found is not None and found.size == at.size
        return super().append(log, data, at=found.tail if found is not None and same else at)


@saboteur("a-repetition-does-not-reach-into-another-run")
class RepeatsAcrossRuns(Reference):
    """A repetition is looked for in whatever log has the name now."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        run = found.run if at.size else ""
        return super().again(log, found, data, Tail(at.size, run))


@saboteur("an-old-tail-does-not-delete-a-log-made-again")
class DeletesAtAnyRun(Reference):
    """A deletion looks at the size of its tail and not at the run."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        found = self.place.logs.get(log)
        super().delete(log, at=found.tail if found and at and at.size == found.size else at)


@saboteur("a-tail-without-its-run-is-refused")
class TakesAnyRun(Reference):
    """A tail without a run matches any run."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        found = self.place.logs.get(log)
        if found is not None and at.size == found.size and not at.run:
            at = found.tail
        return super().append(log, data, at=at)


@saboteur("a-store-without-deletions-refuses-them")
class DeletesUndeclared(Bare):
    """A store that says it cannot delete does nothing without a word."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        self._check(log)


@saboteur("a-store-without-deletions-refuses-them")
class RefusesTooLate(Bare):
    """A refusal comes after the effect."""

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        self._check(log)
        self.inner.place.logs.pop(log, None)
        super().delete(log, at=at)
