"""Tables 2.2 and 2.3 and figures 2.1 to 2.3 of the thesis, from what orders.py wrote.

    python -m bench.papers.mandulak.orders_figures [--folder docs/_static/measured]

A gain is the median of the natural order over that of another.  What lies inside the noise is not
told: the natural order was measured twice, and a gain counts where it is farther from 1 than the
two medians are from each other, and than the quartiles of all their runs.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench import harness
from bench.papers.mandulak.orders import AGAIN, ANALYTICS, NATURAL
from bench.papers.mandulak.orders_cache import CACHES

NAME = "orders_thesis.json"
HOMES = {"cpu": "16 threads", "gpu": "GPU"}
THESIS_22 = {  # Pearson's correlations with the linear and the log gap
    "pagerank": {"misses": (0.2568, 0.3196), "seconds": (0.7041, 0.8796)},
    "multistep": {"misses": (-0.0005, -0.0006), "seconds": (0.0088, 0.0090)},
    "louvain": {"misses": (-0.0093, -0.0007), "seconds": (0.0387, 0.0477)},
}
THESIS_23 = {  # gains: misses of all caches, misses of L1, time
    "LLP": (0.991, 1.002, 1.637), "LLP+lin": (1.053, 1.005, 1.623),
    "LLP+log": (1.056, 1.007, 1.593), "Rabbit": (1.002, 0.999, 1.933),
    "Rabbit+lin": (1.144, 1.017, 2.025), "Rabbit+log": (1.137, 1.031, 1.973),
    "Shingle": (1.017, 1.018, 1.317), "Shingle+lin": (1.043, 0.986, 1.336),
    "Shingle+log": (1.050, 1.026, 1.340), "natural+lin": (1.054, 1.007, 1.479),
    "natural+log": (1.058, 0.992, 1.458),
}  # fmt: skip
NONE = 0.001  # of all reads: where fewer miss, nothing is left to gain
Found = dict[str, Any]


def times_of(graph: Found, order: str, home: str, analytic: str) -> Any:
    return np.log(graph["orders"][order]["seconds"][home][analytic])


def is_there(graph: Found, home: str, analytic: str) -> bool:
    return bool(graph["orders"][NATURAL]["seconds"].get(home, {}).get(analytic))


def homes_of(found: Found) -> list[str]:
    """Where something was timed."""
    graphs = found["graphs"].values()
    return [h for h in HOMES if any(is_there(g, h, a) for g in graphs for a in ANALYTICS)]


def gain(graph: Found, order: str, home: str, analytic: str) -> float:
    """How many times as fast as in the natural order; a logarithm."""
    both = [times_of(graph, name, home, analytic) for name in (NATURAL, AGAIN)]
    natural = both[0] if order == AGAIN else np.concatenate(both)
    return float(np.median(natural) - np.median(times_of(graph, order, home, analytic)))


def noise(graph: Found, home: str, analytic: str) -> float:
    """The least gain that says something; a logarithm."""
    both = np.concatenate([times_of(graph, name, home, analytic) for name in (NATURAL, AGAIN)])
    low, high = np.quantile(both, (0.25, 0.75))
    return max(abs(gain(graph, AGAIN, home, analytic)), float(high - low))


def fewer_misses(graph: Found, order: str, cache: str, analytic: str) -> float:
    """How many times fewer than in the natural order; a logarithm."""
    natural, other = (
        max(graph["orders"][name]["misses"][analytic][cache], NONE) for name in (NATURAL, order)
    )
    return math.log(natural / other)


def orders_of(found: Found) -> list[str]:
    names: dict[str, None] = {}
    for graph in found["graphs"].values():
        names |= dict.fromkeys(graph["orders"])
    return [name for name in names if name != NATURAL]


def correlations(found: Found) -> Iterator[list[str]]:
    """Table 2.2: of gaps with misses and seconds, all relative to the graph's worst."""
    yield ["analytic", "what", "linear gap", "log gap", "thesis, linear", "thesis, log"]
    for analytic in ANALYTICS:
        for what in (*CACHES, *homes_of(found)):
            cells = []
            for metric in ("linear_gap", "log_gap"):
                x, y = [], []
                for graph in found["graphs"].values():
                    if what in HOMES and not is_there(graph, what, analytic):
                        continue
                    rows = [row for name, row in graph["orders"].items() if name != AGAIN]
                    one = [row[metric] for row in rows]
                    other = [
                        row["misses"][analytic][what]
                        if what in CACHES
                        else float(np.median(row["seconds"][what][analytic]))
                        for row in rows
                    ]
                    x += [value / max(one) for value in one]
                    y += [value / max(other) for value in other]
                cells.append(f"{np.corrcoef(x, y)[0, 1]:.2f}")
            kind = "misses" if what in CACHES else "seconds"
            thesis = THESIS_22[analytic][kind] if what in ("L1", "cpu") else ("", "")
            told = f"misses of {what}" if what in CACHES else f"seconds, {HOMES[what]}"
            yield [analytic, told, *cells, *(str(value) for value in thesis)]


