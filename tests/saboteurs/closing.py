"""Stores that close wrongly, whose errors are wrong, or that tell what they should not."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from statestore import names
from statestore.errors import Closed, NotFound, Unavailable
from statestore.store import Capabilities, Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Full, Log


@saboteur("a-closed-store-refuses-every-call")
class CloseIgnored(Full):
    """A closed store goes on."""

    def _check_open(self) -> None:
        pass


@saboteur("a-closed-store-refuses-every-call")
class StreamsAfterClosing(Full):
    """A closed store still streams."""

    def stream(self, log: str, start: int = 0, stop: int | None = None) -> Any:
        names.check(log)
        return super().stream(log, start, stop) if not self._closed else iter(())


@saboteur("closing-twice-is-nothing")
class ClosesOnce(Full):
    """Closing a closed store is an error."""

    def close(self) -> None:
        self._check_open()
        super().close()


@saboteur("closing-one-store-object-closes-no-other")
class ClosedWritersLock(Full):
    """Nobody can go on with what a store object has begun once that is closed."""

    def create(self, log: str, data: bytes) -> Tail:
        self.space.notes[log] = self
        return super().create(log, data)

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        if self.space.notes.get(log, self)._closed:
            raise Unavailable("the log's writer has gone", log=log)
        return super().add(log, found, data)


@saboteur("a-store-closes-at-the-end-of-its-context")
class ContextLeavesOpen(Full):
    """A store is open behind its `with` block."""

    def __exit__(self, *error: object) -> None:
        pass


@saboteur("a-store-closes-at-the-end-of-its-context")
class ContextSwallows(Full):
    """A `with` block of a store swallows errors."""

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        return True  # type: ignore[return-value]


@saboteur("a-bad-name-is-named-before-a-closed-store")
class ClosedFirst(Full):
    """A closed store says so before it looks at the name."""

    def _check(self, log: str) -> None:
        self._check_open()
        super()._check(log)


@saboteur("capabilities-are-told-and-do-not-change")
class ChangesItsMind(Full):
    """A store finds out at its first copy what it can do."""

    capabilities: Any = property(lambda self: replace(Full.capabilities, cheap_tails="copied" not in self.space.notes))

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        self.space.notes["copied"] = True
        return super().put_copy(target, found, size)


@saboteur("capabilities-are-told-and-do-not-change")
class TellsADict(Full):
    """Capabilities are something that only looks like them."""

    capabilities: Any = type("Flags", (), {name: getattr(Full.capabilities, name) for name in Capabilities.__slots__})()


@saboteur("errors-are-of-the-tree-and-carry-their-facts")
class ErrorsKeepTheStore(Full):
    """An error holds on to the connection that it came from."""

    def _find(self, log: str) -> Any:
        try:
            return super()._find(log)
        except NotFound as error:
            error.facts["connection"] = threading.Lock()
            raise


@saboteur("errors-are-of-the-tree-and-carry-their-facts")
class ErrorsInLines(Full):
    """An error's message has several lines."""

    def _find(self, log: str) -> Any:
        try:
            return super()._find(log)
        except NotFound:
            raise NotFound("no such log\nlook at the listing", log=log) from None


@saboteur("no-credential-is-ever-told")
class TellsItsPassword(Full):
    """The password stands in the store's repr."""

    def __repr__(self) -> str:
        return "Store('ftp://me:hunter2@example.org/logs')"


@saboteur("no-credential-is-ever-told")
class TellsItsPasswordAtLast(Full):
    """The password stands in the error of a closed store."""

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("this store was closed: open another one", url="ftp://me:hunter2@example.org/logs")
