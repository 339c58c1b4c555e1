"""Families of tridiagonal systems, plain and of blocks, and how well they are solved.

`backward_error` is the measure: by how much must the entries of each row change, relative to
themselves, that the answer is exact?  `lapack` is the peer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy.linalg import lapack as routines

import tridiagonal_on_host
from matchwood import engines
from matchwood.tridiagonal import block_tridiagonal, solve
from matchwood.tridiagonal import check as accuracy

Array = np.ndarray[Any, Any]
System = tuple[str, list[Array]]

NO_COMPILER = pytest.mark.skipif(not tridiagonal_on_host.available, reason="needs g++")
ENGINES = [
    "cpu",
    pytest.param("kernels", marks=NO_COMPILER),  # of the GPU, on the host
    pytest.param("gpu", marks=pytest.mark.gpu),
]
NO_ANSWER = 1e-3  # a backward error of LAPACK's beyond this is none
TIMES = accuracy.TIMES  # how many times LAPACK's error ours may be

# Nearly skew, nearly singular, with zeros, with a tiny or a large diagonal.
VALUES = np.array([1, 0.99, -1, 0.847, -0.849, 0.839, 0.5, 2, -2, 4, 1e-3, 1e3, 1e-8, 0])


def solver(
    engine: str, *, block: bool = False, allow_singular: bool = False
) -> Callable[..., Array]:
    """The public function on that engine, for NumPy arrays."""
    function = block_tridiagonal.solve if block else solve
    function = functools.partial(function, allow_singular=allow_singular)
    if engine == "cpu":
        return function
    if engine == "gpu":
        cupy = engines.cupy()
        return lambda *given: function(*map(cupy.asarray, given)).get()
    module = SimpleNamespace(solve=tridiagonal_on_host.solve)

    def on_host(*given: Array) -> Array:
        with mock.patch.object(engines, "load", return_value=module):
            return function(*given)

    return on_host


def _times(a: Array, x: Array) -> Array:
    return np.einsum("nij,nj->ni", a, x) if a.ndim == 3 else a * x


def _product(dl: Array, d: Array, du: Array, x: Array) -> Array:
    result = _times(d, x)
    result[1:] += _times(dl[1:], x[:-1])
    result[:-1] += _times(du[:-1], x[1:])
    return result


def backward_error(dl: Array, d: Array, du: Array, b: Array, x: Array) -> float:
    """The largest |b - A x| / (|A| |x| + |b|) of all rows, in extended precision."""
    if not np.isfinite(x).all():
        return np.inf
    wide = [a.astype(np.longdouble) for a in (dl, d, du, x)]
    right = b.astype(np.longdouble)
    residual = abs(right - _product(*wide))
    size = _product(*map(abs, wide)) + abs(right)
    return float(np.divide(residual, size, out=np.zeros_like(size), where=size > 0).max())


def lapack(dl: Array, d: Array, du: Array, b: Array) -> tuple[Array, bool]:
    """The answer of gtsv, or gbsv for blocks; whether there is one."""
    letter = "s" if d.dtype == np.float32 else "d"
    with np.errstate(all="ignore"):
        if d.ndim == 3:
            n = d.shape[0]
            bands = np.zeros((10, 2 * n), d.dtype)
            for blocks, side in ((dl, -1), (d, 0), (du, 1)):
                row = np.arange(max(0, -side), n - max(0, side))
                for i, k in np.ndindex(2, 2):
                    bands[6 + i - k - 2 * side, 2 * (row + side) + k] = blocks[row, i, k]
            found = getattr(routines, letter + "gbsv")(3, 3, bands, b.reshape(-1))
            x, info = found[2].reshape(b.shape), found[3]
        elif d.size == 1:
            x, info = b / d, int(d[0] == 0)
        else:
            found = getattr(routines, letter + "gtsv")(dl[1:], d, du[:-1], b)
            x, info = found[3], found[4]
    return np.asarray(x), info == 0 and bool(np.isfinite(x).all())


def lapack_error(system: list[Array]) -> float:
    """The backward error of LAPACK's answer, infinite where there is none."""
    peer, solved = lapack(*system)
    theirs = backward_error(*system, peer) if solved else np.inf
    return theirs if theirs <= NO_ANSWER else np.inf


