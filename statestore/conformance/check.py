"""How a clause says what it expects. Plain ``assert`` would be gone under ``python -O``, and with it the kit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from statestore.errors import StateStoreError

__all__ = ["Failure", "equal", "refused", "show", "that"]

_Error = TypeVar("_Error", bound=Exception)


class Failure(AssertionError):
    """A store has broken the promise of a clause."""


def show(value: object, limit: int = 160) -> str:
    """Spell a value on one line, long ones shortened in the middle."""
    if isinstance(value, bytes) and len(value) > limit:
        return f"<{len(value)} bytes {value[:24]!r} ... {value[-24:]!r}>"
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 2 :]}"


def that(truth: object, what: str) -> None:
    """Fail with `what` unless `truth` is true."""
    if not truth:
        raise Failure(what)


def equal(got: object, expected: object, what: str) -> None:
    """Fail unless `got` equals `expected`; say where two runs of bytes part."""
    if got == expected and isinstance(got, bytes) == isinstance(expected, bytes):
        return
    where = ""
    if isinstance(got, bytes) and isinstance(expected, bytes):
        pairs = enumerate(zip(got, expected, strict=False))
        first = next((place for place, (a, b) in pairs if a != b), min(len(got), len(expected)))
        where = f", which part at byte {first}"
    raise Failure(f"{what}: got {show(got)}, expected {show(expected)}{where}")


def refused(kind: type[_Error] | tuple[type[_Error], ...], call: Callable[..., Any], *args: Any, **more: Any) -> _Error:
    """Make the call and return the error of `kind`, or of one of several kinds, that it must raise.

    An error of statestore's tree does not pass for a plain ``ValueError`` or the like.
    """
    shown = ", ".join([*(show(arg, 60) for arg in args), *(f"{key}={show(arg, 60)}" for key, arg in more.items())])
    name = f"{getattr(call, '__name__', 'call')}({shown})"
    kinds = kind if isinstance(kind, tuple) else (kind,)
    due = " or ".join(each.__name__ for each in kinds)
    try:
        result = call(*args, **more)
    except kinds as error:
        if isinstance(error, StateStoreError) and not any(issubclass(each, StateStoreError) for each in kinds):
            raise Failure(f"{name} raised {type(error).__name__} where a plain {due} is due") from error
        return error
    except Exception as error:
        raise Failure(f"{name} raised {type(error).__name__} where {due} is due: {error}") from error
    raise Failure(f"{name} returned {show(result)} where {due} is due")
