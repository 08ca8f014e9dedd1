"""Logs that are large and cost nothing to make: whole records whose bodies are holes in the file."""

from __future__ import annotations

import os
from pathlib import Path

MIB = 1 << 20


def large_log(file: Path, size: int, body: int = MIB) -> int:
    """Make a log of at least `size` bytes, of records with bodies of so many zeros; return how many there are."""
    count = -(-size // body)
    with open(file, "wb") as out:
        for number in range(1, count + 1):
            out.write(
                b'{"n":%d,"kind":"message","id":"00000000","time":"2026-09-28T12:00:00Z","len":%d}\n' % (number, body)
            )
            out.seek(body, os.SEEK_CUR)
            out.write(b"\n")
    return count
