"""A proxy between an S3 client and its server that counts requests and does damage on purpose, repeatably.

    with FaultProxy(rgw.endpoint, seed=7) as proxy:
        client = rgw.through(proxy).client()
        proxy.inject(Fault.REPLY_LOST, method="PUT", target=r"/head$")       # the next PUT of that key
        proxy.inject(Fault.SLOW_DOWN, probability=0.2, times=None)           # one request in five, from now on
        ...
        assert [r.status for r in proxy.requests if r.method == "PUT"] == [None, 412]
        proxy.heal()                                                         # no more faults
        proxy.clear()                                                        # count from here

The client signs for the proxy's address and the server checks what it got, so the Host header is passed on as it is.
A request is delivered only when all of it has arrived: a client that dies while it sends has no effect.
"""

from __future__ import annotations

import asyncio
import random
import re
import socket
import struct
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from tests.http1 import PIECE, Message, closes, read, sign

T = TypeVar("T")
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Fault(StrEnum):
    """What can go wrong; "effect" is what the request does at the server."""

    RESET = "the connection is reset; no effect"
    REPLY_LOST = "the effect; then the connection is reset"
    SLOW_DOWN = "503 SlowDown; no effect"
    CONFLICT = "409 ConditionalRequestConflict; no effect"
    ERROR_BEFORE = "500; no effect"
    ERROR_AFTER = "500 after the effect"
    HANG_BEFORE = "no answer until the client gives up; no effect"
    HANG_AFTER = "the effect; no answer until the client gives up"
    TRUNCATED = "the effect; half of the answer's body, as if the connection had ended (REPLY_LOST where it has none)"
    DOUBLED = "delivered twice; the client gets the first answer"
    DOUBLED_SECOND = "delivered twice; the client gets the second answer"
    STALLED = "held back until release(), which also gives the client its answer, if it still waits"
    LATE = "held back until release(); the connection is reset at once"
    DELAYED = "as usual, but `delay` seconds later"
    UNCONDITIONAL = "If-Match and If-None-Match are taken out, and it is signed again with the proxy's secret key"


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


class FaultProxy:
    """A proxy that listens on a free port of 127.0.0.1 between `with` and its end.

    The luck of a rule depends on the seed and on how many rules were made before it, on nothing else. The secret key
    is needed for UNCONDITIONAL alone. What is held back when the proxy ends is never delivered.
    """

    def __init__(self, server: str, *, seed: int = 0, secret_key: str = "") -> None:
        self.requests: list[Request] = []
        self.connections = 0  # how many clients' connections were accepted
        self._server, self._seed, self._secret = urlsplit(server), seed, secret_key
        self._rules: list[Rule] = []
        self._made = 0
        self._held: list[tuple[Message, Request, asyncio.Future[Message]]] = []
        self._changed = threading.Condition()
        self._idle: list[Stream] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: list[Exception] = []

    # What a test calls, from any thread.

    def inject(self, fault: Fault, **which: Any) -> None:
        """Do this to the requests that a Rule with these fields chooses; of several rules the first that strikes."""
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
    def endpoint(self) -> str:
        """The URL of the proxy."""
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self._thread.start()
        self._listener = self._call(asyncio.start_server(self._accept, "127.0.0.1", 0, limit=PIECE, backlog=1024))
        self._port = self._listener.sockets[0].getsockname()[1]
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._failures and error is None:
            raise self._failures[0]

    # What runs in the proxy's thread.

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _close(self) -> None:
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for _, writer in self._idle:
            writer.close()
        await asyncio.sleep(0)  # lets the closed connections go

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = self._loop.create_task(self._serve((reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, client: Stream) -> None:
        reader, writer = client
        try:
            while True:
                message = await read(client)
                request, rule = self._note(message)
                answer = await self._answer(reader, message, request, rule)
                if answer is None:
                    return _reset(writer)
                request.status = answer.status
                answer.write(writer)
                await writer.drain()
                if request.fault is Fault.TRUNCATED or closes(message, answer):
                    return None
        except (OSError, EOFError):
            return None  # one of the two is gone, and the other sees its connection end
        except asyncio.CancelledError:
            return _reset(writer)
        except Exception as error:
            self._failures.append(error)
            return None
        finally:
            writer.close()

    def _note(self, message: Message) -> tuple[Request, Rule | None]:
        method, target, _ = message.first.split(" ", 2)
        condition = "; ".join(f"{n}: {message.get(n)}" for n in ("if-match", "if-none-match") if message.get(n))
        request = Request(method, target, condition, message.get("range"), sum(map(len, message.body)))
        with self._changed:
            rule = next((rule for rule in self._rules if rule.strikes(request)), None)
            request.fault = rule.fault if rule else None
            self.requests.append(request)
        return request, rule

    async def _answer(
        self, client: asyncio.StreamReader, message: Message, request: Request, rule: Rule | None
    ) -> Message | None:
        """Return what the client gets; None: a reset."""
        match request.fault:
            case Fault.RESET:
                return None
            case Fault.SLOW_DOWN:
                return _error(503, "SlowDown")
            case Fault.CONFLICT:
                return _error(409, "ConditionalRequestConflict")
            case Fault.ERROR_BEFORE:
                return _error(500, "InternalError")
            case Fault.HANG_BEFORE:
                await client.read()
                return None
            case Fault.STALLED:
                return await self._hold(message, request)
            case Fault.LATE:
                self._hold(message, request)
                return None
            case Fault.DELAYED if rule:
                await asyncio.sleep(rule.delay)
            case Fault.UNCONDITIONAL if request.condition:
                message = sign(message.without("if-match", "if-none-match"), self._secret)
        answer = await self._deliver(message, request)
        match request.fault:
            case Fault.REPLY_LOST:
                return None
            case Fault.ERROR_AFTER:
                return _error(500, "InternalError")
            case Fault.HANG_AFTER:
                await client.read()
                return None
            case Fault.DOUBLED:
                await self._deliver(message, request)
            case Fault.DOUBLED_SECOND:
                return await self._deliver(message, request)
            case Fault.TRUNCATED:
                return answer.half()
        return answer

    def _hold(self, message: Message, request: Request) -> asyncio.Future[Message]:
        later: asyncio.Future[Message] = self._loop.create_future()
        with self._changed:
            self._held.append((message, request, later))
            self._changed.notify_all()
        return later

    async def _release(self) -> list[Request]:
        with self._changed:
            held, self._held = self._held, []
        for message, request, later in held:
            answer = await self._deliver(message, request)
            if not later.done():
                later.set_result(answer)
        return [request for _, request, _ in held]

    async def _deliver(self, message: Message, request: Request) -> Message:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                break
            writer.close()
        else:
            reader, writer = await asyncio.open_connection(self._server.hostname, self._server.port, limit=PIECE)
        try:
            message.write(writer)
            await writer.drain()
            answer = await read((reader, writer), request.method)
        except BaseException:
            writer.close()
            raise
        request.answers.append(answer.status)
        if closes(message, answer):
            writer.close()
        else:
            self._idle.append((reader, writer))
        return answer


def _reset(writer: asyncio.StreamWriter) -> None:
    linger_not = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not)
    writer.transport.abort()


def _error(status: int, code: str) -> Message:
    body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>injected</Message></Error>'
    headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
    return Message(f"HTTP/1.1 {status} Injected", headers, [body.encode()])
