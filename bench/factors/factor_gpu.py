"""Factors on the GPU, graph resident, against cuSPARSE's SpMV (float32, CuPy's ``A @ x``).

``python -m bench.factors.factor_gpu [--json FILE]``.  Verified first: the factor is one, and on
the smaller copies of the graphs the same as the CPU's.  Times are of the device, without launching;
the whole call is also timed from outside.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import matchwood
from bench import harness
from bench.harness.gpu import device_ms, made, row_of_entries, whole_ms
from matchwood import engines, generators
from matchwood.factors import degree_factor
from matchwood.primitives.hashing import bit_barrier


def graphs(small: bool = False) -> dict[str, Any]:
    """Makers of the matrices of the bars, on the device, with float32 values."""
    side, edge, scale = (150, 12, 10) if small else (2500, 128, 22)
    makers: dict[str, Any] = {
        f"aniso{kind} {side}^2": lambda kind=kind: generators.aniso(
            kind, (side, side), dtype=np.float32, engine="gpu"
        )
        for kind in (1, 2, 3)
    }
    makers[f"mesh {edge}^3"] = lambda: generators.mesh(
        (edge, edge, edge), dtype=np.float32, engine="gpu"
    )
    makers[f"R-MAT {scale}"] = lambda: _random_weights(generators.rmat(scale, engine="gpu"))
    return makers


def _random_weights(A: Any) -> Any:
    """Symmetric weights in 0 .. 1 from the ends of each edge."""
    cupy = engines.cupy()
    rows = row_of_entries(A)
    low, high = cupy.minimum(rows, A.indices), cupy.maximum(rows, A.indices)
    mixed = low.astype(np.uint32) * np.uint32(2654435761)
    mixed ^= high.astype(np.uint32) * np.uint32(40503)
    mixed = (mixed ^ (mixed >> 15)) * np.uint32(2246822519)
    data = ((mixed >> 8).astype(np.float32) + 1) / np.float32(1 << 24)
    return type(A)((data, A.indices, A.indptr), shape=A.shape)


def passes(view: Any) -> dict[str, float]:
    """Milliseconds of single passes.  Short ones take what their launch takes, some 0.05."""
    from matchwood.factors.result import Plan
    from matchwood.factors.rounds.gpu import BEGIN, CONFIRM, PROPOSE, TILE_SIZE, Rounds
    from matchwood.primitives.row_reduce.gpu import Tiles

    tiles = Tiles(view.indptr, TILE_SIZE)
    times = {}
    for n in (1, 2, 4):
        for ties in ("index", "hash") if n == 2 else ("index",):
            plan = Plan(n, 5, 5, 0, bit_barrier(0.5), 0, ties == "hash")
            rounds = Rounds(view, plan, tiles)
            rounds.launch(BEGIN)
            name = f"n={n}" + (", ties by hash" if ties == "hash" else "")
            times[f"proposal {name}"] = device_ms(lambda r=rounds: r.launch(PROPOSE, 0, 1))
            if ties == "index":
                rounds.launch(BEGIN)  # forgets which tiles have one weight only
                times[f"proposal {name}, looking for full rows"] = device_ms(
                    lambda r=rounds: r.launch(PROPOSE, 0, 1, fresh=False)
                )
            if n == 2 and ties == "index":
                for k in range(5):
                    # a proposal pass changes nothing that the next one reads
                    times[f"proposal {name}, round {k}"] = device_ms(
                        lambda r=rounds, k=k: r.launch(PROPOSE, k, k + 1)
                    )
                    rounds.launch(CONFIRM, k, k + 1)
            del rounds
    return times


def run(small: bool = False) -> list[harness.Result]:
    results: list[harness.Result] = []
    cupy = engines.cupy()
    import cupyx.scipy.sparse

    if not small:
        run(small=True)
    for name, A in made(graphs(small)):
        G = matchwood.graph(A)
        view = G.undirected_weights()
        S = cupyx.scipy.sparse.csr_matrix((view.data, view.indices, view.indptr), shape=A.shape)
        if small:
            for n in (1, 2, 4):
                mine, cpu = degree_factor(G, n), degree_factor(G, n, engine="cpu")
                assert bool((mine.neighbours == cpu.neighbours).all()), (name, n)
            continue
        x = cupy.ones(G.n, np.float32)
        spmv = device_ms(lambda S=S, x=x: S @ x)
        rows: dict[str, Any] = {"cuSPARSE": {"median": spmv / 1e3}}
        print(f"{name}: {G.n:,} vertices, {view.nnz:,} entries; SpMV {spmv:.3f} ms", flush=True)
        for what, ms in passes(view).items():
            rows[what] = {"median": ms / 1e3, "ratio": spmv / ms}
            print(f"  {what}: {ms:.3f} ms, {spmv / ms:.2f} of SpMV's speed", flush=True)
        whole = device_ms(lambda G=G: degree_factor(G, 2), calls=5)
        wall = whole_ms(lambda G=G: degree_factor(G, 2))
        rows["factor(n=2, rounds=5)"] = {
            "median": whole / 1e3,
            "spmvs": whole / spmv,
            "wall": wall / 1e3,
        }
        found = degree_factor(G, 2)
        verdict = "met" if whole <= 6 * spmv else "MISSED"
        print(
            f"  factor(n=2, rounds=5): {whole:.3f} ms = {whole / spmv:.2f} SpMVs, bar 6 {verdict}; "
            f"{wall:.3f} ms from outside; coverage {found.coverage:.3f}",
            flush=True,
        )
        results.append({"title": f"factors, {name}, GPU", "baseline": "cuSPARSE", "rows": rows})
        del A, G, view, S, x, found
    return results


if __name__ == "__main__":
    harness.main(run)
