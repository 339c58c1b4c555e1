"""A search for tridiagonal systems that are solved worse than by LAPACK: drawn, and climbed to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adversarial.clock import attempts, seed
from matchwood.check import check_tridiagonal_solution
from matchwood.errors import CheckFailed
from tridiagonal_systems import (
    ENGINES,
    TIMES,
    VALUES,
    block_family,
    family,
    solver,
    times_lapack,
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # LAPACK's answers overflow

Array = np.ndarray[Any, Any]


@pytest.mark.slow
@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_drawn_systems(engine: str, block: bool) -> None:
    run = solver(engine, block=block)
    rng = np.random.default_rng(seed())
    drawn: Any = iter(())
    for _ in attempts(0.2):
        following = next(drawn, None)
        if following is None:
            drawing, dtype = int(rng.integers(1 << 40)), rng.choice([np.float32, np.float64])
            n = int(rng.choice([rng.integers(1, 40), rng.integers(40, 400)]))
            drawn = (block_family if block else family)(n, dtype, drawing)
            following = next(drawn)
        name, system = following
        times = times_lapack(run, system)
        assert times <= TIMES, (drawing, dtype, name, n, times)


def _start(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Periodic coefficients with one number for each right-hand side: a few numbers to change."""
    return rng.choice(VALUES, shape) * (1 + 1e-3 * rng.standard_normal(shape))


def _changed(rng: np.random.Generator, given: Array) -> Array:
    """Another sign, size, value or copy of one number, or a little of all."""
    made = given.copy()
    at = tuple(rng.integers(size) for size in made.shape)
    kind = rng.integers(5)
    if kind == 0:
        made[at] = -made[at]
    elif kind == 1:
        made[at] *= 10.0 ** rng.uniform(-8, 8)
    elif kind == 2:
        made[at] = rng.choice(VALUES)
    elif kind == 3:
        made[at] = made[tuple(rng.integers(size) for size in made.shape)]
    else:
        made *= 1 + rng.choice([1e-1, 1e-4]) * rng.standard_normal(made.shape)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_climbed_systems(engine: str, block: bool) -> None:
    """Keep each change that makes the ratio of the errors larger; begin again when none does."""
    run = solver(engine, block=block)
    first = seed()
    rng = np.random.default_rng(first)
    best, times, stuck = np.zeros(0), 0.0, 99
    for _ in attempts(0.4):
        if stuck > 40:
            n, period = int(rng.integers(2, 300)), int(rng.integers(1, 5))
            best = _start(rng, (period, 14 if block else 4))
            times, stuck = 0.0, 0
        trial = _changed(rng, best)
        tiled = np.resize(trial, (n, trial.shape[1]))
        if block:
            made = [tiled[:, 4 * k : 4 * k + 4].reshape(n, 2, 2).copy() for k in range(3)]
            system = [*made, tiled[:, 12:].copy()]
        else:
            system = [tiled[:, k].copy() for k in range(4)]
        try:
            found = times_lapack(run, system)
        except np.linalg.LinAlgError:  # LAPACK may round a pivot to something that is not zero
            assert np.linalg.cond(_dense(*system[:3])) > 1e14, (first, n, trial.tolist())
            found = 0.0
        assert found <= TIMES, (first, n, trial.tolist(), found)
        stuck = 0 if found > times else stuck + 1
        if found > times:
            best, times = trial, found


def _dense(dl: Any, d: Any, du: Any) -> Any:
    """The matrix, of numbers or of blocks."""
    n, size = len(d), 1 if d.ndim == 1 else d.shape[1]
    made = np.zeros((n, size, n, size))
    for i in range(n):
        for j, part in ((i - 1, dl), (i, d), (i + 1, du)):
            if 0 <= j < n:
                made[i, :, j, :] = part[i]
    return made.reshape(n * size, n * size)


def test_spoiled_answers_are_rejected() -> None:
    """Any one number of an answer, changed so that a row of its own no longer holds."""
    rng = np.random.default_rng(seed())
    run = solver("cpu")
    for _ in attempts(0.3):
        drawing, n = int(rng.integers(1 << 40)), int(rng.integers(1, 60))
        for _, system in family(n, np.float64, drawing):
            dl, d, du, b = system
            try:
                x = run(*system)
            except (np.linalg.LinAlgError, OverflowError):
                continue
            check_tridiagonal_solution(*system, x)
            at = int(rng.integers(n))
            spoiled = x.copy()
            spoiled[at] = spoiled[at] * (1 + rng.choice([1e-6, 1, -2, 1e6])) + (spoiled[at] == 0)
            change = abs(d[at] * (spoiled[at] - x[at]))
            terms = abs(d[at]) * max(abs(spoiled[at]), abs(x[at])) + abs(b[at])
            terms += abs(dl[at] * x[at - 1]) if at > 0 else 0
            terms += abs(du[at] * x[at + 1]) if at < n - 1 else 0
            if change > 1e-9 * terms:
                with pytest.raises(CheckFailed, match="is off by"):
                    check_tridiagonal_solution(*system, spoiled)
