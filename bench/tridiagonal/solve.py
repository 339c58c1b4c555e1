"""The tridiagonal solver on CPU threads against LAPACK, through SciPy's `solve_banded`.

``python -m bench.tridiagonal.solve [--json FILE]``.  The bar is for two threads, n = 10^7, float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_banded

from bench import harness
from matchwood import tridiagonal
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
    return results


if __name__ == "__main__":
    harness.main(run)
