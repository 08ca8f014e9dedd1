"""A proxy between a client and its HTTP server that counts requests and does damage on purpose, repeatably.

    with FaultProxy(rgw.endpoint, seed=7) as proxy:
        client = rgw.through(proxy).client()
        proxy.inject(Fault.REPLY_LOST, method="PUT", target=r"/head$")       # the next PUT of that key
        proxy.inject(Fault.SLOW_DOWN, probability=0.2, times=None)           # one request in five, from now on
        ...
        assert [r.status for r in proxy.requests if r.method == "PUT"] == [None, 412]
        proxy.heal()                                                         # no more faults
        proxy.clear()                                                        # count from here

Errors are in the words of S3, or of the storage whose dialect is given (`tests/dialects.py`).

The client signs for the proxy's address and the server checks what it got, so the Host header is passed on as it is.
A request is delivered only when all of it has arrived: a client that dies while it sends has no effect.
"""

from __future__ import annotations

import asyncio

from tests.dialects import S3, Dialect
from tests.http1 import PIECE, Message, closes, read, sign
from tests.proxy import Fault, Proxy, Request, Rule, Stream, reset

__all__ = ["Fault", "FaultProxy", "Request", "Rule"]


class FaultProxy(Proxy):
    """A proxy for HTTP; the secret key is needed for UNCONDITIONAL alone, which takes S3's signatures."""

    faults = frozenset(Fault) - {Fault.KILLED}

    def __init__(self, server: str, *, seed: int = 0, secret_key: str = "", dialect: Dialect = S3) -> None:
        super().__init__(server, seed=seed)
        self._secret, self._dialect = secret_key, dialect
        self._idle: list[Stream] = []

    @property
    def endpoint(self) -> str:
        """The URL of the proxy."""
        return f"http://127.0.0.1:{self.port}"

    async def _close(self) -> None:
        await super()._close()
        for _, writer in self._idle:
            writer.close()
        await asyncio.sleep(0)

    async def _serve(self, client: Stream) -> None:
        reader, writer = client
        while True:
            message = await read(client)
            request, rule = self._note(message)
            answer = await self._answer(reader, message, request, rule)
            if answer is None:
                return reset(writer)
            request.status = answer.status
            answer.write(writer)
            await writer.drain()
            if request.fault is Fault.TRUNCATED or closes(message, answer):
                return None

    def _note(self, message: Message) -> tuple[Request, Rule | None]:
        method = message.first.split(" ", 1)[0]
        condition = "; ".join(f"{n}: {message.get(n)}" for n in ("if-match", "if-none-match") if message.get(n))
        sent = sum(map(len, message.body))
        request = Request(method, self._dialect.target(message), condition, message.get("range"), sent)
        return request, self._choose(request)

    async def _answer(
        self, client: asyncio.StreamReader, message: Message, request: Request, rule: Rule | None
    ) -> Message | None:
        """Return what the client gets; None: a reset."""
        match request.fault:
            case Fault.RESET:
                return None
            case Fault.SLOW_DOWN | Fault.CONFLICT | Fault.ERROR_BEFORE:
                return self._dialect.error(request.fault)
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
                return self._dialect.error(request.fault)
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

        async def deliver() -> None:
            answer = await self._deliver(message, request)
            if not later.done():
                later.set_result(answer)

        self._keep(request, deliver)
        return later

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
