"""Measure how the cost of each operation grows, and keep what was found for the charts.

    python -m benchmarks.growth --json benchmarks/recorded/growth.json

takes minutes on an idle machine, most of them for S3, and ``--full``, which takes more sizes, hours. S3 is measured
where its server was installed (tests/services/install.sh). The file holds rows of one operation on one store at one
size:

    {"machine": {...}, "rows": [{"store", "operation", "of", "size", "calls", "bytes", "requests", "median_us",
    "p25_us", "p75_us", "rounds"}]}

`calls` are what the store was asked, and `bytes` what these read and appended; on S3 they are what was sent and got,
in so many `requests`. The rows are followed by the powers with which each cost grows, and those are marked that are
greater than they must be.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.growth import operations
from benchmarks.growth.measure import measure, slopes
from benchmarks.growth.operations import OPERATIONS, Operation
from benchmarks.growth.places import S3, Place, local, memory
from tests.servers import Rgw, running

SIZES = (10, 100, 1_000, 10_000, 100_000)
S3_SIZES = (10, 100, 1_000)
LARGEST = 1_000_000
SHORT = ("append a record", "open to append", "open a session", "last(10)")  # what is asked of the largest log


def places(kind: str, root: Path, server: Rgw | None, of: str) -> Iterator[Place]:
    """Yield empty storages of a kind. Logs of one small record each have nothing to compact."""
    if kind == "local":
        yield local(root)
    elif kind == "memory":
        yield memory()
    elif server is not None:
        yield S3(server, compacted=False)
        if of != "logs":
            yield S3(server, compacted=True)


def run(kinds: list[str], wanted: str, *, full: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows."""
    server = None
    if "s3" in kinds:
        facts = running("rgw")
        if "error" in facts:
            print(f"S3 is not measured: {facts['error']}", file=sys.stderr)
        else:
            server = Rgw(name="rgw", **facts)
    for kind in kinds:
        sizes = S3_SIZES + (10_000,) * full if kind == "s3" else SIZES + (LARGEST,) * full
        for size in sizes:
            for fill in (operations.records, operations.logs, operations.conversation):
                chosen = [each for each in OPERATIONS if each.fill is fill and wanted in each.name]
                if size == LARGEST:
                    chosen = [each for each in chosen if kind == "local" and each.name in SHORT]
                yield from _at(kind, size, chosen, server)


def _at(kind: str, size: int, chosen: list[Operation], server: Rgw | None) -> Iterator[dict[str, Any]]:
    if not chosen:
        return
    with TemporaryDirectory(prefix="growth-") as root:
        for place in places(kind, Path(root), server, chosen[0].of):
            place.fill(lambda store: chosen[0].fill(store, size))
            for operation in chosen:
                yield measure(place, operation, size)


def machine() -> dict[str, Any]:
    """Say where this runs."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to keep what was found")
    parser.add_argument("--full", action="store_true", help="10,000 appends on S3, and 1,000,000 records locally")
    parser.add_argument("--stores", default="local,memory,s3", help="which stores, by default %(default)s")
    parser.add_argument("--only", default="", metavar="TEXT", help="only operations with this in their name")
    given = parser.parse_args()
    rows = []
    for row in run(given.stores.split(","), given.only, full=given.full):
        rows.append(row)
        print(
            f"{row['operation']:22} {row['store']:14} {row['size']:9,} {row['of']:8} {row['median_us']:14,.1f} µs "
            f"{row['calls']:7,} calls {row['bytes']:13,} bytes {row['requests'] or '':>7}",
            flush=True,
        )
    print(f"\n{'grows as size to the power':37} {'must':>5} {'time':>5} {'calls':>5} {'bytes':>5} {'requests':>8}")
    for row in slopes(rows):
        found = [row[cost] for cost in ("median_us", "calls", "bytes", "requests")]
        more = " more than it must" if any(cost is not None and cost > row["must"] + 0.5 for cost in found) else ""
        shown = " ".join("     " if cost is None else f"{cost:5.2f}" for cost in found)
        print(f"{row['operation']:22} {row['store']:14} {row['must']:5.0f} {shown}{more}")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
