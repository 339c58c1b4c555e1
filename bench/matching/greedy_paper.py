"""The figures of "A GPU algorithm for greedy graph matching" (Fagginger Auer, Bisseling, 2012).

``python -m bench.matching.greedy_paper [--plots FOLDER] [--small] [--json FILE]`` prints

    figure 2    the share of matched vertices after each round
    figure 3    what p does: size, weight and rounds; the first round against equation 2,
                2 (1 - p) (1 - exp(-p / (1 - p)))
    section 4   size against algorithm 1 (the paper: more than 99 %), weight against algorithms 1
                (115 %) and 2 (85 %)

over generated graphs and, where the folder is there, the graphs and matrices of $MATCHWOOD_DATA.
As in the paper, vertices are shuffled first and matrices weigh |a_ij|.  Graphs without weights get
random ones for the weighted part, which is told apart.  With --plots, and matplotlib, pictures.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from bench import harness
from matchwood import generators
from matchwood.matching import maximal_matching
from matchwood.matching.maximal import BEST_PROBABILITY
from matchwood.matching.proposal.check import check_maximal_matching
from matchwood.primitives.edge_order import order_edges

SEEDS = 4  # the paper: 32 permutations
LARGEST = 3_000_000  # entries of a file that is read
FIGURE_2 = ("grid", "Delaunay", "R-MAT", "mesh", "random, degree 100")


def generated(small: bool) -> dict[str, Callable[[], sp.csr_array]]:
    side, scale, n = (100, 11, 10_000) if small else (1000, 16, 100_000)
    cube = 12 if small else 32
    return {
        "grid": lambda: generators.grid((side, side)),  # stands for ecology1 when 1000 x 1000
        "mesh": lambda: generators.mesh((cube, cube, cube)),
        "Delaunay": lambda: generators.delaunay(n, rng=1),
        "R-MAT": lambda: generators.rmat(scale, rng=1),
        "random, degree 10": lambda: generators.erdos_renyi(n, 5 * n, rng=1),
        "random, degree 100": lambda: generators.erdos_renyi(n // 2, 25 * n, rng=1),
    }


def stored(small: bool) -> Iterator[tuple[str, sp.csr_array, bool]]:
    """(name, matrix, whether its values are weights) of the files that can be used."""
    folder = Path(os.environ.get("MATCHWOOD_DATA", harness.ROOT.parent / "shared" / "data"))
    paths = sorted(folder.glob("graphs/*.mtx.gz")) + sorted(folder.glob("matrices/*.mtx.gz"))
    if not paths:
        print(f"no files in {folder}; set MATCHWOOD_DATA for more graphs")
    for path in paths[: 6 if small else None]:
        try:
            A = sp.csr_array(matchwood.io.read(path))
            usable = A.shape[0] == A.shape[1] and 0 < A.nnz <= LARGEST
            if usable and matchwood.graph(A).undirected_weights().nnz:
                name = path.name.removesuffix(".mtx.gz")
                yield name, A, np.unique(abs(A.data)).size > 1
        except (ValueError, TypeError) as error:
            print(f"{path.name} is left out: {error}")


def shuffle(A: sp.csr_array, seed: int) -> sp.csr_array:
    """The same graph with its vertices in random order."""
    perm = np.random.default_rng(seed).permutation(A.shape[0])
    return sp.csr_array(sp.csr_matrix(A)[perm][:, perm])


def equation_2(p: float) -> float:
    return 2 * (1 - p) * (1 - math.exp(-p / (1 - p)))


def greedy_weight(G: Any) -> float:
    """Algorithm 2: edges from the heaviest to the lightest."""
    view = G.undirected_weights()
    u = np.repeat(np.arange(view.n, dtype=view.indices.dtype), np.diff(view.indptr))
    upper = u < view.indices
    u, v, w = u[upper], view.indices[upper], view.data[upper]
    taken = bytearray(view.n)
    total = 0.0
    order = order_edges(u, v, w)
    for a, b, weight in zip(u[order].tolist(), v[order].tolist(), w[order].tolist(), strict=True):
        if not (taken[a] or taken[b]):
            taken[a] = taken[b] = 1
            total += weight
    return total


def rounds_of(name: str, A: sp.csr_array) -> dict[str, Any]:
    """Figure 2 for one graph."""
    G = matchwood.graph(shuffle(A, 0))
    found = maximal_matching(G)
    check_maximal_matching(G, found)
    shares = [count / G.n for count in found.matched_by_round]
    text = " ".join(f"{share:.3f}" for share in shares[:12])
    print(f"  {name:22s} {A.nnz // 2:>10,} edges, {found.rounds:2d} rounds: {text}")
    return {"name": name, "edges": A.nnz // 2, "shares": shares}


def effect_of_p(name: str, A: sp.csr_array) -> dict[str, Any]:
    """Figure 3 for one graph."""
    G = matchwood.graph(shuffle(generators.random_weights(A, rng=1), 0))
    rows = []
    print(f"  {name}:  p, size, weight, rounds, first round, equation 2")
    for p in (0.1, 0.2, 0.3, 0.4, 0.5, BEST_PROBABILITY, 0.6, 0.7, 0.8, 0.9):
        found = maximal_matching(G, blue_probability=p)
        heavy = maximal_matching(G, blue_probability=p, weighted=True)
        first, theory = found.matched_by_round[0] / G.n, equation_2(p)
        rows.append((p, found.cardinality, heavy.weight, found.rounds, first, theory))
        print(
            f"    {p:.5f} {found.cardinality:>9,} {heavy.weight:>12,.1f} {found.rounds:3d} "
            f"{first:.4f} {theory:.4f} ({first / theory - 1:+.2%})"
        )
    return {"name": name, "rows": rows}


def quality_of(name: str, A: sp.csr_array, weighs: bool) -> dict[str, Any]:
    """Section 4 for one graph: means over a few permutations."""
    if not weighs:
        A = generators.random_weights(A, dtype=np.float64, rng=1)
    sizes, lone, heavy, walk = [], [], [], []
    for seed in range(SEEDS):
        G = matchwood.graph(shuffle(A, seed))
        sizes.append(maximal_matching(G, rng=seed).cardinality)
        lone.append(maximal_matching(G, rng=seed, method="serial").cardinality)
        heavy.append(maximal_matching(G, rng=seed, weighted=True).weight)
        walk.append(maximal_matching(G, rng=seed, weighted=True, method="serial").weight)
    greedy = greedy_weight(matchwood.graph(A))
    result = {
        "name": name,
        "own weights": weighs,
        "size": float(np.sum(sizes) / max(1, np.sum(lone))),
        "weight of 1": float(np.sum(heavy) / np.sum(walk)),
        "weight of 2": float(np.mean(heavy) / greedy),
    }
    print(
        f"  {name:34s} {'matrix' if weighs else 'random'} weights: size {result['size']:.2%} of 1, "
        f"weight {result['weight of 1']:.1%} of 1, {result['weight of 2']:.1%} of 2"
    )
    return result


def summary(title: str, rows: list[dict[str, Any]]) -> None:
    if rows:
        text = ", ".join(
            f"{key} {np.mean([row[key] for row in rows]):.2%}"
            f" ({min(row[key] for row in rows):.1%} .. {max(row[key] for row in rows):.1%})"
            for key in ("size", "weight of 1", "weight of 2")
        )
        print(f"  mean of {len(rows)} graphs with {title} weights: {text}")


def draw(folder: Path, figure_2: list[Any], figure_3: list[Any], quality: list[Any]) -> None:
    """Pictures like the paper's; without matplotlib none."""
    plt = harness.peer("matplotlib.pyplot")
    if plt is None:
        print("matplotlib is not installed: no pictures")
        return
    folder.mkdir(parents=True, exist_ok=True)
    fig, ax = plt.subplots(figsize=(6.4, 4))
    for curve in figure_2:
        shares = curve["shares"]
        label = f"{curve['name']} ({curve['edges']:,})"
        ax.plot(range(1, len(shares) + 1), shares, "o-", markersize=3, label=label)
    ax.set(xlabel="rounds", ylabel="share of matched vertices", ylim=(0, 1))
    ax.legend(fontsize=8)
    fig.savefig(folder / "figure2.svg", bbox_inches="tight")
    for figure in figure_3:
        p, size, weight, rounds, first, theory = np.array(figure["rows"]).T
        fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
        for label, values in (("size", size), ("weight", weight), ("rounds", rounds)):
            left.plot(p, values / values.max(), "o-", markersize=3, label=label)
        right.plot(p, first, "o", label="first round")
        right.plot(p, theory, "-", label="equation 2")
        for ax in (left, right):
            ax.axvline(BEST_PROBABILITY, color="0.8", zorder=0)
            ax.set(xlabel="p", title=figure["name"])
            ax.legend(fontsize=8)
        name = figure["name"].replace(" ", "_").replace(",", "")
        fig.savefig(folder / f"figure3_{name}.svg", bbox_inches="tight")
    fig, ax = plt.subplots(figsize=(6.4, 4))
    for key in ("size", "weight of 1", "weight of 2"):
        ax.plot(sorted(row[key] for row in quality), label=key)
    ax.axhline(1, color="0.8", zorder=0)
    ax.set(xlabel="graphs, sorted", ylabel="ratio")
    ax.legend(fontsize=8)
    fig.savefig(folder / "section4.svg", bbox_inches="tight")
    plt.close("all")
    print(f"pictures in {folder}")


