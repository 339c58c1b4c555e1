"""Tridiagonal matrices that solvers are tried on in the literature, from harmless to hard.

After Klein and Strzodka (2021) and Venetis et al. (2015).  Each function takes n and a random
generator and returns dl, d, du in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Coefficients = tuple[Array, Array, Array]
Maker = Callable[[int, np.random.Generator], Coefficients]


def _toeplitz(lower: float, diagonal: float, upper: float) -> Maker:
    return lambda n, rng: (np.full(n, lower), np.full(n, diagonal), np.full(n, upper))


def _uniform(n: int, rng: np.random.Generator) -> Coefficients:
    a, b, c = rng.uniform(-1, 1, (3, n))
    return a, b, c


def _weak_diagonal(n: int, rng: np.random.Generator) -> Coefficients:
    a, b, c = _uniform(n, rng)
    return a, 1e-8 * b, c


def _tiny_lower(n: int, rng: np.random.Generator) -> Coefficients:
    a, b, c = _uniform(n, rng)
    return 1e-200 * a, 3 * b, c


def _alternating(n: int, rng: np.random.Generator) -> Coefficients:
    """Rows of huge and of tiny numbers in turn: what scaling is for."""
    a, b, c = _uniform(n, rng)
    scale = np.where(np.arange(n) % 2 == 0, 1e8, 1e-8)
    return a * scale, b * scale, c * scale


def _gaps(n: int, rng: np.random.Generator) -> Coefficients:
    """Half of the lower diagonal is missing at random: many small systems."""
    a, b, c = _uniform(n, rng)
    keep = rng.random(n) < 0.5
    return a * keep, b, c


def _independent(n: int, rng: np.random.Generator) -> Coefficients:
    """Systems of 50 rows beside each other."""
    a, b, c = _uniform(n, rng)
    start = np.arange(n) % 50 == 0
    a[start] = 0
    c[:-1][start[1:]] = 0
    return a, b, c


def _dorr(n: int, rng: np.random.Generator) -> Coefficients:
    """The Dorr matrix: a convection-diffusion problem with a turning point, ill-conditioned."""
    theta = 0.01
    h = 1.0 / (n + 1)
    m = (n + 1) // 2
    i = np.arange(1, n + 1)
    term = theta / h**2
    left = i <= m
    convection = (0.5 - i * h) / h
    lower = np.where(left, -term, -term + convection)
    upper = np.where(left, -term - convection, -term)
    return lower, -(lower + upper), upper


def _nearly_singular(n: int, rng: np.random.Generator) -> Coefficients:
    """The second difference, shifted to within 1e-10 of an eigenvalue."""
    a, b, c = _toeplitz(-1, 2, -1)(n, rng)
    shift = 2 - 2 * np.cos(np.pi * max(1, n // 3) / (n + 1))
    return a, b - shift * (1 + 1e-10), c


KINDS: dict[str, Maker] = {
    "uniform": _uniform,
    "toeplitz 1 4 1": _toeplitz(1, 4, 1),
    "toeplitz -1 2 -1": _toeplitz(-1, 2, -1),
    "toeplitz 1 1e-8 1": _toeplitz(1, 1e-8, 1),
    "toeplitz 1 0.5 1": _toeplitz(1, 0.5, 1),
    "tiny diagonal": _weak_diagonal,
    "tiny lower": _tiny_lower,
    "huge and tiny": _alternating,
    "gaps": _gaps,
    "independent": _independent,
    "dorr": _dorr,
    "nearly singular": _nearly_singular,
}
SIZES = (1, 2, 3, 31, 32, 33, 63, 64, 65, 511, 513, 1000, 10_007, 100_003, 1_000_000)
