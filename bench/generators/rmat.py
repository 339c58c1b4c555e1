"""R-MAT scale 20, edge factor 16, to a finished symmetric CSR matrix, against the same in NumPy.

NumPy makes the same edges from the same hash, then sorts and drops equal ones; both give the
same matrix, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench import harness
from matchwood import engines
from matchwood.generators import rmat

SCALE = 20  # 2^20 vertices
BAR = 5.0  # with 2 threads


def run() -> list[harness.Result]:
    expected = rmat(SCALE, engine="reference")

    def verify(who: str, answer: Any) -> None:
        for name in ("indptr", "indices", "data"):
            ours = engines.moved(getattr(answer, name), "cpu")
            if not np.array_equal(ours, getattr(expected, name)):
                raise AssertionError(f"{who}: {name} differs")

    functions = {
        "numpy": lambda: rmat(SCALE, engine="reference"),
        "matchwood": lambda: rmat(SCALE),
        "matchwood, 1 thread": lambda: rmat(SCALE, threads=1),
    }
    sync = None
    if engines.gpu_available():
        functions["matchwood, GPU"] = lambda: rmat(SCALE, engine="gpu")
        sync = engines.cupy().cuda.Device().synchronize
    return [
        harness.compare(
            f"R-MAT {SCALE}, edge factor 16, to symmetric CSR",
            functions,
            verify=verify,
            baseline="numpy",
            bars={"matchwood": BAR},
            sync=sync,
        )
    ]


if __name__ == "__main__":
    harness.main(run)