def reproduce(small: bool, plots: str | None) -> list[harness.Result]:
    made = {name: make() for name, make in generated(small).items()}
    print("figure 2: share of matched vertices after each round")
    figure_2 = [rounds_of(name, made[name]) for name in FIGURE_2]
    print("figure 3: the effect of p")
    figure_3 = [effect_of_p(name, made[name]) for name in ("grid", "random, degree 100")]
    print("section 4: algorithm 3 against algorithms 1 and 2")
    quality = [quality_of(name, A, False) for name, A in made.items()]
    quality += [quality_of(*given) for given in stored(small)]
    summary("matrix", [row for row in quality if row["own weights"]])
    summary("random", [row for row in quality if not row["own weights"]])
    print("  (the paper's means: size more than 99 % of 1, weight 115 % of 1 and 85 % of 2)")
    if plots is not None:
        draw(Path(plots), figure_2, figure_3, quality)
    return [
        {"title": "figure 2", "curves": figure_2},
        {"title": "figure 3", "graphs": figure_3},
        {"title": "section 4", "graphs": quality},
    ]


def run() -> list[harness.Result]:
    return reproduce(small=True, plots=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--plots", metavar="FOLDER", help="draw the figures there, as SVG")
    parser.add_argument("--small", action="store_true", help="small graphs, few files")
    parser.add_argument("--json", metavar="FILE", help="also write the numbers there")
    options = parser.parse_args()
    results = reproduce(options.small, options.plots)
    if options.json:
        harness.write(results, options.json)


if __name__ == "__main__":
    main()
