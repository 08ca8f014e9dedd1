"""The probe: whether a storage keeps the promises on which the protocol stands, tried and not believed."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from statestore.errors import Unavailable
from statestore_fsspec._drive import Drive
from statestore_fsspec._engine import Engine, entries
from statestore_fsspec._steps import Outcome

__all__ = ["check_condition", "probe"]

_ROUNDS: Final = 4
_RACERS: Final = 8
_TRIES: Final = 6


def probe(engine: Engine) -> bool:
    """Try whether the storage creates exclusively and lists what was made; return whether it lists in byte order.

    Everything happens below a prefix of its own, which is emptied afterwards, as far as the rights go.

    Raises:
        Unavailable: the storage fails, or does not keep a promise; ``error.retry`` is False then.
    """
    drive = engine.drive
    place = f"probe/{secrets.token_hex(8)}/"
    made: list[str] = []
    try:
        # In byte order "-" comes before "/"; storages that walk through folders tell the other way round. None of the
        # names is a folder of another one.
        names = [place + name for name in ("a!b", "a-b", "a/b")]
        for key in names:
            made.append(key)
            # "Refused" may be the answer to a request that a library under us has sent again.
            if _create(drive, key, b"first") is not Outcome.CREATED and _fetch(engine, key) != b"first":
                raise _liar("says that a new object is there already", key)
            if _create(drive, key, b"second") is not Outcome.REFUSED:
                raise _liar("takes the condition of an exclusive create and ignores it", key)
            if _fetch(engine, key) != b"first":
                raise _liar("changed an object that was there already", key)
        listed = [entry.key for entry in entries(engine.pages(place))]
        if sorted(listed) != names:
            raise _liar("does not list what was made", place)
        with ThreadPoolExecutor(_RACERS) as pool:
            for number in range(_ROUNDS):
                key = f"{place}race-{number}"
                made.append(key)
                _race(engine, pool, key)
        return listed == names
    finally:
        # Whoever may not delete leaves a few small objects behind.
        with suppress(Unavailable):
            engine.each(drive.remove, ((key,) for key in made))


def check_condition(drive: Drive, key: str, held: bytes) -> None:
    """Try whether an object that is there is refused, by creating it as it is: nothing changes, even if that is done.

    Raises:
        Unavailable: the storage fails, or takes the condition and ignores it.
    """
    if _create(drive, key, held) is Outcome.CREATED:
        raise _liar("takes the condition of an exclusive create and ignores it", key)


def _race(engine: Engine, pool: ThreadPoolExecutor, key: str) -> None:
    """Let several threads create one object, and look that exactly one of them has."""
    values = [b"racer %d" % number for number in range(_RACERS)]
    outcomes = list(pool.map(lambda value: engine.drive.create(key, value)[0], values))
    held = _fetch(engine, key)
    winners: Sequence[bytes] = [value for value, one in zip(values, outcomes, strict=True) if one is Outcome.CREATED]
    # Whoever has won may have been told otherwise: then what is there is one of theirs.
    if len(winners) > 1 or held not in (winners or values):
        raise _liar("let several writers create one object", key)


def _fetch(engine: Engine, key: str) -> bytes | None:
    (held,) = engine.each(engine.drive.fetch, [(key,)])
    return held


def _create(drive: Drive, key: str, data: bytes) -> Outcome:
    for _ in range(_TRIES):
        outcome, failure = drive.create(key, data)
        if outcome is not Outcome.UNKNOWN:
            return outcome
    raise Unavailable("the storage does not answer the probe", retry=True, key=key) from failure


def _liar(what: str, key: str) -> Unavailable:
    return Unavailable(
        f"this storage {what}: two writers would overwrite each other's records, so nothing is written there; use"
        " another storage, or a newer version of this one",
        key=key,
    )
