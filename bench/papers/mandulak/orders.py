"""Measures the thesis' chapter on orders (Mandulak, HPEC 2022): gaps, misses and seconds.

    python -m bench.papers.mandulak.orders --graph rmat:20 --graph mesh:160 --graph cnr-2000 -o FILE
    python -m bench.papers.mandulak.orders --misses --graph rmat:20 -o FILE  # adds what is not time
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
import functools
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
PACKED = Path(".data")  # graphs and orders in a form that is quick to read, where there are any
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
    packed = PACKED / f"{name}.npz"  # indptr, and the steps from index to index
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


def orders(G: Any, name: str, wanted: list[str] | None) -> dict[str, tuple[Any, float]]:
    """perm of each order, and the seconds that it took; refined ones are called after the first.

    Those that lie in a file, since they take long to make, are read instead, and took 0.
    """
    found: dict[str, tuple[Any, float]] = {NATURAL: (None, 0.0), AGAIN: (None, 0.0)}
    home = engines.location(G.indices)
    packed = PACKED / f"{name}-orders.npz"
    kept = dict(np.load(packed)) if packed.exists() else {}

    def add(order: str, call: Callable[[], Any]) -> None:
        if wanted is not None and order not in wanted:
            return
        if order in kept:
            found[order] = (engines.moved(_kept(order), home), 0.0)
            return
        made: list[Any] = []
        taken = seconds(lambda: made.append(call()))
        found[order] = (engines.moved(made[0], home), taken)

    def _kept(order: str) -> Any:
        """Of a refined order the file holds how far it is from the first, which is mostly 0."""
        first = found.get(order.partition("+")[0], (None, 0.0))[0]
        if "+" not in order:
            return kept[order]
        return kept[order] + (
            np.arange(G.n, dtype=np.int32) if first is None else engines.moved(first, "cpu")
        )

    def refined(order: str, metric: str) -> Any:
        return matchwood.refine_order(G, found[order][0], metric=metric, fraction=FRACTION).perm

    add("LLP", lambda: matchwood.layered_label_propagation_order(G))
    add("Rabbit", lambda: matchwood.rabbit_order(G))
    add("Shingle", lambda: matchwood.shingle_order(G))
    for order in ("natural", "LLP", "Rabbit", "Shingle"):
        for metric, text in METRICS.items():
            add(f"{order}+{text}", lambda o=order, m=metric: refined(o, m))
    add("RCM", lambda: matchwood.reverse_cuthill_mckee(G))
    add("degree", lambda: matchwood.degree_order(G))
    add("hub", lambda: matchwood.hub_order(G))
    add("random", lambda: np.random.default_rng(1).permutation(G.n).astype(np.int32))
    return found


def in_order(G: Any, perm: Any) -> tuple[Any, Any]:
    """(indptr, indices) of the graph in another order."""
    if perm is None:
        return G.indptr, G.indices
    B = matchwood.permute(G, perm)
    return B.indptr, B.indices


def prepared(arrays: tuple[Any, Any], left_out: list[str]) -> dict[str, Any]:
    """The graph of these arrays, for each engine that is here, its analytics called once."""
    found = {}
    for home in ("cpu", "gpu") if has_gpu() else ("cpu",):
        moved = tuple(engines.moved(array, home) for array in arrays)
        found[home] = matchwood.graph(moved, weight=None)
        for name, run in ANALYTICS.items():
            if f"{home}:{name}" not in left_out:
                run(found[home])
    return found


def timed(graphs: dict[str, Any], given: Any, home: str) -> dict[str, dict[str, list[float]]]:
    """Seconds of each analytic in each order, in rounds."""
    analytics = [name for name in ANALYTICS if f"{home}:{name}" not in given.without]
    times: dict[str, dict[str, list[float]]] = {
        order: {name: [] for name in analytics} for order in graphs
    }
    start, last = time.perf_counter(), 0.0
    for k in range(given.rounds):
        begun = time.perf_counter()
        if k >= LEAST and begun - start + last > given.seconds:
            break
        for order in list(graphs) if k % 2 == 0 else reversed(list(graphs)):
            for name in analytics:
                if name not in SLOW or k % 2 == 0:
                    call = functools.partial(ANALYTICS[name], graphs[order])
                    times[order][name].append(seconds(call))
        last = time.perf_counter() - begun
    return times


def measure(name: str, given: Any) -> Table:
    """Seconds of one graph in its orders."""
    G = matchwood.graph(made(name), weight=None)
    rows: Table = {}
    there: dict[str, dict[str, Any]] = {}
    for order, (perm, taken) in orders(G, name, given.orders).items():
        rows[order] = {"seconds to make": taken, "seconds": {}}
        there[order] = prepared(in_order(G, perm), given.without)
        print(f"  {order}: made in {taken:.2f} s, ready at {time.perf_counter():.1f}", flush=True)
    loads = {}
    for home in there[NATURAL]:
        loads[home] = [os.getloadavg()[0]]
        graphs = {order: graphs[home] for order, graphs in there.items()}
        for order, found in timed(graphs, given, home).items():
            rows[order]["seconds"][home] = found
        loads[home].append(os.getloadavg()[0])
        medians = {k: float(np.median(v)) for k, v in rows[NATURAL]["seconds"][home].items()}
        print(f"  {home}: load {loads[home]}, natural {medians}", flush=True)
    return {"n": G.n, "entries": G.nnz, "load": loads, "orders": rows}


def add_misses(name: str, table: Table, wanted: list[str]) -> None:
    """Gaps and misses of the orders of a graph: the same numbers on any machine."""
    G = matchwood.graph(made(name), weight=None)
    for order, (perm, _) in orders(G, name, wanted).items():
        if order == AGAIN:
            keys = ("linear_gap", "log_gap", "misses")
            table[AGAIN] |= {key: table[NATURAL][key] for key in keys}
            continue
        gaps = matchwood.gaps(G, perm)
        arrays = tuple(engines.moved(array, "cpu") for array in in_order(G, perm))
        view = matchwood.graph(arrays, weight=None).undirected_pattern()
        missed = orders_cache.misses({order: view}, list(ANALYTICS))
        table[order] |= {
            "linear_gap": float(gaps.linear_gap), "log_gap": gaps.log_gap, "misses": missed[order],
        }  # fmt: skip
        print(f"  {order}: {missed[order]}", flush=True)


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
    parser.add_argument("--orders", type=lambda text: text.split("|"), help="these, with | between")
    parser.add_argument("--without", action="append", default=[], help="such as cpu:louvain")
    parser.add_argument("--misses", action="store_true", help="gaps and misses, no times")
    parser.add_argument("--fractions", action="store_true", help="refinement alone, no times")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    found: Table = {"graphs": {}, "refinement": {}}
    if given.output.exists():
        found |= json.loads(given.output.read_text())
    begun = time.perf_counter()
    environment = harness.environment()
    if not (given.fractions or given.misses):
        warm()
    for name in given.graph:
        if given.misses:
            rows = found["graphs"][name]["orders"]
            add_misses(name, rows, list(rows))
        else:
            part = "refinement" if given.fractions else "graphs"
            found[part][name] = refinement(name) if given.fractions else measure(name, given)
            found[part][name]["environment"] = environment
        given.output.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{name}: done at {time.perf_counter() - begun:.0f} s", flush=True)
    left = matchwood.show_config(mode="dicts")["kernels"]
    print(f"kernels: {left}")


if __name__ == "__main__":
    main()