def improvements(found: Found, names: Iterable[str]) -> Iterator[list[str]]:
    """Table 2.3: geometric means over graphs and analytics.  In brackets: inside the noise.

    Of graphs that have the order; all refined ones are there together.
    """
    yield ["order", "graphs", *(f"misses of {cache}" for cache in CACHES),
           *(f"speed, {HOMES[home]}" for home in homes_of(found)),
           "beyond the noise, of", "thesis, misses", "thesis, L1", "thesis, time"]  # fmt: skip
    for order in names:
        graphs = [graph for graph in found["graphs"].values() if order in graph["orders"]]
        cells = []
        for cache in CACHES:
            fewer = [fewer_misses(g, order, cache, a) for g in graphs for a in ANALYTICS]
            cells.append(f"{math.exp(np.mean(fewer)):.2f}")
        beyond = total = 0
        for home in homes_of(found):
            gains, bars = [], []
            for graph in graphs:
                for analytic in ANALYTICS:
                    if not is_there(graph, home, analytic):
                        continue
                    gains.append(gain(graph, order, home, analytic))
                    bars.append(noise(graph, home, analytic))
            beyond += sum(abs(g) > bar for g, bar in zip(gains, bars, strict=True))
            total += len(gains)
            mean = f"{math.exp(np.mean(gains)):.2f}"
            cells.append(mean if abs(np.mean(gains)) > np.mean(bars) else f"({mean})")
        thesis = THESIS_23.get(order, ("", "", ""))
        yield [order, str(len(graphs)), *cells, f"{beyond} of {total}", *map(str, thesis)]


def speeds(found: Found) -> Iterator[list[str]]:
    """Gains of the plain orders by graph and analytic; in brackets those inside the noise."""
    plain = [name for name in orders_of(found) if "+" not in name]
    yield ["graph", "analytic", "where", "natural", "noise", *plain]
    for name, graph in found["graphs"].items():
        for analytic in ANALYTICS:
            for home, where in HOMES.items():
                if not is_there(graph, home, analytic):
                    continue
                bar = noise(graph, home, analytic)
                median = float(np.median(graph["orders"][NATURAL]["seconds"][home][analytic]))
                cells = []
                for order in plain:
                    if order not in graph["orders"]:
                        cells.append("")
                        continue
                    value = gain(graph, order, home, analytic)
                    told = f"{math.exp(value):.2f}"
                    cells.append(told if abs(value) > bar else f"({told})")
                yield [name, analytic, where, f"{1e3 * median:.3g} ms", f"{math.exp(bar):.2f}",
                       *cells]  # fmt: skip


def prices(found: Found) -> Iterator[list[str]]:
    """Milliseconds to make each order, and misses of PageRank."""
    plain = [name for name in orders_of(found) if "+" not in name and name != AGAIN]
    yield ["graph", "what", NATURAL, *plain]
    for name, graph in found["graphs"].items():
        rows = graph["orders"]
        made = [rows[order]["seconds to make"] if order in rows else 0 for order in plain]
        yield [name, "ms to make it", "", *(f"{1e3 * s:.3g}" if s else "" for s in made)]
        for cache in CACHES:
            missed = [
                f"{rows[order]['misses']['pagerank'][cache]:.3f}" if order in rows else ""
                for order in (NATURAL, *plain)
            ]
            yield [name, f"misses of {cache}, PageRank", *missed]


