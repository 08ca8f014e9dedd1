"""Draw the charts of the README and of docs/performance.md from recorded runs: ``python -m benchmarks.charts``.

Each chart is one SVG in docs/charts, made of one file in benchmarks/recorded, whose digest it carries: a test tells
charts that are older than their run. Text stays text, and the colours follow the reader's light or dark scheme. The
same run gives the same bytes with the same matplotlib, which the extra ``[bench]`` pins.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

__all__ = ["CHARTS", "Chart", "RECORDED", "draw", "main"]

ROOT = Path(__file__).parent.parent
RECORDED = ROOT / "benchmarks" / "recorded"

Row = dict[str, Any]
Chart = Callable[[dict[str, Any]], Any]

# Paper, ink and lines are only these, so that a style sheet can exchange them; the rest is legible on both papers.
PAPER, INK, FAINT, LINE = "#ffffff", "#1f2328", "#59636e", "#d1d9e0"
DARK = {PAPER: "#0d1117", INK: "#f0f6fc", FAINT: "#9198a1", LINE: "#3d444d"}
BLUE, ORANGE, GREEN, PURPLE, GREY, RED = "#2f81f7", "#d9730d", "#1a9e77", "#a371f7", "#8b949e", "#e5534b"

STORES = {"local": (BLUE, "o-"), "memory": (GREY, "o-"), "s3": (ORANGE, "o-"), "s3, compacted": (GREEN, "o--")}
GROWING = (
    *("append a record", "open to append", "last(10)", "fork at the middle"),
    *("load a session", "start a session", "list", "list a page of 100"),
    *("change it again", "change a conversation", "recent 5 messages", "load a conversation"),
)
DURABILITIES = {"always": "synced each time", "never": "not synced", "memory": "in memory", "bucket": "on S3"}
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "statestore",
    "font.family": ["DejaVu Sans"],
    "font.size": 8.5,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "axes.edgecolor": LINE,
    "axes.labelcolor": FAINT,
    "axes.titlecolor": INK,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": FAINT,
    "ytick.labelcolor": FAINT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "text.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
    "lines.markeredgewidth": 0,
}


def panels(rows: int, columns: int, size: tuple[float, float], **more: Any) -> tuple[Any, list[Any]]:
    """Return a figure and its panels, from the upper left to the lower right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, **more).flat)
    for axis in axes:
        axis.set(xscale="log")
    return figure, axes


def growth(run: dict[str, Any]) -> Any:
    """Time against size: a panel an operation, a line a store."""
    figure, axes = panels(3, 4, (10, 6.2), sharex=True, sharey=True)
    of = {row["operation"]: row["of"] for row in run["rows"]}
    for axis, name in zip(axes, GROWING, strict=True):
        for store, (colour, line) in STORES.items():
            sizes, low, middle, high = _curve(run["rows"], name, store, "size", "p25_us", "median_us", "p75_us")
            axis.vlines(sizes, low, high, color=colour, alpha=0.3, lw=4)
            axis.plot(sizes, middle, line, color=colour, label=store)
        axis.set(yscale="log", title=name)
        axis.set_title(of.get(name, ""), loc="right", color=FAINT, size=7.5, weight="normal")
        axis.set_yticks([10, 1e3, 1e5, 1e7], ["10 µs", "1 ms", "0.1 s", "10 s"])
        axis.xaxis.set_major_formatter(_number)
    _legend(figure, axes[0])
    return figure


def requests(run: dict[str, Any]) -> Any:
    """Requests against appends: logs that were not compacted, and those that were."""
    colours = {
        "fork at the middle": PURPLE,
        "load a session": ORANGE,
        "recent 5 messages": GREEN,
        "last(10)": BLUE,
        "append a record": GREY,
    }
    figure, axes = panels(1, 2, (10, 3.3), sharey=True)
    for axis, store in zip(axes, ("s3", "s3, compacted"), strict=True):
        for name, colour in colours.items():
            sizes, asked = _curve(run["rows"], name, store, "size", "requests")
            axis.plot(sizes, asked, "o-", color=colour, label=name)
        axis.set(yscale="log", xlabel="appends", title="compacted" if store != "s3" else "one object an append")
        axis.xaxis.set_major_formatter(_number)
        axis.yaxis.set_major_formatter(_number)
    axes[0].set(ylabel="requests")
    _legend(figure, axes[0])
    return figure


