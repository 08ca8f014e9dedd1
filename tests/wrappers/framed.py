"""Arbitrary bytes over a store that takes whole records alone: each byte is a record, so that the kit can try it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from statestore.errors import Conflict, NotSupported
from statestore.store import LogInfo, Snapshot, Store, Tail, check_data, check_range, check_stop
from statestore.wrappers import Encrypted, Wrapper

KEY = bytes(range(32))
LINE = b'{"kind":"byte","len":1}\n'
EACH = len(LINE) + 2
MOST = 720  # bytes of an append: as many records take long enough


def frame(data: bytes) -> bytes:
    return b"".join(b"%b%c\n" % (LINE, byte) for byte in data)


def unframe(data: bytes) -> bytes:
    assert len(data) % EACH == 0
    assert data[: len(LINE)] in (b"", LINE)
    return data[len(LINE) :: EACH]


def wide(tail: Tail) -> Tail:
    return Tail(tail.size * EACH, tail.run)


def narrow(tail: Tail) -> Tail:
    assert tail.size % EACH == 0
    return Tail(tail.size // EACH, tail.run)


def stretched(stop: int | None) -> int | None:
    return None if stop is None else stop * EACH


class Framed(Wrapper):
    """A store of bytes over a store of records; every offset is that of the records, divided."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.capabilities = replace(store.capabilities, max_append=MOST)

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self._check(log)
        check_data(data, at)
        if len(data) > MOST:
            raise NotSupported("too large for this store", capability="max_append")
        return self._ask(lambda: narrow(self.inner.append(log, frame(data), at=wide(at))))

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        check_range(start, stop)
        return unframe(self.inner.read(log, start * EACH, stretched(stop)))

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        return narrow(self.inner.copy(source, target, stop=stretched(stop)))

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        rows = self.inner.list(prefix, after=after, tails=tails)
        return (LogInfo(row.name, row.tail and narrow(row.tail)) for row in rows)

    def tail(self, log: str) -> Tail:
        return narrow(self.inner.tail(log))

    def snapshot(self, log: str) -> Snapshot:
        return FramedSnapshot(self, log, self.inner.snapshot(log))

    def stream(self, log: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        check_range(start, stop)
        return map(unframe, self.inner.stream(log, start * EACH, stretched(stop)))

    def wait(self, log: str, at: Tail, timeout: float) -> bool:
        return self.inner.wait(log, wide(at), timeout)

    def boundary(self, log: str, before: int) -> int:
        boundary = self.inner.boundary(log, before * EACH)
        assert boundary % EACH == 0
        return boundary // EACH

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        self._ask(lambda: self.inner.delete(log, at=at and wide(at)))

    def cut(self, log: str, size: int, *, at: Tail) -> bytes:
        return self._ask(lambda: unframe(self.inner.cut(log, size * EACH, at=wide(at))))

    @staticmethod
    def _ask(act):
        try:
            return act()
        except Conflict as error:
            error.facts |= {fact: narrow(error.facts[fact]) for fact in ("found", "expected") if fact in error.facts}
            raise


class FramedSnapshot(Snapshot):
    def __init__(self, store: Framed, log: str, inner: Snapshot) -> None:
        super().__init__(store, log, narrow(inner.tail))
        self.inner = inner

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        return unframe(self.inner.read(start * EACH, stretched(stop)))

    def stream(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        return map(unframe, self.inner.stream(start * EACH, stretched(stop)))

    def boundary(self, before: int) -> int:
        return self.inner.boundary(before * EACH) // EACH

    def copy(self, target: str, *, stop: int | None = None) -> Tail:
        check_stop(stop)
        return narrow(self.inner.copy(target, stop=stretched(stop)))


def sealed(store: Store) -> Framed:
    return Framed(Encrypted(store, [KEY]))
