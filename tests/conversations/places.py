"""Where the tests of conversations keep them: the stores, and conversations over them that are opened again."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from statestore import RecordLog, Store
from statestore.conversations import Conversations


class Place:
    """One empty place for conversations.

    Args:
        open_store: opens another store over it.
        directory: where catalogs are kept.
    """

    def __init__(self, open_store: Callable[[], Store], directory: Path) -> None:
        self.open_store = open_store
        self._directory = directory
        self._opened = ExitStack()

    def open(self, **more: Any) -> Conversations:
        """Return other conversations over the same place, which know nothing."""
        store = self._opened.enter_context(self.open_store())
        path = self._directory / f"{uuid.uuid4().hex}.sqlite3"
        return self._opened.enter_context(Conversations(store, catalog=path, **more))

    def close(self) -> None:
        self._opened.close()


def user(content: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def contents(messages: Any) -> list[Any]:
    return [message.content for message in messages]


def records(conversations: Conversations, conversation: str) -> RecordLog:
    """Return the records of a conversation."""
    return RecordLog(conversations.store, conversations._log(conversation))
