"""What is asked of a peer, in the fewest calls that say it: append, load, last, fork, list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tests.servers import S3Server

__all__ = ["Kind", "Peer", "Place", "Share", "TEXT", "Tasks", "Threads", "message", "read", "spell", "text"]

TEXT = 1024  # the bytes of a message's text

Share = Sequence[tuple[str, str]]  # what one worker appends: a session and a text each time


@dataclass(frozen=True)
class Place:
    """Where one peer keeps everything: an empty folder, and an empty prefix of a bucket named after it."""

    folder: Path
    server: S3Server | None = None
    bucket: str = ""

    @property
    def prefix(self) -> str:
        return self.folder.name

    @property
    def there(self) -> S3Server:
        assert self.server is not None
        return self.server


class Peer(Protocol):
    """Sessions of messages, in some place. A session begins with its first message."""

    def append(self, session: str, texts: Sequence[str]) -> None:
        """Append messages one at a time: each is acknowledged before the next is given."""

    def know(self, session: str) -> None:
        """Make what stands for a session that is there, where something must, and read nothing of it."""

    def load(self, session: str) -> list[str]:
        """Return the texts of all messages."""

    def last(self, session: str, count: int) -> list[str]:
        """Return the texts of the last messages."""

    def fork(self, session: str, count: int, to: str) -> None:
        """Make a new session of the first messages of another."""

    def sessions(self) -> list[str]:
        """Return the names of all sessions, in any order."""

    def storm(self, shares: Sequence[Share]) -> None:
        """Append what each worker has to, one at a time, all workers at once."""

    def close(self) -> None:
        """Let go of everything."""


@dataclass(frozen=True)
class Kind:
    """A peer with one promise of durability.

    Attributes:
        name: what it is called in the rows.
        durability: "always" (an acknowledged append survives a loss of power), "never" (it survives the process),
            "memory" (it does not) or "bucket" (as the bucket promises).
        open: opens it in a place.
        needs: the modules that it is made of, by the name of what installs them.
        cannot: what it has no call for, and why; keyed by operation.
        items: the largest session that it is measured with; None where all sizes are.
        sessions: the largest number of sessions that are listed.
        note: what a reader of its figures must know.
        notes: what a reader of an operation's figure must know instead.
    """

    name: str
    durability: str
    open: Callable[[Place], Peer]
    needs: Mapping[str, str] = field(default_factory=dict)
    cannot: Mapping[str, str] = field(default_factory=dict)
    items: int | None = None
    sessions: int | None = None
    note: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}, {self.durability}"

    @property
    def bucket(self) -> bool:
        return self.durability == "bucket"

    @property
    def missing(self) -> str:
        """Why it cannot be had here, and what to do; "" where it can."""
        lacking = [package for package, module in self.needs.items() if not _found(module)]
        return f"not installed: {', '.join(lacking)}; run: pip install -e '.[dev,bench]'" if lacking else ""


def _found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even what it is in
        return False


class Base:
    """What a peer has no call for is left to this; its kind says so."""

    def know(self, session: str) -> None:
        """Nothing stands for a session."""

    def last(self, session: str, count: int) -> list[str]:
        raise NotImplementedError

    def fork(self, session: str, count: int, to: str) -> None:
        raise NotImplementedError

    def sessions(self) -> list[str]:
        raise NotImplementedError


class Threads(Base):
    """A peer whose calls block: its workers are threads."""

    def storm(self: Peer, shares: Sequence[Share]) -> None:
        def work(share: Share) -> None:
            for session, words in share:
                self.append(session, [words])

        with ThreadPoolExecutor(len(shares)) as pool:
            list(pool.map(work, shares))


class Tasks(Base):
    """A peer for asyncio: its workers are tasks of one loop. A subclass says how one message is appended."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    async def add(self, session: str, words: str) -> None:
        raise NotImplementedError

    def append(self, session: str, texts: Sequence[str]) -> None:
        self.run(self._all([(session, words) for words in texts]))

    def storm(self, shares: Sequence[Share]) -> None:
        async def work() -> None:
            await asyncio.gather(*map(self._all, shares))

        self.run(work())

    def run(self, call: Any) -> Any:
        return self._runner.run(call)

    def close(self) -> None:
        self._runner.close()

    async def _all(self, share: Share) -> None:
        for session, words in share:
            await self.add(session, words)


def text(number: int) -> str:
    """Return a text of 1 KiB, which no other number has, and whose characters JSON escapes in part."""
    words = f'{number:08} "said"\n' + "How long does the train to Oslo take?\t" * 28
    return words[:TEXT]


def message(words: str) -> dict[str, str]:
    """Return the message as agents' frameworks spell it."""
    return {"role": "user", "content": words}


def spell(words: str) -> bytes:
    """Return the message as JSON: what is kept where a peer takes bytes."""
    return json.dumps(message(words)).encode()


def read(data: bytes | str) -> str:
    """Return the text of a message that was spelled so."""
    return str(json.loads(data)["content"])
