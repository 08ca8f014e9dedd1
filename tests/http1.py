"""HTTP/1.1 messages as a proxy needs them: read whole, written as they came, signed again when they were changed."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from dataclasses import dataclass, field

PIECE = 1 << 18  # bytes


@dataclass
class Message:
    """An HTTP request or answer, its body framed as it was sent."""

    first: str
    headers: list[tuple[str, str]]
    body: list[bytes] = field(default_factory=list)

    def get(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")

    def without(self, *names: str) -> Message:
        return Message(self.first, [(key, value) for key, value in self.headers if key.lower() not in names], self.body)

    @property
    def status(self) -> int:
        return int(self.first.split(" ")[1])

    def write(self, writer: asyncio.StreamWriter) -> None:
        lines = [self.first, *(f"{key}: {value}" for key, value in self.headers), "", ""]
        writer.writelines(["\r\n".join(lines).encode("latin-1"), *self.body])

    def half(self) -> Message | None:
        whole = b"".join(self.body)
        return Message(self.first, self.headers, [whole[: len(whole) // 2]]) if whole else None


async def read(stream: tuple[asyncio.StreamReader, asyncio.StreamWriter], asked: str = "") -> Message:
    """Read a request, or the answer to a request with the method `asked`."""
    reader, writer = stream
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    message = Message(first, [(key, value.strip()) for key, _, value in (line.partition(":") for line in lines)])
    if asked:
        if 100 <= message.status < 200:
            return await read(stream, asked)
        if asked == "HEAD" or message.status in (204, 304):
            return message
    elif message.get("expect"):
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        message = message.without("expect")
    if message.get("transfer-encoding").lower() == "chunked":
        size = -1
        while size != 0:
            message.body.append(await reader.readuntil(b"\r\n"))
            size = int(message.body[-1].split(b";")[0], 16)
            await _read_body(reader, message.body, size)
            message.body.append(await reader.readuntil(b"\r\n"))
        while message.body[-1] != b"\r\n":  # trailers
            message.body.append(await reader.readuntil(b"\r\n"))
    elif message.get("content-length"):
        await _read_body(reader, message.body, int(message.get("content-length")))
    elif asked:
        message.body.append(await reader.read())
    return message


async def _read_body(reader: asyncio.StreamReader, body: list[bytes], size: int) -> None:
    while size > 0:
        piece = await reader.read(min(size, PIECE))
        if not piece:
            raise EOFError("the connection ended in a body")
        body.append(piece)
        size -= len(piece)


def closes(request: Message, answer: Message) -> bool:
    framed = answer.get("content-length") or answer.get("transfer-encoding") or answer.status in (204, 304)
    wishes = {request.get("connection").lower(), answer.get("connection").lower()}
    return "close" in wishes or not framed or answer.first.startswith("HTTP/1.0")


def sign(message: Message, secret: str) -> Message:
    """Sign again what a client signed with version 4, without the headers that are no longer there."""
    old = message.get("authorization")
    found = re.fullmatch(r"(AWS4-HMAC-SHA256) Credential=[^/]+/(\S+), ?SignedHeaders=(\S+), ?Signature=(\w+)", old)
    assert found, "only requests with a version 4 signature in the header can be made unconditional"
    algorithm, scope, names, signature = found.groups()
    signed = [name for name in names.split(";") if any(key.lower() == name for key, _ in message.headers)]
    method, target, _ = message.first.split(" ", 2)
    path, _, query = target.partition("?")
    pairs = sorted(pair if "=" in pair else f"{pair}=" for pair in query.split("&") if pair)
    headers = [f"{name}:{' '.join(message.get(name).split())}" for name in signed]
    payload = message.get("x-amz-content-sha256")
    canonical = "\n".join([method, path, "&".join(pairs), *headers, "", ";".join(signed), payload])
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = "\n".join([algorithm, message.get("x-amz-date"), scope, digest])
    new = old.replace(signature, hmac.digest(key, text.encode(), "sha256").hex()).replace(names, ";".join(signed))
    rest = message.without("authorization")
    return Message(rest.first, [*rest.headers, ("Authorization", new)], rest.body)