def floors(run: dict[str, Any]) -> Any:
    """Ratios to the least that could do the work, beside the bars that are set for them."""
    # What is set beside a whole reading, which it spares, is beside no floor.
    rows = [row for row in run["rows"] if row["ratio"] > 0.1]
    figure, (axis,) = panels(1, 1, (10, 0.6 + 0.27 * len(rows)))
    for place, row in enumerate(rows):
        bar, ratio = row["bar"], row["ratio"]
        over = bar is not None and ratio > bar
        axis.barh(place, ratio - 1, left=1, height=0.62, color=RED if over else BLUE)
        text = f"{ratio:.2f}"
        if bar is not None:
            axis.plot([bar, bar], [place - 0.42, place + 0.42], color=INK, lw=2, solid_capstyle="butt")
            text += f", {'over' if over else 'bar'} {bar:.1f}"
        axis.text(max(ratio, bar or 1, 1) * 1.03, place, f"{text}  ({row['against']})", va="center", size=8)
    most = max(max(row["ratio"], row["bar"] or 0) for row in rows)
    axis.set(xlabel="times the floor", xlim=(min(0.9, *(row["ratio"] for row in rows)), 2.2 * most))
    axis.set_yticks(range(len(rows)), [re.sub(r"\[(.*)\]", r" (\1)", row["name"].replace("_", " ")) for row in rows])
    ticks = [tick for tick in (1, 1.5, 2, 3, 5, 10, 20) if tick <= 1.2 * most]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    _bars(axis)
    return figure


