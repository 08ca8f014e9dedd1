"""The messages of a conversation."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Raw

from statestore.conversations._changes import Change, Messages
from statestore.conversations._fold import State
from statestore.conversations._messages import GivenMessage, message_json, read_messages
from statestore.conversations._model import Message
from statestore.conversations._place import Place, there

__all__ = ["History"]


class History(Place):
    """The calls that add to a history and read its end."""

    def append_messages(self, id: str, messages: Iterable[GivenMessage]) -> None:  # noqa: A002 - what it is called
        """Add messages to the end of a history, all of them or none; make the conversation where there is none.

        Args:
            id: the conversation.
            messages: each a `Message`, a mapping, or its JSON as bytes.

        Raises:
            InvalidName: `id` is empty or too long.
            TypeError: one is no message, or holds what JSON has not.
            ValueError: one has no role, or holds NaN, an infinity or a lone surrogate.
            Conflict: others append all the time.
        """
        log = self._log(id)
        change = Messages([Raw(message_json(message)) for message in messages])
        with self._use(log) as known:
            known.change(lambda state: change if change.messages or state is None else None)

    def log_append(
        self,
        id: str,  # noqa: A002
        start_seq: int,
        messages: Iterable[GivenMessage],
        *,
        strict: bool = False,
    ) -> int:
        """Add those messages whose place in the history is not taken yet, and return how many there are then.

        So a call whose outcome is not known is simply made again. Places are compared, not contents.

        Args:
            id: the conversation; it is made where there is none and something is added.
            start_seq: the place of the first message given, counted from 0. Beyond the end, all are added at the end.
            messages: each a `Message`, a mapping, or its JSON as bytes.
            strict: refuse a place beyond the end.

        Raises:
            ValueError: `start_seq` is below zero, or beyond the end with `strict`.
            InvalidName, TypeError, Conflict: as `append_messages`.
        """
        log = self._log(id)
        if start_seq < 0:
            raise ValueError(f"places are counted from 0: start_seq={start_seq}")
        given = [Raw(message_json(message)) for message in messages]

        def decide(state: State | None) -> Change | None:
            count = state.count if state else 0
            if strict and start_seq > count:
                raise ValueError(f"messages in between are missing: start_seq={start_seq}, and there are {count}")
            new = given[max(count - start_seq, 0) :]
            return Messages(new) if new else None

        with self._use(log) as known:
            state = known.change(decide)
            return state.count if state else 0

    def load_recent_messages(self, id: str, n: int) -> list[Message]:  # noqa: A002
        """Return the last `n` messages, or all where there are fewer.

        Raises:
            InvalidName: `id` is empty or too long.
            NotFound: there is no such conversation.
            Corrupt: a record that is read is damaged.
            ValueError: `n` is below zero.
        """
        log = self._log(id)
        check_number(n)
        with self._use(log) as known:
            stored = last(there(known.refresh(n), id, log), n)
        return read_messages(stored, log)

    def log_load(self, id: str, recent: int = 0) -> list[Message]:  # noqa: A002
        """Return the last `recent` messages, or all where that is 0; none where there is no conversation.

        Raises:
            InvalidName: `id` is empty or too long.
            Corrupt: a record that is read is damaged.
            ValueError: `recent` is below zero.
        """
        log = self._log(id)
        check_number(recent)
        with self._use(log) as known:
            state = known.refresh(recent or None)
            stored = last(state, recent or state.count) if state else []
        return read_messages(stored, log)

    def message_count(self, id: str) -> int:  # noqa: A002
        """Return how many messages a conversation has.

        Raises:
            InvalidName: `id` is empty or too long.
            NotFound: there is no such conversation.
        """
        log = self._log(id)
        with self._use(log) as known:
            return there(known.refresh(), id, log).count

    def log_len(self, id: str) -> int:  # noqa: A002
        """Return how many messages a conversation has; 0 where there is none.

        Raises:
            InvalidName: `id` is empty or too long.
        """
        log = self._log(id)
        with self._use(log) as known:
            state = known.refresh()
            return state.count if state else 0


def check_number(n: int) -> None:
    """Refuse a number of messages below zero."""
    if n < 0:
        raise ValueError(f"a number of messages is not below zero: {n}")


def last(state: State, n: int) -> list[bytes]:
    """Return the JSON of the last `n` messages, or of all where there are fewer."""
    return state.messages[max(len(state.messages) - n, 0) :]
