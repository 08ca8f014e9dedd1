"""What a whole log amounts to, gathered in bounded memory while its records pass by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import astuple

from statestore.errors import Corrupt
from statestore.records import START, STEP, Record, Scan, Usage
from statestore.sessions.transcript import Progress, Transcript

if TYPE_CHECKING:
    from statestore.store import Holder, Store

__all__ = ["Digest", "digest"]


@dataclass
class Digest:
    """What was found in a log so far; all of it once `read` has come to its end.

    Attributes:
        records: how many whole records there are.
        size: how many bytes these take.
        torn: how many bytes of an unfinished append stand behind them.
        corrupt: the damage behind them, if there is any.
        session: whether the log is a session's: it begins with a start.
        stray: whether the last record is a result that answers no waiting call.
        steps: how many answers of a model there are.
        told: how many of them say their tokens.
        usage: the tokens of these together; None where no step says its own.
        holder: who holds the log, as far as the store can tell.
    """

    store: Store
    log: str
    records: int = 0
    size: int = 0
    torn: int = 0
    corrupt: Corrupt | None = None
    session: bool = False
    stray: bool = False
    steps: int = 0
    told: int = 0
    usage: Usage | None = None
    holder: Holder | None = None
    _progress: Progress = field(default_factory=Progress)
    _step: Record | None = None

    def read(self, *, bodies: bool = True) -> Iterator[Record]:
        """Yield the records; damage ends them and is noted.

        Args:
            bodies: whether they have their bodies.

        Raises:
            NotFound: there is no such log.
        """
        store, log = self.store, self.log
        scan = Scan(store.snapshot(log).read, bodies=bodies, log=log)
        try:
            for record in scan:
                self.records, self.size = scan.number - 1, scan.end
                self._note(record)
                yield record
        except Corrupt as error:
            self.corrupt = error
        self.torn = scan.torn
        self.holder = store.holder(log) if store.capabilities.holds else None

    def _note(self, record: Record) -> None:
        if self.records == 1:
            self.session = record.kind == START
        self.stray = not self._progress.add(record.header)
        if record.kind == STEP:
            self.steps += 1
            self._step = record
            if (used := record.header.usage) is not None:
                self.told += 1
                pairs = zip(astuple(self.usage or Usage()), astuple(used), strict=True)
                self.usage = Usage(*map(sum, pairs))

    @property
    def status(self) -> str | None:
        """A session's status; None for a log that is no session."""
        if not self.session:
            return None
        return "stepping" if self.holder else str(self._progress.status())

    @property
    def waiting(self) -> list[int]:
        """The numbers of the calls that wait for a result."""
        return [at + 1 for at in self._progress.waiting] if self.session else []

    @property
    def prompt_tokens(self) -> int | None:
        """The size of the last step's prompt; None where no step says it, and for a log that is no session."""
        if not self.session or self._step is None or self._step.header.usage is None:
            return None
        return Transcript([self._step]).prompt_tokens()


def digest(store: Store, log: str) -> Digest:
    """Return what a whole log amounts to.

    Raises:
        NotFound: there is no such log.
    """
    found = Digest(store, log)
    for _ in found.read(bodies=False):
        pass
    return found