def peers(run: dict[str, Any]) -> Any:
    """What others take for the same work: a panel an operation, in it a group a durability, the fastest first."""
    from benchmarks.peers.operations import OPERATIONS

    shown = [(each.title, _grouped(run["rows"], each.name)) for each in OPERATIONS]
    shown = [(title, bars) for title, bars in shown if bars]
    lines, deepest = -(-len(shown) // 2), max(len(bars) for _, bars in shown)
    figure, axes = panels(lines, 2, (10, lines * (0.6 + 0.17 * deepest)))
    for axis, (title, bars) in zip(axes, shown, strict=False):
        rows = [row for row in bars if isinstance(row, dict)]
        axis.set_title(title, loc="right")
        axis.set_xlim(0.5 * min(row["p25_us"] for row in rows), 14 * max(row["p75_us"] for row in rows))
        axis.set_yticks(range(len(bars)), [row if isinstance(row, str) else row["peer"] for row in bars])
        for place, (label, row) in enumerate(zip(axis.get_yticklabels(), bars, strict=True)):
            if isinstance(row, str):
                label.set(color=INK, weight="bold")
                continue
            ours, middle = "statestore" in row["peer"], row["median_us"]
            if ours:
                label.set(color=BLUE, weight="bold")
            axis.barh(place, middle, height=0.66, color=BLUE if ours else GREY)
            axis.plot([row["p25_us"], row["p75_us"]], [place, place], color=INK, lw=1)
            text = _time(middle)
            if row["ratio"] not in (None, 1):
                text += f"  ×{row['ratio']:.2g}" if row["ratio"] < 99 else f"  ×{row['ratio']:.0f}"
            axis.text(max(middle, row["p75_us"]) * 1.1, place, text, va="center", size=7.5)
        axis.xaxis.set_major_formatter(lambda us, _: _time(us))
        axis.set_ylim(-0.6, deepest - 0.4)
        _bars(axis)
    for axis in axes[len(shown) :]:
        axis.set_axis_off()
    return figure


def _grouped(rows: Sequence[Row], operation: str) -> list[Row | str]:
    """Return the rows of an operation, those of each durability behind its title."""
    bars: list[Row | str] = []
    for durability, title in DURABILITIES.items():
        group = [row for row in rows if (row["operation"], row["durability"]) == (operation, durability)]
        if group:
            bars += [title, *sorted(group, key=lambda row: row["median_us"])]
    return bars


CHARTS: dict[str, tuple[str, Chart, str]] = {
    "growth.svg": ("growth.json", growth, "How the time of each operation grows with size"),
    "requests.svg": ("growth.json", requests, "Requests of each operation on S3, by the number of appends"),
    "floors.svg": ("floors.json", floors, "Times of operations as multiples of the least that could do the work"),
    "peers.svg": ("peers.json", peers, "Times of the same work in statestore and in its peers"),
}
"""Each chart's file, the recorded run that it is made of, what draws it, and its title."""


def draw(chart: str, recorded: Path = RECORDED) -> bytes:
    """Return a chart as SVG."""
    import matplotlib as mpl

    source, make, title = CHARTS[chart]
    data = (recorded / source).read_bytes()
    with mpl.rc_context(STYLE), io.BytesIO() as file:
        figure = make(json.loads(data))
        for axis in figure.axes:
            axis.minorticks_off()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        svg = file.getvalue().decode()
    return _finished(svg, title, source, sha256(data).hexdigest()).encode()


def _finished(svg: str, title: str, source: str, digest: str) -> str:
    """Add the title, the digest and the colours of the dark scheme; leave out what no reader sees."""
    svg = re.sub(r"(?s)<metadata>.*?</metadata>|<!--.*?-->|<!DOCTYPE.*?>\n|<style.*?</style>", "", svg)
    svg = re.sub(r'<g id="[a-z_]*line2d_\d+"/>|(?<=<g) id="[^"]*"| transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), svg)
    svg = re.sub(r"\s*\n\s*", "\n", svg)
    groups = 1
    while groups:
        svg, groups = re.subn(r"(?s)<g>\n((?:(?!</?g\b).)*)</g>\n", r"\1", svg)
    styles = list(dict.fromkeys(re.findall(r'style="([^"]*)"', svg)))
    svg = re.sub(r'style="([^"]*)"', lambda style: f'class="s{styles.index(style[1])}"', svg)
    light = [style.replace("'DejaVu Sans'", 'system-ui, "DejaVu Sans", sans-serif') for style in styles]
    dark = [re.sub("|".join(DARK), lambda colour: DARK[colour[0]], style) for style in light]
    rules = [f".s{place} {{ {style} }}" for place, style in enumerate(light)]
    changed = [f".s{place} {{ {style} }}" for place, style in enumerate(dark) if style != light[place]]
    sheet = "\n".join([*rules, "@media (prefers-color-scheme: dark) {", *changed, "}"])
    head = f"<title>{escape(title)}</title>\n<desc>made of {source} sha256:{digest}</desc>\n<style>\n{sheet}\n</style>"
    return re.sub(r"(?s)(<svg [^>]*?)>", lambda tag: f'{tag[1]} role="img">\n{head}', svg, count=1)


def _curve(rows: Sequence[Row], operation: str, store: str, *wanted: str) -> list[list[float]]:
    """Return columns of the rows of one curve."""
    curve = [row for row in rows if row["operation"] == operation and row["store"] == store]
    curve.sort(key=lambda row: row["size"])
    return [[row[name] for row in curve] for name in wanted]


def _bars(axis: Any) -> None:
    """Set up a panel of horizontal bars, the first one at the top."""
    axis.invert_yaxis()
    axis.grid(visible=False, axis="y")
    axis.spines["left"].set_visible(False)


def _number(value: float, _: object = None) -> str:
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"


def _time(us: float) -> str:
    return f"{us / 1e6:.3g} s" if us >= 1e6 else f"{us / 1e3:.3g} ms" if us >= 1e3 else f"{us:.3g} µs"


def _legend(figure: Any, axis: Any) -> None:
    lines, names = axis.get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper left", ncols=len(names), labelcolor=INK)


def main() -> None:
    """Draw all charts whose run was recorded."""
    folder = ROOT / "docs" / "charts"
    folder.mkdir(parents=True, exist_ok=True)
    for chart, (source, _, _) in CHARTS.items():
        if (RECORDED / source).exists():
            data = draw(chart)
            (folder / chart).write_bytes(data)
            print(f"docs/charts/{chart}: {len(data):,} bytes")
        else:
            print(f"docs/charts/{chart}: not drawn, benchmarks/recorded/{source} was not recorded")


if __name__ == "__main__":
    main()
