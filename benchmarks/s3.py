"""What the measurements on S3 share: the sizes, what a client sends and gets, and the work of other processes."""

from __future__ import annotations

import asyncio
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from statestore import NEW, RecordLog, open_store
from statestore_memory import MemoryStore
from tests.faultproxy import Request
from tests.s3.raw import name

FULL = os.environ.get("STATESTORE_SCALE") == "full"


def sized(full: int, sample: int) -> int:
    """Return one of two sizes: STATESTORE_SCALE=full in the environment chooses the first."""
    return full if FULL else sample


@dataclass
class Traffic:
    """What went over the wire while something was measured."""

    requests: Counter[str] = field(default_factory=Counter)
    sent: int = 0  # bytes of bodies
    got: int = 0
    seconds: float = 0.0


@contextmanager
def watched() -> Iterator[Traffic]:
    """Count the requests that this process sends by the S3 client library, and the bytes in them.

    It is counted where the library sends, and not by a proxy, which would take as long as the client.
    """
    from aiobotocore.httpsession import AIOHTTPSession

    send = AIOHTTPSession.send
    traffic = Traffic()

    async def counted(self: Any, request: Any) -> Any:
        path = request.url.partition("://")[2].partition("/")[2]
        condition = "if-none-match" if request.headers.get("If-None-Match") else ""
        size = int(request.headers.get("Content-Length", 0))
        traffic.requests[name(Request(request.method, "/" + path, condition, "", size))] += 1
        traffic.sent += size
        answer = await send(self, request)
        length = answer.headers.get("Content-Length")  # listings have none: they are read here, and kept
        traffic.got += int(length) if length is not None else len(await answer.content)
        return answer

    AIOHTTPSession.send = counted
    begin = perf_counter()
    try:
        yield traffic
    finally:
        traffic.seconds = perf_counter() - begin
        AIOHTTPSession.send = send


class Raw:
    """The requests that a store's calls are made of, sent by its own client to its own bucket, and nothing else.

    Args:
        files: the client: s3fs, as the store uses it.
        root: the bucket and a prefix.
    """

    def __init__(self, files: Any, root: str) -> None:
        self._files = files
        self._root = root
        self._made = 0

    def put(self, data: bytes) -> str:
        """Create an object, if there is none; return its key."""
        from fsspec.asyn import sync

        self._made += 1
        key = f"raw/{self._made:09}"
        path = f"{self._root}/{key}"
        sync(self._files.loop, self._files._pipe_file, path, data, mode="create", timeout=60)
        return key

    def get(self, key: str) -> bytes:
        """Return what an object holds."""
        return bytes(self._files.cat_file(f"{self._root}/{key}"))

    def get_all(self, keys: list[str], at_once: int) -> list[bytes]:
        """Return what objects hold, of which so many are asked for at once."""
        from fsspec.asyn import sync

        async def get_all() -> list[bytes]:
            gate = asyncio.Semaphore(at_once)

            async def get(key: str) -> bytes:
                async with gate:
                    return bytes(await self._files._cat_file(f"{self._root}/{key}"))

            return await asyncio.gather(*map(get, keys))

        return list(sync(self._files.loop, get_all))

    def list(self, prefix: str) -> list[str]:
        """Return the keys of one page of a listing, from its beginning."""
        bucket, _, root = self._root.partition("/")
        said = self._files.call_s3("list_objects_v2", Bucket=bucket, Prefix=f"{root}/{prefix}", MaxKeys=1000)
        return [row["Key"][len(root) + 1 :] for row in said.get("Contents", ())]


Tell = Callable[[str, Traffic], None]


def told(what: str, traffic: Traffic) -> str:
    """Return one line of the table."""
    total = traffic.requests.total()
    return f"{what:56} {total:9,} {traffic.sent:14,} {traffic.got:14,} {traffic.seconds:9.2f}"


HEAD = f"{'operation':56} {'requests':>9} {'bytes sent':>14} {'bytes got':>14} {'seconds':>9}"


def records(count: int, body: bytes) -> list[bytes]:
    """Return the bytes of records, one after another, as a log holds them."""
    log = RecordLog(MemoryStore(), "log")
    return [log.append("message", body, expect=number).raw for number in range(1, count + 1)]


def work(url: str, options: dict[str, Any], worker: int, logs: list[str], turns: int) -> tuple[int, float]:
    """Append to logs in turn, in a process of its own; return how many appends that were and the seconds they took."""
    done = 0
    with open_store(url, **options) as store:
        opened = {log: RecordLog(store, log) for log in logs}
        begin = perf_counter()
        for turn in range(turns):
            for log in logs:
                opened[log].append("message", b"%d %d" % (worker, turn))
                done += 1
        return done, perf_counter() - begin


def stream(url: str, options: dict[str, Any], log: str) -> tuple[int, int, int, float]:
    """Read a log in a process of its own; return length, checksum, by how much the memory grew, and the seconds."""
    with open_store(url, **options) as store:
        store.append("warm", b"x" * 1000, at=NEW)
        assert b"".join(store.stream("warm")) == b"x" * 1000
        before = _memory("VmRSS")
        length = crc = 0
        begin = perf_counter()
        for piece in store.stream(log):
            length += len(piece)
            crc = zlib.crc32(piece, crc)
        return length, crc, _memory("VmHWM") - before, perf_counter() - begin


def _memory(which: str) -> int:
    """Return a figure of this process's memory in bytes, as Linux tells it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{which}:"))
