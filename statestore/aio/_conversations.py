"""Conversations, awaited."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ParamSpec, TypeVar

from statestore import conversations
from statestore.aio._closing import Closing
from statestore.aio._each import each
from statestore.aio._stores import Store
from statestore.conversations import ConversationState, GivenMessage, GivenSummary, ListOptions, Message, Summary
from statestore.conversations._place import CACHE
from statestore.errors import StateStoreError

__all__ = ["Conversations"]

P = ParamSpec("P")
T = TypeVar("T")


class Conversations(Closing):
    """The conversations of a store, awaited; each call is that of the same name of :class:`statestore.Conversations`.

    Calls about one conversation are made one after another; while one is made, the others take no thread.

    Args:
        store: the store that holds the logs.
        prefix: the scope, a name such as ``teams/a``.
        cache: about how many bytes of conversations are kept in memory.
        catalog: the local file in which is kept what `list` and `sweep` ask of each conversation; see
            :class:`statestore.Conversations`.

    Attributes:
        store: the store that holds the logs.
        sync: the conversations themselves.
    """

    def __init__(
        self,
        store: Store,
        prefix: str = "conversations",
        *,
        cache: int = CACHE,
        catalog: str | os.PathLike[str] | None = None,
    ) -> None:
        self.store = store
        self.sync = conversations.Conversations(store.sync, prefix, cache=cache, catalog=catalog)
        self._calls = store.calls

    def __repr__(self) -> str:
        return f"aio.{self.sync!r}"

    @property
    def prefix(self) -> str:
        """The scope."""
        return self.sync.prefix

    async def aclose(self) -> None:
        """Refuse every later call but this one with ``Closed``; the store stays open, it is the caller's."""
        await self._calls.finish(self.sync.close)

    async def load_metadata(self, id: str) -> dict[str, Any]:  # noqa: A002
        """Return a conversation's metadata, as the caller's own copy."""
        return await self._in_turn(id, self.sync.load_metadata, id)

    async def merge_metadata(self, id: str, updates: Mapping[str, Any]) -> None:  # noqa: A002
        """Set keys of the metadata, each as a whole; None is a value. Nothing else changes."""
        await self._in_turn(id, self.sync.merge_metadata, id, updates)

    async def load_summaries(self, id: str) -> list[Summary]:  # noqa: A002
        """Return a conversation's summaries in order; none where there is no conversation."""
        return await self._in_turn(id, self.sync.load_summaries, id)

    async def save_summary(self, id: str, summary: GivenSummary) -> None:  # noqa: A002
        """Add a summary behind those that are there; make the conversation where there is none."""
        await self._in_turn(id, self.sync.save_summary, id, summary)

    async def append_list(self, id: str, name: str, items: Iterable[bytes]) -> None:  # noqa: A002
        """Add items to the end of a list, all of them or none; make conversation and list where there is none."""
        await self._in_turn(id, self.sync.append_list, id, name, [*items])

    async def load_list(self, id: str, name: str, *, strict: bool = False) -> list[bytes]:  # noqa: A002
        """Return the items of a list in order."""
        return await self._in_turn(id, self.sync.load_list, id, name, strict=strict)

    async def list_len(self, id: str, name: str, *, strict: bool = False) -> int:  # noqa: A002
        """Return how many items a list has; arguments and errors are those of `load_list`."""
        return await self._in_turn(id, self.sync.list_len, id, name, strict=strict)

    async def append_messages(self, id: str, messages: Iterable[GivenMessage]) -> None:  # noqa: A002
        """Add messages to the end of a history, all of them or none; make the conversation where there is none."""
        await self._in_turn(id, self.sync.append_messages, id, [*messages])

    async def log_append(
        self,
        id: str,  # noqa: A002
        start_seq: int,
        messages: Iterable[GivenMessage],
        *,
        strict: bool = False,
    ) -> int:
        """Add those messages whose place in the history is not taken yet, and return how many there are then."""
        return await self._in_turn(id, self.sync.log_append, id, start_seq, [*messages], strict=strict)

    async def load_recent_messages(self, id: str, n: int) -> list[Message]:  # noqa: A002
        """Return the last `n` messages, or all where there are fewer."""
        return await self._in_turn(id, self.sync.load_recent_messages, id, n)

    async def log_load(self, id: str, recent: int = 0) -> list[Message]:  # noqa: A002
        """Return the last `recent` messages, or all where that is 0; none where there is no conversation."""
        return await self._in_turn(id, self.sync.log_load, id, recent)

    async def message_count(self, id: str) -> int:  # noqa: A002
        """Return how many messages a conversation has."""
        return await self._in_turn(id, self.sync.message_count, id)

    async def log_len(self, id: str) -> int:  # noqa: A002
        """Return how many messages a conversation has; 0 where there is none."""
        return await self._in_turn(id, self.sync.log_len, id)

    async def load(self, id: str) -> ConversationState:  # noqa: A002
        """Return a whole conversation."""
        return await self._in_turn(id, self.sync.load, id)

    async def save(self, state: ConversationState) -> None:
        """Make a conversation what `state` says: messages, summaries, metadata, prompt, user and token count."""
        await self._in_turn(state.id, self.sync.save, state)

    async def fork(self, source: str, target: str, *, overwrite: bool = True) -> None:
        """Make `target` a conversation equal to `source`, its lists too; each goes on alone from there."""
        await self._in_turn(source, self.sync.fork, source, target, overwrite=overwrite)

    async def delete(self, id: str, *, missing_ok: bool = True) -> None:  # noqa: A002
        """Remove a conversation with all that belongs to it."""
        await self._in_turn(id, self.sync.delete, id, missing_ok=missing_ok)

    def rebuild(self) -> AsyncGenerator[tuple[str, StateStoreError | None]]:
        """Yield each conversation as soon as what the catalog says of it was made anew, from its first record on."""
        return each(self._calls, partial(self.sync.rebuild))

    def sweep(
        self, ttl: timedelta | float, *, dry_run: bool = True, now: datetime | None = None
    ) -> AsyncGenerator[tuple[str, datetime]]:
        """Yield the conversations that nobody has written for longer than `ttl`, and remove them."""
        sweep = partial(self.sync.sweep, ttl, dry_run=dry_run, now=now)
        return each(self._calls, sweep) if dry_run else each(self._calls, sweep, most=1)

    async def _in_turn(self, id_: str, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._calls.in_turn(f"{self.prefix}/{id_}", call, *args, **kwargs)

    async def list(self, options: ListOptions | None = None, **fields: Any) -> list[str]:
        """Return the ids of conversations: filtered, then sorted, then a page of them."""
        return await self._calls.run(self.sync.list, options, **fields)
