"""Measures the thesis' chapter on orders (Mandulak, HPEC 2022): gaps, misses and seconds.

    python -m bench.papers.mandulak.orders --graph rmat:20 --graph mesh:160 --graph cnr-2000 -o FILE
    python -m bench.papers.mandulak.orders --fractions --graph rmat:16 -o FILE  # refinement alone

Every graph in every order, on the threads of the host and on a GPU where there is one:

    pagerank     20 iterations in float32
    louvain      at most 5 rounds on each level
    multistep    strongly_connected_components(method="multistep")

Rounds of all orders, forwards and backwards in turn, so that a slow spell falls on all; every time
is kept.  The natural order is there twice, from memory of its own: what the two differ by is noise.
Misses are counted for each analytic in simulated caches (orders_cache.py).  Graphs that are in FILE
stay as they are; orders_figures.py makes the tables and figures.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import matchwood
from bench import harness
from bench.papers.mandulak import orders_cache
from matchwood import engines, generators

FRACTION = 0.01  # of the vertices, as in the thesis
FRACTIONS = (0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008, 0.009, 0.01, 0.011, 0.012,
             0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05)  # fmt: skip
METRICS = {"linear_gap": "lin", "log_gap": "log"}
ROUNDS, LEAST = 10, 5  # of all orders; fewer where the time is up
SLOW = ("louvain",)  # in every other round
ANALYTICS: dict[str, Callable[[Any], Any]] = {
    "pagerank": lambda G: matchwood.pagerank(G, tol=0, max_iterations=20, dtype=np.float32),
    "louvain": lambda G: matchwood.louvain(G, max_rounds=5, method="moving"),
    "multistep": lambda G: matchwood.strongly_connected_components(G, method="multistep"),
}
FILES = {
    "cnr-2000": "cnr-2000.graph-txt.gz", "email-Enron": "email-Enron.txt.gz",
    "copter2": "copter2.mtx.gz", "USA-road-d.NY": "USA-road-d.NY.gr.gz",
    "mit8": "mit8.edgelist.gz", "musae_facebook": "musae_facebook_edges.csv.gz",
}  # fmt: skip
NATURAL, AGAIN = "natural", "natural, again"
Table = dict[str, Any]


def made(name: str) -> Any:
    """A graph by its name: rmat:SCALE, mesh:SIDE, grid:SIDE, or that of a file or an .npz."""
    home = "gpu" if has_gpu() else None
    kind, _, size = name.partition(":")
    if kind == "rmat":  # numbered as it was drawn: large degrees first
        return generators.rmat(int(size), permute=False, engine=home)
    if kind == "mesh":
        return generators.mesh((int(size),) * 3, engine=home)
    if kind == "grid":
        return generators.grid((int(size),) * 2, engine=home)
    packed = Path(".data") / f"{name}.npz"  # indptr, and the steps from index to index
    if packed.exists():
        with np.load(packed) as file:
            read: Any = (file["indptr"], np.cumsum(file["steps"], dtype=np.int32))
    else:
        A = matchwood.graph(matchwood.io.read(harness.DATA / "graphs" / FILES[name]), weight=None)
        read = (A.indptr, A.indices)
    return tuple(engines.moved(array, home or "cpu") for array in read)


def has_gpu() -> bool:
    return engines.gpu_available()


def wait() -> None:
    if has_gpu():
        engines.cupy().cuda.Device().synchronize()


def seconds(call: Callable[[], Any]) -> float:
    """Of one call, the garbage collector at rest."""
    gc.disable()
    wait()
    start = time.perf_counter()
    call()
    wait()
    end = time.perf_counter()
    gc.enable()
    return end - start


def orders(G: Any, refined: bool) -> dict[str, tuple[Any, float]]:
    """perm of each order, and the seconds that it took; refined ones are called after the first."""
    found: dict[str, tuple[Any, float]] = {}

    def add(name: str, call: Callable[[], Any]) -> None:
        kept: list[Any] = []
        taken = seconds(lambda: kept.append(call()))
        found[name] = (kept[0], taken)

    found[NATURAL] = found[AGAIN] = (None, 0.0)
    add("LLP", lambda: matchwood.layered_label_propagation_order(G))
    add("Rabbit", lambda: matchwood.rabbit_order(G))
    add("Shingle", lambda: matchwood.shingle_order(G))
    for name in ("natural", "LLP", "Rabbit", "Shingle") if refined else ():
        for metric, text in METRICS.items():
            add(f"{name}+{text}", lambda m=metric, p=found[name][0]: matchwood.refine_order(
                G, p, metric=m, fraction=FRACTION).perm)  # fmt: skip
    add("RCM", lambda: matchwood.reverse_cuthill_mckee(G))
    add("degree", lambda: matchwood.degree_order(G))
    add("hub", lambda: matchwood.hub_order(G))
    shuffled = np.random.default_rng(1).permutation(G.n).astype(np.int32)
    found["random"] = (engines.moved(shuffled, engines.location(G.indices)), 0.0)
    return found


def prepared(G: Any, perm: Any) -> dict[str, Any]:
    """The graph in an order, for each engine that is here, its analytics called once."""
    arrays = G.indptr, G.indices
    if perm is not None:
        B = matchwood.permute(G, perm)
        arrays = B.indptr, B.indices
    homes = ("cpu", "gpu") if has_gpu() else ("cpu",)
    found = {}
    for home in homes:
        moved = tuple(engines.moved(array, home) for array in arrays)
        found[home] = matchwood.graph(moved, weight=None)
        for run in ANALYTICS.values():
            run(found[home])
    return found


def timed(graphs: dict[str, Any], rounds: int, limit: float) -> dict[str, dict[str, list[float]]]:
    """Seconds of each analytic in each order, in rounds."""
    times: dict[str, dict[str, list[float]]] = {
        order: {name: [] for name in ANALYTICS} for order in graphs
    }
    start, last = time.perf_counter(), 0.0
    for k in range(rounds):
        begun = time.perf_counter()
        if k >= LEAST and begun - start + last > limit:
            break
        for order in list(graphs) if k % 2 == 0 else reversed(list(graphs)):
            for name, run in ANALYTICS.items():
                if name not in SLOW or k % 2 == 0:
                    times[order][name].append(seconds(lambda r=run, G=graphs[order]: r(G)))
        last = time.perf_counter() - begun
    return times


def measure(name: str, given: argparse.Namespace) -> Table:
    """All numbers of one graph."""
    G = matchwood.graph(made(name), weight=None)
    rows: Table = {}
    there: dict[str, dict[str, Any]] = {}
    for order, (perm, taken) in orders(G, not given.few).items():
        gaps = matchwood.gaps(G, perm)
        rows[order] = {"linear_gap": float(gaps.linear_gap), "log_gap": gaps.log_gap,
                       "seconds to make": taken, "seconds": {}}  # fmt: skip
        there[order] = prepared(G, perm)
    print(f"{name}: {G.n} vertices, {G.nnz} entries, {len(rows)} orders", flush=True)
    loads = {}
    for home in there[NATURAL]:
        loads[home] = [os.getloadavg()[0]]
        graphs = {order: graphs[home] for order, graphs in there.items()}
        for order, found in timed(graphs, given.rounds, given.seconds).items():
            rows[order]["seconds"][home] = found
        loads[home].append(os.getloadavg()[0])
        print(f"  {home}: load {loads[home]}", flush=True)
    views = {order: graphs["cpu"].undirected_pattern() for order, graphs in there.items()}
    for order, missed in orders_cache.misses(views, list(ANALYTICS)).items():
        rows[order]["misses"] = missed
    return {"n": G.n, "entries": G.nnz, "load": loads, "orders": rows}


def refinement(name: str) -> Table:
    """By how much of a percent each metric falls, for growing parts of the vertices."""
    G = matchwood.graph(made(name), weight=None)
    found: Table = {}
    for begun, perm in (("natural", None), ("Rabbit", matchwood.rabbit_order(G))):
        for metric in METRICS:
            falls = []
            for part in FRACTIONS:
                refined = matchwood.refine_order(G, perm, metric=metric, fraction=part)
                before, after = (float(getattr(x, "value", x)) for x in
                                 (refined.before, refined.after))  # fmt: skip
                falls.append(100 * (1 - after / max(before, 1e-9)))
            found[f"{begun}, {metric}"] = falls
    return {"fractions": list(FRACTIONS), "n": G.n, "entries": G.nnz, "falls": found}


def warm() -> None:
    """Compile all of it on small graphs, several at once: the compiler of the GPU takes turns."""
    from concurrent.futures import ThreadPoolExecutor

    G = matchwood.graph(made("rmat:10"), weight=None)
    for run in ANALYTICS.values():  # here, since imports in threads may wait for each other
        run(matchwood.graph(([0, 1, 2], [1, 0]), weight=None))
    turned = np.arange(G.n)[::-1].copy()
    calls: list[Callable[[Any], Any]] = [
        *ANALYTICS.values(), matchwood.layered_label_propagation_order, matchwood.rabbit_order,
        matchwood.refine_order, matchwood.shingle_order, matchwood.reverse_cuthill_mckee,
        matchwood.hub_order, matchwood.gaps, lambda G: matchwood.permute(G, turned),
    ]  # fmt: skip
    with ThreadPoolExecutor(len(calls)) as pool:
        list(pool.map(lambda call: call(G), calls))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--graph", action="append", required=True, help="a name; see `made`")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=60, help="of the rounds of each engine")
    parser.add_argument("--few", action="store_true", help="no refined orders")
    parser.add_argument("--fractions", action="store_true", help="refinement alone, no times")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    found: Table = {"graphs": {}, "refinement": {}}
    if given.output.exists():
        found |= json.loads(given.output.read_text())
    begun = time.perf_counter()
    environment = harness.environment()
    if not given.fractions:
        warm()
    for name in given.graph:
        part = "refinement" if given.fractions else "graphs"
        found[part][name] = refinement(name) if given.fractions else measure(name, given)
        found[part][name]["environment"] = environment
        given.output.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{name}: done at {time.perf_counter() - begun:.0f} s", flush=True)
    left = matchwood.show_config(mode="dicts")["kernels"]
    print(f"kernels: {left}")


if __name__ == "__main__":
    main()
