"""What is told of a run: where it was, and its tables, for a terminal and for a page."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from rich.table import Table

from benchmarks.peers.measure import Row
from benchmarks.peers.operations import OPERATIONS
from benchmarks.peers.peer import Kind

__all__ = ["APART", "machine", "markdown", "missing", "page", "tables", "versions"]

APART = [
    (
        "JSON lines and fsspec check nothing: two writers may mix their lines, and a line that a crash has cut takes "
        "the next one with it."
    ),
    (
        "SQLite by hand has one writer at a time for all sessions of a file; its primary key keeps a place from being "
        "taken twice."
    ),
    (
        "LangGraph's saver stores whole checkpoints: each append holds the conversation again, and a load is one row. "
        "A graph also stores its writes, which are left out here."
    ),
    "OpenAI's SQLiteSession goes through a thread for each call, behind one lock for all sessions of a file.",
    (
        "Strands' managers put a file or an object for each message and sync nothing; a message that is there already "
        "is replaced. Its agent's own state, which is written after each turn, is left out."
    ),
    "ADK keeps an event, with ids and actions, where others keep a message, and checks that no one else has appended.",
    "obstore's puts are no log: no order, no check, and a client in Rust where the others reach S3 through Python.",
    "S3 is a server on the same machine: a request takes 1 to 10 ms there, and many times that in a cloud.",
]
"""What is not comparable."""


BEGIN, END = "<!-- made by python -m benchmarks.peers --page -->\n", "\n<!-- end of what was made -->"


def machine() -> dict[str, Any]:
    """Say where this runs."""
    model = [line for line in Path("/proc/cpuinfo").read_text().split("\n") if line.startswith("model name")]
    files = subprocess.run(["stat", "-f", "-c", "%T", gettempdir()], capture_output=True, text=True, check=True)
    return {
        "processor": model[0].partition(":")[2].strip() if model else platform.machine(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "files": files.stdout.strip(),
        "python": platform.python_version(),
    }


def versions(kinds: Iterable[Kind]) -> dict[str, str]:
    """Say which versions were measured."""
    packages = sorted({package for kind in kinds if not kind.missing for package in ("statestore", *kind.needs)})
    return {package: metadata.version(package) for package in packages} | {"sqlite": sqlite3.sqlite_version}


def missing(kinds: Iterable[Kind], served: bool) -> Iterator[Row]:
    """Yield a row for each operation that a kind cannot do, or not here, with the reason."""
    for kind in kinds:
        for operation in OPERATIONS:
            reason = kind.missing or ("" if served or not kind.bucket else "no S3 server here")
            if reason := reason or kind.cannot.get(operation.name, ""):
                yield {
                    "peer": kind.name,
                    "durability": kind.durability,
                    "operation": operation.name,
                    "note": reason,
                }


def tables(run: dict[str, Any]) -> Iterator[Table]:
    """Yield a table for each operation: those of one durability together, the fastest first."""
    for operation in OPERATIONS:
        rows = [row for row in run["rows"] if row["operation"] == operation.name]
        if not rows:
            continue
        table = Table(title=f"{operation.title}, µs", title_justify="left", title_style="bold")
        table.add_column("peer")
        for column in ("median", "p25 to p75", "ratio", "items", "syncs an item"):
            table.add_column(column, justify="right")
        table.add_column("note", overflow="fold")
        order = [row["durability"] for row in run["rows"]]
        for row in sorted(rows, key=lambda row: (order.index(row["durability"]), row["median_us"])):
            cells = [_us(row["median_us"]), f"{_us(row['p25_us'])} to {_us(row['p75_us'])}", _ratio(row["ratio"])]
            items = f"{row['items']:,}{'*' if row['capped'] else ''}"
            style = "bold" if row["peer"].startswith("statestore") else None
            cells += [items, _syncs(row["syncs_per_item"]), row["note"]]
            table.add_row(f"{row['peer']}, {row['durability']}", *cells, style=style)
        for row in run["missing"]:
            if row["operation"] == operation.name:
                table.add_row(f"{row['peer']}, {row['durability']}", *["-"] * 5, row["note"], style="dim")
        yield table


def markdown(run: dict[str, Any]) -> str:
    """Return what a page shows of a run: one table of all operations, and where it was."""
    found = {(row["peer"], row["durability"], row["operation"]): row for row in run["rows"]}
    peers = sorted({key[:2]: None for key in found}, key=lambda peer: _place(peer, run["rows"]))
    lines = [
        f"| peer | durability | {' | '.join(operation.name for operation in OPERATIONS)} | syncs |",
        f"| --- | --- |{' ---: |' * (len(OPERATIONS) + 1)}",
    ]
    for peer, durability in peers:
        rows = [found.get((peer, durability, operation.name)) for operation in OPERATIONS]
        told = next(row["syncs_per_item"] for row in rows if row)
        shown = f"**{peer}**" if peer.startswith("statestore") else peer
        lines.append(f"| {shown} | {durability} | {' | '.join(map(_cell, rows))} | {_syncs(told)} |")
    where, most = run["machine"], max(row["items"] for row in run["rows"])
    rounds = max(row["rounds"] for row in run["rows"])
    packages = ", ".join(f"{package} {version}" for package, version in run["versions"].items())
    facts = (
        f"Sessions of up to {most:,} messages, {rounds} rounds. {where['processor']}, {where['cores']} cores, "
        f"{where['system']}, {where['files']}, Python {where['python']}; load {where.get('load', '?')}. {packages}."
    )
    return "\n".join([*lines, "", _wrapped(facts)])


def page(text: str, run: dict[str, Any]) -> str:
    """Return a page with what it shows of a run renewed: what stands between its two marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}\n{markdown(run)}\n{END}{behind}"


def _place(peer: tuple[str, str], rows: Sequence[Row]) -> tuple[int, bool, int]:
    durabilities = [row["durability"] for row in rows]
    peers = [row["peer"] for row in rows]
    return durabilities.index(peer[1]), not peer[0].startswith("statestore"), peers.index(peer[0])


def _cell(row: Row | None) -> str:
    if row is None:
        return "-"
    ratio = "" if row["ratio"] in (None, 1) else f" ({_ratio(row['ratio'])})"
    capped = r"\*" if row["capped"] else ""
    return f"{_us(row['median_us'])}{capped}{ratio}"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _us(us: float) -> str:
    return f"{us:,.0f}" if us >= 100 else f"{us:.1f}" if us >= 10 else f"{us:.2f}"


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:,.0f}×" if ratio >= 100 else f"{ratio:.3g}×"


def _syncs(count: float | None) -> str:
    return "-" if count is None else f"{count:g}"
