"""Several right-hand sides: each is solved as if it were alone, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood.check import check_tridiagonal_solution
from matchwood.preconditioners import algebraic_block_tridiagonal, algebraic_tridiagonal
from matchwood.tridiagonal import block_tridiagonal, factorize, solve
from support import some

# block rows; parts of the CPU solvers have 64 block rows and 128 rows, tiles eight parts
SIZES = (1, 2, 63, 65, 129, 1025, 1300)


def _system(n: int, block: bool, dtype: type) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng((n, block))
    shape = (n, 2, 2) if block else (n,)
    matrix = [rng.standard_normal(shape).astype(dtype) for _ in range(3)]
    return matrix, rng.standard_normal((*shape[:2], 9)).astype(dtype)


@pytest.mark.parametrize("seed", range(12))
def test_dominant_tiles_beside_others(seed: int) -> None:
    """Tiles without pivoting, weakly dominant ones, small ones, and independent systems."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 127, 128, 1023, 1024, 1025, 3000, 5000]))
    dl, du, b = rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal((n, 4))
    if seed % 3 == 0:
        dl, du = -np.ones(n), -np.ones(n)
    dl *= rng.random(n) > 0.1 * (seed % 2)
    du *= rng.random(n) > 0.1 * (seed % 2)
    excess = rng.random(n) if seed % 2 else rng.random(n) < 0.01  # else pieces may be singular
    d = (abs(dl) + abs(du) + excess) * rng.choice([-1, 1], n)
    scale = 2.0 ** rng.integers(-300, 300) if seed % 4 == 1 else 1.0
    dl, d, du = dl * scale, d * scale, du * scale
    if n > 2048:  # one row of one tile needs pivots
        d[1500] = 0
    alone = np.stack([solve(dl, d, du, b[:, c], threads=1) for c in range(4)], axis=-1)
    check_tridiagonal_solution(dl, d, du, b, alone)
    for threads in (1, 2, 3, 7):
        assert np.array_equal(solve(dl, d, du, b, threads=threads), alone)
        assert np.array_equal(solve(dl, d, du, b[:, 0], threads=threads), alone[:, 0])


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dominant", [False, True])
def test_a_number_that_is_not_finite_is_named(dominant: bool, number: float) -> None:
    rng = np.random.default_rng(0)
    for n in (1, 3, 128, 1400):
        for name in ("dl", "d", "du", "b"):
            arrays = {key: rng.standard_normal(n) for key in ("dl", "d", "du", "b")}
            arrays["d"] += 9 * dominant
            row = int(rng.integers(n == 3, n))
            arrays[name][row] = number
            read = not ((name == "dl" and row == 0) or (name == "du" and row == n - 1))
            for columns in (1, 4):
                b = arrays["b"] if columns == 1 else np.stack([arrays["b"]] * 4, axis=1)
                if read:
                    with pytest.raises(ValueError, match=f"{name} must be finite.*row {row}$"):
                        solve(arrays["dl"], arrays["d"], arrays["du"], b)
                else:
                    assert np.isfinite(solve(arrays["dl"], arrays["d"], arrays["du"], b)).all()


