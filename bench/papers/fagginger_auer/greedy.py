"""The figures of "A GPU algorithm for greedy graph matching" (Fagginger Auer, Bisseling, 2012).

python -m bench.papers.fagginger_auer.greedy [--data DIR] [A.mtx ...] [--json FILE] [--out FOLDER]

    figure 2    the share of matched vertices after each round
    figure 3    what p does: size, weight and rounds; the first round against equation 2,
                2 (1 - p) (1 - exp(-p / (1 - p)))
    section 4   size against algorithm 1 (the paper: more than 99 %), weight against algorithms 1
                (115 %) and 2 (85 %): means and deviations over 32 permutations of the vertices

--times      the times of figure 3, of algorithm 3 by threads (figure 4), and how many times faster
             it is than algorithms 1 and 2 (figure 5)
--times --engine gpu    figure 5 for the GPU, the graph being there
--small      small generated graphs, few files, 4 permutations
--parts 2 3 4    of the counts only figure 2, figure 3, section 4
--draw FILE  measure nothing; with --out write the tables and pictures of what the file has

Algorithm 1 takes vertices in random order, one after the other; algorithm 2 edges by decreasing
weight; algorithm 3 is the one in rounds.  Graphs are generated, or the square matrices of DIR.  As
in the paper, vertices are shuffled first and matrices weigh |a_ij|.  Graphs without weights get
random ones for the weighted part, which is told apart.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from bench import harness, papers
from bench.papers.fagginger_auer import figures as greedy_figures
from matchwood import engines, generators
from matchwood.engines.cpu import default_threads
from matchwood.matching import maximal_matching, weighted_matching
from matchwood.matching.maximal import BEST_PROBABILITY
from matchwood.matching.proposal.check import check_maximal_matching

PERMUTATIONS = 32
SMALL_PERMUTATIONS = 4
LARGEST = 3_000_000  # entries of a file that is read
ROUNDS = 5  # timed calls; the median counts
FIGURE_2 = ("grid", "Delaunay", "R-MAT", "mesh", "random, degree 100")
FIGURE_3 = ("grid", "random, degree 100")
FIGURE_4 = ("grid", "R-MAT", "random, degree 100")
PROBABILITIES = (0.1, 0.2, 0.3, 0.4, 0.5, BEST_PROBABILITY, 0.6, 0.7, 0.8, 0.9)


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


def stored(given: argparse.Namespace) -> Iterator[tuple[str, sp.csr_array, bool]]:
    """(name, matrix, whether its values are weights) of the files that can be used."""
    paths = list(papers.files(given.data).values())
    if not paths:
        print(f"no matrices in {given.data}: give --data DIR for more graphs")
    for path in [*paths[: 6 if given.small else None], *given.files]:
        try:
            A = papers.read(path)
            if A.nnz <= LARGEST and matchwood.graph(A).undirected_weights().nnz:
                yield papers.stem(path), A, np.unique(abs(A.data)).size > 1
        except (ValueError, TypeError) as error:
            print(f"{path.name} is left out: {error}")


def shuffle(A: sp.csr_array, seed: int) -> sp.csr_array:
    """The same graph with its vertices in random order."""
    perm = np.random.default_rng(seed).permutation(A.shape[0])
    return sp.csr_array(sp.csr_matrix(A)[perm][:, perm])


def equation_2(p: float) -> float:
    return 2 * (1 - p) * (1 - math.exp(-p / (1 - p)))


def rounds_of(name: str, A: sp.csr_array) -> dict[str, Any]:
    """Figure 2 for one graph."""
    G = matchwood.graph(shuffle(A, 0))
    found = maximal_matching(G)
    check_maximal_matching(G, found)
    shares = [count / G.n for count in found.matched_by_round]
    text = " ".join(f"{share:.3f}" for share in shares[:12])
    print(f"  {name:22s} {A.nnz // 2:>10,} edges, {found.rounds:2d} rounds: {text}", flush=True)
    return {"edges": A.nnz // 2, "shares": shares}


def effect_of_p(name: str, A: sp.csr_array, times: bool) -> dict[str, Any]:
    """Figure 3 for one graph."""
    G = matchwood.graph(shuffle(generators.random_weights(A, rng=1), 0))
    rows = []
    print(f"  {name}:  p, size, weight, rounds, first round, equation 2")
    for p in PROBABILITIES:
        found = maximal_matching(G, blue_probability=p)
        heavy = maximal_matching(G, blue_probability=p, weighted=True)
        first, theory = found.matched_by_round[0] / G.n, equation_2(p)
        row = {
            "p": p,
            "size": found.cardinality,
            "weight": heavy.weight,
            "rounds": found.rounds,
            "first": first,
            "theory": theory,
        }
        if times:
            row["seconds"] = _seconds(
                {"": lambda p=p: maximal_matching(G, blue_probability=p)}, "cpu"
            )[""]
        rows.append(row)
        print(
            f"    {p:.5f} {found.cardinality:>9,} {heavy.weight:>12,.1f} {found.rounds:3d} "
            f"{first:.4f} {theory:.4f} ({first / theory - 1:+.2%})",
            flush=True,
        )
    return {"rows": rows}


def quality_of(name: str, A: sp.csr_array, weighs: bool, permutations: int) -> dict[str, Any]:
    """Section 4 for one graph: ratios of averages over permutations, and their deviations."""
    if not weighs:
        A = generators.random_weights(A, dtype=np.float64, rng=1)
    found: dict[str, list[float]] = {key: [] for key in ("size", "lone", "heavy", "walk", "sorted")}
    for seed in range(permutations):
        G = matchwood.graph(shuffle(A, seed))
        found["size"].append(maximal_matching(G, rng=seed).cardinality)
        found["lone"].append(maximal_matching(G, rng=seed, method="serial").cardinality)
        found["heavy"].append(maximal_matching(G, rng=seed, weighted=True).weight)
        walk = maximal_matching(G, rng=seed, weighted=True, method="serial")
        found["walk"].append(walk.weight)
        found["sorted"].append(weighted_matching(G, method="greedy").weight)
    result: dict[str, Any] = {
        "edges": matchwood.graph(A).undirected_pattern().nnz // 2,
        "own weights": weighs,
        "permutations": permutations,
    }
    pairs = {"size": ("size", "lone"), "weight of 1": ("heavy", "walk")}
    pairs["weight of 2"] = ("heavy", "sorted")
    for key, (ours, theirs) in pairs.items():
        each = np.array(found[ours]) / np.maximum(found[theirs], np.finfo(float).tiny)
        result[key] = float(np.mean(found[ours]) / np.mean(found[theirs]))
        result[f"{key}, deviation"] = float(np.std(each))
    print(
        f"  {name:34s} {'matrix' if weighs else 'random'} weights: size {result['size']:.2%} of 1, "
        f"weight {result['weight of 1']:.1%} of 1, {result['weight of 2']:.1%} of 2",
        flush=True,
    )
    return result


def threads_of(A: sp.csr_array, threads: list[int]) -> dict[str, float]:
    """Figure 4 for one graph: seconds of random matching by the number of threads."""
    G = matchwood.graph(shuffle(A, 0))
    calls = {str(count): lambda c=count: maximal_matching(G, threads=c) for count in threads}
    return _seconds(calls, "cpu")


def times_of(A: sp.csr_array, weighs: bool, engine: str) -> dict[str, Any]:
    """Figure 5 for one graph: seconds of the three algorithms, random and weighted."""
    if not weighs:
        A = generators.random_weights(A, dtype=np.float64, rng=1)
    G = matchwood.graph(shuffle(A, 0))
    G.undirected_weights()
    calls: dict[str, Callable[[], Any]] = {
        "random, 1": lambda: maximal_matching(G, method="serial"),
        "weighted, 1": lambda: maximal_matching(G, method="serial", weighted=True),
        "weighted, 2": lambda: weighted_matching(G, method="greedy", threads=1),
    }
    seconds = _seconds(calls, "cpu")
    H = G.on(engine)
    mine = {
        "random, 3": lambda: maximal_matching(H),
        "weighted, 3": lambda: maximal_matching(H, weighted=True),
    }
    seconds |= _seconds(mine, engine)
    return {"edges": G.undirected_pattern().nnz // 2, "seconds": seconds}


def _seconds(calls: dict[str, Callable[[], Any]], engine: str) -> dict[str, float]:
    """Medians of calls in turn, the GPU waited for."""
    device = engines.cupy().cuda.Device() if engine == "gpu" else None
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(ROUNDS + 1):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            if device is not None:
                device.synchronize()
            if turn:  # the first call compiles
                taken[name].append(time.perf_counter() - begun)
    return {name: statistics.median(times) for name, times in taken.items()}


def reproduce(given: argparse.Namespace) -> dict[str, Any]:
    """The counts, or the times; both by figure and graph."""
    made = {
        name: make()
        for name, make in generated(given.small).items()
        if not given.only or name in given.only
    }
    if given.times:
        return timed(given, made)
    found: dict[str, Any] = {}
    if "2" in given.parts:
        print("figure 2: share of matched vertices after each round")
        found["figure 2"] = {n: rounds_of(n, made[n]) for n in FIGURE_2 if n in made}
    if "3" in given.parts:
        print("figure 3: the effect of p")
        found["figure 3"] = {n: effect_of_p(n, made[n], False) for n in FIGURE_3 if n in made}
    if "4" in given.parts:
        found["section 4"] = section_4(given, made)
    return found


def section_4(given: argparse.Namespace, made: dict[str, Any]) -> dict[str, Any]:
    """Every graph; what is done is written at once, since all together take minutes."""
    permutations = SMALL_PERMUTATIONS if given.small else given.permutations
    print(f"section 4: algorithm 3 against algorithms 1 and 2, {permutations} permutations")
    graphs = [(name, A, False) for name, A in made.items()]
    found = {}
    for name, A, weighs in (*graphs, *stored(given)):
        found[name] = quality_of(name, A, weighs, permutations)
        if given.json:
            papers.add(given.json, {"section 4": {name: found[name]}})
    for line in greedy_figures.means(found):
        print("  " + "  ".join(line))
    return found


def timed(given: argparse.Namespace, made: dict[str, Any]) -> dict[str, Any]:
    """The parts that depend on the machine."""
    found: dict[str, Any] = {}
    if given.engine == "cpu":
        found["figure 3"] = {n: effect_of_p(n, made[n], True) for n in FIGURE_3 if n in made}
        found["figure 4"] = {n: threads_of(made[n], given.threads) for n in FIGURE_4 if n in made}
    graphs = [(name, A, False) for name, A in made.items()]
    key = f"figure 5, {given.engine}"
    found[key] = {}
    for name, A, weighs in (*graphs, *stored(given)):
        found[key][name] = row = times_of(A, weighs, given.engine)
        text = "  ".join(f"{what}: {1e3 * s:.2f}" for what, s in row["seconds"].items())
        print(f"  {name:34s} ms  {text}", flush=True)
    return found


def run() -> list[harness.Result]:
    given = options(["--small"])
    return [{"title": title, "graphs": rows} for title, rows in reproduce(given).items()]


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    papers.options(parser)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--permutations", type=int, default=PERMUTATIONS)
    parser.add_argument("--parts", nargs="*", choices=["2", "3", "4"], default=["2", "3", "4"])
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--engine", choices=["cpu", "gpu"], default="cpu")
    counts = [count for count in (1, 2, 4, 8, 16) if count <= default_threads()]
    parser.add_argument("--threads", type=int, nargs="*", default=counts, help="of figure 4")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    given = options(arguments)
    results = papers.load(given.draw) if given.draw else reproduce(given)
    if given.json and not given.draw:
        results = papers.add(given.json, results, given.engine if given.times else "counts")
    if given.out:
        greedy_figures.write(results, given.out, given.draw or given.json)
    return results


if __name__ == "__main__":
    main()
