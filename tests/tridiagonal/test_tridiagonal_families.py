"""Every system of a wide family is solved as well as LAPACK solves it, row by row."""

from __future__ import annotations

import functools
import itertools
from unittest import mock

import numpy as np
import pytest

import matchwood
from matchwood.check import check_tridiagonal_solution
from matchwood.tridiagonal import block_tridiagonal, factorize, solve
from tridiagonal_systems import (
    ENGINES,
    TIMES,
    VALUES,
    backward_error,
    block_family,
    family,
    known,
    lapack_error,
    solver,
    times,
    times_lapack,
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # LAPACK's answers overflow

# About the ends of parts: 8, 16 and 32 rows on the GPU, 16 and 128 on the CPU.
SIZES = [1, 2, 3, 5, 31, 32, 33, 65, 127, 128, 129, 257, 1025]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("engine", ENGINES)
def test_as_good_as_lapack(engine: str, dtype: type) -> None:
    run = solver(engine)
    for n in SIZES:
        for name, system, theirs in known(n, dtype, False):
            found = times(run, system, theirs)
            assert found <= TIMES, (name, n, found)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("engine", ENGINES)
def test_blocks_as_good_as_lapack(engine: str, dtype: type) -> None:
    run = solver(engine, block=True)
    for n in (1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 130):
        for name, system, theirs in known(n, dtype, True):
            found = times(run, system, theirs)
            assert found <= TIMES, (name, n, found)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_constant_coefficients(engine: str) -> None:
    """The whole grid of values: the rows that a part carries along must not grow."""
    run = solver(engine)
    for values in itertools.product(VALUES[:9], repeat=3):
        system, theirs = constant(values)
        found = times(run, system, theirs)
        assert found <= TIMES, (values, found)


@functools.cache
def constant(values: tuple[float, ...]) -> tuple[list[np.ndarray], float]:
    system = [np.full(200, v) for v in (*values, 1.0)]
    return system, lapack_error(system)


LARGE = {
    *("constant", "periodic", "normal", "plain", "plain, columns to 6", "graded"),
    *("normal, rows to 30", "half of the lower diagonal"),
}


def tiny_lower(n: int, dtype: type) -> list[np.ndarray]:
    """Almost triangular: LAPACK leaves every row within a unit, but parts do not."""
    rng = np.random.default_rng(n)
    a, b, c, right = rng.uniform(-1, 1, (4, n))
    return [array.astype(dtype) for array in (1e-30 * a, 3 * b, c, right)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("engine", ENGINES)
def test_large_systems(engine: str, dtype: type) -> None:
    """No row is off by more because there are many."""
    run = solver(engine)
    n = {"cpu": 60_000, "kernels": 20_000, "gpu": 400_000}[engine]
    drawn = [(name, s) for name, s in family(n, dtype, seed=1) if name in LARGE]
    for name, system in [*drawn, ("tiny lower", tiny_lower(n, dtype))]:
        found = times_lapack(run, system)
        assert found <= TIMES, (name, found)


@pytest.mark.slow
def test_a_million_rows() -> None:
    for make in (tiny_lower, lambda n, dtype: list(np.random.default_rng(2).normal(size=(4, n)))):
        system = make(1_000_000, np.float64)
        assert backward_error(*system, solve(*system)) <= TIMES * np.finfo(float).eps


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_large_block_systems(engine: str) -> None:
    run = solver(engine, block=True)
    n = {"cpu": 30_000, "kernels": 6_000, "gpu": 120_000}[engine]
    for name, system in block_family(n, np.float64, seed=1):
        if name in LARGE:
            found = times_lapack(run, system)
            assert found <= TIMES, (name, found)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("n", "values"),
    [(128, (1, 1, -1)), (100_000, (1, 0.99, -1)), (5000, (0.839, 0.847, -0.849))],
)
def test_nearly_skew(engine: str, n: int, values: tuple[float, ...]) -> None:
    """Carried rows would grow like 1.618^n if pivots were compared by the first size of a row."""
    system = [np.full(n, v) for v in (*values, 1.0)]
    assert backward_error(*system, solver(engine)(*system)) < 8 * np.finfo(float).eps


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_at_the_ends_of_their_range(engine: str) -> None:
    run, zero = solver(engine), np.zeros(3)
    for value in (5e-324, 1e-310, 1e-300, 1e300, 1.7e308):
        d, b = np.array([value, 1, value]), np.array([value, 2, value])
        assert np.allclose(run(zero, d, zero, b), [1, 2, 1], rtol=1e-15)
    x = run(zero, np.full(3, 1e-200), zero, np.full(3, 1e100))
    assert np.allclose(x, 1e300, rtol=1e-15)
    for dtype, small, large in ((np.float64, 1e-200, 1e200), (np.float32, 1e-30, 1e30)):
        d, b = np.ones(3, dtype), np.ones(3, dtype)
        d[1], b[1] = small, large
        with pytest.raises(OverflowError, match=r"unknown of row 1 is beyond the range of float"):
            run(zero.astype(dtype), d, zero.astype(dtype), b)
    tiny = np.full(2, 1e-40, np.float32)
    x = run(np.zeros(2, np.float32), tiny, np.zeros(2, np.float32), tiny)
    assert np.allclose(x, 1, rtol=1e-7)


@pytest.mark.parametrize("engine", ENGINES)
def test_subnormal_numbers_count(engine: str) -> None:
    """Also where arithmetic takes those of float32 for zeros, and wherever they stand."""
    for n in (3, 700):
        for place in range(4):
            for many in (1, n):
                system = [np.zeros(n), np.ones(n), np.zeros(n), np.ones(n)]
                system[place][1 : 1 + many] = 1e-40
                system[3][::2] *= 2.0**60 if place != 1 else 1e-40
                system[3][1::2] *= 1e-14 if place != 1 else 1e-40
                given = [array.astype(np.float32) for array in system]
                given[0][0] = given[2][-1] = 0
                name = (n, place, many)
                for allowed in (False, True):
                    x = solver(engine, allow_singular=allowed)(*given)
                    assert backward_error(*given, x) < 1e-6, name


@pytest.mark.parametrize("row", [0, 1, 31, 32, 127, 128, 700, 9_999])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_of_zeros_is_named(engine: str, row: int) -> None:
    """Whatever its right-hand side."""
    zero, d = np.zeros(10_000), np.ones(10_000)
    d[row] = 0
    for b in (d, np.ones(10_000)):
        with pytest.raises(np.linalg.LinAlgError, match=f"of row {row} has no pivot"):
            solver(engine)(zero, d, zero, b)
        assert np.isfinite(solver(engine, allow_singular=True)(zero, d, zero, b)).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_independent_systems_of_other_scales(engine: str) -> None:
    """Independent systems in one array do not change each other, at any scale."""
    rng = np.random.default_rng(4)
    made = rng.standard_normal((4, 600))
    scale = np.repeat(10.0 ** rng.uniform(-200, 200, 60), 10)
    dl, d, du = made[:3] * scale
    dl[::10], du[9::10] = 0, 0
    assert times_lapack(solver(engine), [dl, d, du, made[3] * np.roll(scale, 10) ** 0.25]) <= TIMES


@pytest.mark.parametrize("engine", ENGINES)
def test_one_of_many_right_hand_sides(engine: str) -> None:
    """One that is not finite is named; one that overflows too; the others are as alone."""
    run, zero = solver(engine), np.zeros(40)
    d, b = np.full(40, 1e-200), np.ones((40, 3))
    b[7, 1] = np.nan
    with pytest.raises(ValueError, match="b must be finite, but is not at row 7"):
        run(zero, d, zero, b)
    b[7, 1] = 1e200
    with pytest.raises(OverflowError, match="row 7"):
        run(zero, d, zero, b)
    b[7, 1] = 1
    assert np.allclose(run(zero, d, zero, b), 1e200, rtol=1e-15)


@pytest.mark.parametrize("engine", ENGINES)
def test_singular_and_nearly(engine: str) -> None:
    run = solver(engine)
    one, zero = np.ones(257), np.zeros(257)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        run(one, zero, one, one)  # a path with an odd number of vertices
    d = one.copy()
    d[100] = 0
    with pytest.raises(np.linalg.LinAlgError, match="row 100 has no pivot"):
        run(zero, d, zero, one)
    d[100] = 1e-300
    x = run(zero, d, zero, one)
    assert np.allclose(x, one / d, rtol=1e-15)
    nearly = 2 * one
    nearly[0] = nearly[-1] = 1 + 1e-15  # the sum of all rows is almost zero
    assert np.isfinite(run(-one, nearly, -one, one)).all()


def test_hard_matrices_in_another_order_and_transposed() -> None:
    """A factorization notices what its engine cannot do alone."""
    rng = np.random.default_rng(6)
    for block, make in ((False, factorize), (True, block_tridiagonal.factorize)):
        families = block_family if block else family
        dl, d, du, b = next(
            system for name, system in families(300, np.float64) if name == "normal, columns to 30"
        )
        made = make(dl, d, du)
        order = rng.permutation(b.size).reshape(b.shape)
        if block:
            order[-1, 1] = -1
            b[-1, 1] = 1
        given = np.zeros((1, order.max() + 1))
        there = order >= 0
        given[0, order[there]] = b[there]
        x = made.solve_ordered(given, order)[0]
        assert np.array_equal(x[order[there]], made.solve(b)[there])
        lower, upper = np.zeros_like(d), np.zeros_like(d)
        turned = [a.swapaxes(1, 2) if block else a for a in (dl, d, du)]
        lower[1:], upper[:-1] = turned[2][:-1], turned[0][1:]
        system = [lower, turned[1].copy(), upper, b]
        assert times_lapack(lambda *_, m=made, r=b: m.solve(r, transpose=True), system) <= TIMES


def test_the_check_looks_at_every_row_and_right_hand_side() -> None:
    zero = np.zeros(2)
    check, d = check_tridiagonal_solution, np.array([1e20, 1])
    check(zero, d, zero, d, [1.0, 1.0])
    for b, x, message in [
        (d, [1.0, 12345.0], "row 1 is off by"),
        (np.array([1e20, np.nan]), [1.0, 1.0], "row 1 is off by nan"),
        (d, [1.0, 1j], "real numbers"),
        (np.stack([d, d], 1), np.array([[1, 1], [1, 1.001]]), "row 1 of right-hand side 1"),
        (np.array([1e20, 1e-200]), [1.0, 0.0], "row 1 is off"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check(zero, d, zero, b, x)


def test_the_check_rejects_what_is_spoiled() -> None:
    """One number of x changed in its tenth digit, in any place of any system."""
    rng = np.random.default_rng(8)
    for n in (1, 2, 50, 300):
        for name, system in family(n, np.float64, seed=3):
            if "to" in name or "graded" in name:
                continue
            try:
                x = solve(*system)
            except (np.linalg.LinAlgError, OverflowError):
                continue
            check_tridiagonal_solution(*system, x)
            at = int(rng.integers(n))
            column = abs(system[1][at]) + (abs(system[0][at + 1]) if at + 1 < n else 0)
            if x[at] == 0 or column == 0:
                continue
            spoiled = x.copy()
            spoiled[at] *= 1 + 1e-3
            if backward_error(*system, spoiled) > 1e-9:
                with pytest.raises(matchwood.CheckFailed, match="is off by"):
                    check_tridiagonal_solution(*system, spoiled)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_rows_are_repaired_where_they_are(engine: str, dtype: type) -> None:
    """A row in a thousand of a random system is off by chance: it is not solved again for that."""
    for block in (False, True):
        n = 20_000
        rng = np.random.default_rng(1)
        shape = (n, 2, 2) if block else (n,)
        system = [rng.standard_normal(shape).astype(dtype) for _ in range(3)]
        system.append(rng.standard_normal(shape[:2]).astype(dtype))
        with mock.patch("matchwood.tridiagonal.system.repaired", side_effect=AssertionError):
            x = solver(engine, block=block)(*system)
        assert backward_error(*system, x) <= TIMES * np.finfo(dtype).eps


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_at_the_ends_of_zones_are_repaired(engine: str) -> None:
    """At any place: the unknowns at the end of a zone are fixed in one round only."""
    rng = np.random.default_rng(3)
    n, limit = 5000, TIMES * np.finfo(float).eps
    for begin in range(500, 2100, 37):
        a, b, c, right = rng.standard_normal((4, n))
        # three unknowns that are small beside their neighbours: their row is off
        x = rng.standard_normal(n)
        x[begin : begin + 3] *= 1e-7
        right = b * x
        right[1:] += a[1:] * x[:-1]
        right[:-1] += c[:-1] * x[1:]
        right[begin + 1] = 0
        assert backward_error(a, b, c, right, solver(engine)(a, b, c, right)) <= limit
