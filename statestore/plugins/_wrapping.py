"""What a wrapper tells about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statestore.plugins._backend import check_words
from statestore.store import Store

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Wrapping"]


@dataclass(frozen=True, kw_only=True)
class Wrapping:
    """One kind of store that is made of another store, and how to make one.

    Attributes:
        name: a word of ``a-z 0-9 -``; ``name::`` before a URL wraps the store there. Its options are called
            ``<name>_<option>`` where they are given, and its environment variables ``STATESTORE_<NAME>_<OPTION>``.
        options: a pydantic model of the options, as a backend has it; the names of its fields are without the prefix.
        wrap: is called with the open inner store, the validated options, and what the inner store is: its URL without
            user, password and query. Returns a store, which closes the inner one when it is closed.
        summary: one line that tells a reader of ``statestore plugins`` what it is.

    Raises:
        TypeError: a field is not of its type.
        ValueError: a name, option or summary is not spelled so.
    """

    name: str
    options: type[BaseModel]
    wrap: Callable[[Store, Any, str], Store]
    summary: str

    def __post_init__(self) -> None:
        check_words("wrapper", self.name, self.options, self.summary)
        if not callable(self.wrap):
            raise TypeError(f"a wrapper's wrap is called with a store, the options and an origin: {self.wrap!r}")

    @property
    def prefix(self) -> str:
        """What the names of its options begin with where they are given."""
        return f"{self.name.replace('-', '_')}_"
