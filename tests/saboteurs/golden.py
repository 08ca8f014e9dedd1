"""Stores that are right as long as nobody looks under them."""

from __future__ import annotations

from typing import Any

from statestore.errors import Conflict, Corrupt, NotFound
from statestore.records.scan import Scan
from statestore.store import NEW, Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Full, Log

_TURN = bytes(value ^ 0xFF for value in range(256))


@saboteur("what-is-appended-lies-under-the-store-byte-for-byte")
class StoresInItsOwnWay(Full):
    """Bytes lie in the storage in the store's own spelling, and are turned back by each read."""

    def kept(self, data: bytes) -> bytes:
        return data.translate(_TURN)

    def same(self, found: Log, data: bytes, start: int) -> bool:
        return super().same(found, data.translate(_TURN), start)

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        return super().read(log, start, stop).translate(_TURN)

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        dropped = super().cut(log, size, at=at).translate(_TURN)
        if dropped:
            self.space.aside[log] = self.space.aside[log][: -len(dropped)] + dropped
        return dropped


@saboteur("a-copy-lies-under-the-store-byte-for-byte")
class CopiesWhenRead(Full):
    """A copy is a promise that is kept when somebody asks for it."""

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        tail = super().put_copy(target, found, size)
        made: Log = self.space.logs[target]
        self.space.notes[target] = bytes(made.data), made
        self.space.safe[target] = Log(made.run, bytearray(made.data), made.starts), size
        made.data = bytearray()
        return tail

    def _find(self, log: str) -> Any:
        self.keep_promise(log)
        return super()._find(log)

    def place(self, log: str, data: bytes, at: Tail) -> Tail:
        self.keep_promise(log)
        return super().place(log, data, at)

    def row(self, name: str, tails: bool) -> Any:
        self.keep_promise(name)
        return super().row(name, tails)

    def sync(self, log: str) -> None:
        self.keep_promise(log)
        super().sync(log)

    def keep_promise(self, log: str) -> None:
        data, made = self.space.notes.pop(log, (b"", None))
        if made is self.space.logs.get(log) and made is not None:
            made.data[:] = data


@saboteur("a-refused-append-leaves-nothing-under-the-store")
class RefusalsLeaveBytes(Full):
    """A refused append leaves its bytes in the storage, behind the log's end."""

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        try:
            return super().again(log, found, data, at)
        except Conflict:
            found.torn += data
            raise


@saboteur("a-log-put-under-the-store-is-read-as-it-is")
class KnowsOnlyItsOwn(Full):
    """A log that another program has put into the storage is not found."""

    def _find(self, log: str) -> Any:
        found = super()._find(log)
        if found.foreign:
            raise NotFound("no such log", log=log)
        return found


@saboteur("a-log-put-under-the-store-can-be-gone-on-with")
class ForeignLogsAreFrozen(Full):
    """A log that another program has put into the storage can only be read."""

    def place(self, log: str, data: bytes, at: Tail) -> Tail:
        found = self.space.logs.get(log)
        if found and found.foreign:
            raise Conflict("the log does not end there", log=log, expected=at, found=NEW)
        return super().place(log, data, at)


@saboteur("a-torn-log-put-under-the-store-is-told-as-it-is")
class TornTailHidden(Full):
    """The torn end of a log that another program has put into the storage is not shown."""

    def _find(self, log: str) -> Any:
        found = super()._find(log)
        if found.foreign and self.space.notes.get(log) is not found:
            self.space.notes[log] = found
            scan = Scan(lambda start, stop: bytes(found.data[start:stop]), log=log)
            try:
                for _ in scan:
                    pass
            except Corrupt:
                return found
            if scan.torn:
                found.torn = bytes(found.data[scan.end :])
                del found.data[scan.end :]
        return found


@saboteur("a-torn-log-put-under-the-store-is-told-as-it-is")
class TornTailGlued(Full):
    """After a cut, what is appended to a log of another program lies behind what was cut."""

    def shorten(self, log: str, found: Log, size: int) -> bytes:
        dropped = super().shorten(log, found, size)
        if found.foreign:
            self.space.notes[log] = dropped
        return dropped

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        return super().add(log, found, self.space.notes.pop(log, b"") + data)
