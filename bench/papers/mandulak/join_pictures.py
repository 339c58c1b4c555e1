"""Tables (csv) and pictures (svg) of the chapter, from what join.py measured."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.papers.mandulak import join_printed as thesis

COLOURS = {"HG": "0.35", "EV": "0.65", "GD": "C1", "LD": "C2", "PS": "C3", "certified": "C0"}
SCALED = ("Yelp sample", "Debian dependencies", "kosarak head", "TREC abstracts",
          "generated, long sets")  # fmt: skip
SHOWN_TRUTH = ("jaccard", "edit", "equal")


# Tables


def tables(found: dict[str, Any], path: Path) -> Iterator[Path]:
    """One csv file for each table."""
    made = {
        "table_5_1": _sizes(found),
        "figure_5_3": _seconds(found["runs"], " 100 %"),
        "edit": _seconds({f"{name}, 100 %": run for name, run in found["edit"].items()}, " 100 %"),
        "table_5_2": _accuracy(found),
        "truth": _truth(found),
        "memory": _memory(found),
        "thesis_times": _thesis_times(),
        "thesis_accuracy": _thesis_accuracy(),
    }
    for name, rows in made.items():
        target = path.with_name(f"{path.stem}_{name}.csv")
        with target.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        yield target


def _sizes(found: dict[str, Any]) -> Iterator[list[Any]]:
    yield [
        "collection",
        "sets",
        "elements a set",
        "most",
        "distinct elements",
        "sets that are used",
    ]
    for name, row in found["table 5.1"].items():
        yield [
            name, f"{row['sets']:,}", f"{row['average']:.1f}", row["largest"],
            f"{row['elements']:,}", f"{row['used']:,}",
        ]  # fmt: skip


def _seconds(runs: dict[str, Any], which: str) -> Iterator[list[Any]]:
    yield ["collection", "pairs", "verified", *COLOURS]
    for name, run in runs.items():
        if not name.endswith("," + which):
            continue
        methods = run["methods"]
        cells = [
            f"{_told(methods[m]['total'])} / {_told(methods[m]['verification'])}" for m in COLOURS
        ]
        yield [
            name[: -len(which) - 1], f"{methods['certified']['pairs']:,}", f"{run['verified']:,}",
            *cells,
        ]  # fmt: skip


def _told(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.2f} s"


def _accuracy(found: dict[str, Any]) -> Iterator[list[Any]]:
    columns = [f"{name}, {mode}" for mode in ("weight", "bound") for name in ("GD", "LD", "PS")]
    yield ["collection", "delta", "pairs", *(f"{'recall' if 'weight' in c else 'precision'} {c[:2]}"
                                             for c in columns)]  # fmt: skip
    for name, row in found["table 5.2"].items():
        cells = (f"{row[c]['ratio']:.4f} ({row[c]['difference']:+,})" for c in columns)
        if row.get("copies"):
            name += ", with near copies"
        yield [name, row["delta"], f"{row[columns[0]]['pairs']:,}", *cells]


def _truth(found: dict[str, Any]) -> Iterator[list[Any]]:
    deltas = ("0.0", "0.1", "0.2", "0.3", "0.5")
    yield ["tables", "similarity", *(f"delta {delta}" for delta in deltas)]
    for name, rows in found["ground truth"].items():
        for similarity in SHOWN_TRUTH:
            if f"{similarity}, 0.0" not in rows:
                continue
            cells = (rows[f"{similarity}, {delta}"] for delta in deltas)
            yield [name, similarity, *(f"{c['recall']:.3f} / {c['precision']:.3f}" for c in cells)]


def _memory(found: dict[str, Any]) -> Iterator[list[Any]]:
    yield ["collection", "method", "peak, MB", "seconds"]
    for name, runs in found["memory"].items():
        for method, run in runs.items():
            peak = max(size for _, size in run["curve"]) / 1e6
            yield [name, method, f"{peak:.0f}", f"{run['seconds']:.2f}"]


def _thesis_times() -> Iterator[list[Any]]:
    yield ["collection", "", *thesis.METHODS]
    for title, rows in (
        ("total", thesis.TOTAL), ("verification", thesis.VERIFICATION),
        ("verification, edit, 20 %", thesis.EDIT),
    ):  # fmt: skip
        for name, row in rows.items():
            yield [name, title, *row]


def _thesis_accuracy() -> Iterator[list[Any]]:
    yield ["collection", "recall GD", "recall PS", "precision GD", "precision PS"]
    for name, row in thesis.ACCURACY.items():
        signs = ("-", "-", "+", "+")
        yield [name, *(f"{r:.4f} ({s}{d:,})" for (r, d), s in zip(row, signs, strict=True))]


# Pictures


def draw(found: dict[str, Any], path: Path) -> Iterator[Path]:
    """One svg file for each figure."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "matchwood"
    for name, figure in (
        ("profile", _profile(plt, found)),
        ("times", _bars(plt, found)),
        ("scaling", _scaling(plt, found)),
        ("memory", _curves(plt, found)),
    ):
        target = path.with_name(f"{path.stem}_{name}.svg")
        figure.tight_layout()
        figure.savefig(target, metadata={"Date": None})
        plt.close(figure)
        yield target


