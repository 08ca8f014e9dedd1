"""Every error that statestore raises on purpose, in one tree.

::

    StateStoreError
    ├── NotFound      (also LookupError)      no such log or session
    ├── Exists        (also FileExistsError)  a copy's target is there already
    ├── Conflict                              the log does not end where the caller said
    ├── Held                                  somebody else holds the log
    ├── InvalidName   (also ValueError)       this cannot be a log's name
    ├── Corrupt                               the bytes are no records, and no crash explains it
    ├── Closed                                the store was closed
    ├── NotSupported                          the store has not the capability; nothing was done
    ├── Unavailable                           the storage failed
    ├── AlreadyAborted                        an operator has ended the session before
    ├── Ambiguous     (also LookupError)      several sessions have this id
    ├── InvalidAnswer (also ValueError)       the answer is not what the request asks for
    └── PluginError                           a backend cannot be found, loaded or opened

A message is lower case, says what to do, and ends in ``key=value`` facts. The facts are also in
``error.facts`` as they were given, for programs. The storage's own exception, where there was one, is
``__cause__``. Wrong arguments (an offset below zero, empty data) are plain ``ValueError`` or ``TypeError``:
a caller's mistake is not a state of the store.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AlreadyAborted",
    "Ambiguous",
    "Closed",
    "Conflict",
    "Corrupt",
    "Exists",
    "Held",
    "InvalidAnswer",
    "InvalidName",
    "NotFound",
    "NotSupported",
    "PluginError",
    "StateStoreError",
    "Unavailable",
]


def _show(value: object) -> str:
    """Spell a fact on one line: bare where it is plain, quoted where it has blanks or control characters."""
    text = value if isinstance(value, str) else str(value)
    plain = text.isascii() and text.isprintable() and text != "" and not set(text) & set(" \"'=")
    return text if plain else ascii(text)


def _rebuild(kind: type[StateStoreError], message: str, facts: dict[str, Any]) -> StateStoreError:
    return kind(message, **facts)


class StateStoreError(Exception):
    """The root of the tree: ``except StateStoreError`` catches whatever a store refuses or fails at.

    Args:
        message: what happened and what to do about it, lower case, without the facts.
        facts: what the message is about (``log``, ``offset``, ``expected``, ``found`` and so on). A fact
            that is None is left out.
    """

    message: str
    facts: dict[str, Any]

    def __init__(self, message: str, /, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.facts = {key: value for key, value in facts.items() if value is not None}

    def __str__(self) -> str:
        return " ".join([self.message, *(f"{key}={_show(value)}" for key, value in self.facts.items())])

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.facts)


class NotFound(StateStoreError, LookupError):
    """There is no such log. It was never made, or it was deleted."""


class Exists(StateStoreError, FileExistsError):
    """The target of a copy is a log already; it was not touched."""


class Conflict(StateStoreError):
    """The log does not end where the caller said; nothing was added.

    ``error.found`` is the tail that the log has: read what is new up to it, decide again, append there.
    ``error.expected`` is the tail that the caller gave.
    """

    @property
    def found(self) -> Any:
        """The log's tail as the store found it."""
        return self.facts.get("found")

    @property
    def expected(self) -> Any:
        """The tail that the caller expected."""
        return self.facts.get("expected")


class Held(StateStoreError):
    """Somebody else holds the log; nothing was done. ``error.holder`` says who and since when."""

    @property
    def holder(self) -> Any:
        """The holder, as far as the storage can tell, else None."""
        return self.facts.get("holder")


class InvalidName(StateStoreError, ValueError):
    """This text cannot be a log's name or a session's id. The storage was not touched."""


class Corrupt(StateStoreError):
    """The bytes do not parse, and a crash in the middle of an append does not explain it.

    ``error.record`` is the 1-based number of the first record that cannot be read and ``error.offset`` the
    byte at which it begins: everything before is whole and can be read by asking for it.
    """

    @property
    def record(self) -> int | None:
        """The 1-based number of the record that could not be read."""
        return self.facts.get("record")

    @property
    def offset(self) -> int | None:
        """The byte offset at which that record begins."""
        return self.facts.get("offset")


class Closed(StateStoreError):
    """The store was closed. Open another one."""


class NotSupported(StateStoreError):
    """The store does not have this capability. It was refused before anything happened."""


class Unavailable(StateStoreError):
    """The storage failed: a full disk, a refused permission, a network that does not answer.

    Args:
        message: what failed and what to do.
        retry: whether the same call may succeed later.
        effect_unknown: whether the call may have taken effect all the same. Repeat an append with the same
            bytes at the same place to find out: where the bytes are there already, that is success.
    """

    retry: bool
    effect_unknown: bool

    def __init__(self, message: str, /, *, retry: bool = False, effect_unknown: bool = False, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.retry = retry
        self.effect_unknown = effect_unknown

    def __str__(self) -> str:
        words = super().__str__() + f" retry={'yes' if self.retry else 'no'}"
        return words + (" effect=unknown" if self.effect_unknown else "")

    def __reduce__(self) -> tuple[Any, ...]:
        flags = {"retry": self.retry, "effect_unknown": self.effect_unknown}
        return _rebuild, (type(self), self.message, {**flags, **self.facts})


class AlreadyAborted(StateStoreError):
    """An operator has ended the session before; nothing was written. The first reason stands."""


class Ambiguous(StateStoreError, LookupError):
    """Several users have a session with this id: say whose is meant. ``error.facts`` names them."""


class InvalidAnswer(StateStoreError, ValueError):
    """The answer is not what the request asks for; nothing was written. ``error.facts`` has the path."""


class PluginError(StateStoreError):
    """A backend cannot be found, loaded or opened as asked. The message says what to install or change."""
