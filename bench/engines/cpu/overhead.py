"""What a team costs: an empty call at 1 and 2 threads, and where a second thread begins to pay.

The constants INLINE_WORK and SECOND_THREAD_WORK of matchwood/engines/cpu/crew.py come from here.  A
step is one entry of a sparse matrix-vector product whose vectors are in the cache: about the
cheapest thing a kernel does for an edge, so dearer kernels gain from a second thread earlier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench import harness
from matchwood.engines.cpu import Crew, barrier, crew, kernel, share_rows

DEGREE = 16  # entries of a row


@kernel
def _nothing(team: Any) -> None:
    pass


@kernel
def _meet(team: Any) -> None:
    if barrier(team):
        return


@kernel
def _multiply(team: Any, indptr: Any, indices: Any, data: Any, x: Any, y: Any) -> None:
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * x[indices[k]]
        y[i] = total
    if barrier(team):
        return


def run() -> list[harness.Result]:
    inline, one, two = Crew(1, inline=True), crew(1, work=10**9), crew(2, work=10**9)
    results = [
        harness.compare(
            "an empty call",
            {
                "in the calling thread": lambda: inline.run(_nothing),
                "1 thread": lambda: one.run(_nothing),
                "2 threads": lambda: two.run(_nothing),
                "2 threads and a barrier": lambda: two.run(_meet),
            },
            baseline="in the calling thread",
            rounds=301,
        )
    ]
    for steps in (5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000):
        args = _matrix(steps)
        results.append(
            harness.compare(
                f"{steps:,} steps",
                {
                    "in the calling thread": lambda args=args: inline.run(_multiply, *args),
                    "1 thread": lambda args=args: one.run(_multiply, *args),
                    "2 threads": lambda args=args: two.run(_multiply, *args),
                },
                baseline="in the calling thread",
                rounds=101,
            )
        )
    return results


def _matrix(steps: int) -> tuple[Any, ...]:
    n = steps // DEGREE
    rng = np.random.default_rng(harness.SEED)
    indptr = np.arange(0, steps + 1, DEGREE, dtype=np.int32)
    indices = rng.integers(0, n, n * DEGREE, dtype=np.int32)
    return indptr, indices, rng.random(indices.size), rng.random(n), np.zeros(n)


if __name__ == "__main__":
    harness.main(run)
