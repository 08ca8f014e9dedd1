"""What all calls of a place of conversations share: ids checked, the logs that are known, whether it is open."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Self

from msgspec import Raw

from statestore import names
from statestore.companions import check_free
from statestore.conversations import _ids, _json
from statestore.conversations._cache import Cache, Use
from statestore.conversations._fold import State
from statestore.errors import Closed, NotFound
from statestore.store import Store

__all__ = ["CACHE", "Place", "encoded", "there", "values"]

CACHE: Final = 64 << 20
"""About how many bytes of conversations are kept in memory by default."""


class Place:
    """The conversations of a store, or of one scope in it. Making one touches nothing.

    Args:
        store: the store that holds the logs.
        prefix: the scope, a name such as ``teams/a``; make one of any text with :func:`statestore.names.quote`.
        cache: about how many bytes of conversations are kept in memory.

    Raises:
        InvalidName: `prefix` is no name, or is reserved for companions.
    """

    def __init__(self, store: Store, prefix: str = "conversations", *, cache: int = CACHE) -> None:
        self.store = store
        self.prefix = check_free(names.check(prefix))
        self._cache = Cache(store, cache)
        self._name = lru_cache(maxsize=1024)(self._find_name)
        self._closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r}, {self.prefix!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Refuse every later call but this one with ``Closed``; the store stays open, it is the caller's."""
        self._closed = True
        self._cache.clear()

    def _log(self, conversation: str) -> str:
        """Return the name of a conversation's log: the door that every id passes, before anything else."""
        return self._name(_ids.check_id(conversation))

    def _find_name(self, conversation: str) -> str:
        return names.check(f"{self.prefix}/{_ids.quote(conversation)}")

    def _use(self, log: str) -> Use:
        """Give a log to this thread alone, for as long as the context lasts; a closed object has none to give."""
        self._check_open()
        return self._cache.use(log)

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("these conversations were closed: make another object", prefix=self.prefix)


def there(state: State | None, conversation: str, log: str) -> State:
    """Return the state of a conversation that is there.

    Raises:
        NotFound: it is not.
    """
    if state is None:
        raise NotFound("there is no such conversation", id=conversation, log=log)
    return state


def encoded(given: Mapping[str, Any]) -> dict[str, Raw]:
    """Return the JSON of each value of a mapping.

    Raises:
        TypeError: a key is no string, or a value holds what JSON has not.
        ValueError: a value holds NaN, an infinity or a lone surrogate.
    """
    depth = _json.MAX_DEPTH - 1
    return {_json.check_key(key): Raw(_json.encode(_json.plain(item, depth))) for key, item in dict(given).items()}


def values(stored: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the values of their JSON."""
    return {key: _json.loads(value) for key, value in stored.items()}
