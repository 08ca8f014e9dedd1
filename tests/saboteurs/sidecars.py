"""Stores that take what is beside a log for a part of it, or leave it behind."""

from __future__ import annotations

from statestore.store import LogInfo, Sidecar, Tail
from tests.saboteurs.faults import saboteur
from tests.saboteurs.stores import Bare, Beside, Full, Log


@saboteur("what-is-beside-a-log-is-no-part-of-it")
class ListsWhatIsBeside(Full):
    """What is beside a log is listed as a log."""

    def page(self, prefix: str, after: str) -> list[str]:
        names = {*super().page(prefix, after), *(f"{log}.index" for log in self.space.beside)}
        return sorted(name for name in names if name > after and self.matches(name, prefix))

    def row(self, name: str, tails: bool) -> LogInfo:
        return super().row(name, tails) if name in self.space.logs else LogInfo(name)


@saboteur("what-is-beside-a-log-is-no-part-of-it")
class CopiesWhatIsBeside(Full):
    """A copy of a log comes with what is beside the log."""

    def put_copy(self, target: str, found: Log, size: int) -> Tail:
        for log, data in list(self.space.beside.items()):
            if self.space.logs.get(log) is found:
                self.space.beside[target] = data
        return super().put_copy(target, found, size)


class _Adding(Beside):
    replace = Beside.append


@saboteur("what-is-beside-a-log-is-no-part-of-it")
class AddsInstead(Full):
    """What is put in the place of what is beside a log is added to it."""

    def sidecar(self, log: str) -> Sidecar | None:
        super().sidecar(log)
        return _Adding(self.space, log)


@saboteur("what-is-beside-a-log-goes-with-it")
class LeavesWhatIsBeside(Full):
    """What is beside a log stays there when the log is deleted or cut."""

    def drop_sidecar(self, log: str) -> None:
        del log


@saboteur("a-store-without-a-place-beside-its-logs-says-so")
class SidecarsUndeclared(Bare):
    """A store that says it keeps nothing beside its logs offers a place there."""

    def sidecar(self, log: str) -> Sidecar | None:
        super().sidecar(log)
        return self.inner.sidecar(log)
