"""Round trips, counted and not timed: requests are held until no further one comes, and then sent together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_TURNS = 100  # turns of the event loop without a further request: whoever does not wait for an answer has sent by then


class _Gate:
    """Holds requests of one event loop back.

    Attributes:
        waves: how many requests each wave had.
    """

    def __init__(self) -> None:
        self.waves: list[int] = []
        self._held: list[asyncio.Future[None]] = []
        self._under_way = 0
        self._watching: asyncio.Task[None] | None = None

    async def hold(self) -> None:
        """Wait until the wave is sent that this request belongs to."""
        turn = asyncio.get_running_loop().create_future()
        self._held.append(turn)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        await turn

    def answered(self) -> None:
        """Note that all of an answer has come."""
        self._under_way -= 1
        if self._held and self._watching is None:
            self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        """Send what is held, once nothing is under way and nothing further comes."""
        seen, quiet = 0, 0
        while not self._under_way and quiet < _TURNS:
            quiet = quiet + 1 if len(self._held) == seen else 0
            seen = len(self._held)
            await asyncio.sleep(0)
        self._watching = None
        if self._under_way:
            return
        held, self._held = self._held, []
        self.waves.append(len(held))
        self._under_way = len(held)
        for turn in held:
            turn.set_result(None)


@contextmanager
def waves() -> Iterator[list[int]]:
    """Send the requests of the S3 client library in waves, and list how many each wave had.

    What one thread causes is counted exactly. Threads that send at the same moment may be counted as two waves.
    """
    from aiobotocore.httpsession import AIOHTTPSession

    send = AIOHTTPSession.send
    gate = _Gate()

    async def held(self: Any, request: Any) -> Any:
        await gate.hold()
        try:
            answer = await send(self, request)
        except BaseException:
            gate.answered()
            raise
        answer.raw.content.on_eof(gate.answered)
        return answer

    AIOHTTPSession.send = held
    try:
        yield gate.waves
    finally:
        AIOHTTPSession.send = send