def test_a_dominant_matrix_that_is_singular_is_refused() -> None:
    for n in (2, 200, 1024, 3000):
        for b in (np.ones(n), np.ones((n, 4))):
            d, dl = np.full(n, 2.0), np.zeros(n)
            d[n // 2] = 0
            with pytest.raises(np.linalg.LinAlgError, match=f"row {n // 2} has no pivot"):
                solve(dl, d, np.zeros(n), b)
            d[n // 2], d[n // 2 - 1], dl[n // 2], du = 1, 1, 1, np.zeros(n)  # [1 1; 1 1] within
            du[n // 2 - 1] = 1
            with pytest.raises(np.linalg.LinAlgError, match=f"row {n // 2} has no pivot"):
                solve(dl, d, du, b)


@pytest.mark.parametrize("dtype", some([np.float64, np.float32]))
@pytest.mark.parametrize("block", [False, True])
def test_each_column_is_solved_as_if_alone(block: bool, dtype: type) -> None:
    run = block_tridiagonal.solve if block else solve
    for n in SIZES:
        matrix, b = _system(n, block, dtype)
        alone = np.stack([run(*matrix, b[..., c], threads=1) for c in range(9)], axis=-1)
        assert alone.dtype == dtype
        check_tridiagonal_solution(*matrix, b, alone)
        for k in range(1, 10):
            found = run(*matrix, b[..., :k], threads=(1, 2, 3, 7)[k % 4])
            assert np.array_equal(found, alone[..., :k]), (n, k)
        backwards = run(*matrix, b[..., ::-2], threads=2)
        assert np.array_equal(backwards, alone[..., ::-2]), n
        in_fortran_order = run(*matrix, np.asfortranarray(b), threads=3)
        assert np.array_equal(in_fortran_order, alone), n


@pytest.mark.parametrize("block", [False, True])
def test_columns_in_another_order(block: bool) -> None:
    n = 1300
    matrix, b = _system(n, block, np.float64)
    made = (block_tridiagonal.factorize if block else factorize)(*matrix, threads=2)
    length = 2 * n if block else n
    order = np.random.default_rng(1).permutation(length)
    if block:
        order = np.where(np.arange(length) % 7 == 3, -1, order).reshape(n, 2)
    rows = np.ascontiguousarray(b.reshape(length, 9).T)
    alone = np.concatenate([made.solve_ordered(row[None], order) for row in rows])
    there = order[order >= 0]
    found = made.solve_ordered(rows, order)
    assert np.array_equal(found[:, there], alone[:, there])


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 300, 1300])
def test_more_places_than_rows(n: int, block: bool) -> None:
    """Every other place is 0, and no other memory is written."""
    matrix, _ = _system(n, block, np.float64)
    matrix[1] = matrix[1] + 9 * (np.eye(2) if block else 1)
    made = (block_tridiagonal.factorize if block else factorize)(*matrix, threads=2)
    length = 2 * n if block else n
    rng = np.random.default_rng(n)
    for more, rows in ((5, 1), (700, 2), (3 * n, 9)):
        order = rng.permutation(length + more)[:length]
        b = rng.standard_normal((rows, length + more))
        right = np.ascontiguousarray(b[:, order])
        expected = np.zeros_like(b)
        expected[:, order] = made.solve_ordered(right)
        for kind in (np.int32, np.int64, np.uint16):
            given = order.astype(kind).reshape(-1, 2) if block else order.astype(kind)
            for sides in (b, np.asfortranarray(b)):
                assert np.allclose(made.solve_ordered(sides, given), expected, rtol=1e-9, atol=0)


def test_right_hand_sides_are_not_changed() -> None:
    for block in (False, True):
        matrix, b = _system(700, block, np.float64)
        given = b.copy()
        (block_tridiagonal.solve if block else solve)(*matrix, b, threads=2)
        assert np.array_equal(b, given)


@pytest.mark.parametrize("make", [algebraic_tridiagonal, algebraic_block_tridiagonal])
def test_preconditioners_take_columns(make) -> None:
    from matchwood.generators import aniso

    A = aniso(2, (37, 41))
    M = make(A, threads=2)
    X = np.random.default_rng(0).standard_normal((A.shape[0], 9))
    alone = np.stack([M @ x for x in X.T], axis=1)
    for k in range(1, 10):
        assert np.array_equal(M @ X[:, :k], alone[:, :k]), k
    assert np.array_equal(M @ np.asfortranarray(X), alone)
    assert np.array_equal(M @ X[:, ::-1], alone[:, ::-1])
    assert np.array_equal(M @ X.astype(np.float32), M @ X.astype(np.float32).astype(np.float64))
    turned = np.stack([M.rmatvec(x) for x in X.T], axis=1)
    assert np.array_equal(M.rmatmat(X), turned)


def test_only_the_column_that_is_off_is_repaired() -> None:
    """A column of rows that need repair does not change the columns beside it."""
    n = 3000
    for block in (False, True):
        rng = np.random.default_rng(5)
        shape = (n, 2, 2) if block else (n,)
        matrix = [rng.uniform(-1, 1, shape) for _ in range(3)]
        b = rng.uniform(-1, 1, (*shape[:2], 4)) * 10.0 ** rng.integers(-9, 9, (*shape[:2], 4))
        run = block_tridiagonal.solve if block else solve
        found = run(*matrix, b, threads=2)
        for c in range(4):
            check_tridiagonal_solution(*matrix, b[..., c], found[..., c], tolerance=12 * 2.0**-52)
            assert np.array_equal(found[..., c], run(*matrix, b[..., c], threads=1))


@pytest.mark.parametrize("block", [False, True])
def test_a_row_of_zeros_is_found_whatever_the_right_hand_side(block: bool) -> None:
    """The size of such a row is out of range; the unknown without a pivot is still named."""
    n = 130
    run = block_tridiagonal.solve if block else solve
    for row in (0, 70, n - 1):
        diagonal = np.tile(np.eye(2), (n, 1, 1)) if block else np.ones(n)
        diagonal[row] = 0
        nothing = np.zeros_like(diagonal)
        sides = np.zeros((*diagonal.shape[:2], 9) if block else (n, 9))
        for b in (sides, sides[..., 0], sides + 1, np.where(np.arange(9) == 4, 1.0, sides)):
            with pytest.raises(np.linalg.LinAlgError, match=f"row {row} has no pivot"):
                run(nothing, diagonal, nothing, b, threads=2)
