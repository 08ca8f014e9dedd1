"""The report as one page of HTML, with nothing to load: to be read by a person and sent to another."""

from __future__ import annotations

import unicodedata
from html import escape as _escape
from itertools import groupby
from typing import TYPE_CHECKING, Any

from statestore.conformance.registry import LEVELS

if TYPE_CHECKING:
    from statestore.conformance.report import Report

__all__ = ["page"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1e21; background: #fff; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem }
h1 { font-size: 1.4rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
.level { font-size: 2rem; font-weight: 600 } .none { color: #b3261e }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-top: 1px solid #e3e5e8 }
td.s { white-space: nowrap } .failed { color: #b3261e; font-weight: 600 } .passed { color: #1a7f37 }
.diverged { color: #8a5300 } .quiet { color: #6b7177 }
pre { background: #f5f6f7; padding: .75rem; overflow-x: auto; font-size: .85rem } code { font-size: .9em }
summary { cursor: pointer }
@media (prefers-color-scheme: dark) { body { background: #16181b; color: #e4e6e9 } pre { background: #202327 }
  td, th { border-color: #33373c } .none, .failed { color: #ff8a80 } .passed { color: #6fd08c }
  .diverged { color: #e8b35b } .quiet { color: #9aa0a6 } }
"""

_MANY = 5  # more names than these fold away

_RULE = (
    "One counts only where every clause of it that applies, and of all before it, has passed; "
    "a divergence or a clause that was not run lowers it."
)


def escape(text: str) -> str:
    """Return text as it may stand in the page: no markup, no control characters and none that turn its direction."""
    shown = (
        each if each == "\n" or each == " " or unicodedata.category(each)[0] not in "CZ" else ascii(each)[1:-1]
        for each in text
    )
    return _escape("".join(shown))


def page(report: Report, title: str) -> str:
    """Return the report as a page that needs nothing else. Nothing a store says can be markup in it."""
    data = report.to_dict()
    counts = ", ".join(f"{number} {status}" for status, number in data["counts"].items() if number)
    versions = ", ".join(f"{name} {value}" for name, value in data["versions"].items())
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}: conformance</title><style>{_STYLE}</style>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="level {"" if report.level else "none"}">Level: {escape(report.level_told())}</p>',
        f"<p>{escape(counts)}, in {data['seconds']:.1f} s.</p>",
        *(f"<p>{escape(remark)}</p>" for remark in report.remarks),
        f'<p class="quiet">Levels are earned in this order: {", ".join(LEVELS)}. {_RULE}</p>',
    ]
    parts += _failures(data) + _open_points(data) + _capabilities(data) + _clauses(data)
    parts.append(f'<p class="quiet">{escape(versions)}</p></html>')
    return "\n".join(parts) + "\n"


def _failures(data: dict[str, Any]) -> list[str]:
    failed = [row for row in data["clauses"] if row["status"] == "failed"]
    if not failed:
        return []
    parts = [f"<h2>What failed ({len(failed)})</h2>"]
    for row in failed:
        calls = "\n".join(row["trace"])
        left = row["calls"] - len(row["trace"])
        calls = f"... {left} calls before\n{calls}" if left > 0 else calls
        parts += [
            f'<p><span class="failed">{escape(row["clause"])}</span><br>{escape(row["reason"])}<br>',
            f'<span class="quiet">Who is hurt: {escape(row["hurts"])}</span></p>',
            f"<details><summary>The calls that led to it</summary><pre>{escape(calls)}</pre></details>"
            if calls
            else "",
            f"<details><summary>Where</summary><pre>{escape(row['where'])}</pre></details>" if row["where"] else "",
        ]
    return parts


def _open_points(data: dict[str, Any]) -> list[str]:
    rows = [row for row in data["clauses"] if row["status"] in ("diverged", "not run")]
    if not rows:
        return []
    rows.sort(key=lambda row: (row["status"], row["reason"]))
    parts = [f"<h2>What is not shown ({len(rows)})</h2><table>"]
    for (status, reason), some in groupby(rows, key=lambda row: (row["status"], row["reason"])):
        names = [escape(row["clause"]) for row in some]
        told = f'<span class="quiet">{", ".join(names)}</span>'
        if len(names) > _MANY:
            told = f"<details><summary>{len(names)} clauses</summary>{told}</details>"
        parts.append(f'<tr><td class="s {status}">{status}<td>{escape(reason)}<br>{told}')
    return [*parts, "</table>"]


def _capabilities(data: dict[str, Any]) -> list[str]:
    if not data["capabilities"]:
        return []
    parts = ["<h2>Capabilities</h2><table><tr><th>capability<th>declared<th>shown by"]
    for name, about in data["capabilities"].items():
        said = {True: "on", False: "off", None: "no limit"}.get(about["declared"], about["declared"])
        shown = ", ".join(about["shown_by"]) or "nothing"
        parts.append(f'<tr><td>{escape(name)}<td>{escape(str(said))}<td class="quiet">{escape(shown)}')
    return [*parts, "</table>"]


def _clauses(data: dict[str, Any]) -> list[str]:
    parts = [f"<h2>All clauses ({len(data['clauses'])})</h2><table><tr><th>outcome<th>clause<th>level<th>who is hurt"]
    for row in data["clauses"]:
        kind = row["status"] if row["status"] in ("passed", "failed", "diverged") else "quiet"
        parts.append(
            f'<tr><td class="s {kind}">{row["status"]}<td>{escape(row["clause"])}<td>{row["level"]}'
            f'<td class="quiet">{escape(row["hurts"])}'
        )
    return [*parts, "</table>"]
