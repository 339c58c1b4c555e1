"""The tables and figures of the thesis's chapter on orders (Mandulak, HPEC 2022), on graphs here.

python -m bench.papers.mandulak.orders [--quick] [--only GRAPH ...] [--clock cpu] [--figures FOLDER]

Every graph in every order, plain and refined by either metric; for each the gaps, the misses of
simulated caches and the times of three analytics:

    pagerank     20 iterations in float32
    louvain      at most 5 rounds
    multistep    strongly_connected_components(method="multistep")

Table 2.2: Pearson's correlation of gaps with misses and times, all relative to the graph's worst.
Table 2.3: geometric means of what each order gains over the natural one.
Figures 2.1 to 2.3: the same by graph, for each analytic.  And the gain against the fraction.
`--clock cpu` counts the time of the process instead of the clock on the wall, for busy machines.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

import matchwood
from bench import harness

FRACTION = 0.01  # of the vertices, as in the thesis
FRACTIONS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
REPEATS = 3  # runs of each analytic; the best counts
ANALYTICS: dict[str, Callable[[Any], Any]] = {
    "pagerank": lambda G: matchwood.pagerank(G, tol=0, max_iterations=20, dtype=np.float32),
    "louvain": lambda G: matchwood.louvain(G, max_rounds=5, method="moving"),
    "multistep": lambda G: matchwood.strongly_connected_components(G, method="multistep"),
}
LINE = 64  # bytes
CACHES = {"L1": (48 * 1024, 12), "L2": (2 * 1024 * 1024, 16)}  # bytes, ways
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def data(name: str) -> Path:
    return harness.DATA / "graphs" / name


# Misses of simulated caches, for machines whose counters cannot be read.
#
# A pass over a graph reads a word for each neighbour, row after row: PageRank the score that it
# gives, Louvain and Multistep its label.  Those reads go through two caches with
# least-recently-used replacement, of the sizes that cores have.


@numba.njit(cache=False)
def _misses(indices: Any, shift: int, sets: int, ways: int) -> int:
    """Reads of indices[k] that are not in the cache; 2^shift words are a line."""
    lines = np.full((sets, ways), -1, np.int64)
    missed = 0
    for k in range(indices.size):
        line = np.int64(indices[k]) >> shift
        own = lines[line % sets]
        at = 0
        while at < ways - 1 and own[at] != line:
            at += 1
        if own[at] != line:
            missed += 1
        while at > 0:  # the last one used comes first
            own[at] = own[at - 1]
            at -= 1
        own[0] = line
    return missed


def misses(view: Any, place: Any = None, word: int = 4) -> dict[str, float]:
    """The part of all reads that each cache misses, in the order given by `place`."""
    indices = view.indices
    if place is not None:
        perm = np.argsort(place)
        starts, lengths = view.indptr[:-1][perm], np.diff(view.indptr)[perm]
        first = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        indices = place[view.indices[first + np.arange(view.nnz)]]
    shift = (LINE // word).bit_length() - 1
    found = {}
    for name, (size, ways) in CACHES.items():
        sets = size // (LINE * ways)
        found[name] = _misses(indices, shift, sets, ways) / max(1, view.nnz)
    return found


def graphs(quick: bool) -> dict[str, Callable[[], Any]]:
    files = {
        "cnr-2000": "cnr-2000.graph-txt.gz",
        "email-Enron": "email-Enron.txt.gz",
        "copter2": "copter2.mtx.gz",
        "USA-road-d.NY": "USA-road-d.NY.gr.gz",
    }
    found: dict[str, Callable[[], Any]] = {}
    for name, file in files.items():
        if data(file).exists():
            found[name] = lambda file=file: matchwood.io.read(data(file))
    if "cnr-2000" in found:
        found["cnr-2000, shuffled"] = lambda: _shuffled(matchwood.io.read(data(files["cnr-2000"])))
    found["R-MAT"] = lambda: harness.rmat(13 if quick else 17)
    found["Delaunay"] = lambda: harness.delaunay(10_000 if quick else 200_000)
    found["mesh"] = lambda: harness.mesh(20 if quick else 60)
    few = ("email-Enron", "copter2", "mesh") if quick else tuple(found)
    return {name: make for name, make in found.items() if name in few}


def _shuffled(A: Any) -> Any:
    G = matchwood.graph(A)
    return matchwood.permute(G, np.random.default_rng(1).permutation(G.n))


def orders(G: Any) -> dict[str, Any]:
    """perm of each order; refined ones are called after what they refine."""
    first = {
        "natural": None,
        "LLP": matchwood.layered_label_propagation_order(G),
        "Rabbit": matchwood.rabbit_order(G),
        "Shingle": matchwood.shingle_order(G),
    }
    found: dict[str, Any] = {}
    for name, perm in first.items():
        found[name] = perm
        for metric, text in (("linear_gap", "lin"), ("log_gap", "log")):
            refined = matchwood.refine_order(G, perm, metric=metric, fraction=FRACTION)
            found[f"{name}+{text}"] = refined.perm
    found["RCM"] = matchwood.reverse_cuthill_mckee(G)
    found["degree"] = matchwood.degree_order(G)
    found["hub"] = matchwood.hub_order(G)
    return found


def measured(G: Any, perm: Any, clock: Callable[[], float]) -> dict[str, float]:
    """Gaps, misses and seconds of one order."""
    view = G.undirected_pattern()
    place = None
    if perm is not None:
        place = np.empty(view.n, view.indices.dtype)
        place[perm] = np.arange(view.n)
    gaps = matchwood.gaps(G, perm)
    row = {"linear_gap": float(gaps.linear_gap), "log_gap": gaps.log_gap}
    row |= {f"misses {name}": part for name, part in misses(view, place).items()}
    B = G if perm is None else matchwood.graph(matchwood.permute(G, perm))
    for name, run in ANALYTICS.items():
        run(B)
        row[f"seconds {name}"] = min(_seconds(run, B, clock) for _ in range(REPEATS))
    return row


def _seconds(run: Callable[[Any], Any], G: Any, clock: Callable[[], float]) -> float:
    begun = clock()
    run(G)
    return clock() - begun


Table = dict[str, dict[str, dict[str, float]]]  # graph, order, number


def correlations(table: Table) -> dict[str, dict[str, float]]:
    """Table 2.2."""
    relative: dict[str, list[float]] = {}
    for rows in table.values():
        for name in next(iter(rows.values())):
            worst = max(row[name] for row in rows.values()) or 1.0
            relative.setdefault(name, []).extend(row[name] / worst for row in rows.values())
    found = {}
    for name, values in relative.items():
        if name.startswith(("misses", "seconds")):
            found[name] = {
                metric: _pearson(relative[metric], values) for metric in ("linear_gap", "log_gap")
            }
    return found


def _pearson(x: list[float], y: list[float]) -> float:
    """0 where one of the two does not change at all."""
    return float(np.corrcoef(x, y)[0, 1]) if min(np.std(x), np.std(y)) > 1e-9 else 0.0


def improvements(table: Table) -> dict[str, dict[str, float]]:
    """Table 2.3: natural / order, the geometric mean over graphs (and analytics, for time)."""
    found = {}
    names = [name for name in next(iter(table.values())) if name != "natural"]
    columns = {f"misses {cache}": [f"misses {cache}"] for cache in CACHES}
    columns["seconds"] = [f"seconds {name}" for name in ANALYTICS]
    for order in names:
        found[order] = {
            column: float(np.exp(np.mean([
                np.log(max(rows["natural"][key], 1e-9) / max(rows[order][key], 1e-9))
                for rows in table.values() for key in keys
            ])))
            for column, keys in columns.items()
        }  # fmt: skip
    return found


def gain_by_fraction(G: Any) -> dict[str, list[float]]:
    """By how much of a percent each metric falls, for growing parts of the vertices."""
    return {
        metric: [
            100 * (1 - found.after / max(found.before, 1e-9))
            for part in FRACTIONS
            for found in (matchwood.refine_order(G, metric=metric, fraction=part),)
        ]
        for metric in ("linear_gap", "log_gap")
    }


def show(rows: dict[str, dict[str, float]], title: str) -> None:
    columns = list(next(iter(rows.values())))
    width = max(map(len, rows)) + 2
    print(f"\n{title}\n{'':{width}}" + "".join(f"{name:>14}" for name in columns))
    for name, row in rows.items():
        print(f"{name:{width}}" + "".join(f"{row[column]:14.3f}" for column in columns))


def draw(table: Table, folder: Path) -> None:
    """Figures 2.1 to 2.3: speed and misses of each order, natural = 1, by graph."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    for analytic in ANALYTICS:
        figure = Figure(figsize=(11, 6), layout="constrained")
        axes = figure.subplots(2, 1, sharex=True)
        names = [name for name in next(iter(table.values())) if name != "natural"]
        for ax, key, label in (
            (axes[0], f"seconds {analytic}", "speed"),
            (axes[1], "misses L2", "fewer misses, 2 MiB"),
        ):
            for k, (graph, rows) in enumerate(table.items()):
                heights = [rows["natural"][key] / max(rows[n][key], 1e-12) for n in names]
                at = np.arange(len(names)) + (k - len(table) / 2) * 0.8 / len(table)
                ax.bar(at, heights, 0.8 / len(table), label=graph)
            ax.axhline(1.0, color="black", linewidth=0.6)
            ax.set(ylabel=f"{label}, natural = 1", yscale="log")
        axes[1].set_xticks(range(len(names)), names, rotation=60)
        axes[0].legend(fontsize=7, ncols=4)
        figure.savefig(folder / f"orders_{analytic}.svg")


