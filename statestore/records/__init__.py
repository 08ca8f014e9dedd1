"""Records: what a log holds. One JSON header line, a body of exactly ``len`` bytes, and a newline.

The format is that of the Go package `statefile`, byte for byte; ``docs/format.md`` describes it.
"""

from __future__ import annotations

from statestore.records.follow import Following
from statestore.records.header import MAX_HEADER, Header, Usage
from statestore.records.kinds import (
    BLOCKS,
    CALL,
    CONFIG,
    ERROR,
    KINDS,
    MESSAGE,
    RESULT,
    START,
    STEP,
    SYSTEM,
    TEXT,
    THINKING,
)
from statestore.records.log import RecordLog
from statestore.records.record import Draft, Record, draft, encode, new_id
from statestore.records.scan import Scan, scan
from statestore.records.verify import Verdict, verify

__all__ = [
    "BLOCKS",
    "CALL",
    "CONFIG",
    "Draft",
    "ERROR",
    "Following",
    "Header",
    "KINDS",
    "MAX_HEADER",
    "MESSAGE",
    "RESULT",
    "Record",
    "RecordLog",
    "START",
    "STEP",
    "SYSTEM",
    "Scan",
    "TEXT",
    "THINKING",
    "Usage",
    "Verdict",
    "draft",
    "encode",
    "new_id",
    "scan",
    "verify",
]
