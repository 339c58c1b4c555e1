"""The instances of row_reduce against SciPy's product on the standard graphs.

SpMV has the bars: no slower than SciPy with one thread, and about twice its speed with two.  The
product is also the measure for the others, as it reads the same matrix and does less.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench import harness
from matchwood.primitives import row_reduce
from matchwood.primitives.row_reduce.check import check_minimum_label, check_spmv


def run() -> list[harness.Result]:
    """One comparison for each graph."""
    results = []
    for name, A in harness.standard_graphs().items():
        rng = np.random.default_rng(harness.SEED)
        indptr, indices, data = A.indptr, A.indices, rng.random(A.nnz)
        B = A.copy()
        B.data = data
        x, label = rng.random(A.shape[0]), np.arange(A.shape[0], dtype=np.int32)

        def spmv(threads: int, parts: Any = (indptr, indices, data, x)) -> Any:
            return row_reduce.spmv(*parts, threads=threads)

        def smallest(threads: int, parts: Any = (indptr, indices, label)) -> Any:
            return row_reduce.minimum_label(*parts, threads=threads)

        def strongest(n: int, threads: int, parts: Any = (indptr, indices, data)) -> Any:
            return row_reduce.strongest_neighbours(*parts, n, threads=threads)

        def verify(who: str, answer: Any, parts: Any = (indptr, indices, data, x, label)) -> None:
            if who.startswith("spmv"):
                check_spmv(*parts[:4], answer)
            elif who.startswith("minimum"):
                check_minimum_label(*parts[:2], parts[4], answer)

        results.append(
            harness.compare(
                f"reduce rows, {name}",
                {
                    "spmv, 2 threads": lambda f=spmv: f(2),
                    "spmv, 1 thread": lambda f=spmv: f(1),
                    "minimum label, 2 threads": lambda f=smallest: f(2),
                    "strongest 1, 2 threads": lambda f=strongest: f(1, 2),
                    "strongest 2, 2 threads": lambda f=strongest: f(2, 2),
                    "strongest 4, 2 threads": lambda f=strongest: f(4, 2),
                    "scipy": lambda B=B, x=x: B @ x,
                },
                verify=verify,
                bars={"spmv, 1 thread": 1.0, "spmv, 2 threads": 1.8},
            )
        )
    return results


if __name__ == "__main__":
    harness.main(run)