def run(
    quick: bool = False,
    clock: str = "wall",
    figures: Path | None = None,
    only: list[str] | None = None,
) -> list[Any]:
    table: Table = {}
    for name, make in graphs(quick).items():
        if only and name not in only:
            continue
        G = matchwood.graph(make(), weight=None)
        begun = time.perf_counter()
        table[name] = {order: measured(G, perm, CLOCKS[clock]) for order, perm in orders(G).items()}
        print(f"{name}: {time.perf_counter() - begun:.0f} s", flush=True)
        show(table[name], name)
        gains = gain_by_fraction(G)
        for metric, values in gains.items():
            pairs = zip(FRACTIONS, values, strict=True)
            text = ", ".join(f"{100 * part:g} %: {value:.3f}" for part, value in pairs)
            print(f"  {metric} falls by percent, natural order: {text}")
    found = {"correlations": correlations(table), "improvements": improvements(table)}
    show(found["correlations"], "Table 2.2: correlation with")
    show(found["improvements"], "Table 2.3: natural / order, geometric means")
    if figures is not None:
        draw(table, figures)
        text = json.dumps({"graphs": table, **found, **harness.environment()}, indent=1)
        (figures / "orders_thesis.json").write_text(text)
    return []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three small graphs")
    parser.add_argument("--only", nargs="+", help="just these graphs")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--figures", type=Path, help="folder for pictures and numbers")
    given = parser.parse_args()
    run(given.quick, given.clock, given.figures, given.only)
