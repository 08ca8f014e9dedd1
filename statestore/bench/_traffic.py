"""What goes over the wire, counted by aiohttp's own tracing, which is given to every session that is made meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

__all__ = ["Traffic", "Watch", "watched"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """HTTP requests, each counted whenever it was sent, and the bytes of bodies, as they were on the wire.

    Attributes:
        requests: how many were sent, repetitions and redirections included.
        sent: bytes of their bodies.
        received: bytes of the answers' bodies.
    """

    requests: int = 0
    sent: int = 0
    received: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.requests + other.requests, self.sent + other.sent, self.received + other.received)

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(self.requests - other.requests, self.sent - other.sent, self.received - other.received)


class Watch:
    """Counts what the sessions send and get that were made while it was there.

    Attributes:
        sessions: how many there are; where there are none, nothing was counted.
    """

    def __init__(self) -> None:
        self.sessions = 0
        self._lock = Lock()
        self._done = Traffic()
        self._open: list[Any] = []  # what the bodies of answers are read from

    def seen(self) -> Traffic:
        """Return what there was so far."""
        with self._lock:
            still_open, received = [], 0
            for body in self._open:
                ended = body.is_eof()  # asked first: what has ended grows no more
                if ended:
                    self._done += Traffic(received=_size(body))
                else:
                    still_open.append(body)
                    received += _size(body)
            self._open = still_open
            return self._done + Traffic(received=received)

    def tracing(self, aiohttp: Any) -> Any:
        """Return what tells this of all that a session does."""
        config = aiohttp.TraceConfig()
        config.on_request_headers_sent.append(self._sent_head)
        config.on_request_chunk_sent.append(self._sent_piece)
        config.on_request_redirect.append(self._answered)
        config.on_request_end.append(self._answered)
        return config

    async def _sent_head(self, *_: object) -> None:
        with self._lock:
            self._done += Traffic(requests=1)

    async def _sent_piece(self, _: object, __: object, told: Any) -> None:
        with self._lock:
            self._done += Traffic(sent=len(told.chunk))

    async def _answered(self, _: object, __: object, told: Any) -> None:
        # Its body is still to come: whoever reads it, in whatever way, reads it from there.
        with self._lock:
            self._open.append(told.response.content)


def _size(body: Any) -> int:
    """Return how many bytes of a body have come, compressed as they were."""
    return int(getattr(body, "total_raw_bytes", body.total_bytes))


@contextmanager
def watched() -> Iterator[Watch]:
    """Yield a watch over all sessions that are made until the context ends, if aiohttp is loaded.

    A store makes its sessions at its first call, and may load aiohttp only then: use another one of the kind before.
    """
    watch = Watch()
    aiohttp = sys.modules.get("aiohttp")
    if aiohttp is None:
        yield watch
        return
    make = aiohttp.ClientSession.__init__

    def make_watched(session: Any, *args: Any, trace_configs: Any = None, **more: Any) -> None:
        make(session, *args, trace_configs=[*(trace_configs or ()), watch.tracing(aiohttp)], **more)
        watch.sessions += 1

    aiohttp.ClientSession.__init__ = make_watched
    try:
        yield watch
    finally:
        aiohttp.ClientSession.__init__ = make
