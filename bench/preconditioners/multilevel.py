"""Time to a solution with the multilevel preconditioner, against PyAMG, from a raw SciPy matrix.

``python -m bench.preconditioners.multilevel [--side N]``.  Right-hand sides are random, and the
relative residual goes down to 1e-8.  PyAMG's two solvers are timed with CG, where it is installed;
the titles have iterations, operator complexity, and our setup in products ``A @ x`` of SciPy.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from bench import harness
from matchwood.preconditioners import multilevel

RTOL = 1e-8
BAR = 4.0  # times faster than the better one of PyAMG's


def laplacian(shape: tuple[int, ...], stretch: float = 1.0) -> Any:
    """The 5- or 7-point Laplacian; couplings along the last axis are `stretch` times as strong."""
    A = sp.csr_array((1, 1))
    for k, size in enumerate(shape):
        one = np.full(size, stretch if k + 1 == len(shape) else 1.0)
        line = sp.diags_array((-one[1:], 2 * one, -one[1:]), offsets=(-1, 0, 1))
        A = sp.kron(A, sp.eye_array(size)) + sp.kron(sp.eye_array(A.shape[0]), line)
    return sp.csr_array(A)


def mesh(side: int) -> Any:
    """27 points in space: 26 on the diagonal, -1 for each neighbour."""
    line = sp.diags_array([np.ones(side - abs(k)) for k in (-1, 0, 1)], offsets=(-1, 0, 1))
    A = sp.csr_array(-sp.kron(sp.kron(line, line), line))
    A.setdiag(26.0)
    return A


def rotated(side: int, degrees: float, ratio: float) -> Any:
    """Bilinear finite elements for a diffusion `ratio` times as strong in a rotated direction."""
    c, s, e = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees)), 1 / ratio
    corner, other = -(1 + e) + 3 * (e - 1) * c * s, -(1 + e) - 3 * (e - 1) * c * s
    up = (2 * e - 4) * c * c + (2 - 4 * e) * s * s
    across = (2 - 4 * e) * c * c + (2 * e - 4) * s * s
    stencil = np.array(
        [[corner, up, other], [across, 8 * (1 + e), across], [other, up, corner]]
    ) / 6  # fmt: skip
    lines = {k: sp.eye_array(side, k=k) for k in (-1, 0, 1)}
    terms = (stencil[i + 1, j + 1] * sp.kron(lines[i], lines[j]) for i in lines for j in lines)
    A = sp.csr_array(sum(terms, sp.csr_array((side * side, side * side))))
    A.eliminate_zeros()
    return A


def problems(side: int) -> Iterator[tuple[str, Any]]:
    yield f"Laplacian, {side}^2", laplacian((side, side))
    yield f"Laplacian, 1000:1, {side}^2", laplacian((side, side), 1000.0)
    for k in (1, 2, 3):
        yield f"aniso{k}, {side}^2", sp.csr_array(matchwood.generators.aniso(k, (side, side)))
    for degrees in (0, 15, 30, 45):
        for ratio in (10, 100, 1000):
            yield f"rotated by {degrees}, {ratio}:1, {side}^2", rotated(side, degrees, ratio)
    cube = round(side ** (2 / 3))
    yield f"27 points, {cube}^3", mesh(cube)


def ours(A: Any, b: Any) -> Any:
    return matchwood.solve(A, b, rtol=RTOL, history=False)


def peers(A: Any, b: Any) -> dict[str, Any]:
    """PyAMG's solvers, each from the matrix to the solution."""
    if importlib.util.find_spec("pyamg") is None:
        return {}
    import pyamg

    matrix = sp.csr_matrix(A)

    def solved(make: Any) -> Any:
        return make(matrix).solve(b, tol=RTOL, accel="cg", maxiter=300)

    return {
        "ruge_stuben": lambda: solved(pyamg.ruge_stuben_solver),
        "smoothed_aggregation": lambda: solved(pyamg.smoothed_aggregation_solver),
    }


def setup_in_products(A: Any) -> float:
    """Time of the setup over that of a product with a vector; the best of five each."""
    x = np.ones(A.shape[0])

    def best(function: Any) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
        return min(times)

    return best(lambda: multilevel(sp.csr_array(A))) / best(lambda: A @ x)


def run(side: int = 300) -> Iterator[Any]:
    for title, A in problems(side):
        b = np.random.default_rng(0).standard_normal(A.shape[0])

        def verify(name: str, answer: Any, A: Any = A, b: Any = b) -> None:
            x = getattr(answer, "x", answer)
            left = float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))
            assert left <= 10 * RTOL, (name, left)

        found = ours(A, b)
        M = found.preconditioner
        title = (
            f"{title}: {found.iterations} iterations, complexity {M.operator_complexity:.2f}, "
            f"setup {setup_in_products(A):.0f} products, {M.levels[0].smoother}"
        )
        functions = {"matchwood": lambda A=A, b=b: ours(A, b), **peers(A, b)}
        yield harness.compare(
            title, functions, verify=verify, baseline="ruge_stuben", rounds=3,
            bars={"matchwood": BAR},
        )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--side", type=int, default=300)
    list(run(parser.parse_args().side))
