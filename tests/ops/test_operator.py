"""The two faces: one for programs that run a loop, one for those that do not, or cannot wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from statestore.errors import AlreadyAborted, Conflict
from statestore.ops import (
    Answer,
    Key,
    Marker,
    Markers,
    Operator,
    Request,
    Seen,
    SessionsSource,
    State,
    SyncOperator,
    request_input,
)
from statestore.sessions import Sessions
from statestore_memory import MemoryStore

A = "00000001"


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    with Sessions(store).start(id=A) as session:
        session.append_many([request_input("a")])
    return store


def test_the_calls_are_awaited_several_at_a_time(store: MemoryStore) -> None:
    async def work() -> None:
        async with Operator(SessionsSource(store)) as operator:
            one, rows, interrupted = await asyncio.gather(operator.get(A), operator.list(), operator.scan_interrupted())
            assert (one.state, [row.state for row in rows], interrupted) == (State.PAUSED, [State.PAUSED], [])
            told = await asyncio.gather(*(operator.abort(A, f"{n}") for n in range(5)), return_exceptions=True)
            assert sorted(map(type, told), key=str) == sorted([type(None), *[AlreadyAborted] * 4], key=str)

    asyncio.run(work())


def test_the_face_for_scripts_works_where_a_loop_is_running(store: MemoryStore) -> None:
    async def work() -> State | None:
        with SyncOperator(SessionsSource(store)) as operator:
            return operator.get(A).state

    assert asyncio.run(work()) is State.PAUSED


def test_a_state_that_there_is_not_is_a_wrong_argument(store: MemoryStore) -> None:
    with SyncOperator(SessionsSource(store)) as operator, pytest.raises(ValueError, match="running"):
        operator.list(state="running")


class Foreign:
    """A system that takes whatever comes, in the order in which it comes, as most do: nothing is conditional."""

    app_name = ""
    exact = False

    def __init__(self) -> None:
        self.written: list[Marker] = []
        self.others: list[Marker] = []

    async def sessions(self, user_id: str = "", *, scan: bool = False) -> AsyncIterator[Seen]:
        yield Seen(key=Key("", "", A), markers=Markers(tuple(self.written)))

    async def find(self, id: str) -> list[Key]:  # noqa: A002
        return [Key("", "", A)]

    async def read(self, key: Key) -> Seen | None:
        return Seen(key=key, markers=Markers(tuple(self.written)))

    async def markers(self, key: Key) -> Markers:
        return Markers(tuple(self.written))

    async def mark(self, key: Key, marker: Marker, at: Any) -> None:
        self.written += [*self.others, marker]
        self.others = []

    async def answer(self, seen: Seen, request: Request, response: Any) -> Answer:
        raise NotImplementedError

    async def aclose(self) -> None:
        pass


def test_where_nothing_is_conditional_whoever_came_first_has_aborted() -> None:
    source = Foreign()
    with SyncOperator(source) as operator:
        source.others = [Marker("abort", "theirs", None, "another")]
        with pytest.raises(AlreadyAborted, match="theirs"):
            operator.abort(A, "ours")
        assert operator.list()[0].abort_reason == "theirs"
    source = Foreign()
    with SyncOperator(source) as operator:
        operator.abort(A, "ours")
        assert operator.get(A).abort_reason == "ours"


def test_who_is_overtaken_for_ever_gives_up() -> None:
    class Busy(Foreign):
        exact = True

        async def mark(self, key: Key, marker: Marker, at: Any) -> None:
            raise Conflict("others write all the time")

    with SyncOperator(Busy()) as operator, pytest.raises(Conflict):
        operator.abort(A)
