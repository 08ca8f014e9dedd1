"""The operator's calls, the same over every system of sessions."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Literal, Self

from statestore.errors import AlreadyAborted, Ambiguous, Conflict, NotFound, StateStoreError, Unavailable
from statestore.ops._answers import check_answer
from statestore.ops._model import Detail, State, Summary
from statestore.ops._source import Answer, Key, Marker, Markers, Seen, Source
from statestore.ops._verdict import abortion, detail, judge, summary

__all__ = ["DEFAULT_REASON", "Operator"]

DEFAULT_REASON: Final = "operator abort"
"""Why a session is aborted, where nobody says it."""

_RACES: Final = 100  # how often a decision is taken again after others have written


class Operator:
    """What an operator may know and do about the sessions of a source.

    Everywhere an empty `user_id` means whoever has a session with that id; where several have one, that is
    ``Ambiguous``. An id that is reserved for companions is ``NotFound``.

    Args:
        source: the system of sessions. Closing the operator closes it.
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    def __repr__(self) -> str:
        return f"Operator({self.source!r})"

    async def scan_interrupted(self) -> list[Detail]:
        """Return the sessions that are interrupted, whoever was cut short first in front."""
        rows = [detail(seen) async for seen in self.source.sessions() if judge(seen).state is State.INTERRUPTED]
        return sorted(rows, key=lambda row: (row.interrupted_at or _NEVER, row.id, row.user_id))

    async def list(self, user_id: str = "", *, state: State | str = "", scan: bool = False) -> list[Summary]:
        """Return all sessions, those first whose last event is newest; where that is the same, by id.

        A session that cannot be read has an `error`, and no state unless it was aborted.

        Args:
            user_id: only this user's; ``""`` means all.
            state: only those with this state; ``""`` means all.
            scan: believe nothing that was kept from an earlier reading.

        Raises:
            ValueError: there is no such state.
            Unavailable: the system cannot be listed.
        """
        wanted = State(state) if state else None
        rows = [summary(seen) async for seen in self.source.sessions(user_id, scan=scan)]
        rows.sort(key=lambda row: (row.id, row.user_id))
        rows.sort(key=lambda row: row.last_event_time or _NEVER, reverse=True)
        return [row for row in rows if wanted is None or row.state is wanted]

    async def get(self, id: str, *, user_id: str = "") -> Detail:  # noqa: A002 - what it is called everywhere
        """Return one session.

        Raises:
            NotFound: there is no such session.
            Ambiguous: several users have one.
            StateStoreError: it is damaged, or its markers cannot be read.
        """
        seen = await self._see(id, user_id)
        if (error := judge(seen).error) is not None:
            raise error
        return detail(seen)

    async def abort(self, id: str, reason: str = DEFAULT_REASON, *, user_id: str = "") -> None:  # noqa: A002
        """End a session for good. A turn that is running is not stopped: its runner has to look.

        Of several operators one succeeds, as exactly as the source allows.

        Args:
            id: the session.
            reason: why; an empty one is the default.
            user_id: whose session.

        Raises:
            NotFound: there is no such session; nothing was written.
            Ambiguous: several users have one.
            AlreadyAborted: it was aborted before; nothing was written.
            StateStoreError: the markers cannot be read or written.
        """
        seen = await self._see(id, user_id)

        def check(markers: Markers) -> None:
            first = abortion(markers, seen.state)
            if first is not None:
                raise _aborted("the session is aborted already", seen.key, first)

        await self._mark(seen.key, "abort", reason or DEFAULT_REASON, check)

    async def mark_interrupted(self, id: str, reason: str, *, user_id: str = "") -> None:  # noqa: A002
        """Say that a session's turn was cut short; what was said before is replaced.

        With a user given the session need not exist yet: the marker shows when it does.

        Raises:
            ValueError: there is no reason.
            NotFound: no user is given, and there is no such session.
            Ambiguous: several users have one.
            StateStoreError: the markers cannot be read or written.
        """
        if not reason:
            raise ValueError("an interruption has a reason: say why the turn was cut short")
        await self._mark(await self._locate(id, user_id), "interrupt", reason)

    async def clear_interrupted(self, id: str, *, user_id: str = "") -> None:  # noqa: A002
        """Take an interruption back; where there is none, that is in order.

        Raises:
            NotFound: no user is given, and there is no such session.
            Ambiguous: several users have one.
            StateStoreError: the markers cannot be read or written.
        """
        await self._mark(await self._locate(id, user_id), "clear", "")

    async def resume(
        self,
        id: str,  # noqa: A002
        interrupt_id: str,
        response: Any,
        *,
        user_id: str = "",
        check: bool = True,
    ) -> Answer:
        """Answer an open request, after a look at whether the answer is what it asks for.

        Args:
            id: the session.
            interrupt_id: the request.
            response: the answer, any JSON.
            user_id: whose session.
            check: whether the request's schema is looked at.

        Raises:
            NotFound: there is no such session, or no such request is open: it was answered, or never raised.
            Ambiguous: several users have such a session.
            AlreadyAborted: the session was aborted.
            InvalidAnswer: the answer does not fit; nothing was written.
            Held: somebody else holds the session, and writes to it alone.
            StateStoreError: the session cannot be read or written.
        """
        for attempt in range(1, _RACES + 1):
            seen = await self._see(id, user_id)
            verdict = judge(seen)
            if verdict.state is State.ABORTED and verdict.marker:
                raise _aborted("an aborted session takes no answers", seen.key, verdict.marker)
            if verdict.error is not None:
                raise verdict.error
            request = next((each for each in seen.pending if each.interrupt_id == interrupt_id), None)
            if request is None:
                opened = ",".join(each.interrupt_id for each in seen.pending)
                raise NotFound(
                    "no such request is open: it was answered already, or never raised",
                    session=id,
                    interrupt=interrupt_id,
                    open=opened or None,
                )
            check_answer(request, response, schema=check)
            try:
                return await self.source.answer(seen, request, response)
            except Conflict:
                if attempt == _RACES:
                    raise
        raise AssertionError

    async def aclose(self) -> None:
        """Close the source."""
        await self.source.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _locate(self, id_: str, user_id: str) -> Key:
        """Return the key of the session that is meant; with a user given it need not exist."""
        if user_id:
            return Key(self.source.app_name, user_id, id_)
        keys = await self.source.find(id_)
        if not keys:
            raise _missing(id_)
        if len(keys) > 1:
            users = ",".join(key.user_id or '""' for key in keys)
            raise Ambiguous("several users have a session with this id: say whose is meant", session=id_, users=users)
        return keys[0]

    async def _see(self, id_: str, user_id: str) -> Seen:
        seen = await self.source.read(await self._locate(id_, user_id))
        if seen is None:
            raise _missing(id_, user_id)
        return seen

    async def _mark(
        self,
        key: Key,
        kind: Literal["abort", "interrupt", "clear"],
        reason: str,
        check: Callable[[Markers], None] | None = None,
    ) -> None:
        """Write a marker, as soon as `check` lets it pass and nobody else has written since."""
        marker = Marker(kind, reason, datetime.now(UTC), secrets.token_hex(8))
        for attempt in range(1, _RACES + 1):
            markers = await self.source.markers(key)
            if check is not None:
                check(markers)
            try:
                await self.source.mark(key, marker, markers.at)
            except Conflict:
                if attempt == _RACES:
                    raise
                continue
            except Unavailable as error:
                if not error.effect_unknown or not await self._is_there(key, marker):
                    raise
            break
        if kind == "abort" and not self.source.exact:
            # Whoever was first has aborted it, as all who look from now on see.
            first = abortion(await self.source.markers(key), {})
            if first is not None and first.nonce != marker.nonce:
                raise _aborted("somebody else has aborted the session first", key, first)

    async def _is_there(self, key: Key, marker: Marker) -> bool:
        """Say whether a marker whose fate is unknown is known to be there."""
        try:
            return any(each.nonce == marker.nonce for each in (await self.source.markers(key)).all)
        except StateStoreError:
            return False


_NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)  # orders what has no time, and is shown nowhere


def _missing(id_: str, user_id: str = "") -> NotFound:
    return NotFound("there is no such session", session=id_, user=user_id or None)


def _aborted(message: str, key: Key, marker: Marker) -> AlreadyAborted:
    return AlreadyAborted(message, session=key.id, user=key.user_id or None, reason=marker.reason)
