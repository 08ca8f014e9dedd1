"""One session that is open for appending."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, Final, Self

from statestore.errors import Closed, Conflict
from statestore.records import RESULT, Draft, Record, RecordLog, Scan, draft
from statestore.sessions.transcript import Transcript

__all__ = ["Session"]

_RACES: Final = 100  # how often a closing of calls decides again after others have appended


class Session:
    """A session that is open for appending; :class:`~statestore.sessions.Sessions` gives it.

    Where the store can hold, the session is held until it is closed: everybody else reads it, and nobody else
    appends. It may be used from many threads.

    Args:
        id: the session's id.
        log: its log.
        hold: what lets the hold go; nothing where the store cannot hold.

    Attributes:
        id: the session's id.
        log: its log, as records.
    """

    def __init__(self, id: str, log: RecordLog, hold: ExitStack) -> None:  # noqa: A002 - what it is called everywhere
        self.id = id
        self.log = log
        self._hold = hold
        self._closed = False
        # Replaced as a whole, so that threads need no lock: at worst one of them reads again what another has.
        self._known = (Transcript(), "")

    def __repr__(self) -> str:
        return f"<Session {self.id} {'closed' if self._closed else 'open'} in {self.log.store!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, kind: str, body: bytes = b"", **fields: Any) -> Record:
        """Add one record at the end and return it; see :meth:`RecordLog.append` for what it takes and raises.

        Raises:
            Closed: the session was closed.
        """
        self._check_open()
        return self.log.append(kind, body, **fields)

    def append_many(self, drafts: Iterable[Draft], *, expect: int | None = None) -> range:
        """Add several records in one write and return their numbers; see :meth:`RecordLog.append_many`.

        Raises:
            Closed: the session was closed.
        """
        self._check_open()
        return self.log.append_many(drafts, expect=expect)

    def transcript(self) -> Transcript:
        """Return the session's records as they are now; only those that are new are read and looked at.

        It is kept until the next call, so a session that never asks for it holds no records in memory.

        Raises:
            Closed: the session was closed.
            NotFound: the log was deleted.
            Conflict: the log was deleted and made again, or cut.
            Corrupt: a record is damaged.
        """
        self._check_open()
        known, run = self._known
        end = known.records[-1].end if known.records else 0
        snapshot = self.log.store.snapshot(self.log.name)
        tail = snapshot.tail
        if tail.size < end or (end and tail.run != run):
            raise Conflict(
                "the log was deleted and made again, or cut: open the session anew",
                log=self.log.name,
                found=tail,
            )
        if tail.size > end:
            known = known.followed_by(Scan(snapshot.read, start=end, number=len(known) + 1, log=self.log.name))
        self._known = (known, tail.run)
        return known

    def close_waiting(self, reason: str) -> list[Record]:
        """Answer every waiting call with one result that says why it has no other, and return these records.

        An interrupted turn is repaired so, in the log and for good: the next call finds nothing to do, and of
        two that come at the same time each call is answered by one. After a crash in the middle, call again.

        Args:
            reason: the results' text, for the model to read.

        Raises:
            Closed: the session was closed.
            Conflict: others append all the time, or the log was made again.
            Held: somebody else holds the log.
        """
        body = reason.encode()
        for attempt in range(1, _RACES + 1):
            transcript = self.transcript()
            results = [draft(RESULT, body, for_=call.id, type="text/plain") for call in transcript.waiting()]
            if not results:
                return []
            try:
                numbers = self.append_many(results, expect=len(transcript) + 1)
            except Conflict:
                if attempt == _RACES:
                    raise
            else:
                return list(self.transcript().records[numbers.start - 1 : numbers.stop - 1])
        raise AssertionError

    def close(self) -> None:
        """Let the session go; closing twice is nothing. Afterwards every other call raises ``Closed``."""
        self._closed = True
        self._known = (Transcript(), "")
        self._hold.close()

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("this session was closed: open it again", session=self.id)
