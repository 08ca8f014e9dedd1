"""What holds for all stores in buckets, and the settings of a root, which its first writer fixes for all who come."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Final

from statestore.errors import Corrupt
from statestore.store import Capabilities
from statestore_fsspec._layout import LARGEST, SETTINGS

__all__ = ["CAPABILITIES", "DEFAULT", "MAX_APPEND", "Settings"]

MAX_APPEND: Final = 16 << 20
"""The most bytes that one append takes: it must be one request, and well under what clients split in parts."""

CAPABILITIES: Final = Capabilities(
    durable=True,
    shared=True,
    atomic_append=True,
    runs=True,
    deletes=True,
    boundaries=True,
    max_append=MAX_APPEND,
)
"""What a store in a bucket can do, whichever storage it is on."""

_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What all clients of a root must agree on.

    Attributes:
        grace: seconds for which a collector keeps what is superseded.
        windows: the lengths of the windows of merges, in bytes, the smallest first; each divides the next. The more
            there are, the fewer merges a log of small appends ends in, and the more often is each byte written again.
        sorted: whether the storage lists keys in the order of their bytes.
    """

    grace: float = 86400.0
    windows: tuple[int, ...] = tuple(4 << 10 + 2 * step for step in range(6))
    sorted: bool = True

    def spell(self) -> bytes:
        """Return the object that holds the settings."""
        fields = {
            "format": _FORMAT,
            "grace": self.grace,
            "windows": list(self.windows),
            "sorted": self.sorted,
        }
        return json.dumps(fields).encode() + b"\n"

    @classmethod
    def parse(cls, raw: bytes) -> Settings:
        """Return the settings that an object holds.

        Raises:
            Corrupt: it holds none, or those of a format that this version does not know.
        """
        try:
            fields = json.loads(raw)
            found = fields["format"]
            if found == _FORMAT:
                settings = cls(float(fields["grace"]), tuple(map(int, fields["windows"])), bool(fields["sorted"]))
                settings.check()
                return settings
        except (KeyError, TypeError, ValueError) as error:
            raise Corrupt(
                "the root's settings are damaged, or something else answers here: restore them, or correct the address",
                object=SETTINGS,
            ) from error
        raise Corrupt(
            "the root was made by another version of statestore: use that one",
            object=SETTINGS,
            format=found,
            known=_FORMAT,
        )

    def check(self) -> None:
        """Refuse what no root can have.

        Raises:
            ValueError: there is no grace or no end of it, or the windows do not nest or make merges of more than 8 MiB.
        """
        if not 0 < self.grace < math.inf:
            raise ValueError("the grace period is above 0 seconds, and has an end")
        pairs = zip(self.windows, self.windows[1:], strict=False)
        nested = all(small < large and large % small == 0 for small, large in pairs)
        if not self.windows or self.windows[0] <= 0 or self.windows[-1] > LARGEST or not nested:
            raise ValueError(f"windows are numbers of bytes, each divides the next, the last is at most {LARGEST}")


DEFAULT: Final = Settings()
