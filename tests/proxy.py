"""What all proxies of the tests share: rules that choose what is harmed, seeded luck, and what is held back.

A proxy listens on a free port of 127.0.0.1 between `with` and its end. What travels over it is cut into requests by
the proxy's kind: HTTP requests (`tests/faultproxy.py`), or whatever piece of a stream arrives (`tests/tcpproxy.py`).
"""

from __future__ import annotations

import asyncio
import random
import re
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from tests.http1 import PIECE

T = TypeVar("T")
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Fault(StrEnum):
    """What can go wrong; "effect" is what the request does at the server."""

    RESET = "the connection is reset; no effect"
    REPLY_LOST = "the effect; then the connection is reset"
    SLOW_DOWN = "the storage's words for too many requests; no effect"
    CONFLICT = "409, for something else than an object that is there; no effect"
    ERROR_BEFORE = "an internal error; no effect"
    ERROR_AFTER = "an internal error after the effect"
    HANG_BEFORE = "no answer until the client gives up; no effect"
    HANG_AFTER = "the effect; no answer until the client gives up"
    TRUNCATED = "the effect; half of the answer's body, as if the connection had ended (REPLY_LOST where it has none)"
    DOUBLED = "delivered twice; the client gets the first answer"
    DOUBLED_SECOND = "delivered twice; the client gets the second answer"
    STALLED = "held back until release(), which also gives the client its answer, if it still waits"
    LATE = "held back until release(); the connection is reset at once"
    DELAYED = "as usual, but `delay` seconds later"
    UNCONDITIONAL = "If-Match and If-None-Match are taken out, and it is signed again with the proxy's secret key"
    KILLED = "delivered; the process that serves the connection is killed, maybe before the effect, maybe after it"


@dataclass
class Request:
    """One request that a client sent whole."""

    method: str
    target: str  # path and query, as sent
    condition: str = ""  # as "if-none-match: *"
    range: str = ""  # as "bytes=0-9"
    sent: int = 0  # bytes of its body
    fault: Fault | None = None
    status: int | None = None  # what the client was told; None: nothing (yet)
    answers: list[int] = field(default_factory=list)  # what the server said, for each time it was delivered


@dataclass
class Rule:
    """Which requests get a fault: those with the method and with a target in which the regular expression is found.

    It lets nth-1 of them pass, then strikes each with the probability, `times` times at most; None: without end.
    """

    fault: Fault
    method: str = ""  # any
    target: str = ""  # any
    nth: int = 1
    times: int | None = 1
    probability: float = 1.0
    delay: float = 0.0  # seconds
    luck: random.Random = field(kw_only=True, repr=False)

    def strikes(self, request: Request) -> bool:
        if self.times == 0 or self.method not in ("", request.method) or not re.search(self.target, request.target):
            return False
        self.nth -= 1
        if self.nth > 0 or self.luck.random() >= self.probability:
            return False
        self.times = self.times and self.times - 1
        return True


class Proxy(ABC):
    """A proxy that listens on a free port of 127.0.0.1 between `with` and its end.

    The luck of a rule depends on the seed and on how many rules were made before it, on nothing else. What is held
    back when the proxy ends is never delivered.

    Attributes:
        faults: what this kind of proxy can do to a request.
    """

    faults: frozenset[Fault]

    def __init__(self, server: str, *, seed: int = 0) -> None:
        self.requests: list[Request] = []
        self.connections = 0  # how many clients' connections were accepted
        self._server, self._seed = urlsplit(server), seed
        self._rules: list[Rule] = []
        self._made = 0
        self._held: list[tuple[Request, Callable[[], Awaitable[None]]]] = []
        self._changed = threading.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: list[Exception] = []

    # What a test calls, from any thread.

    def inject(self, fault: Fault, **which: Any) -> None:
        """Do this to the requests that a Rule with these fields chooses; of several rules the first that strikes."""
        if fault not in self.faults:
            raise ValueError(f"this proxy can't do that: {fault.name}")
        with self._changed:
            self._made += 1
            self._rules.append(Rule(fault, **which, luck=random.Random(f"{self._seed}/{self._made}")))

    def begin(self, seed: int) -> None:
        """Forget all rules and requests, and begin with another seed, as a new proxy would."""
        with self._changed:
            self._rules.clear()
            self.requests.clear()
            self._seed, self._made = seed, 0

    def heal(self) -> None:
        """Forget all rules; what is held back stays held back."""
        with self._changed:
            self._rules.clear()

    def clear(self) -> None:
        """Forget the requests so far."""
        with self._changed:
            self.requests.clear()

    def wait_held(self, count: int = 1, timeout: float = 60) -> None:
        """Return when at least so many requests are held back."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._held) >= count, timeout):
                raise TimeoutError(f"{len(self._held)} requests are held back, not {count}")

    def release(self) -> list[Request]:
        """Deliver what is held back, in the order of arrival, and return it with the server's answers."""
        return self._call(self._release())

    @property
    def port(self) -> int:
        """Where the proxy listens."""
        return self._port

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self._thread.start()
        self._listener = self._call(asyncio.start_server(self._accept, "127.0.0.1", 0, limit=PIECE, backlog=1024))
        self._port: int = self._listener.sockets[0].getsockname()[1]
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._failures and error is None:
            raise self._failures[0]

    # What runs in the proxy's thread.

    @abstractmethod
    async def _serve(self, client: Stream) -> None:
        """Pass on what a client sends and what it is answered, until one of the two is gone."""

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _close(self) -> None:
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # lets the closed connections go

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._start(self._guarded((reader, writer)))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let something run until it is done or the proxy ends."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guarded(self, client: Stream) -> None:
        try:
            await self._serve(client)
        except (OSError, EOFError):
            pass  # one of the two is gone, and the other sees its connection end
        except asyncio.CancelledError:
            reset(client[1])
        except Exception as error:
            self._failures.append(error)
        finally:
            client[1].close()

    def _choose(self, request: Request) -> Rule | None:
        """Note a request, and return the rule that strikes it."""
        with self._changed:
            rule = next((rule for rule in self._rules if rule.strikes(request)), None)
            request.fault = rule.fault if rule else None
            self.requests.append(request)
        return rule

    def _keep(self, request: Request, deliver: Callable[[], Awaitable[None]]) -> None:
        """Hold a request back until release() delivers it."""
        with self._changed:
            self._held.append((request, deliver))
            self._changed.notify_all()

    async def _release(self) -> list[Request]:
        with self._changed:
            held, self._held = self._held, []
        for _, deliver in held:
            await deliver()
        return [request for request, _ in held]


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a crash would, without what was still to be sent."""
    linger_not = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not)
    writer.transport.abort()