def steps(found: Found) -> Iterator[list[str]]:
    """Refinement: what falls with the first percent and with five, and the largest single step."""
    yield ["graph", "order, metric", "0.1 %", "1 %", "5 %", "largest step", "times the mean rate"]
    for name, row in found["refinement"].items():
        parts = row["fractions"]
        for what, falls in row["falls"].items():
            before = [0.0, *falls[:-1]]
            widths = np.diff([0.0, *parts])
            rates = np.array([b - a for a, b in zip(before, falls, strict=True)]) / widths
            k = int(np.argmax(rates))
            mean = falls[-1] / parts[-1]
            at = parts.index(0.01)
            begun = parts[k - 1] if k else 0.0
            yield [name, what, *(f"{falls[i]:.3f}" for i in (0, at, -1)),
                   f"{100 * begun:g} to {100 * parts[k]:g} %",
                   f"{rates[k] / mean:.1f}" if mean > 0 else ""]  # fmt: skip


def draw(found: Found, folder: Path) -> Iterator[Path]:
    """Figures 2.1 to 2.3, and refinement by fraction."""
    plt = harness.pyplot()
    names = orders_of(found)
    homes = homes_of(found)
    for analytic in ANALYTICS:
        figure, axes = plt.subplots(len(homes) + 1, 1, figsize=(11, 2.5 + 2.5 * len(homes)),
                                    sharex=True)  # fmt: skip
        many = len(found["graphs"])
        for k, (graph_name, graph) in enumerate(found["graphs"].items()):
            here = [(i, name) for i, name in enumerate(names) if name in graph["orders"]]
            at = np.array([i for i, _ in here]) + (k - (many - 1) / 2) * 0.8 / many
            look: dict[str, Any] = {"width": 0.8 / many, "bottom": 1, "color": f"C{k}"}
            for ax, home in zip(axes, homes, strict=False):
                if not is_there(graph, home, analytic):
                    continue
                heights = np.exp([gain(graph, name, home, analytic) for _, name in here])
                spread = np.array([
                    np.quantile(times_of(graph, name, home, analytic), (0.25, 0.5, 0.75))
                    for _, name in here
                ])  # fmt: skip
                low = heights * (1 - np.exp(spread[:, 1] - spread[:, 2]))
                high = heights * (np.exp(spread[:, 1] - spread[:, 0]) - 1)
                ax.bar(at, heights - 1, yerr=(low, high), error_kw={"linewidth": 0.6}, **look)
            fewer = np.exp([fewer_misses(graph, name, "L2", analytic) for _, name in here])
            axes[-1].bar(at, fewer - 1, label=graph_name, **look)
        labels = [*(f"speed, {HOMES[home]}" for home in homes), "fewer misses, L2"]
        for ax, label in zip(axes, labels, strict=True):
            ax.axhline(1.0, color="black", linewidth=0.6)
            ax.set(ylabel=label, yscale="log")
        axes[-1].set_xticks(range(len(names)), names, rotation=60)
        axes[-1].legend(fontsize=7, ncols=many, loc="lower left")
        figure.tight_layout()
        yield _saved(figure, folder / f"orders_{analytic}.svg")
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
    for ax, metric in zip(axes, ("linear_gap", "log_gap"), strict=True):
        for name, row in found["refinement"].items():
            falls = row["falls"][f"natural, {metric}"]
            ax.plot([100 * p for p in row["fractions"]], falls, marker=".", label=name)
        ax.set(xscale="log", yscale="log", xlabel="% of the vertices", title=metric)
    axes[0].set_ylabel("falls by, %")
    axes[1].legend(fontsize=7, frameon=False)
    figure.tight_layout()
    yield _saved(figure, folder / "orders_refinement.svg")


def _saved(figure: Any, path: Path) -> Path:
    harness.save(figure, path)
    return path


def tables(found: Found, folder: Path) -> Iterator[Path]:
    names = orders_of(found)
    for name, rows in (
        ("table_2_2", correlations(found)), ("table_2_3", improvements(found, names)),
        ("speeds", speeds(found)), ("prices", prices(found)), ("steps", steps(found)),
    ):  # fmt: skip
        path = folder / f"orders_{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        yield path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    folder = harness.ROOT / "docs" / "_static" / "measured"
    parser.add_argument("--folder", type=Path, default=folder, help=f"of {NAME}, and for the rest")
    folder = parser.parse_args().folder
    found = json.loads((folder / NAME).read_text())
    for written in (*tables(found, folder), *draw(found, folder)):
        print(written)


if __name__ == "__main__":
    main()
