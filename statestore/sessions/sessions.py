"""The sessions of one place: start, open, load, list and fork them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final, TypeVar

from statestore import names
from statestore.companions import check_free
from statestore.errors import Conflict, Corrupt, Exists, Held, InvalidName, NotFound, StateStoreError
from statestore.records import CONFIG, START, Record, RecordLog, Scan, draft, new_id
from statestore.sessions.conf import Conf
from statestore.sessions.session import Session
from statestore.sessions.transcript import Progress, Status, Transcript
from statestore.store import Store

__all__ = ["Sessions", "valid_id"]

_ID: Final = re.compile(r"[0-9A-Fa-f]{8}")
_TRIES: Final = 100  # how many generated ids may turn out to be taken

T = TypeVar("T")


def valid_id(text: str) -> bool:
    """Say whether `text` can be a session's id: eight hexadecimal digits, in either case."""
    return _ID.fullmatch(text) is not None


class Sessions:
    """The sessions of a store, or of one scope in it. Making one touches nothing.

    A session is the log ``<prefix>/<id>``, or ``<id>`` where there is no prefix. Sessions of different prefixes
    never meet, even if they share an id. Every call checks its ids before it touches the storage: an id is never
    trimmed, folded or quoted, it is taken as it is or refused.

    Args:
        store: the store that holds the logs.
        prefix: the scope, a name such as ``teams/a``; make one of any text with :func:`statestore.names.quote`.

    Raises:
        InvalidName: `prefix` is no name, is too long for ids behind it, or is reserved for companions.
    """

    def __init__(self, store: Store, prefix: str = "") -> None:
        self.store = store
        self.prefix = prefix if prefix == "" else check_free(names.check(prefix))
        self._before_id = prefix and f"{prefix}/"
        names.check(f"{self._before_id}00000000")

    def __repr__(self) -> str:
        return f"Sessions({self.store!r}, {self.prefix!r})"

    def start(self, conf: Conf | None = None, *, id: str | None = None) -> Session:  # noqa: A002 - what it is called everywhere
        """Make a new session and return it, open for appending, and held where the store can hold.

        Its first record is a ``start``, and its second a ``config`` where `conf` is given, in one write.

        Args:
            conf: how the session is set up.
            id: its id; by default a new one that no other session has.

        Raises:
            InvalidName: `id` is no id.
            Exists: there is a session `id`, or somebody holds its log to make it.
        """
        drafts = [draft(START)]
        if conf is not None:
            drafts.append(draft(CONFIG, conf.encode(), type="application/json"))

        def make(id_: str, log: RecordLog) -> Session:
            with ExitStack() as stack:
                self._hold(log, stack)
                log.append_many(drafts, expect=1)
                return Session(id_, log, stack.pop_all())

        return self._make(id, make, (Conflict, Corrupt, Held))

    def open(self, id: str) -> Session:  # noqa: A002
        """Return a session, open for appending, and held where the store can hold.

        Its headers are read, from the last place on that the log's index proves, so that damage there is reported now.
        What a crash left at the end is cut.

        Raises:
            InvalidName: `id` is no id.
            NotFound: there is no such session, or it has no whole record.
            Held: somebody else holds it; ``error.holder`` says who.
            Corrupt: it is damaged; it was not changed, and `load` with ``before`` reads what stands before.
        """
        log = self._log(id)
        # Looked at before anything is held or cut: what is no session is left as it is.
        if next(self._read(id, log, before=2), None) is None:
            raise self._missing(id)
        with ExitStack() as stack:
            self._hold(log, stack)
            log.recover()
            return Session(id, log, stack.pop_all())

    def load(self, id: str, *, before: int | None = None) -> Transcript:  # noqa: A002
        """Return a session's records as they are now. Nothing is held and nothing changed; a torn end is left out.

        Args:
            id: the session's id.
            before: read only the records in front of this number, as far as there are any.

        Raises:
            InvalidName: `id` is no id.
            NotFound: there is no such session, or it has no whole record.
            Corrupt: a record in front of `before` is damaged.
            ValueError: `before` is below 2: a session has at least one record.
        """
        log = self._log(id)
        if before is not None and before < 2:
            raise ValueError(f"a session has at least one record: before={before}")
        transcript = Transcript(self._read(id, log, before))
        if not transcript:
            raise self._missing(id)
        return transcript

    def list(self, *, after: str = "") -> Iterator[str]:
        """Yield the sessions' ids in code-point order, lazily. A log whose name is no id is not shown.

        Args:
            after: an id; only greater ones are shown. The last id of a page continues behind it.

        Raises:
            InvalidName: `after` is no id.
        """
        if after:
            after = self._log(after).name
        skip = len(self._before_id)
        logs = self.store.list(self._before_id, after=after)
        return (log.name[skip:] for log in logs if valid_id(log.name[skip:]))

    def fork(self, id: str, *, before: int | None = None, to: str | None = None) -> str:  # noqa: A002
        """Make a new session of the records in front of number `before`, byte for byte, and return its id.

        Reverting is the same: fork in front of what should not have been, and go on there. The session itself
        stays as it is, also while somebody works on it. The bytes are copied inside the store where it can.

        Args:
            id: the session to fork.
            before: copy records 1 to ``before - 1``; by default all whole ones.
            to: the new session's id; by default a new one that no other session has.

        Raises:
            InvalidName: `id` or `to` is no id.
            NotFound: there is no such session, or it has fewer records.
            Exists: there is a session `to`, or somebody holds its log to make it.
            Corrupt: a record that would be copied is damaged.
            ValueError: `before` is below 2: a session has at least one record.
        """
        log = self._log(id)

        def make(id_: str, target: RecordLog) -> str:
            log.copy(target.name, before=before)
            return id_

        return self._make(to, make, (Exists, Held))

    def path(self, id: str) -> str:  # noqa: A002
        """Say where a person finds the session: its file, or its log's name where there is nothing else.

        Raises:
            InvalidName: `id` is no id.
        """
        log = self._log(id)
        return self.store.location(log.name)

    def status(self, id: str) -> Status:  # noqa: A002
        """Say what a session has come to, in bounded memory; ``stepping`` while somebody holds it.

        Raises:
            InvalidName: `id` is no id.
            NotFound: there is no such session, or it has no whole record.
            Corrupt: a record is damaged.
        """
        log = self._log(id)
        if self.store.capabilities.holds and self.store.holder(log.name) is not None:
            return Status.STEPPING
        progress = Progress()
        try:
            for record in Scan(self.store.snapshot(log.name).read, bodies=False, log=log.name):
                progress.add(record.header)
        except NotFound as error:
            raise self._missing(id) from error
        if progress.last is None:
            raise self._missing(id)
        return progress.status()

    def _log(self, id_: str) -> RecordLog:
        """Return a session's log: the door that every id passes."""
        if not isinstance(id_, str):
            raise TypeError(f"a session's id is a str, not {type(id_).__name__}")
        if not valid_id(id_):
            shown = id_ if len(id_) <= 80 else id_[:77] + "..."
            raise InvalidName("not a session's id: it has eight hexadecimal digits and nothing else", id=shown)
        return RecordLog(self.store, self._before_id + id_)

    def _hold(self, log: RecordLog, stack: ExitStack) -> None:
        if self.store.capabilities.holds:
            stack.enter_context(log.hold())

    def _read(self, id_: str, log: RecordLog, before: int | None) -> Iterator[Record]:
        try:
            yield from log.read(before=before)
        except NotFound as error:
            raise self._missing(id_) from error

    def _make(
        self, id_: str | None, make: Callable[[str, RecordLog], T], taken: tuple[type[StateStoreError], ...]
    ) -> T:
        """Make a session with the id given, or with a new one; `taken` are the errors that say that it is there."""
        log = None if id_ is None else self._log(id_)
        for attempt in range(1, _TRIES + 1):
            new = new_id() if id_ is None else id_
            try:
                return make(new, log or self._log(new))
            except taken as error:
                if id_ is not None or attempt == _TRIES:
                    raise Exists(
                        "there is such a session already: open it, or take another id",
                        session=new,
                        log=self._before_id + new,
                        holder=error.facts.get("holder"),
                    ) from error
        raise AssertionError

    def _missing(self, id_: str) -> NotFound:
        return NotFound("there is no such session: the log has no records", session=id_, log=self._before_id + id_)
