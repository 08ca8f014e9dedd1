"""The sessions of any of google-adk's services, for an operator."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable
from typing import Any, Final, Literal, TypeVar

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.sessions import BaseSessionService, Session
from google.genai import types

from statestore.adapters.adk._events import seen_event, seen_time
from statestore.adapters.adk._markers import (
    KEYS,
    claim,
    claim_state,
    companion,
    is_companion,
    read_claim,
    read_markers,
    write_marker,
)
from statestore.adapters.adk._service import StateStoreSessionService
from statestore.errors import Conflict, Corrupt, NotFound, NotSupported, StateStoreError, Unavailable
from statestore.ops import Answer, Key, Marker, Markers, Request, Seen, python_rules
from statestore.ops._pending import CONFIRMATION, INPUT

__all__ = ["AdkSource"]

T = TypeVar("T")

_RACES: Final = 100


class AdkSource:
    """The sessions of one application, of any of google-adk's session services.

    Only what all services have is used. A session's markers are in a companion, the session ``<id>:mast-ops`` of the
    same user, whose events are those of the Go system: each reads what the other writes.

    Args:
        service: the service.
        app_name: the application.
        answers: how the answers to requests are wrapped: as the Python runtime takes them, or as the Go one does.
        own: whether the service is closed with the source.
    """

    def __init__(
        self,
        service: BaseSessionService,
        app_name: str,
        *,
        answers: Literal["python", "go"] = "python",
        own: bool = False,
    ) -> None:
        self.service = service
        self._app = app_name
        self._answers = answers
        self._own = own

    def __repr__(self) -> str:
        return f"AdkSource({self.service!r}, {self._app!r})"

    @property
    def app_name(self) -> str:
        """The application."""
        return self._app

    @property
    def exact(self) -> bool:
        """Whether the service refuses whoever has not seen the newest event; only ours does that in every case.

        Of several aborts one succeeds with any service that takes ids.
        """
        return isinstance(self.service, StateStoreSessionService)

    async def sessions(self, user_id: str = "", *, scan: bool = False) -> AsyncIterator[Seen]:
        """Yield all sessions with their markers; see `Source.sessions`. Nothing is kept, so a scan is the same."""
        rows = await self._list(user_id)
        marked = {(row.user_id, row.id) for row in rows}
        for row in rows:
            if is_companion(row.id):
                continue
            key = Key(self._app, row.user_id, row.id)
            try:
                session = await self._get(key, row.id)
            except StateStoreError as error:
                yield await self._see(key, error, updated=row.last_update_time)
                continue
            if session is not None:
                beside = {(row.user_id, companion(row.id)), (row.user_id, claim(row.id))}
                yield await self._see(key, session, has_markers=bool(beside & marked))

    async def find(self, id: str) -> list[Key]:  # noqa: A002 - what it is called everywhere
        """Return the keys of all sessions with this id; blanks around it do not count."""
        wanted = id.strip()
        if not wanted or is_companion(wanted):
            return []
        rows = sorted((row.user_id, row.id) for row in await self._list("") if row.id.strip() == wanted)
        return [Key(self._app, user, id_) for user, id_ in rows]

    async def read(self, key: Key) -> Seen | None:
        """Return one session as it is now; None where there is none."""
        if is_companion(key.id) or key.app_name != self._app:
            return None
        try:
            session = await self._get(key, key.id)
        except Corrupt as error:
            return await self._see(key, error)
        return None if session is None else await self._see(key._replace(id=session.id), session)

    async def markers(self, key: Key) -> Markers:
        """Return a session's markers, whether it exists or not."""
        if is_companion(key.id):
            return Markers()
        session = await self._get(key, companion(key.id))
        found = [] if session is None else list(read_markers(session))
        if not self.exact and (made := await self._get(key, claim(key.id))) is not None:
            first = read_claim(made)
            found = [first, *(marker for marker in found if marker.nonce != first.nonce)]
        return Markers(tuple(found), session)

    async def mark(self, key: Key, marker: Marker, at: Any) -> None:
        """Add one marker to a session's companion, behind `at`.

        Every service makes a session with a given id once. Where that alone tells who was first, an abort is the making
        of one more session, which no other operator can make again.

        Raises:
            Conflict: there are others by now.
            NotFound: the id is reserved for companions.
            NotSupported: the service chooses all ids itself.
            Unavailable: the service failed.
        """
        if is_companion(key.id):
            raise NotFound("this id is reserved for what operators say of sessions", session=key.id)
        claimed = marker.kind == "abort" and not self.exact
        if claimed:
            await self._make(key, claim(key.id), claim_state(marker))
        for _ in range(_RACES):
            try:
                session: Session = at if at is not None else await self._make(key, companion(key.id), {})
                return await self._append(session, marker)
            except Conflict:
                if not claimed:
                    raise
                at = await self._get(key, companion(key.id))
        raise _overtaken(key)

    async def _append(self, session: Session, marker: Marker) -> None:
        try:
            await self.service.append_event(session, write_marker(marker, session))
        except (StaleSessionError, SessionNotFoundError) as error:
            raise _overtaken(session) from error
        except Exception as error:
            raise _failure(error, effect_unknown=True, session=session.id) from error

    async def answer(self, seen: Seen, request: Request, response: Any) -> Answer:
        """Return the user's turn that answers a request; give it to a runner, which writes it.

        ``types.Content.model_validate(answer.content)`` is the runner's ``new_message``.
        """
        name = INPUT if request.tool_name == "" else request.tool_name
        part = types.Part(
            function_response=types.FunctionResponse(
                id=request.interrupt_id, name=name, response=self._wrap(name, response)
            )
        )
        content = types.Content(role="user", parts=[part])
        return Answer(content.model_dump(mode="json", by_alias=True, exclude_none=True), written=False)

    async def aclose(self) -> None:
        """Close the service, where it is the source's own."""
        close = getattr(self.service, "close", None)
        if self._own and close is not None:
            await close()

    def _wrap(self, name: str, response: Any) -> dict[str, Any]:
        """Return an answer as an object, so that the runtime takes out of it what was given."""
        if name == CONFIRMATION and isinstance(response, dict):
            return response
        if self._answers == "go":
            return {"response": response}
        if isinstance(response, dict) and response.keys() != {"result"}:
            return response
        if name == INPUT and isinstance(response, str) and _is_json(response):
            response = json.dumps(response)  # else it would be taken for what it spells
        return {"result": response}

    async def _make(self, key: Key, id_: str, state: dict[str, Any]) -> Session:
        """Make a session beside one.

        Raises:
            Conflict: somebody else has made it.
            NotSupported: the service chooses all ids itself.
        """
        refusal = NotSupported(
            "the session service chooses all ids itself, so sessions can't be marked there", session=key.id
        )
        names = {"app_name": self._app, "user_id": key.user_id}
        try:
            made = await self.service.create_session(session_id=id_, state=state, **names)
        except AlreadyExistsError as error:
            raise _overtaken(key) from error
        except StateStoreError:
            raise
        except (NotImplementedError, ValueError) as error:
            raise refusal from error
        except Exception as error:
            raise _failure(error, effect_unknown=True, session=key.id) from error
        if made.id != id_:
            await self.service.delete_session(session_id=made.id, **names)
            raise refusal
        return made

    async def _list(self, user_id: str) -> list[Session]:
        listing = self.service.list_sessions(app_name=self._app, user_id=user_id or None)
        return (await _guard(listing, app=self._app)).sessions

    async def _get(self, key: Key, id_: str) -> Session | None:
        getting = self.service.get_session(app_name=self._app, user_id=key.user_id, session_id=id_)
        return await _guard(getting, session=id_, user=key.user_id)

    async def _see(
        self, key: Key, found: Session | StateStoreError, *, updated: float | None = None, has_markers: bool = True
    ) -> Seen:
        """Return what was read, or why it could not be, together with the markers."""
        markers: Markers | None = Markers()
        marker_error = None
        if has_markers:
            try:
                markers = await self.markers(key)
            except StateStoreError as error:
                markers, marker_error = None, error
        if not isinstance(found, Session):
            time = seen_time(updated) if updated is not None else None
            return Seen(key=key, updated=time, markers=markers, marker_error=marker_error, error=found)
        events = [seen_event(event) for event in found.events]
        time = seen_time(found.last_update_time)
        return Seen(
            key=key,
            created=None if events else time,
            updated=time,
            count=len(events),
            pending=tuple(python_rules(events)),
            state={name: found.state[name] for name in KEYS if name in found.state},
            markers=markers,
            marker_error=marker_error,
            at=found,
        )


def _overtaken(session: Key | Session) -> Conflict:
    return Conflict("others have marked the session meanwhile: read and decide again", session=session.id)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


async def _guard(call: Awaitable[T], **facts: Any) -> T:
    """Return what a service gives, or raise its failure as one of ours."""
    try:
        return await call
    except Exception as error:
        raise _failure(error, **facts) from error


def _failure(error: Exception, *, effect_unknown: bool = False, **facts: Any) -> StateStoreError:
    """Return the error of ours for a service's own. What it says of one session's data is damage."""
    if isinstance(error, StateStoreError):
        return error
    what = f"{type(error).__name__}: {error}"[:200]
    if isinstance(error, ValueError):
        return Corrupt(f"the session service cannot make sense of what it has stored: {what}", **facts)
    return Unavailable(f"the session service failed: {what}", retry=True, effect_unknown=effect_unknown, **facts)
