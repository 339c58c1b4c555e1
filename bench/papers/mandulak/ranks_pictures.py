"""Pictures of what ranks.py has measured: figures 6.3 to 6.8 of the thesis on our ranks.

``python -m bench.papers.mandulak.ranks_pictures rows.json [rows.json ...] --out FOLDER``

    clusters_strong    seconds on more and more ranks (6.3, 6.8)
    clusters_shares    computing and communicating (6.5)
    clusters_weak      as many vertices on each rank: times of one rank (6.4)
    clusters_variants  components by colours with each improvement, and ours (6.6)
    clusters_shapes    all R x C of the ranks, times of the fastest (6.7)
    clusters_one_host  six functions on graphs of any diameter: how much faster than one rank, by
                       the first rank for all, and by all of them (engines/ranks/one_host.py)

An experiment that no file has is not drawn.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import harness

Row = dict[str, Any]


def _algorithms(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["algorithm"] for row in rows))


def _of(rows: list[Row], **facts: Any) -> list[Row]:
    """The rows with these facts, by ranks."""
    found = [row for row in rows if all(row[name] == value for name, value in facts.items())]
    return sorted(found, key=lambda row: row["ranks"])


def strong(found: dict[str, list[Row]]) -> Any:
    """Seconds by ranks, a line for each algorithm; a slope of one is drawn in grey."""
    rows = [*found.get("strong", []), *found.get("complex", [])]
    figure, axes = harness.pyplot().subplots(figsize=(6, 4))
    for algorithm in _algorithms(rows):
        line = _of(rows, algorithm=algorithm)
        ranks, times = zip(*((row["ranks"], row["seconds"]) for row in line), strict=True)
        axes.loglog(ranks, times, "o-", label=algorithm)
        axes.loglog(ranks, [times[0] * ranks[0] / k for k in ranks], color="grey", linewidth=0.5)
    counts = sorted({row["ranks"] for row in rows})
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.set(xlabel="ranks", ylabel="seconds", title=rows[0]["graph"])
    axes.legend()
    return figure


def shares(found: dict[str, list[Row]]) -> Any:
    """Milliseconds of computing and communicating, a panel for each algorithm."""
    rows = found["strong"]
    algorithms = _algorithms(rows)
    figure, panels = harness.pyplot().subplots(
        1, len(algorithms), figsize=(3.2 * len(algorithms), 3.5)
    )
    for axes, algorithm in zip(panels, algorithms, strict=True):
        line = _of(rows, algorithm=algorithm)
        names = [str(row["ranks"]) for row in line]
        computing = [1e3 * row["computing"] for row in line]
        talking = [1e3 * (row["seconds"] - row["computing"]) for row in line]
        axes.bar(names, computing, label="computing")
        axes.bar(names, talking, bottom=computing, label="communicating, waiting")
        axes.set(title=algorithm, xlabel="ranks")
    panels[0].set_ylabel("ms")
    panels[0].legend(fontsize=8)
    return figure


def weak(found: dict[str, list[Row]]) -> Any:
    """Times of one rank, where every rank has as many vertices."""
    rows = found["weak"]
    figure, axes = harness.pyplot().subplots(figsize=(6, 3.5))
    kinds = list(dict.fromkeys(row["graph"].split()[0] for row in rows))
    for kind, style in zip(kinds, ("o-", "s--"), strict=True):
        chosen = [row for row in rows if row["graph"].split()[0] == kind]
        for number, algorithm in enumerate(_algorithms(chosen)):
            line = _of(chosen, algorithm=algorithm)
            times = [row["seconds"] / line[0]["seconds"] for row in line]
            ranks = [row["ranks"] for row in line]
            axes.plot(ranks, times, style, color=f"C{number}", label=f"{algorithm}, {kind}")
    axes.set(xlabel="ranks", ylabel="times of one rank", ylim=(0, None))
    axes.legend(fontsize=8)
    return figure


def variants(found: dict[str, list[Row]]) -> Any:
    """How much faster than the base of the thesis, with its exchange and with ours."""
    rows = [row for row in found["variants"] if row["algorithm"] != "pagerank"]
    base = next(row for row in rows if row["exchange"] == "thesis")["seconds"]
    figure, axes = harness.pyplot().subplots(figsize=(7, 3.5))
    drawn = [*_of(rows, exchange="thesis"), *_of(rows, exchange="own")]
    names = [
        row["algorithm"].removeprefix("colour/") + ("\n(its exchange)" if k == 0 else "")
        for k, row in enumerate(drawn)
    ]
    bars = axes.bar(names, [base / row["seconds"] for row in drawn])
    axes.bar_label(bars, [f"{base / row['seconds']:.1f}" for row in drawn])
    axes.set(ylabel="times as fast", title=f"components, {rows[0]['graph']}")
    axes.tick_params(axis="x", labelsize=8)
    return figure


def shapes(found: dict[str, list[Row]]) -> Any:
    """Each grid against the fastest, a group of bars for each algorithm."""
    rows = found["shapes"]
    algorithms, grids = _algorithms(rows), list(dict.fromkeys(row["grid"] for row in rows))
    figure, axes = harness.pyplot().subplots(figsize=(7, 3.5))
    width = 0.8 / len(algorithms)
    for number, algorithm in enumerate(algorithms):
        seconds = {row["grid"]: row["seconds"] for row in _of(rows, algorithm=algorithm)}
        least = min(seconds.values())
        places = [k + number * width for k in range(len(grids))]
        axes.bar(places, [seconds[grid] / least for grid in grids], width, label=algorithm)
    axes.set_xticks([k + 0.4 - width / 2 for k in range(len(grids))], grids)
    axes.set(xlabel="R x C", ylabel="times of the fastest", title=rows[0]["graph"])
    axes.legend(fontsize=8)
    return figure


def one_host(found: dict[str, list[Row]]) -> Any:
    """One rank's time over that of more, a panel for each graph; dashed where all ranks work."""
    rows = [row for row in found["one_host"] if row["threads"] == 1]
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    figure, panels = harness.pyplot().subplots(
        1, len(graphs), figsize=(3.2 * len(graphs), 3.5), squeeze=False, sharey=True
    )
    for axes, graph in zip(panels[0], graphs, strict=True):
        for number, algorithm in enumerate(_algorithms(rows)):
            line = _of(rows, graph=graph, algorithm=algorithm)
            everywhere = _of(
                found.get("all_ranks", []), graph=graph, algorithm=algorithm, threads=1
            )
            if not line:
                continue
            alone = line[0]["seconds"]
            for chosen, style in ((line, "o-"), ([line[0], *everywhere], "x--")):
                ranks = [row["ranks"] for row in chosen]
                label = algorithm if style == "o-" else None
                times = [alone / row["seconds"] for row in chosen]
                axes.plot(ranks, times, style, color=f"C{number}", label=label)
        axes.axhline(1, color="grey", linewidth=0.5)
        axes.set(xscale="log", yscale="log", xlabel="ranks", title=graph)
        counts = sorted({row["ranks"] for row in rows})
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.minorticks_off()
    panels[0, 0].set_ylabel("times as fast as one rank")
    panels[0, 0].legend(fontsize=7)
    return figure


PICTURES: dict[str, Callable[[dict[str, list[Row]]], Any]] = {
    "strong": strong, "weak": weak, "variants": variants, "shapes": shapes, "one_host": one_host,
}  # fmt: skip


def draw(found: dict[str, list[Row]], folder: Path) -> None:
    """A picture for each experiment of which there are rows."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {name: make for name, make in PICTURES.items() if found.get(name)}
    if "strong" in drawn:
        drawn["shares"] = shares
    for name, make in drawn.items():
        figure = make(found)
        figure.tight_layout()
        harness.save(figure, folder / f"clusters_{name}.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", type=Path, nargs="+", help="what ranks.py --json wrote")
    parser.add_argument("--out", type=Path, required=True, help="folder for the pictures")
    options = parser.parse_args()
    found: dict[str, list[Row]] = {}
    for path in options.rows:
        found |= json.loads(path.read_text())["figures"]
    found.setdefault("strong", found.pop("bars", []))  # the same, and matchings
    draw(found, options.out)


if __name__ == "__main__":
    main()
