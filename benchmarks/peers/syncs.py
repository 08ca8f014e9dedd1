"""Count what a peer asks of the disk for one append, by strace: a fact, whatever a page says of its durability."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import chdir, closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.peers.kinds import KINDS
from benchmarks.peers.peer import Kind, Place, text

__all__ = ["can_trace", "syncs"]

COUNT = 100
SYNC = re.compile(rb"\b(?:fsync|fdatasync|sync_file_range|msync|syncfs|sync)\(")
MARK = b"chdir("  # made twice by the child: before the first append that counts, and behind the last


@cache
def can_trace() -> bool:
    """Say whether strace is there, and may trace: in a container it may not be allowed to."""
    return (
        shutil.which("strace") is not None
        and not subprocess.run(
            ["strace", "-qq", "-o", os.devnull, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ).returncode
    )


def syncs(kind: Kind) -> float | None:
    """Return how often each of a hundred appends to one session synced; None where strace cannot tell."""
    if kind.bucket or not can_trace():
        return None
    with TemporaryDirectory() as folder:
        trace = Path(folder, "trace")
        calls = "trace=chdir,fsync,fdatasync,sync_file_range,msync,syncfs,sync"
        words = [sys.executable, "-m", "benchmarks.peers.syncs", str(kind), folder]
        strace = ["strace", "-f", "-qq", "-e", calls, "-e", "signal=none", "-o", str(trace)]
        # Its output is kept back: it is the peer's, and matters only where it fails.
        done = subprocess.run([*strace, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        if done.returncode:
            raise RuntimeError(f"the appends failed under strace: peer={kind}\n{done.stdout.decode(errors='replace')}")
        return _between(trace.read_bytes()) / COUNT


def _between(trace: bytes) -> int:
    """Return how many syncs began between the marks; one that others interrupted in the trace counts once."""
    between = trace.split(MARK)[-2]
    return len(SYNC.findall(between))


def main() -> None:
    wanted, folder = sys.argv[1:]
    (kind,) = (kind for kind in KINDS if str(kind) == wanted)
    own = Path(folder, "place")
    own.mkdir()
    with closing(kind.open(Place(own))) as peer:
        peer.append("00000000", [text(0)])
        with chdir(folder):
            peer.append("00000000", [text(number) for number in range(COUNT)])


if __name__ == "__main__":
    main()
