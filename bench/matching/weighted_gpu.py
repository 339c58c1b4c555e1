"""Weighted matching on the GPU, graph resident, random weights: time of a whole call.

``python -m bench.matching.weighted_gpu [--json FILE]``.  Each answer is checked on the device for
the whole graph: mates are mutual, and no edge is heavier than both the edges that its ends have.
The methods must agree bit for bit.  Printed beside the time: million edges of the matching in a
second (the figure of merit of the SC 2024 paper), and the memory taken, in bytes a vertex.
"""

from __future__ import annotations

import functools
from typing import Any

import matchwood
from bench import harness
from bench.harness.gpu import ROUNDS, graphs, made, row_of_entries, timed
from matchwood import engines, generators
from matchwood.matching.weighted import weighted_matching

BARS = {"R-MAT 22": 10.0, "grid 2048^2": 3.0, "mesh 128^3": 3.0}  # milliseconds
METHODS = ("suitor", "dominant", "greedy")
MEMORY_BAR = 24  # bytes a vertex, for all methods but greedy


def check_dominant(view: Any, mate: Any) -> None:
    """Raise where `mate` is not locally dominant; ties are left to the comparison of methods."""
    cupy = engines.cupy()
    tails = row_of_entries(view)
    pair = cupy.flatnonzero(mate >= 0)
    assert bool((mate[mate[pair]] == pair).all()), "mates are not mutual"
    own = cupy.zeros(view.n, view.data.dtype)
    matched = mate[tails] == view.indices
    assert int(matched.sum()) == pair.size, "a mate is no neighbour"
    own[tails[matched]] = view.data[matched]
    del matched
    best = cupy.maximum(own[tails], own[view.indices])
    assert bool((view.data <= best).all()), "an edge comes before those of both its ends"


def peak_bytes(function: Any) -> int:
    """The most that a call holds from CuPy's pool at a time."""
    cupy = engines.cupy()

    class Account(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "account"
        held = most = 0

        def malloc_postprocess(self, **block: Any) -> None:
            self.held += block["mem_size"]
            self.most = max(self.most, self.held)

        def free_postprocess(self, **block: Any) -> None:
            self.held -= block["mem_size"]

    account = Account()
    with account:
        answer = function()
    del answer
    return int(account.most)


def run() -> list[harness.Result]:
    results: list[harness.Result] = []
    for name, A in made(graphs()):
        A = generators.random_weights(A, rng=1)
        G = matchwood.graph((A.indptr, A.indices, A.data))
        view = G.undirected_weights("bench")
        rows: dict[str, Any] = {}
        first = None
        for method in METHODS:
            found = weighted_matching(G, method=method)
            if first is None:
                first = found
                check_dominant(view, found.mate)
            assert bool((found.mate == first.mate).all()), method
            call = functools.partial(weighted_matching, G, method=method)
            peak = peak_bytes(call) / view.n
            note = f"{peak:.1f} bytes a vertex, {found.rounds} rounds"
            if method != "greedy":
                note += f"; memory bar {MEMORY_BAR}{'' if peak <= MEMORY_BAR else ' MISSED'}"
            row = rows[method] = timed(
                f"{name}, {method}", call, None if method == "greedy" else BARS[name],
                note=note, rounds=found.rounds, bytes_a_vertex=peak,
            )  # fmt: skip
            row["million_edges_per_second"] = merit = found.cardinality / row["median"] / 1e6
            print(f"    {merit:.0f} M edges/s")
        title = f"weighted matching, {name}, GPU"
        results.append({"title": title, "baseline": "bar", "rounds": ROUNDS, "rows": rows})
        del A, G, view, first, found, call
    return results


if __name__ == "__main__":
    harness.main(run)
