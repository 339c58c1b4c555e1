"""The tridiagonal solver on CPU threads against LAPACK, through SciPy's `solve_banded`.

``python -m bench.tridiagonal.solve [--json FILE]``.  The bar is for two threads, n = 10^7, float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_banded

from bench import harness
from matchwood import block_tridiagonal, tridiagonal
from matchwood.check import check_tridiagonal_solution


def run() -> list[harness.Result]:
    results = []
    for n, dtype in ((10_000_000, np.float64), (1_000_000, np.float64), (10_000_000, np.float32)):
        rng = np.random.default_rng(harness.SEED)
        dl, d, du, b = (rng.standard_normal(n).astype(dtype) for _ in range(4))
        bands = np.zeros((3, n), dtype)
        bands[0, 1:], bands[1], bands[2, :-1] = du[:-1], d, dl[1:]
        system = (dl, d, du, b)
        made = tridiagonal.factorize(dl, d, du)

        def verify(who: str, answer: Any, system: Any = system) -> None:
            if who.startswith("matchwood"):
                check_tridiagonal_solution(*system, answer)

        functions = {
            "scipy": lambda bands=bands, b=b: solve_banded((1, 1), bands, b),
            "scipy, no check": lambda bands=bands, b=b: solve_banded(
                (1, 1), bands, b, check_finite=False
            ),
            "matchwood": lambda system=system: tridiagonal.solve(*system),
            "matchwood, 1 thread": lambda system=system: tridiagonal.solve(*system, threads=1),
            "matchwood, 2 threads": lambda system=system: tridiagonal.solve(*system, threads=2),
            "matchwood, factorized": lambda made=made, b=b: made.solve(b),
        }
        name = f"tridiagonal, n = {n:,}, {np.dtype(dtype)}"
        bars = {"matchwood, 2 threads": 2.0} if dtype == np.float64 else None
        results.append(harness.compare(name, functions, verify=verify, bars=bars))
    return [*results, *_columns(), *_blocks()]


COLUMNS = 8  # right-hand sides


def _columns() -> list[harness.Result]:
    """Eight right-hand sides in one call, and one after the other."""
    rng = np.random.default_rng(harness.SEED)
    matrix = [rng.standard_normal(1_000_000) for _ in range(3)]
    b = rng.standard_normal((1_000_000, COLUMNS))
    functions = {
        "one after the other": lambda: [tridiagonal.solve(*matrix, one) for one in b.T],
        "matchwood": lambda: tridiagonal.solve(*matrix, b),
    }
    name = f"tridiagonal, n = 1,000,000, {COLUMNS} columns"
    return [harness.compare(name, functions, baseline="one after the other")]


def _blocks() -> list[harness.Result]:
    """2x2 blocks, beside LAPACK's solver for bands."""
    n = 500_000
    rng = np.random.default_rng(harness.SEED)
    dl, d, du = (rng.standard_normal((n, 2, 2)) for _ in range(3))
    b = rng.standard_normal((n, 2))
    many = rng.standard_normal((n, 2, COLUMNS))
    bands = np.zeros((7, 2 * n))
    for i in range(2):
        for k in range(2):
            for block, shift in ((dl, -2), (d, 0), (du, 2)):
                columns = np.arange(n) * 2 + k + shift
                inside = (columns >= 0) & (columns < 2 * n)
                bands[3 + i - k - shift, columns[inside]] = block[inside, i, k]
    functions = {
        "scipy": lambda: solve_banded((3, 3), bands, b.reshape(-1)),
        "matchwood": lambda: block_tridiagonal.solve(dl, d, du, b),
        "matchwood, 1 thread": lambda: block_tridiagonal.solve(dl, d, du, b, threads=1),
    }
    columns = {
        "one after the other": lambda: [
            block_tridiagonal.solve(dl, d, du, many[..., c]) for c in range(COLUMNS)
        ],
        "matchwood": lambda: block_tridiagonal.solve(dl, d, du, many),
    }
    return [
        harness.compare(f"2x2 blocks, n = {n:,}", functions),
        harness.compare(
            f"2x2 blocks, n = {n:,}, {COLUMNS} columns", columns, baseline="one after the other"
        ),
    ]


if __name__ == "__main__":
    harness.main(run)
