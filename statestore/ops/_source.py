"""What the operator's surface needs from a system of sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from statestore.errors import StateStoreError
from statestore.ops._events import Request

__all__ = ["Answer", "Key", "Marker", "Markers", "Seen", "Source"]


class Key(NamedTuple):
    """Which session.

    Attributes:
        app_name: the application; ``""`` where the system has none.
        user_id: whose it is; ``""`` where the system has no users.
        id: its id.
    """

    app_name: str
    user_id: str
    id: str


@dataclass(frozen=True, slots=True)
class Marker:
    """What an operator or a daemon has said of a session.

    Attributes:
        kind: ``abort``, ``interrupt`` or ``clear``, which takes an interruption back.
        reason: why; ``""`` only on a ``clear`` and where another program has left it out.
        time: when, in UTC.
        nonce: what tells this marker from an equal one: random where we write it, ``""`` where others did without.
    """

    kind: Literal["abort", "interrupt", "clear"]
    reason: str
    time: datetime | None
    nonce: str = ""


@dataclass(frozen=True, slots=True)
class Markers:
    """The markers of one session.

    Attributes:
        all: those that anything depends on, in the order in which they were written: at least the first abort, and the
            last of the others.
        at: where they end, for `Source.mark`: the source's own, of whatever type.
    """

    all: tuple[Marker, ...] = ()
    at: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A session as its source has read it, all of it at one moment.

    Attributes:
        key: which one.
        created: when it was made; None where that is not known.
        updated: when its last event came, or when it was made, where there is none. Markers do not count.
        count: how many events it has; markers do not count.
        pending: the open requests, each once, in the order in which they were raised.
        state: the session's own state (never the application's or the user's), as far as it may hold the keys
            ``mast_abort_reason``, ``mast_abort_time``, ``mast_interrupted_reason``, ``mast_interrupted_time``.
        markers: what the companion holds; None where it could not be read, and `marker_error` says why.
        error: why the session could not be read; then `count`, `pending` and the times say nothing.
        marker_error: why the companion could not be read.
        at: where the session ends, for `Source.answer`: the source's own, of whatever type.
    """

    key: Key
    created: datetime | None = None
    updated: datetime | None = None
    count: int = 0
    pending: tuple[Request, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    markers: Markers | None = field(default_factory=Markers)
    error: StateStoreError | None = None
    marker_error: StateStoreError | None = None
    at: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of an answer.

    Attributes:
        content: the user's turn that it is, as JSON in the words of the system: what a runner takes.
        written: whether it is in the session now. Otherwise give `content` to the runner, which writes it.
    """

    content: Mapping[str, Any]
    written: bool


class Source(Protocol):
    """A system of sessions as an operator looks at it.

    A source promises:

    - **Reading changes nothing**: no session, no companion, no file beside them. It works on what is read-only.
    - **Markers live in a companion**, a log or row of their own for each session, which the source makes with the first
      marker. A session itself is never touched by `mark`: whoever holds it, or knows where it ends, is not disturbed.
    - **Companions are no sessions**: they are not listed, and an id that names one is found by no call.
    - **A failure is told and never taken for an answer**: a companion that is not there has no markers; one that cannot
      be read is a `Seen.marker_error` (or is raised, where one session was asked for). A session that is damaged is a
      `Seen.error` in a listing, and the others are listed all the same.
    - Errors are those of `statestore.errors`; the system's own is their cause.
    - It may be used by several tasks of one loop at a time.
    """

    @property
    def app_name(self) -> str:
        """The application whose sessions these are, as in their keys; ``""`` where the system has none."""

    @property
    def exact(self) -> bool:
        """Whether `mark` is conditional: of two at the same place one is refused with ``Conflict``, always.

        Otherwise it appends, and whoever reads the markers afterwards sees by their order who was first, as far as the
        system keeps one.
        """

    def sessions(self, user_id: str = "", *, scan: bool = False) -> AsyncIterator[Seen]:
        """Yield all sessions, in any order, each with its markers.

        Args:
            user_id: only this user's; ``""`` means all.
            scan: believe nothing that was kept from an earlier reading. The answers are the same.

        Raises:
            Unavailable: the system cannot be listed.
        """

    async def find(self, id: str) -> list[Key]:  # noqa: A002 - what it is called everywhere
        """Return the keys of all sessions with this id, whosever they are, in the order of the users; often one.

        An id that no session can have, and one that is reserved for companions, has none.
        """

    async def read(self, key: Key) -> Seen | None:
        """Return one session as it is now; None where there is none.

        Damage is in the row, as in a listing; where the session is missing but has markers, that is still None.

        Raises:
            Unavailable: it cannot be said whether there is one.
        """

    async def markers(self, key: Key) -> Markers:
        """Return a session's markers, whether it exists or not.

        Raises:
            StateStoreError: they cannot be read.
        """

    async def mark(self, key: Key, marker: Marker, at: Any) -> None:
        """Add one marker to a session's companion, behind `at`; make the companion where there is none.

        The session need not exist: that is the caller's to ask.

        Args:
            key: the session.
            marker: what to add.
            at: where the markers ended that the decision rests on: `Markers.at`.

        Raises:
            Conflict: there are others by now, and the source is `exact`. Nothing was added: read and decide again.
            NotFound: the id is reserved for companions.
            NotSupported: the system takes no companions, as where it chooses all ids itself.
            Unavailable: the system failed; ``error.effect_unknown`` says whether the marker may be there.
        """

    async def answer(self, seen: Seen, request: Request, response: Any) -> Answer:
        """Answer an open request, or say how: the caller has checked that it is open and that the answer fits.

        Args:
            seen: the session as it was read.
            request: one of `seen.pending`.
            response: any JSON.

        Raises:
            Conflict: the session has gone on since `seen` was read. Nothing was written: read and check again.
            Held: somebody else holds the session; it is them who write to it.
        """

    async def aclose(self) -> None:
        """Let go of what the source itself has opened; what it was given stays open."""
