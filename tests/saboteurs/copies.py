"""Stores that copy wrongly."""

from __future__ import annotations

from statestore.errors import Exists, NotFound
from statestore.store import NEW, Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Full, Log


@saboteur("a-copy-equals-its-source")
class CopyTranslates(Full):
    """A copy goes through text and changes line ends."""

    def copied(self, data: bytes, size: int) -> bytes:
        return super().copied(data, size).replace(b"\r\n", b"\n")


@saboteur("a-copy-equals-its-source")
class CopyTellsTheSource(Full):
    """A copy returns the tail of its source."""

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        super().put_copy(target, found, size)
        return found.tail


@saboteur("a-run-stays-while-the-log-lives")
class Moves(Full):
    """A copy takes its source away."""

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        tail = super().copy(source, target, stop=stop)
        self.delete(source)
        return tail


@saboteur("a-copy-ends-at-its-stop")
class CopyStopOffByOne(Full):
    """A copy has the byte at `stop` too."""

    def copied(self, data: bytes, size: int) -> bytes:
        return super().copied(data, size + 1)


@saboteur("a-copy-ends-at-its-stop")
class CopyIgnoresStop(Full):
    """A copy is always of all of the source."""

    def copied(self, data: bytes, size: int) -> bytes:
        return data


@saboteur("a-copy-can-be-appended-to")
class CopiesAreFrozen(Full):
    """A copy cannot be appended to."""

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        self.space.notes[target] = "frozen"
        return super().put_copy(target, found, size)

    def add(self, log: str, found: Log, data: bytes) -> Tail:
        if log in self.space.notes:
            raise PermissionError(log)
        return super().add(log, found, data)


@saboteur("what-happens-to-a-copy-never-shows-in-its-source")
class CopySharesMemory(Full):
    """A copy of the whole source and the source are the same bytes in memory."""

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        super().put_copy(target, found, size)
        made: Log = self.space.logs[target]
        if size == len(found.data):
            made.data = found.data
        return made.tail


@saboteur("a-copy-outlives-its-source")
class CopyRefersToItsSource(Full):
    """A copy goes when its source does."""

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        self.space.notes[target] = found
        return super().put_copy(target, found, size)

    def delete(self, log: str, *, at: Tail | None = None) -> None:
        with self.locked():
            found = self.space.logs.get(log)
            super().delete(log, at=at)
            for target in [name for name, source in self.space.notes.items() if source is found]:
                del self.space.notes[target]
                self.delete(target)


class _Overwrites(Full):
    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        with self.locked():
            here, there = self.space.logs.get(source), self.space.logs.get(target)
            try:
                return super().copy(source, target, stop=stop)
            except Exists:
                if not self.may(here, there, stop):
                    raise
                return self.put_copy(target, here, len(here.data) if stop is None else min(stop, len(here.data)))

    def may(self, source: Log, target: Log, stop: int | None) -> bool:
        raise NotImplementedError


@saboteur("a-copy-onto-a-log-is-refused")
class CopyOverwrites(_Overwrites):
    """A copy replaces the log that has the name already."""

    def may(self, source: Log, target: Log, stop: int | None) -> bool:
        return source is not target


@saboteur("a-copy-onto-a-log-is-refused")
class WrongErrorForExists(Full):
    """A copy onto a log is refused by Python's own error and not by ours."""

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        try:
            return super().copy(source, target, stop=stop)
        except Exists as error:
            raise FileExistsError(target) from error


@saboteur("a-copy-onto-equal-bytes-is-refused-too")
class CopyIsIdempotent(_Overwrites):
    """A copy that was made already is made again without a word."""

    def may(self, source: Log, target: Log, stop: int | None) -> bool:
        return source is not target and source.data[:stop] == target.data


@saboteur("a-copy-onto-its-source-is-refused")
class CopyOntoItself(_Overwrites):
    """A copy onto its source is made."""

    def may(self, source: Log, target: Log, stop: int | None) -> bool:
        return source is target


@saboteur("a-copy-of-a-missing-log-is-not-found")
class CopyReserves(Full):
    """A copy makes its target before it looks for its source."""

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        self._check(source)
        if source not in self.space.logs and target not in self.space.logs:
            super().append(target, b"?", at=NEW)
            raise NotFound("no such log", log=source)
        return super().copy(source, target, stop=stop)


@saboteur("a-copy-of-nothing-is-refused")
class CopyOfNothing(Full):
    """A copy to 0 copies everything, since 0 is false."""

    def copy(self, source: str, target: str, *, stop: int | None = None) -> Tail:
        return super().copy(source, target, stop=stop or None)


@saboteur("a-copy-of-a-long-log-is-whole")
class CopyOneBuffer(Full):
    """A copy ends with its first megabyte."""

    def copied(self, data: bytes, size: int) -> bytes:
        return super().copied(data, min(size, 1 << 20))


@saboteur("a-creation-where-a-copy-was-made-is-refused")
class CopiesAreOpenToCreation(Full):
    """A creation goes on in a copy."""

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        tail = super().put_copy(target, found, size)
        self.space.notes[target] = "copy"
        return tail

    def again(self, log: str, found: Log, data: bytes, at: Tail) -> Tail:
        if at == NEW and log in self.space.notes and not self.same(found, data, 0):
            return self.add(log, found, data)
        return super().again(log, found, data, at)


@saboteur("a-copy-shows-to-another-store-object")
class CopiesLater(Full):
    """A copy is told to be made when it has been asked for: whoever asked waits for it, and nobody else."""

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        self.space.notes[target] = self
        return super().put_copy(target, found, size)

    def _find(self, log: str) -> Log:
        if self.space.notes.get(log, self) is not self:
            raise NotFound("no such log", log=log)
        found: Log = super()._find(log)
        return found

    def sync(self, log: str) -> None:
        if log not in self.space.logs:
            self.space.notes.pop(log, None)
        super().sync(log)
