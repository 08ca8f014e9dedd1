"""What can be done to a storage's requests, and how those are told apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tests.proxy import Fault

__all__ = ["AZURE", "Aim", "GCS", "S3", "SFTP"]


@dataclass(frozen=True)
class Aim:
    """How a storage's requests are told apart by a proxy; what is "" can't be.

    Attributes:
        sudden: faults that show at once, and not when a client's patience ends.
        often: those of them that networks and storages do most.
        slow: faults that cost a client the whole of its patience.
        write: the method by which objects are made.
        read: the method by which they are read and listed.
        data: what is found in the target of a request about data.
        heads: what is found in the target of a request about heads.
        step: of how many requests one is tried by a sample.
    """

    sudden: tuple[Fault, ...]
    often: tuple[Fault, ...]
    slow: tuple[Fault, ...] = (Fault.HANG_BEFORE, Fault.HANG_AFTER)
    write: str = ""
    read: str = ""
    data: str = ""
    heads: str = ""
    step: int = 1


S3: Final = Aim(
    sudden=(
        Fault.RESET,
        Fault.REPLY_LOST,
        Fault.SLOW_DOWN,
        Fault.CONFLICT,
        Fault.ERROR_BEFORE,
        Fault.ERROR_AFTER,
        Fault.TRUNCATED,
        Fault.DOUBLED,
        Fault.DOUBLED_SECOND,
        Fault.LATE,
    ),
    often=(Fault.REPLY_LOST, Fault.SLOW_DOWN, Fault.TRUNCATED),
    write="PUT",
    read="GET",
    data="data(/|%2F)",
    heads="heads(/|%2F)",
)
AZURE: Final = S3
GCS: Final = replace(S3, write="POST")
SFTP: Final = Aim(
    sudden=(Fault.RESET, Fault.REPLY_LOST, Fault.TRUNCATED, Fault.LATE, Fault.KILLED),
    often=(Fault.RESET, Fault.REPLY_LOST),
    step=6,
)
