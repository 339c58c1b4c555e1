"""Path scans on the GPU give what the CPU gives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from matchwood.primitives.path_scan import Operation, path_scan
from matchwood.primitives.path_scan.check import check_path_scan
from primitives.tables import table_of
from support import looped

pytestmark = pytest.mark.gpu

METHODS = ["doubling", "splitters"]
COMPOSE = Operation(  # of affine maps x -> m x + c modulo 256, packed; not commutative
    lambda a, b: ((((a >> 8) * (b >> 8)) & 255) << 8) | (((a >> 8) * (b & 255) + (a & 255)) & 255),
    "((((a >> 8) * (b >> 8)) & 255) << 8) | (((a >> 8) * (b & 255) + (a & 255)) & 255)",
)


def same(table: Any, values: Any, op: Any, method: str) -> None:
    assert_same(table, values, op, method, path_scan(table, values, op))


def assert_same(table: Any, values: Any, op: Any, method: str, expected: Any) -> None:
    """Up to types: the arrays may be those of wider ones."""
    found = path_scan(table, values, op, method=method, engine="gpu")
    for name in ("ends", "cycle", "distances"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert found.ends.dtype == found.distances.dtype == table.dtype
    assert found.cycle.dtype == np.bool_
    assert found.values.dtype == values.dtype
    if values.dtype.kind == "f":
        assert np.allclose(found.values, expected.values, rtol=1e-4)
        check_path_scan(table, values, op, found)
    else:
        assert np.array_equal(found.values, expected.values)


@looped("op", ["add", "minimum", "maximum"])
def test_equals_the_cpu(op: str) -> None:
    """All sums are below 2^24, so the CPU needs to add them in one type only."""
    table = table_of([1, 2, 1, 700, 9000], [3, 4, 50, 6000], dtype=np.int64)
    values = np.random.default_rng(0).integers(1, 100, len(table))
    expected = path_scan(table, values, op)
    assert expected.values.max() < 1 << 24
    for method, index in itertools.product(METHODS, (np.int32, np.int64)):
        for dtype in (np.int32, np.int64, np.float32, np.float64):
            assert_same(table.astype(index), values.astype(dtype), op, method, expected)


@looped("method", METHODS)
def test_shapes(method: str) -> None:
    for table in (
        table_of([], []), table_of([1], []), table_of([1] * 3000, []), table_of([2] * 3000, []),
        table_of([], [3] * 2000), table_of([], [4000]), table_of([5000], [], shuffled=False),
        table_of([], [5000], shuffled=False), table_of([40] * 99, [41] * 99),
    ):  # fmt: skip
        same(table, np.arange(len(table)), "add", method)


@looped("method", METHODS)
def test_an_operation_of_the_users(method: str) -> None:
    table = table_of([500, 3], [400, 5])
    same(table, np.random.default_rng(1).integers(0, 65536, len(table)), COMPOSE, method)
    with pytest.raises(TypeError, match=r"op must be .* CUDA expression"):
        path_scan(table, np.zeros(len(table)), lambda a, b: a, engine="gpu")


@looped("spacing", [1, 2, 1 << 20])
def test_any_spacing(spacing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from matchwood.primitives.path_scan import gpu

    monkeypatch.setattr(gpu, "SPACING", spacing)
    rng = np.random.default_rng(spacing)
    for seed in range(5):
        paths, cycles = rng.integers(1, 90, 9).tolist(), rng.integers(3, 90, 9).tolist()
        table = table_of(paths, cycles, seed=seed)
        same(table, rng.integers(-9, 9, len(table)), "add", "splitters")


def test_the_same_bits_again() -> None:
    table = table_of([20_000], [300])
    values = np.random.default_rng(0).random(len(table))
    for method in METHODS:
        one, other = (
            path_scan(table, values, method=method, engine="gpu").values for _ in range(2)
        )
        assert one.tobytes() == other.tobytes()
    # doubling adds in the same order on both engines
    cpu, gpu = (path_scan(table, values, method="doubling", engine=e) for e in ("cpu", "gpu"))
    assert cpu.values.tobytes() == gpu.values.tobytes()


def test_broken_tables() -> None:
    for table, message in [
        ([[1, -1], [-1, -1]], "vertex 0 lists 1, but 1 does not list 0"),
        ([[1, -1], [0, 2], [1, -1], [1, -1]], "vertex 3 lists 1, but 1 does not list 3"),
        ([[1, 1], [0, -1]], "vertex 0 lists 1 twice"),
        ([[0, -1]], "vertex 0 lists itself"),
        ([[2, -1], [-1, -1]], "vertex 0 lists 2, no vertex"),
    ]:
        array = np.array(table)
        with pytest.raises(ValueError, match=message):
            path_scan(array, np.zeros(len(array)), engine="gpu")


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_millions(method: str) -> None:
    n = 2_000_000
    for table in (table_of([n], []), table_of([], [n]), table_of([2] * (n // 2), [])):
        values = np.ones(n, np.int32)
        found = path_scan(table, values, method=method, engine="gpu")
        check_path_scan(table, values, "add", found)
