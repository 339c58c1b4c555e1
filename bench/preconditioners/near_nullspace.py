"""Elasticity with rigid body modes: time to a solution, against PyAMG and without the modes.

``python -m bench.preconditioners.near_nullspace [--sides 50 100 200] [--cube 20]``.  From a SciPy
matrix to a relative residual of 1e-8, with a random right-hand side.  PyAMG's smoothed aggregation
gets the modes and a BSR matrix, and is timed with CG, where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from bench import harness
from bench.preconditioners.problems import elasticity

RTOL = 1e-8
BAR = 1.0  # times PyAMG's speed
MOST = 30  # iterations, where elements are squares or cubes


def problems(sides: Sequence[int], cube: int) -> Iterator[tuple[str, Any, Any, int, bool]]:
    """Name, matrix, modes, rows of a node, whether elements are stretched."""
    for side in sides:
        yield f"elastic square, {side}^2", *elasticity((side, side)), 2, False
    side = sides[len(sides) // 2]
    for ratio in (2, 5, 10):
        made = elasticity((side, side), (1.0, 1 / ratio))
        yield f"elements {ratio}:1, {side}^2", *made, 2, True
    yield f"elastic cube, {cube}^3", *elasticity((cube,) * 3), 3, False


def solvers(A: Any, b: Any, B: Any, size: int) -> dict[str, Any]:
    options: dict[str, Any] = {"rtol": RTOL, "history": False}
    forest = "algebraic_tridiagonal"
    found: dict[str, Any] = {
        "matchwood": lambda: matchwood.solve(A, b, near_nullspace=B, **options),
        "matchwood, no candidates": lambda: matchwood.solve(A, b, **options),
        "forest, bicgstab": lambda: matchwood.solve(
            A, b, preconditioner=forest, maxiter=20000, **options
        ),
        "forest, cg": lambda: matchwood.solve(
            A, b, preconditioner=forest, method="cg", maxiter=20000, **options
        ),
    }
    if importlib.util.find_spec("pyamg") is not None:
        import pyamg

        blocks = sp.csr_matrix(A).tobsr((size, size))
        counts: list[float] = []

        def solved() -> Any:
            counts.clear()
            hierarchy = pyamg.smoothed_aggregation_solver(blocks, B=B)
            return hierarchy.solve(b, tol=RTOL, accel="cg", maxiter=300, residuals=counts)

        solved.counts = counts  # type: ignore[attr-defined]
        found["pyamg"] = solved
    return found


def run(sides: Sequence[int] = (50, 100, 200), cube: int = 20) -> Iterator[Any]:
    for title, A, B, size, stretched in problems(sides, cube):
        b = np.random.default_rng(0).standard_normal(A.shape[0])
        functions = solvers(A, b, B, size)
        counts = {}
        for name, function in functions.items():
            answer = function()
            listed = getattr(function, "counts", None)
            counts[name] = answer.iterations if listed is None else len(listed) - 1
        assert stretched or counts["matchwood"] <= MOST, (title, counts)

        def verify(name: str, answer: Any, A: Any = A, b: Any = b) -> None:
            left = float(np.linalg.norm(b - A @ getattr(answer, "x", answer)) / np.linalg.norm(b))
            assert left <= 10 * RTOL, (name, left)

        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        yield harness.compare(
            f"{title}: iterations {listed}", functions, verify=verify,
            baseline="pyamg" if "pyamg" in functions else "forest, cg", rounds=3,
            bars={"matchwood": BAR},
        )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sides", type=int, nargs="*", default=(50, 100, 200))
    parser.add_argument("--cube", type=int, default=20)
    options = parser.parse_args()
    list(run(options.sides, options.cube))
