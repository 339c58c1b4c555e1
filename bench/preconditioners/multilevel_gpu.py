"""The multilevel preconditioner on the GPU, matrix resident: set-up, application, solution.

``python -m bench.preconditioners.multilevel_gpu [--json FILE]``: float64 at the sizes of the paper,
the cycle in float32, as `solve` takes it.  The bars are for aniso2 on an H200.  An application is
compared with the bytes that its cycle moves at 4 TB/s: each visit of a level reads its matrix three
times (twice on the first level), and its vectors about twenty times.
"""

from __future__ import annotations

from typing import Any

import matchwood
from bench import harness
from bench.harness.gpu import Table, device_ms, made, whole_ms
from matchwood import engines, generators
from matchwood.preconditioners import multilevel

SETUP_BAR, SOLVE_BAR = 60.0, 150.0  # milliseconds
BYTES_BAR = 1.6
BANDWIDTH = 4e9  # bytes a millisecond
RTOL = 1e-8
SIDE = 2500  # points of a grid in each direction


def matrices() -> dict[str, Any]:
    """Makers of the matrices, on the device."""
    return {
        f"aniso{kind} {SIDE}^2": lambda kind=kind: generators.aniso(
            kind, (SIDE, SIDE), engine="gpu"
        )
        for kind in (2, 1, 3)
    }


def bytes_moved(M: Any) -> float:
    """By one application of a K-cycle in float32, every level but the last visited twice."""
    total, visits = 0, 1
    for k, level in enumerate(M.levels):
        matrices, vectors = (3, 20) if k else (2, 16)
        total += visits * (matrices * 8 * level.entries + vectors * 4 * level.rows)
        visits *= 2 if k < 2 or M.levels[min(k + 1, len(M.levels) - 1)].rows > 1000 else 1
    return float(total)


def measure(name: str, A: Any) -> harness.Result:
    cupy = engines.cupy()
    out = Table(name)
    bars = name.startswith("aniso2")
    G = matchwood.graph(A)
    b = cupy.random.default_rng(1).standard_normal(A.shape[0])
    found = matchwood.solve(G, b, rtol=RTOL, history=False)
    left = float(cupy.linalg.norm(b - A @ found.x) / cupy.linalg.norm(b))
    assert found.converged, name
    assert left <= 10 * RTOL, (name, left)
    M = found.preconditioner
    out.add("SpMV of cuSPARSE", device_ms(lambda: A @ b))
    setup = whole_ms(lambda: multilevel(matchwood.graph(A), precision="float32"))
    out.add("set-up, raw matrix", setup, **({"bar_ms": SETUP_BAR} if bars else {}))
    for k, level in enumerate(M.levels):
        rows = f"{level.rows} rows, {level.entries} entries"
        out.add(f"  level {k}: {rows}", 1e3 * level.seconds)
    applied = device_ms(lambda: M @ b)
    least = bytes_moved(M) / BANDWIDTH
    out.add("application", applied, bytes=applied / least, bar=BYTES_BAR)
    solved = whole_ms(lambda: matchwood.solve(G, b, preconditioner=M, rtol=RTOL, history=False))
    bar = {"bar_ms": SOLVE_BAR} if bars else {}
    out.add(f"solution, {found.iterations} iterations", solved, **bar)
    return {"title": f"multilevel, {name}", "rows": out.rows}


def run() -> list[harness.Result]:
    return [measure(name, A) for name, A in made(matrices())]


if __name__ == "__main__":
    harness.main(run)
