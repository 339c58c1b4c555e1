"""Setup and application of the algebraic tridiagonal preconditioner on the GPU, matrix resident.

``python -m bench.preconditioners.setup_gpu [--json FILE]``: float32 at the sizes of the paper.  The
bars on an H200: from the matrix to the operator at most 5 ms on aniso2, and one application at most
1.5 times a copy of its data (three coefficients, order, right-hand side, solution).  Verified
first: an application is solved back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import matchwood
from bench import harness
from bench.harness.gpu import Table, device_ms, made, whole_ms
from bench.preconditioners.problems import convection_diffusion
from matchwood import engines, generators, preconditioners
from matchwood.forests import tridiagonal_of

SETUP_BAR = 5.0  # milliseconds, aniso2
COPY_BAR = 1.5  # times a copy of the arrays that an application reads and writes
SIDE = 2500  # points of a grid in each direction


def matrices() -> dict[str, Any]:
    """Makers of the matrices, on the device."""
    options = {"dtype": np.float32, "engine": "gpu"}
    made: dict[str, Any] = {
        f"aniso{kind} {SIDE}^2": lambda kind=kind: generators.aniso(kind, (SIDE, SIDE), **options)
        for kind in (1, 2, 3)
    }
    made["convection-diffusion 58x148x148"] = lambda: convection_diffusion(**options)
    return made


def verify(A: Any, M: Any, b: Any) -> None:
    """M b, multiplied by the tridiagonal matrix in the order of the forest, is b."""
    cupy = engines.cupy()
    dl, d, du = tridiagonal_of(A, M.forest)
    x, right = (M @ b)[M.forest.perm], b[M.forest.perm]
    product = d * x
    product[1:] += dl[1:] * x[:-1]
    product[:-1] += du[:-1] * x[1:]
    scale = float(cupy.abs(x).max()) * float(cupy.abs(d).max())
    assert float(cupy.abs(product - right).max()) < 100 * np.finfo(np.float32).eps * scale


def measure(name: str, A: Any) -> harness.Result:
    cupy = engines.cupy()
    out = Table(name)
    algebraic = preconditioners.algebraic_tridiagonal
    M = algebraic(A)
    n = A.shape[0]
    b = cupy.random.default_rng(1).standard_normal(n, dtype=np.float32)
    verify(A, M, b)
    spmv = device_ms(lambda: A @ b)
    out.add("SpMV", spmv)
    setup = whole_ms(lambda: algebraic(A))
    bar = {"bar_ms": SETUP_BAR} if name.startswith("aniso2") else {}
    out.add("from matrix to operator, from outside", setup, spmvs=setup / spmv, **bar)
    G = matchwood.graph(A)
    setup = whole_ms(lambda: algebraic(G))
    out.add("the same, checked graph", setup, spmvs=setup / spmv)
    for phase, seconds in algebraic(G).seconds.items():
        out.add(f"  {phase}", 1e3 * seconds)
    data = [cupy.empty(n, np.float32) for _ in range(5)] + [M.forest.perm]
    others = [cupy.empty_like(array) for array in data]

    def copy() -> None:
        for source, target in zip(data, others, strict=True):
            target.data.copy_from_device_async(source.data, source.nbytes)

    copied = device_ms(copy)
    out.add("copy of the data of an application", copied)
    applied = device_ms(lambda: M @ b)
    out.add("application", applied, copies=applied / copied, bar=COPY_BAR)
    plain = preconditioners.tridiagonal(A)
    applied = device_ms(lambda: plain @ b)
    out.add("application in the order as given", applied, copies=applied / copied * 6 / 5)
    block = preconditioners.algebraic_block_tridiagonal
    setup = whole_ms(lambda: block(G, period=1))
    out.add("blocks, m=1: from matrix to operator", setup, spmvs=setup / spmv)
    setup = whole_ms(lambda: block(G))
    out.add("blocks: from matrix to operator", setup, spmvs=setup / spmv)
    B = block(G)
    for phase, seconds in B.seconds.items():
        out.add(f"  {phase}", 1e3 * seconds)
    out.add("blocks: application", device_ms(lambda: B @ b))
    return {"title": f"preconditioners, {name}", "rows": out.rows}


def run() -> list[harness.Result]:
    return [measure(name, A) for name, A in made(matrices())]


if __name__ == "__main__":
    harness.main(run)