def _profile(plt: Any, found: dict[str, Any]) -> Any:
    figure, ax = plt.subplots(figsize=(7, 3.4))
    for name, values in found["figure 5.2"].items():
        shown = [max(value, 1e-5) for value in values]
        ax.plot(range(1, len(shown) + 1), shown, label=name, color=COLOURS[name])
    ax.set(yscale="log", xlabel="runs, sorted for each method", ylabel="seconds above the best")
    ax.legend(frameon=False, ncols=2, fontsize=8)
    return figure


def _bars(plt: Any, found: dict[str, Any]) -> Any:
    runs = {n[: -len(", 100 %")]: r for n, r in found["runs"].items() if n.endswith(", 100 %")}
    figure, axes = plt.subplots(2, 1, figsize=(8, 6), sharex=True)
    for ax, what in zip(axes, ("total", "verification"), strict=True):
        for k, method in enumerate(COLOURS):
            heights = [run["methods"][method][what] for run in runs.values()]
            places = [i + 0.14 * (k - 2.5) for i in range(len(runs))]
            ax.bar(places, heights, 0.13, label=method, color=COLOURS[method])
        ax.set(yscale="log", ylabel=f"{what}, s")
    axes[0].legend(frameon=False, ncols=6, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1))
    axes[1].set_xticks(range(len(runs)), runs, rotation=20, ha="right", fontsize=8)
    return figure


def _scaling(plt: Any, found: dict[str, Any]) -> Any:
    names = [name for name in SCALED if f"{name}, 100 %" in found["runs"]] or [""]
    figure, axes = plt.subplots(1, len(names), figsize=(2.4 * len(names), 2.9), squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        percents = [p for p in (20, 40, 60, 80, 100) if f"{name}, {p} %" in found["runs"]]
        for method, colour in COLOURS.items():
            values = [
                found["runs"][f"{name}, {p} %"]["methods"][method]["verification"] for p in percents
            ]
            ax.plot(percents, values, marker=".", color=colour, label=method)
        ax.set_title(name, fontsize=8)
        ax.set(yscale="log", xlabel="% of the sets")
        ax.tick_params(labelsize=7)
    axes[0][0].set_ylabel("verification, s")
    axes[0][0].legend(frameon=False, fontsize=6)
    return figure


def _curves(plt: Any, found: dict[str, Any]) -> Any:
    names = list(found["memory"]) or [""]
    figure, axes = plt.subplots(1, len(names), figsize=(4.2 * len(names), 3), squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        for method, run in found["memory"].get(name, {}).items():
            x = [max(at, 0) / run["seconds"] for at, _ in run["curve"]]
            y = [size / 1e6 for _, size in run["curve"]]
            ax.plot(x, y, label=method, color=COLOURS[method])
            phases = run["phases"]
            before = phases.get("collection", 0) + phases.get("index", 0)
            middle = (before + phases.get("join", 0) / 2) / run["seconds"]
            nearest = min(range(len(x)), key=lambda i: abs(x[i] - middle))
            ax.plot(middle, y[nearest], "x", color=COLOURS[method])
        ax.set_title(name, fontsize=9)
        ax.set(xlabel="part of the run", ylabel="MB above the start", xlim=(0, 1))
        ax.legend(frameon=False, fontsize=8)
    return figure
