"""Linear forests on the GPU, graph resident, against cuSPARSE's SpMV (float32, CuPy's ``A @ x``).

``python -m bench.forests.linear_forest_gpu [--json FILE]``.  Verified first, by the check and, on
smaller copies, against the CPU.  Times are of the device; the whole call is timed from outside too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import matchwood
from bench import harness
from bench.harness.gpu import Table, device_ms, whole_ms
from matchwood import engines, generators
from matchwood.factors import degree_factor
from matchwood.forests import check_linear_forest, gpu, linear_forest, tridiagonal_of
from matchwood.primitives.path_scan.gpu import Scan

FOREST_BAR = 10.0  # SpMVs, from the factor
SETUP_BAR = 5.0  # milliseconds, from matrix to coefficients


def matrices(small: bool = False) -> dict[str, Any]:
    """Makers of the matrices, on the device, with float32 values."""
    side = 150 if small else 2500
    made: dict[str, Any] = {
        f"aniso{kind} {side}^2": lambda kind=kind: generators.aniso(
            kind, (side, side), dtype=np.float32, engine="gpu"
        )
        for kind in (1, 2, 3)
    }
    shape = (12, 30, 30) if small else (58, 148, 148)
    made[f"grid {'x'.join(map(str, shape))}"] = lambda: generators.grid(
        shape, dtype=np.float32, engine="gpu"
    )
    return made


def verify() -> None:
    """The same as the CPU on smaller copies."""
    for name, make in matrices(small=True).items():
        A = make()
        found, expected = linear_forest(A), linear_forest(A.get())
        for array in ("perm", "path", "position", "removed"):
            same = np.array_equal(getattr(found, array).get(), getattr(expected, array))
            assert same, f"{name}: {array}"
        check_linear_forest(A, found)


def random_path(n: int) -> tuple[Any, Any]:
    """One path in random order, and weights."""
    cupy = engines.cupy()
    name = cupy.random.RandomState(harness.SEED).permutation(n).astype(np.int32)
    table = cupy.full((n, 2), -1, np.int32)
    table[name[1:], 0] = name[:-1]
    table[name[:-1], 1] = name[1:]
    table[name[0]] = table[name[0]][::-1].copy()
    return table, cupy.ones((n, 2), np.float32)


def scans(table: Any, out: Table) -> None:
    """A scan by doubling and by splitters, beside a copy of what a round moves."""
    cupy = engines.cupy()
    n = table.shape[0]
    ones = cupy.ones(n, np.int32)
    state = cupy.zeros((n, 4), np.int32)
    copied = cupy.empty_like(state)
    copy = device_ms(lambda: cupy.copyto(copied, state))
    out.add("copy of the state, 16 bytes a vertex", copy, gigabytes_s=32e-6 * n / copy)
    for method in ("doubling", "splitters"):
        scan = Scan(table, ones, "add", method)
        status = matchwood.engines.gpu.Status()
        scan.orient(status)
        ms = device_ms(scan.run, calls=3)
        rounds = int(scan.space.words.get()[7]) if method == "doubling" else 0
        more = {"rounds": rounds, "copies_a_round": ms / copy / rounds} if rounds else {}
        out.add(f"scan, {method}", ms, copies=ms / copy, **more)


def run() -> list[harness.Result]:
    cupy = engines.cupy()
    verify()
    results: list[harness.Result] = []
    for name, make in matrices().items():
        A = make()
        G = matchwood.graph(A)
        G.undirected_weights()
        x = cupy.ones(G.n, np.float32)
        out = Table(name)
        spmv = device_ms(lambda A=A, x=x: A @ x)
        out.add("SpMV", spmv)
        given = degree_factor(G, 2)
        factor_ms = device_ms(lambda G=G: degree_factor(G, 2))
        out.add("factor", factor_ms, spmvs=factor_ms / spmv)
        forest_ms = device_ms(lambda given=given: gpu.forest(*given))
        out.add("forest from the factor", forest_ms, spmvs=forest_ms / spmv, bar=FOREST_BAR)
        gpu.forest(*given)
        for phase, seconds in gpu.forest(*given).seconds().items():
            out.add(f"  {phase}", 1e3 * seconds)
        forest = linear_forest(G, factor=given)
        ms = device_ms(lambda G=G, forest=forest: tridiagonal_of(G, forest))
        out.add("coefficients", ms, spmvs=ms / spmv)
        ms = whole_ms(lambda G=G: tridiagonal_of(G, linear_forest(G)))
        out.add("from matrix to coefficients, from outside", ms, spmvs=ms / spmv, bar_ms=SETUP_BAR)
        scans(given.neighbours, out)
        results.append({"title": f"linear forest, {name}", "rows": out.rows})
    for n in (10_000_000,):
        table, weights = random_path(n)
        out = Table(f"one path of {n:,} in random order")
        ms = device_ms(lambda table=table, weights=weights: gpu.forest(table, weights), calls=3)
        out.add("forest from the factor", ms, vertices_us=n / ms / 1e3)
        scans(table, out)
        results.append({"title": out.title, "rows": out.rows})
    return results


if __name__ == "__main__":
    harness.main(run)
