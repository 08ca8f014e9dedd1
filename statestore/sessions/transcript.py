"""What a session's records come to: the context for the model, the calls that wait, the status."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from enum import StrEnum
from heapq import heappop, heappush
from typing import Final, Literal, get_args

from statestore.errors import Corrupt, NotFound
from statestore.records import BLOCKS, CALL, CONFIG, ERROR, MESSAGE, RESULT, START, STEP, Header, Record
from statestore.sessions.conf import Conf

__all__ = ["Progress", "Status", "Transcript", "Unpaired"]

Unpaired = Literal["drop", "error", "keep"]
"""What a context does about calls without a result and results without a call."""

_SILENT: Final = frozenset({START, CONFIG})


class Status(StrEnum):
    """What a session has come to."""

    OPEN = "open"
    """A message or a result is there that no step has seen: the model's turn."""
    CLOSED = "closed"
    """Everything said has been answered."""
    INTERRUPTED = "interrupted"
    """Calls wait for their results."""
    FAILED = "failed"
    """The last record is an error."""
    STEPPING = "stepping"
    """Somebody holds the session and works on it."""


class Progress:
    """The state of a session, folded header by header.

    It remembers positions and ids only, and of these only the calls that have no result yet.

    Attributes:
        count: how many headers were added.
        last: the last of them.
        step: the last step's header.
        step_at: its position, counted from 0.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last: Header | None = None
        self.step: Header | None = None
        self.step_at = -1
        self._unclosed: dict[str, list[tuple[int, str]]] = {}
        self._waiting: dict[int, None] = {}
        self._by_id: dict[str, deque[int]] = {}
        self._newest = 0  # the largest number of a message or result

    def copy(self) -> Progress:
        """Return another one that goes on from here by itself."""
        other = Progress()
        other.__dict__.update(self.__dict__)
        other._unclosed = {step: list(calls) for step, calls in self._unclosed.items()}
        other._waiting = dict(self._waiting)
        other._by_id = {id_: deque(calls) for id_, calls in self._by_id.items()}
        return other

    @property
    def waiting(self) -> list[int]:
        """The positions of the calls that a step has closed and no result has answered since, as they closed."""
        return list(self._waiting)

    def add(self, header: Header) -> bool:
        """Go on by one record; return False for a result that answers no waiting call."""
        at, kind = self.count, header.kind
        self.count += 1
        self.last = header
        if kind == CALL:
            self._unclosed.setdefault(header.step, []).append((at, header.id))
        elif kind == STEP:
            self.step, self.step_at = header, at
            for call, id_ in self._unclosed.pop(header.id, ()):
                self._waiting[call] = None
                self._by_id.setdefault(id_, deque()).append(call)
        elif kind == MESSAGE:
            self._newest = max(self._newest, header.n)
        elif kind == RESULT:
            self._newest = max(self._newest, header.n)
            return self._answer(header.for_)
        return True

    def _answer(self, id_: str) -> bool:
        """Take the first waiting call with an id off the list; say whether there was one."""
        calls = self._by_id.get(id_)
        if calls is None:
            return False
        del self._waiting[calls.popleft()]
        if not calls:
            del self._by_id[id_]
        return True

    def status(self) -> Status:
        """Say what the session has come to.

        Raises:
            ValueError: there is no record.
        """
        if self.last is None:
            raise _nothing()
        if self.last.kind == ERROR:
            return Status.FAILED
        if self._waiting:
            return Status.INTERRUPTED
        return Status.OPEN if self._newest > (self.step.upto if self.step else 0) else Status.CLOSED


class Transcript:
    """A session's records at one moment, and what they come to. It never changes.

    Args:
        records: the records, from the session's first on.

    Attributes:
        records: the same.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records: tuple[Record, ...] = ()
        self._progress = Progress()
        self._strays: list[int] = []
        self._go_on(tuple(records))

    def _go_on(self, records: tuple[Record, ...]) -> None:
        begin = len(self.records)
        self.records += records
        self._strays += [at for at, record in enumerate(records, begin) if not self._progress.add(record.header)]

    def followed_by(self, records: Iterable[Record]) -> Transcript:
        """Return the transcript that goes on with these records; only they are looked at."""
        other = Transcript()
        other.records, other._progress, other._strays = self.records, self._progress.copy(), list(self._strays)
        other._go_on(tuple(records))
        return other

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __repr__(self) -> str:
        return f"<Transcript of {len(self.records)} records>"

    @property
    def upto(self) -> int:
        """The number of the last record: what the next step's ``upto`` is, if the model sees all of this.

        Raises:
            ValueError: there is no record.
        """
        if not self.records:
            raise _nothing()
        return self.records[-1].n

    def context(self, *, unpaired: Unpaired = "drop") -> list[Record]:
        """Return what the model is to see, in the order in which it is to see it.

        Blocks come where their step closed them, and blocks that no step closed are left out. Before each step
        comes what it saw, the results first; at the end comes what no step has seen. A call's result is the
        first one that comes after its step; where several calls share an id, each result answers the oldest.

        Args:
            unpaired: what to do about a call without a result, and a result without a call (a second result
                for one call, or one that comes before the call's step, is such a result): ``drop`` leaves them
                out, ``error`` raises, ``keep`` shows them all the same, as the Go package does.

        Raises:
            NotFound: with ``error``: a call has no result, or a result no call. It is an error of looking up,
                since each half names the other by its id; ``error.facts`` has the ids.
            ValueError: there is no record, or `unpaired` is none of the three.
        """
        if unpaired not in get_args(Unpaired):
            raise ValueError(f"unpaired is one of {', '.join(get_args(Unpaired))}, not {unpaired!r}")
        if not self.records:
            raise _nothing()
        alone = {*self._progress.waiting, *self._strays} if unpaired != "keep" else set()
        if alone and unpaired == "error":
            raise self._unpaired_error()
        return _arrange(record for at, record in enumerate(self.records) if at not in alone)

    def _unpaired_error(self) -> NotFound:
        results = [self.records[at].id for at in self._strays]
        return NotFound(
            "a call has no result or a result no call: close the waiting calls, or build the context with drop",
            calls=",".join(call.id for call in self.waiting()) or None,
            results=",".join(results) or None,
        )

    def waiting(self) -> list[Record]:
        """Return the calls that a step has closed and no result has answered since, in the order of their closing."""
        return [self.records[at] for at in self._progress.waiting]

    def last_step(self) -> Record | None:
        """Return the last step; None where there is none."""
        return self.records[self._progress.step_at] if self._progress.step else None

    def prompt_tokens(self) -> int:
        """Return the size of the last step's prompt in tokens, cached ones counted; 0 where that is not known.

        The sum has 64 bits and wraps around, as the Go package's does.
        """
        usage = self._progress.step.usage if self._progress.step else None
        if usage is None:
            return 0
        total = usage.input + usage.cache_read + usage.cache_write
        return (total + 2**63) % 2**64 - 2**63

    def status(self, *, held: bool = False) -> Status:
        """Say what the session has come to.

        Args:
            held: whether somebody holds it now, which the records cannot tell: then it is ``stepping``.

        Raises:
            ValueError: there is no record.
        """
        return Status.STEPPING if held else self._progress.status()

    def conf(self) -> Conf | None:
        """Return what the last config record says; None where there is none.

        Raises:
            Corrupt: its body is no configuration; ``error.record`` and ``error.offset`` say where it stands.
        """
        record = next((record for record in reversed(self.records) if record.kind == CONFIG), None)
        if record is None:
            return None
        try:
            return Conf.decode(record.body)
        except ValueError as error:
            raise Corrupt(
                f"the config record's body is no configuration: {error}; append another one",
                record=record.n,
                offset=record.offset,
            ) from error


def _arrange(records: Iterable[Record]) -> list[Record]:
    """Return records in the order of a context."""
    context: list[Record] = []
    blocks: dict[str, list[Record]] = {}
    unseen: list[tuple[int, int, Record]] = []  # a heap, by number
    for at, record in enumerate(records):
        header = record.header
        if header.kind in BLOCKS:
            blocks.setdefault(header.step, []).append(record)
        elif header.kind == STEP:
            seen = []
            while unseen and unseen[0][0] <= header.upto:
                seen.append(heappop(unseen))
            context += _results_first(seen)
            context += blocks.pop(header.id, ())
            context.append(record)
        elif header.kind not in _SILENT:
            heappush(unseen, (header.n, at, record))
    return context + _results_first(unseen)


def _results_first(entries: list[tuple[int, int, Record]]) -> list[Record]:
    return [record for _, _, record in sorted(entries, key=lambda entry: (entry[2].kind != RESULT, entry[1]))]


def _nothing() -> ValueError:
    return ValueError("a transcript without a record has neither a context nor a status")