def times(run: Callable[..., Array], system: list[Array], theirs: float) -> float:
    """Our backward error over LAPACK's; 0 where LAPACK has no answer.

    At most TIMES is the promise of check.py: an error of LAPACK's below a TIMES-th of our limit
    counts as that.

    A matrix that is nearly singular may be refused, but only where LAPACK misses our limit as well.
    """
    if theirs == np.inf:
        return 0.0
    unit = float(np.finfo(system[1].dtype).eps)
    try:
        found = run(*system)
    except np.linalg.LinAlgError:
        if theirs > accuracy.UNITS * unit:
            return 0.0
        raise
    limit = (accuracy.UNITS + accuracy.HIDDEN[system[1].ndim == 3]) * unit
    return backward_error(*system, found) / max(theirs, limit / TIMES)


def times_lapack(run: Callable[..., Array], system: list[Array]) -> float:
    """The same, for a system that is tried once."""
    return times(run, system, lapack_error(system))


def _scaled(rng: np.random.Generator, made: Array, rows: int, columns: int) -> Array:
    """Rows and columns multiplied by 10^-e to 10^e."""
    n = made.shape[1]
    r, c = 10.0 ** rng.uniform(-rows, rows, n), 10.0 ** rng.uniform(-columns, columns, n + 2)
    return made * r * np.stack([c[:-2], c[1:-1], c[2:]])


def coefficients(n: int, rng: np.random.Generator, reach: int) -> Iterator[tuple[str, Array]]:
    """Named (3, n) arrays; scales go to 10^-reach and 10^reach."""
    for _ in range(4):
        yield "constant", np.tile(rng.choice(VALUES, (3, 1)), n)
        period = int(rng.integers(2, 6))
        yield "periodic", np.stack([np.resize(rng.choice(VALUES, period), n) for _ in range(3)])
    plain = rng.uniform(0.5, 2, (3, n)) * rng.choice([-1, 1], (3, n))
    for name, made in (("normal", rng.standard_normal((3, n))), ("plain", plain)):
        yield name, made
        for scale in sorted({6, min(18, reach), reach}):
            yield f"{name}, rows to {scale}", _scaled(rng, made, scale, 0)
            yield f"{name}, columns to {scale}", _scaled(rng, made, 0, scale)
            half = scale // 2
            yield f"{name}, both to {half}", _scaled(rng, made, half, half)
    made = rng.standard_normal((3, n))
    yield "half of the lower diagonal", made * np.stack([rng.random(n) < 0.5, *np.ones((2, n))])
    yield "cut", made * (rng.random((3, n)) < 0.8)
    made[1] = 0
    yield "zero diagonal", made
    grade = 2.0 ** np.linspace(-3 * reach, 3 * reach, n)
    yield "graded", rng.standard_normal((3, n)) * grade
    yield "graded, constant", np.array([[1.0], [-3], [1]]) * grade


def family(n: int, dtype: Any, seed: int = 0) -> Iterator[System]:
    """Named systems of n rows, with right-hand sides of all sizes."""
    rng = np.random.default_rng((seed, n))
    reach = 30 if np.dtype(dtype) == np.float64 else 12
    for name, made in coefficients(n, rng, reach):
        yield name, [a.astype(dtype) for a in (*made, rng.standard_normal(n))]


def block_family(n: int, dtype: Any, seed: int = 0) -> Iterator[System]:
    """The same of blocks: each entry of a block is an entry of another plain matrix."""
    rng = np.random.default_rng((seed, n))
    reach = 30 if np.dtype(dtype) == np.float64 else 12
    names = [name for name, _ in coefficients(n, rng, reach)]
    four = [[a for _, a in coefficients(n, rng, reach)] for _ in range(4)]
    for at, name in enumerate(names):
        made = np.stack([entry[at] for entry in four], axis=-1).reshape(3, n, 2, 2)
        yield name, [a.astype(dtype) for a in (*made, rng.standard_normal((n, 2)))]


@functools.cache
def known(n: int, dtype: Any, block: bool) -> list[tuple[str, list[Array], float]]:
    """The family with LAPACK's errors, found once for all engines."""
    drawn = (block_family if block else family)(n, dtype)
    return [(name, system, lapack_error(system)) for name, system in drawn]
