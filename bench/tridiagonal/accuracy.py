"""Forward errors of the tridiagonal solver against LAPACK's, kind by kind.

``python -m bench.tridiagonal.accuracy [--gpu] [--float32] [--largest N]``.  The true solution is
normally distributed; the right-hand side is calculated from it with more digits than the solver
has.  A single error is a matter of luck, so each ratio is the geometric mean over several systems.
For each kind the table shows the largest ratio over all sizes, and where it is.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy.linalg import lapack

from bench.tridiagonal.kinds import KINDS, SIZES
from matchwood import tridiagonal

Array = np.ndarray[Any, Any]
DRAWS = 9  # systems of each kind
NO_ERROR = 8  # rounding units: smaller errors count as none


def right_hand_side(dl: Array, d: Array, du: Array, x: Array) -> Array:
    """A x in extended precision."""
    wide = [array.astype(np.longdouble) for array in (dl, d, du, x)]
    b = wide[1] * wide[3]
    b[1:] += wide[0][1:] * wide[3][:-1]
    b[:-1] += wide[2][:-1] * wide[3][1:]
    return b.astype(x.dtype)


def gtsv(dl: Array, d: Array, du: Array, b: Array) -> Array:
    """LAPACK's answer."""
    if d.size == 1:
        return b / d
    driver = lapack.dgtsv if d.dtype == np.float64 else lapack.sgtsv
    return np.asarray(driver(dl[1:], d, du[:-1], b)[3])


def error(x: Array, true: Array) -> float:
    """Relative error in the Euclidean norm."""
    with np.errstate(all="ignore"):
        found = np.linalg.norm(x.astype(float) - true) / np.linalg.norm(true.astype(float))
    return float(found) if np.isfinite(found) else np.inf


def compare(
    kind: str, n: int, dtype: Any = np.float64, *, seed: int = 0, gpu: bool = False
) -> tuple[float, float]:
    """Error of ours and of LAPACK's."""
    rng = np.random.default_rng((seed, n))
    with np.errstate(under="ignore", over="ignore"):
        dl, d, du = (array.astype(dtype) for array in KINDS[kind](n, rng))
        true = rng.standard_normal(n).astype(dtype)
        b = right_hand_side(dl, d, du, true)
    if gpu:
        import cupy

        ours = tridiagonal.solve(*map(cupy.asarray, (dl, d, du, b)), allow_singular=True).get()
    else:
        ours = tridiagonal.solve(dl, d, du, b, allow_singular=True)
    return error(ours, true), error(gtsv(dl, d, du, b), true)


def ratio(ours: float, theirs: float, dtype: Any) -> float:
    """How many times larger our error is; below NO_ERROR it counts as none, above 1 as 1."""
    unit = NO_ERROR * float(np.finfo(dtype).eps)
    return min(max(ours, unit), 1.0) / min(max(theirs, unit), 1.0)


def typical(
    kind: str, n: int, dtype: Any = np.float64, *, gpu: bool = False
) -> tuple[float, float, float]:
    """Of DRAWS systems the geometric mean of the ratio, and the medians of both errors."""
    draws = DRAWS if n <= 100_000 else 3
    errors = [compare(kind, n, dtype, seed=seed, gpu=gpu) for seed in range(draws)]
    logs = [np.log(ratio(*pair, dtype)) for pair in errors]
    ours, theirs = np.median(np.array(errors), axis=0)
    return float(np.exp(np.mean(logs))), float(ours), float(theirs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--float32", action="store_true")
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    options = parser.parse_args()
    dtype = np.float32 if options.float32 else np.float64
    print(f"{'kind':20} {'worst ratio':>11} {'at n':>9} {'ours':>10} {'LAPACK':>10}")
    for kind in KINDS:
        rows = []
        for n in SIZES:
            if n <= options.largest:
                times, ours, theirs = typical(kind, n, dtype, gpu=options.gpu)
                rows.append((times, n, ours, theirs))
        worst = max(rows)
        print(f"{kind:20} {worst[0]:11.2f} {worst[1]:9} {worst[2]:10.1e} {worst[3]:10.1e}")


if __name__ == "__main__":
    main()
