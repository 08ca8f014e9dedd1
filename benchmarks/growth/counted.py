"""What an operation asks of a store, counted: calls, and the bytes that they read and appended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from statestore import Store

__all__ = ["Asked", "Counted"]


@dataclass
class Asked:
    """How often something was asked of a store, and how many bytes went either way."""

    calls: int = 0
    bytes: int = 0


class Counted(AbstractContextManager[Any]):
    """A store that counts what it is asked, and what its snapshots and sidecars are asked; all else is the inner one's.

    A listing and a stream are one call each, however long they are.

    Args:
        inner: the store, or its snapshot or sidecar.
        asked: where it is counted.
    """

    def __init__(self, inner: Store | Any, asked: Asked) -> None:
        self._inner = inner
        self._asked = asked

    def __exit__(self, *_: object) -> None:
        self._inner.close()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        return partial(self._ask, name, value) if callable(value) else value

    def _ask(self, name: str, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        self._asked.calls += 1
        self._count(*given)
        result = call(*given, **named)
        self._count(result)
        if name == "stream":
            return self._pieces(result)
        return Counted(result, self._asked) if name in ("snapshot", "sidecar") and result is not None else result

    def _pieces(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._count(piece)
            yield piece

    def _count(self, *values: Any) -> None:
        self._asked.bytes += sum(len(value) for value in values if isinstance(value, bytes))
