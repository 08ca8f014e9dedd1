"""Measure statestore beside its peers, and keep what was found for the page and its chart.

    python -m benchmarks.peers --full --json benchmarks/recorded/peers.json
    python -m benchmarks.peers --page

The first takes about half an hour on an idle machine; without ``--full`` sizes are small and it takes minutes. Install
the peers with ``pip install -e '.[dev,bench]'``; S3 is measured where its server was installed
(tests/services/install.sh). All peers do one operation in turns, round after round, each time checked. The file holds a
row for each of a peer's operations:

    {"machine": {...}, "versions": {...}, "apart": [...],
     "rows": [{"peer", "durability", "operation", "items", "median_us", "p25_us", "p75_us", "rounds", "ratio", "capped",
               "syncs_per_item", "note"}],
     "missing": [{"peer", "durability", "operation", "note"}]}

Times are microseconds for one unit of work: for one message appended, loaded or forked, for one session listed, and for
one call of `last`. `items` is how many messages the session had, or how many sessions there were; where it is `capped`,
the peer was measured with fewer than the others. `ratio` is its median beside that of statestore with the same
durability, in the same rounds. `syncs_per_item` was counted by strace while 100 messages were appended; it is null
where nothing was counted. The machine's `load` is that of the last fifteen minutes: of 2 or less it did nothing else.
`missing` says what a peer cannot do, and why; `apart` what is not comparable.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from rich.console import Console

from benchmarks.peers.kinds import BASES, KINDS
from benchmarks.peers.measure import Places, measure
from benchmarks.peers.operations import FULL, OPERATIONS, SHORT, TINY, Sizes
from benchmarks.peers.peer import Kind
from benchmarks.peers.report import APART, machine, missing, page, tables, versions
from benchmarks.peers.syncs import syncs
from tests.servers import Rgw, running

__all__ = ["PAGE", "RECORDED", "run"]

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "peers.md"
RECORDED = ROOT / "benchmarks" / "recorded" / "peers.json"


def run(
    kinds: list[Kind],
    sizes: Sizes,
    *,
    rounds: int,
    server: Rgw | None,
    root: Path,
    told: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure and return what the file holds."""
    able = [kind for kind in kinds if not kind.missing and (server or not kind.bucket)]
    counted = {}
    for kind in able:
        told(f"syncs: {kind}")
        counted[str(kind)] = syncs(kind)
    places = Places(root, server)
    rows, absent = [], list(missing(kinds, server is not None))
    for operation in OPERATIONS:
        for row in measure(able, operation, sizes, places, rounds, told):
            if "median_us" in row:
                rows.append(row | {"syncs_per_item": counted[f"{row['peer']}, {row['durability']}"]})
            else:
                absent.append(row)
    return {
        "machine": machine() | {"load": round(os.getloadavg()[2], 1)},
        "versions": versions(able),
        "apart": APART,
        "rows": rows,
        "missing": absent,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="10,000 messages and sessions; or STATESTORE_BENCH=full")
    parser.add_argument("--tiny", action="store_true", help="the sizes of the tests: only to see that all of it works")
    parser.add_argument("--only", default="", metavar="TEXT", help="only peers with this in their name, and ours")
    parser.add_argument("--rounds", type=int, default=5, help="how often each peer does each operation")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to keep what was found")
    parser.add_argument(
        "--page", action="store_true", help="measure nothing: renew docs/peers.md from what is recorded"
    )
    given = parser.parse_args()
    if given.page:
        PAGE.write_text(page(PAGE.read_text(), json.loads(RECORDED.read_bytes())))
        return
    full = given.full or os.environ.get("STATESTORE_BENCH") == "full"
    facts = running("rgw")
    server = None if "error" in facts else Rgw(name="rgw", **facts)
    kinds = [kind for kind in KINDS if given.only in str(kind) or kind in BASES.values()]
    begin = monotonic()
    with TemporaryDirectory(prefix="peers-") as root:
        found = run(
            kinds,
            TINY if given.tiny else FULL if full else SHORT,
            rounds=given.rounds,
            server=server,
            root=Path(root),
            told=lambda what: print(f"{monotonic() - begin:6.0f} s  {what}", file=sys.stderr, flush=True),
        )
    console = Console(width=None if sys.stdout.isatty() else 160)
    for table in tables(found):
        console.print(table)
    console.print("\n* fewer than the others, since it would take too long.  Not comparable:")
    for line in APART:
        console.print(f"- {line}")
    console.print(found["machine"], found["versions"])
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    if any(row["note"].startswith("failed") for row in found["missing"]):
        sys.exit("some peers failed: see above")


if __name__ == "__main__":
    main()
