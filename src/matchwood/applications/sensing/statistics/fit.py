"""The Zipf-Mandelbrot curve of largest likelihood.

    p(d; alpha, delta) = (d + delta)^-alpha / sum over k = 1 .. d_max of (k + delta)^-alpha

with d_max the largest value seen, alpha in (0, 8], delta in (-1, 10^4].  The best of a fixed grid
of starts is improved by Newton steps in double precision.  Sums over k beyond 10^6 are integrals
with the first terms of Euler and Maclaurin's correction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from matchwood.arguments import numbers, plain

SUMMED = 10**6  # terms that are added one by one
ROUGHLY_SUMMED = 10**4  # the same to choose a start
NODES = 96  # of Gauss and Legendre's rule, in the logarithm of k
ALPHAS = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)
DELTAS = (-0.9, -0.5, 0.0, 1.0, 10.0, 100.0, 1000.0)
BOUNDS = ((1e-9, 8.0), (-1 + 1e-9, 1e4))  # of alpha and delta
LEAST, GREATEST = (np.array(ends) for ends in zip(*BOUNDS, strict=True))
STEPS = 60
CLOSE = 1e-10  # of a step, relative: the end


@dataclass(frozen=True)
class Fit:
    """A fitted curve.

    `alpha_error` and `delta_error` are standard errors from the second derivatives of the
    likelihood, NaN where the best curve lies at a bound.  `distance` is the largest distance of the
    two cumulative curves.
    """

    alpha: float
    delta: float
    alpha_error: float
    delta_error: float
    distance: float
    largest: int  # d_max

    def probability(self, values: Any) -> Any:
        """p(d) of the curve."""
        given = plain("probability", "values", values)
        numbers("probability", "values", given.reshape(-1))
        sums = _Sums(self.largest)
        scale = sums.of(self.alpha, self.delta, 0, 0)
        return (given.astype(np.float64) + self.delta) ** -self.alpha / scale


class _Sums:
    """Sums over k = 1 .. most of ln(k + delta)^j (k + delta)^-s."""

    def __init__(self, most: int, summed: int = SUMMED) -> None:
        self._k = np.arange(1.0, min(most, summed) + 1)
        self._most, self._summed = most, summed
        self._nodes, self._weights = np.polynomial.legendre.leggauss(NODES)

    def at(self, delta: float) -> tuple[Any, Any]:
        x = self._k + delta
        return x, np.log(x)

    def of(self, alpha: float, delta: float, more: int, j: int) -> float:
        logs = self.at(delta)[1]
        s = alpha + more
        return float((np.exp(-s * logs) * logs**j).sum()) + self.tail(s, delta, j, self._most)

    def tail(self, s: float, delta: float, j: int, end: int) -> float:
        """The terms beyond those added one by one, up to `end`."""
        if end <= self._summed:
            return 0.0
        a, b = self._summed + delta, end + delta
        low, high = math.log(a), math.log(b)
        t = 0.5 * (high - low) * (self._nodes + 1) + low
        integral = 0.5 * (high - low) * float((self._weights * np.exp((1 - s) * t) * t**j).sum())

        def term(x: float) -> float:
            return float(x**-s * math.log(x) ** j)

        def slope(x: float) -> float:
            log = math.log(x)
            return float(x ** (-s - 1) * ((j * log ** (j - 1) if j else 0.0) - s * log**j))

        return integral + (term(b) - term(a)) / 2 + (slope(b) - slope(a)) / 12

    def derivatives(self, alpha: float, delta: float) -> tuple[float, Any, Any]:
        """ln Z with its first and second derivatives by (alpha, delta)."""
        x, logs = self.at(delta)
        power = np.exp(-alpha * logs)
        first = power / x
        most = self._most

        def total(terms: Any, s: float, j: int) -> float:
            return float(terms.sum()) + self.tail(s, delta, j, most)

        z = total(power, alpha, 0)
        z_a = -total(power * logs, alpha, 1)
        z_aa = total(power * logs * logs, alpha, 2)
        flat = total(first, alpha + 1, 0)
        z_d = -alpha * flat
        z_ad = alpha * total(first * logs, alpha + 1, 1) - flat
        z_dd = alpha * (alpha + 1) * total(first / x, alpha + 2, 0)
        gradient = np.array([z_a, z_d]) / z
        second = np.array([[z_aa, z_ad], [z_ad, z_dd]]) / z - np.outer(gradient, gradient)
        return math.log(z), gradient, second


class _Likelihood:
    """-ln(likelihood) / N, and its derivatives."""

    def __init__(self, values: Any, counts: Any, summed: int = SUMMED) -> None:
        self.whole = values
        self.values = values.astype(np.float64)
        self.part = counts / counts.sum()
        self.total = float(counts.sum())
        self.sums = _Sums(int(values[-1]), summed)

    def at(self, alpha: float, delta: float) -> tuple[float, Any, Any]:
        x = self.values + delta
        logs, inverse = np.log(x), 1 / x
        mean_log, mean = float(self.part @ logs), float(self.part @ inverse)
        z, gradient, second = self.sums.derivatives(alpha, delta)
        value = alpha * mean_log + z
        gradient = gradient + np.array([mean_log, alpha * mean])
        curved = float(self.part @ inverse**2)
        second = second + np.array([[0, mean], [mean, -alpha * curved]])
        return value, gradient, second


def fit_zipf_mandelbrot(values: Any, counts: Any) -> Fit | None:
    """Fit a histogram; None where fewer than two values occur."""
    if values.size < 2:
        return None
    rough = _Likelihood(values, counts, ROUGHLY_SUMMED)
    starts = [(a, d) for a in ALPHAS for d in DELTAS]
    point = np.array(min(starts, key=lambda start: rough.at(*start)[0]))
    goal = _Likelihood(values, counts)
    value, gradient, second = goal.at(*point)
    for _ in range(STEPS):
        step = _step(point, gradient, second)
        length = 1.0
        while length > 1e-12:
            trial = np.clip(point + length * step, LEAST, GREATEST)
            found = goal.at(*trial)
            if found[0] < value or np.array_equal(trial, point):
                break
            length /= 2
        moved = float(np.abs(trial - point).max() / (1 + np.abs(point).max()))
        if found[0] >= value:
            break
        point, (value, gradient, second) = trial, found
        if moved < CLOSE:
            break
    return _finished(goal, point, second)


def _step(point: Any, gradient: Any, second: Any) -> Any:
    """Newton's step; where the surface is not convex, along its curvature's absolute values.

    A coordinate at its bound whose gradient points outwards stays there.
    """
    free = [
        not ((x <= lo and g > 0) or (x >= hi and g < 0))
        for x, g, (lo, hi) in zip(point, gradient, BOUNDS, strict=True)
    ]
    step = np.zeros(2)
    index = np.flatnonzero(free)
    if index.size:
        eigen, basis = np.linalg.eigh(second[np.ix_(index, index)])
        eigen = np.maximum(np.abs(eigen), 1e-12)
        step[index] = -basis @ ((basis.T @ gradient[index]) / eigen)
    return step


def _finished(goal: _Likelihood, point: Any, second: Any) -> Fit:
    alpha, delta = (float(x) for x in point)
    errors = np.full(2, math.nan)
    inside = all(lo < x < hi for x, (lo, hi) in zip(point, BOUNDS, strict=True))
    if inside and np.linalg.eigvalsh(second)[0] > 0:
        errors = np.sqrt(np.diag(np.linalg.inv(second * goal.total)))
    return Fit(
        alpha, delta, float(errors[0]), float(errors[1]),
        _distance(goal, alpha, delta), int(goal.whole[-1]),
    )  # fmt: skip


def _distance(goal: _Likelihood, alpha: float, delta: float) -> float:
    """At the values that occur and just before the next: elsewhere it is smaller."""
    logs = goal.sums.at(delta)[1]
    low = np.cumsum(np.exp(-alpha * logs))
    scale = float(low[-1]) + goal.sums.tail(alpha, delta, 0, int(goal.whole[-1]))

    def model(d: int) -> float:
        if d < 1:
            return 0.0
        if d <= SUMMED:
            return float(low[d - 1]) / scale
        return (float(low[-1]) + goal.sums.tail(alpha, delta, 0, d)) / scale

    seen = np.cumsum(goal.part)
    places = goal.whole.tolist()
    here = [abs(float(p) - model(d)) for p, d in zip(seen, places, strict=True)]
    before = [abs(float(p) - model(d - 1)) for p, d in zip([0, *seen], places, strict=False)]
    return max(*here, *before)
