"""A proxy that harms a stream of bytes it can't read: what it counts is the pieces in which a client's bytes arrive.

    with TcpProxy("ssh://127.0.0.1:2222") as proxy:
        proxy.inject(Fault.REPLY_LOST, nth=7)       # the seventh piece is delivered, and its answer is lost

A client of SFTP sends each message as one piece, or a few at once, the handshake's among them.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.http1 import PIECE
from tests.proxy import Fault, Proxy, Request, Stream, reset

__all__ = ["Fault", "TcpProxy"]

_ESTABLISHED: Final = "01"
_LISTENING: Final = "0A"
_PATIENCE: Final = 0.3  # seconds


class TcpProxy(Proxy):
    """A proxy for any protocol over TCP; its requests have neither method nor target."""

    faults = frozenset(
        {
            Fault.RESET,
            Fault.REPLY_LOST,
            Fault.HANG_BEFORE,
            Fault.HANG_AFTER,
            Fault.TRUNCATED,
            Fault.STALLED,
            Fault.LATE,
            Fault.DELAYED,
            Fault.KILLED,
        }
    )

    def __init__(self, server: str, *, seed: int = 0) -> None:
        super().__init__(server, seed=seed)
        self._late: list[_Wire] = []

    async def _close(self) -> None:
        await super()._close()
        for wire in self._late:
            wire.server.close()
        await asyncio.sleep(0)

    async def _serve(self, client: Stream) -> None:
        wire = _Wire(client, await asyncio.open_connection(self._server.hostname, self._server.port, limit=PIECE))
        answers = self._start(wire.answers())
        kept = False
        try:
            while piece := await wire.asked():
                kept = await self._pass(wire, piece)
                if kept or wire.over:
                    return
        finally:
            if not kept:
                answers.cancel()
                wire.server.close()

    async def _pass(self, wire: _Wire, piece: bytes) -> bool:
        """Do with a piece what is to be done; return whether it is held back, and its connection with it."""
        request = Request("", "", sent=len(piece))
        rule = self._choose(request)
        match request.fault:
            case Fault.RESET:
                wire.end()
            case Fault.REPLY_LOST:
                wire.mute = True
                await wire.deliver(piece)
                await wire.answered()
                wire.end()
            case Fault.HANG_BEFORE:
                await wire.give_up()
            case Fault.HANG_AFTER:
                wire.mute = True
                await wire.deliver(piece)
                await wire.give_up()
            case Fault.TRUNCATED:
                wire.half = True
                await wire.deliver(piece)
                await wire.answered()
                wire.end()
            case Fault.KILLED:
                await wire.deliver(piece)
                wire.kill()
            case Fault.STALLED:
                released = self._loop.create_future()

                async def go_on() -> None:
                    if not released.done():
                        released.set_result(None)

                self._keep(request, go_on)
                await released
                await wire.deliver(piece)
            case Fault.LATE:
                self._late.append(wire)

                async def deliver() -> None:
                    await wire.deliver(piece)
                    await wire.answered()
                    wire.server.close()

                self._keep(request, deliver)
                wire.end()
                return True
            case Fault.DELAYED if rule:
                await asyncio.sleep(rule.delay)
                await wire.deliver(piece)
            case _:
                await wire.deliver(piece)
        return False


class _Wire:
    """One client's connection, and the one to the server that stands for it."""

    def __init__(self, client: Stream, server: Stream) -> None:
        self._client, self.client = client
        self._server, self.server = server
        self.mute = False  # the client hears nothing more
        self.half = False  # it hears half of the next answer
        self.over = False
        self._said = asyncio.Event()  # since the last piece that was delivered

    async def asked(self) -> bytes:
        return await self._client.read(PIECE)

    async def deliver(self, piece: bytes) -> None:
        self._said.clear()
        with suppress(OSError):
            self.server.write(piece)
            await self.server.drain()

    async def answers(self) -> None:
        """Pass on what the server says until it is gone."""
        with suppress(OSError, EOFError):
            while data := await self._server.read(PIECE):
                if self.half and not self.over:
                    self.client.write(data[: len(data) // 2])
                    await self.client.drain()
                    self.mute = True
                elif not self.mute:
                    self.client.write(data)
                    await self.client.drain()
                self._said.set()
        self._said.set()
        if not self.mute:
            self.client.close()

    async def answered(self) -> None:
        """Wait until the server has said something; not for long, since some pieces have no answer."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._said.wait(), _PATIENCE)

    async def give_up(self) -> None:
        """Wait until the client has."""
        self.mute = self.over = True
        with suppress(OSError):
            await self._client.read()

    def end(self) -> None:
        """Reset the client's connection."""
        self.mute = self.over = True
        reset(self.client)

    def kill(self) -> None:
        """Kill the process that serves the connection."""
        host, port = self.server.get_extra_info("sockname")[:2]
        for process in processes(host, port):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def processes(host: str, port: int) -> list[int]:
    """Return the processes that have a connection from this address, without those that wait for others too."""
    address = f"{''.join(f'{int(part):02X}' for part in reversed(host.split('.')))}:{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().split("\n")[1:] if line]
    theirs = {f"socket:[{row[9]}]" for row in rows if (row[2], row[3]) == (address, _ESTABLISHED)}
    waiting = {f"socket:[{row[9]}]" for row in rows if row[3] == _LISTENING}
    found = []
    for folder in Path("/proc").iterdir():
        if re.fullmatch("[0-9]+", folder.name):
            files = set(_files(folder / "fd"))
            if files & theirs and not files & waiting:
                found.append(int(folder.name))
    return found


def _files(folder: Path) -> Iterator[str]:
    """Yield what the descriptors of a process are, as far as they last."""
    with suppress(OSError):
        for file in folder.iterdir():
            with suppress(OSError):
                yield os.readlink(file)
