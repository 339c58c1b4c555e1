"""Tridiagonal solvers on the GPU: as accurate as LAPACK, same faults found as on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood.check import check_tridiagonal_solution
from matchwood.tridiagonal import block_tridiagonal, factorize, solve

pytestmark = pytest.mark.gpu

# About the ends of parts (16 and 32 rows), of warps of parts and of trees of parts.
SIZES = [1, 2, 3, 15, 16, 17, 31, 32, 33, 65, 97, 129, 500, 1023, 1025, 2047, 2048, 2049]
SIZES += [32_767, 32_768, 32_769, 32_801, 4096 * 32, 4096 * 32 + 1, 262_145, 300_001]


def arrays(n: int, dtype: type, seed: int = 0, *, block: bool = False):
    import cupy

    rng = np.random.default_rng((seed, n))
    shape = (n, 2, 2) if block else (n,)
    made = [rng.standard_normal(shape).astype(dtype) for _ in range(3)]
    made.append(rng.standard_normal(shape[:2]).astype(dtype))
    return [cupy.asarray(array) for array in made]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
def test_solves(n: int, dtype: type) -> None:
    for block, function in ((False, solve), (True, block_tridiagonal.solve)):
        system = arrays(n, dtype, block=block)
        before = [array.copy() for array in system]
        x = function(*system)
        assert x.dtype == dtype
        check_tridiagonal_solution(*system, x)
        assert all((a == b).all() for a, b in zip(system, before, strict=True))


def test_same_bits_every_time() -> None:
    for block, function in ((False, solve), (True, block_tridiagonal.solve)):
        system = arrays(200_003, np.float32, block=block)
        first = function(*system)
        assert all((function(*system) == first).all() for _ in range(5))


def test_many_right_hand_sides_and_transpose() -> None:
    import cupy

    dl, d, du, _ = arrays(3000, np.float64)
    rng = np.random.default_rng(3)
    b = cupy.asarray(rng.standard_normal((3000, 4)))
    made = factorize(dl, d, du)
    x = made.solve(b)
    check_tridiagonal_solution(dl, d, du, b, x)
    y = cupy.asarray(rng.standard_normal((3000, 4)))
    left, right = (x * y).sum(), (made.solve(y, transpose=True) * b).sum()
    assert abs(float(left - right)) < 1e-8 * float(abs(x * y).sum())


def test_slices_that_are_not_aligned() -> None:
    system = arrays(5001, np.float32)
    views = [array[1:] for array in system]
    check_tridiagonal_solution(*views, solve(*views))


@pytest.mark.parametrize("row", [0, 1, 31, 32, 700, 9_999])
def test_singular_row_is_named(row: int) -> None:
    import cupy

    n = 10_000
    d = cupy.ones(n)
    d[row] = 0
    zero = cupy.zeros(n)
    with pytest.raises(np.linalg.LinAlgError, match=f"of row {row} has no pivot"):
        solve(zero, d, zero, d)
    assert bool(cupy.isfinite(solve(zero, d, zero, d, allow_singular=True)).all())


def test_not_finite_is_named() -> None:
    import cupy

    d, zero = cupy.ones(500), cupy.zeros(500)
    d[77] = cupy.nan
    with pytest.raises(ValueError, match="d must be finite, but is not at row 77"):
        solve(zero, d, zero, cupy.ones(500))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kind", ["uniform", "tiny diagonal", "huge and tiny", "toeplitz 1 1e-8 1", "dorr"]
)
def test_as_accurate_as_lapack(kind: str, dtype: type) -> None:
    accuracy = pytest.importorskip("bench.tridiagonal.accuracy")
    for n in (33, 1000, 10_007):
        times, ours, theirs = accuracy.typical(kind, n, dtype, gpu=True)
        assert times < 10, (n, ours, theirs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 33, 1025, 70_001])
def test_in_another_order(n: int, dtype: type) -> None:
    """Right-hand side and solution in another order than the rows; a dummy unknown has a right-hand
    side of 1 and is not returned.

    Rows that are off by chance are repaired by `solve` only.
    """
    import cupy

    rng = np.random.default_rng(n)
    for block, make in ((False, factorize), (True, block_tridiagonal.factorize)):
        dl, d, du, b = arrays(n, dtype, block=block)
        made = make(dl, d, du)
        size = b.size
        order = rng.permutation(size).astype(np.int32).reshape(b.shape)
        rows = cupy.zeros((2, size), dtype)
        rows[0, cupy.asarray(order.reshape(-1))] = b.reshape(-1)
        x = made.solve_ordered(rows, cupy.asarray(order))
        expected = made.solve_ordered(b.reshape(1, -1))[0]
        assert (x[0, cupy.asarray(order.reshape(-1))] == expected).all()
        assert not x[1].any()
        if block:
            order[-1, 1] = -1
            b[-1, 1] = 1
            found = made.solve_ordered(rows[:1], cupy.asarray(order))[0]
            expected = made.solve_ordered(b.reshape(1, -1))[0]
            assert (found[cupy.asarray(order.reshape(-1)[:-1])] == expected[:-1]).all()
