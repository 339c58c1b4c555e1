"""Tables, pictures and parts of pages from what bench.papers.fagginger_auer.greedy has measured.

greedy_section_4.csv     means of section 4, beside the paper's
greedy_figure_2.svg, greedy_figure_3.svg, greedy_section_4.svg
greedy_times.txt         part of the page, with greedy_figure_4.svg and greedy_figure_5.svg
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench import harness, papers

KEYS = ("size", "weight of 1", "weight of 2")
PAPER_MEANS = ("more than 99 %", "115 %", "85 %")
# speed-ups of algorithm 3 that the paper reaches at most, over algorithm 1, 1 weighted, 2
PAPER_SPEED = {"TBB, 16 threads": (1.1, 0.7, 13), "CUDA, Tesla C2050": (6.8, 5.6, 37)}
PAIRS = (
    ("random, 1", "random, 3"), ("weighted, 1", "weighted, 3"), ("weighted, 2", "weighted, 3"),
)  # fmt: skip
BEST_PROBABILITY = 0.53406

Results = dict[str, Any]


def means(quality: Results) -> list[list[str]]:
    """Rows of the table of section 4: a mean over graphs, and the least and the most."""
    groups = {
        "matrices with weights": [row for row in quality.values() if row["own weights"]],
        "others, random weights": [row for row in quality.values() if not row["own weights"]],
        "all": list(quality.values()),
    }
    lines = []
    for title, rows in groups.items():
        if rows:
            cells = []
            for key in KEYS:
                values = [row[key] for row in rows]
                cells.append(f"{np.mean(values):.1%} ({min(values):.1%} to {max(values):.1%})")
            lines.append([title, str(len(rows)), *cells])
    return lines


def write(results: Results, folder: Path, source: Path | None) -> None:
    """All that can be made of the results."""
    if "section 4" in results:
        head = ["graphs", "how many", "size / 1", "weight / 1", "weight / 2"]
        rows = [*means(results["section 4"]), ["paper", "425 with weights", *PAPER_MEANS]]
        papers.table(folder / "greedy_section_4.csv", head, rows)
        draw_quality(results["section 4"], folder / "greedy_section_4.svg")
    if "figure 2" in results:
        draw_rounds(results["figure 2"], folder / "greedy_figure_2.svg")
    if "figure 3" in results:
        draw_effect(results["figure 3"], folder / "greedy_figure_3.svg")
    if any(key.startswith("figure 5") for key in results):
        (folder / "greedy_times.txt").write_text(times_page(results, folder, source), "utf-8")


def times_page(results: Results, folder: Path, source: Path | None) -> str:
    """Speed-ups of algorithm 3 over the others, and what was measured by threads."""
    text = ""
    heads = ["random, over 1", "weighted, over 1", "weighted, over 2"]
    rows = []
    for engine in ("cpu", "gpu"):
        for name, row in results.get(f"figure 5, {engine}", {}).items():
            seconds = row["seconds"]
            gains = [f"{seconds[old] / seconds[new]:.2f}" for old, new in PAIRS]
            rows.append([f"{name}, {engine}", f"{row['edges']:,}", *gains])
    most = [max(rows, key=lambda row: float(row[k])) for k in (2, 3, 4)]
    large = sorted(rows, key=lambda row: -int(row[1].replace(",", "")))[:12]
    shown = list(large)
    for row in most:  # one graph may have several of the largest gains
        if row not in shown:
            shown.append(row)
    shown += [[f"paper at most, {who}", "", *values] for who, values in PAPER_SPEED.items()]
    title = "Times as fast as algorithms 1 and 2: the largest graphs, and the largest gains"
    text += papers.page_table(title, ["graph", "edges", *heads], shown)
    draw_times(results, folder / "greedy_figure_5.svg")
    text += papers.page_picture("greedy_figure_5.svg", "Speed-up against the number of edges")
    if "figure 4" in results:
        draw_threads(results["figure 4"], folder / "greedy_figure_4.svg")
        text += papers.page_picture("greedy_figure_4.svg", "Time relative to one thread")
    machines = filter(None, (papers.machine(source, label) for label in ("cpu", "gpu")))
    where = "; ".join(machines) or "this machine"
    return text + f"Measured on {where}. The pictures are figures 4 and 5 of [1]_.\n"


def draw_rounds(found: Results, path: Path) -> None:
    fig, ax = harness.pyplot().subplots(figsize=(6.4, 3.6))
    for name, curve in found.items():
        shares = curve["shares"]
        label = f"{name} ({curve['edges']:,})"
        ax.plot(range(1, len(shares) + 1), shares, "o-", markersize=3, label=label)
    ax.set(xlabel="rounds", ylabel="share of matched vertices", ylim=(0, 1))
    ax.legend(fontsize=8, frameon=False)
    harness.save(fig, path)


def draw_effect(found: Results, path: Path) -> None:
    """Left what p does to the answer, to the rounds and to the time; right equation 2."""
    fig, axes = harness.pyplot().subplots(len(found), 2, figsize=(9, 3 * len(found)), squeeze=False)
    for (left, right), (name, figure) in zip(axes, found.items(), strict=True):
        rows = figure["rows"]
        p = [row["p"] for row in rows]
        for key in ("size", "weight", "rounds", "seconds"):
            if key in rows[0]:
                values = np.array([row[key] for row in rows], float)
                left.plot(p, 100 * values / values.max(), "o-", markersize=3, label=key)
        left.set_ylabel("% of the largest")
        right.plot(p, [row["first"] for row in rows], "o", label="first round")
        right.plot(p, [row["theory"] for row in rows], "-", label="equation 2")
        right.set_ylabel("share of matched vertices")
        for ax in (left, right):
            ax.axvline(BEST_PROBABILITY, color="0.8", zorder=0)
            ax.set(xlabel="p", title=name)
            ax.legend(fontsize=8, frameon=False)
    fig.tight_layout()
    harness.save(fig, path)


def draw_quality(quality: Results, path: Path) -> None:
    """Ratios against the number of edges, with one standard deviation to either side."""
    fig, axes = harness.pyplot().subplots(1, 3, figsize=(10, 3.2))
    titles = ("size / algorithm 1", "weight / algorithm 1", "weight / algorithm 2")
    paper = (0.99, 1.15, 0.85)
    for ax, key, title, mean in zip(axes, KEYS, titles, paper, strict=True):
        for own, label in ((True, "weights of the matrix"), (False, "random weights")):
            rows = [row for row in quality.values() if row["own weights"] == own]
            ax.errorbar(
                [row["edges"] for row in rows],
                [row[key] for row in rows],
                [row[f"{key}, deviation"] for row in rows],
                fmt="o",
                markersize=3,
                linewidth=0.8,
                label=label,
            )
        ax.axhline(mean, color="0.6", linestyle="--", zorder=0, label="paper, mean")
        ratios = [mean, *(row[key] for row in quality.values())]
        ax.set_ylim(min(ratios) - 0.03, max(ratios) + 0.03)  # a few deviations reach far beyond
        ax.set(xscale="log", xlabel="edges", title=title)
    axes[0].legend(fontsize=7, frameon=False)
    fig.tight_layout()
    harness.save(fig, path)


def draw_threads(found: Results, path: Path) -> None:
    fig, ax = harness.pyplot().subplots(figsize=(5.6, 3.4))
    for name, seconds in found.items():
        counts = sorted(map(int, seconds))
        ratio = [seconds[str(count)] / seconds["1"] for count in counts]
        ax.plot(counts, ratio, "o-", markersize=4, label=name)
    ax.plot(counts, [1 / count for count in counts], ":", color="0.6", label="perfect")
    ax.set(xscale="log", yscale="log", xlabel="threads", ylabel="time, one thread = 1")
    ax.set_xticks(counts, [str(count) for count in counts])
    ax.legend(fontsize=8, frameon=False)
    harness.save(fig, path)


def draw_times(results: Results, path: Path) -> None:
    fig, axes = harness.pyplot().subplots(1, 3, figsize=(10, 3.2), sharey=True)
    titles = ("random, over 1", "weighted, over 1", "weighted, over 2")
    for ax, (old, new), title in zip(axes, PAIRS, titles, strict=True):
        for engine in ("cpu", "gpu"):
            rows = list(results.get(f"figure 5, {engine}", {}).values())
            gain = [row["seconds"][old] / row["seconds"][new] for row in rows]
            if rows:
                ax.plot([row["edges"] for row in rows], gain, "o", markersize=3, label=engine)
        ax.axhline(1, color="0.5", linewidth=0.8)
        ax.set(xscale="log", yscale="log", xlabel="edges", title=title)
    axes[0].set_ylabel("times as fast")
    axes[0].legend(fontsize=8, frameon=False)
    fig.tight_layout()
    harness.save(fig, path)
