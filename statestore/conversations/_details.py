"""What a conversation has beside its messages: metadata, summaries, named lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Raw

from statestore.conversations._changes import Items, Metadata, Summaries
from statestore.conversations._messages import GivenSummary, read_summaries, summary_json
from statestore.conversations._model import Summary
from statestore.conversations._place import Place, encoded, there, values

__all__ = ["Details"]


class Details(Place):
    """The calls for metadata, summaries and lists."""

    def load_metadata(self, id: str) -> dict[str, Any]:  # noqa: A002 - what it is called everywhere
        """Return a conversation's metadata, as the caller's own copy.

        Raises:
            InvalidName: `id` is empty or too long.
            NotFound: there is no such conversation.
        """
        log = self._log(id)
        with self._use(log) as known:
            return values(there(known.refresh(), id, log).metadata)

    def merge_metadata(self, id: str, updates: Mapping[str, Any]) -> None:  # noqa: A002
        """Set keys of the metadata, each as a whole; None is a value. Nothing else changes.

        The conversation is made where there is none, unless there is nothing to set.

        Raises:
            InvalidName: `id` is empty or too long.
            TypeError: a key is no string, or a value holds what JSON has not; nothing was changed.
            ValueError: a value holds NaN, an infinity or a lone surrogate; nothing was changed.
            Conflict: others append all the time.
        """
        log = self._log(id)
        change = Metadata(encoded(updates))
        self._check_open()
        if change.metadata:
            with self._use(log) as known:
                known.change(lambda _: change)

    def load_summaries(self, id: str) -> list[Summary]:  # noqa: A002
        """Return a conversation's summaries in order; none where there is no conversation.

        Raises:
            InvalidName: `id` is empty or too long.
        """
        log = self._log(id)
        with self._use(log) as known:
            state = known.refresh()
            stored = list(state.summaries) if state else []
        return read_summaries(stored, log)

    def save_summary(self, id: str, summary: GivenSummary) -> None:  # noqa: A002
        """Add a summary behind those that are there; make the conversation where there is none.

        Args:
            id: the conversation.
            summary: a `Summary`, a mapping, or its JSON as bytes.

        Raises:
            InvalidName: `id` is empty or too long.
            TypeError: it is no summary.
            ValueError: a field has another type than its own.
            Conflict: others append all the time.
        """
        log = self._log(id)
        change = Summaries([Raw(summary_json(summary))])
        with self._use(log) as known:
            known.change(lambda _: change)

    def append_list(self, id: str, name: str, items: Iterable[bytes]) -> None:  # noqa: A002
        """Add items to the end of a list, all of them or none; make conversation and list where there is none.

        Args:
            id: the conversation.
            name: the list's name, any text but the empty one.
            items: the items, any bytes; where there are none, nothing is made.

        Raises:
            InvalidName: `id` is empty or too long.
            TypeError: an item is not bytes.
            ValueError: the list name is empty or has a lone surrogate.
            Conflict: others append all the time.
        """
        log = self._log(id)
        check_list_name(name)
        change = Items(name, [item_bytes(item) for item in items])
        self._check_open()
        if change.items:
            with self._use(log) as known:
                known.change(lambda _: change)

    def load_list(self, id: str, name: str, *, strict: bool = False) -> list[bytes]:  # noqa: A002
        """Return the items of a list in order.

        Args:
            id: the conversation.
            name: the list's name.
            strict: refuse a conversation that is not there, where otherwise there are no items.

        Raises:
            InvalidName: `id` is empty or too long.
            NotFound: there is no such conversation, with `strict`.
            ValueError: the list name is empty.
        """
        return list(self._items(id, name, strict))

    def list_len(self, id: str, name: str, *, strict: bool = False) -> int:  # noqa: A002
        """Return how many items a list has; arguments and errors are those of `load_list`."""
        return len(self._items(id, name, strict))

    def _items(self, conversation: str, name: str, strict: bool) -> list[bytes]:
        log = self._log(conversation)
        check_list_name(name)
        with self._use(log) as known:
            state = known.refresh()
            if state is None and not strict:
                return []
            return list(there(state, conversation, log).lists.get(name, ()))


def check_list_name(name: str) -> None:
    """Refuse what cannot be a list's name."""
    if not isinstance(name, str):
        raise TypeError(f"a list name is a str, not {type(name).__name__}")
    if not name:
        raise ValueError("a list name is not empty")


def item_bytes(item: bytes) -> bytes:
    """Return an item as bytes that nobody else can change."""
    if not isinstance(item, bytes | bytearray | memoryview):
        raise TypeError(f"an item of a list is bytes, not {type(item).__name__}")
    return bytes(item)
