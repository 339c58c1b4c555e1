"""Path scans: both methods give what the definition says, and the check is strict."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from matchwood.primitives.path_scan import Operation, PathScan, path_scan
from matchwood.primitives.path_scan import cpu as path_scan_cpu
from matchwood.primitives.path_scan.check import check_path_scan
from primitives.tables import table_of
from support import looped

METHODS = ("doubling", "splitters")


def compose(a: int, b: int) -> int:
    """Affine maps x -> m x + c modulo 256, packed: associative, not commutative."""
    return ((((a >> 8) * (b >> 8)) & 255) << 8) | (((a >> 8) * (b & 255) + (a & 255)) & 255)


def same(one: PathScan, other: PathScan) -> None:
    for name in ("ends", "values", "cycle"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype, name
        assert np.array_equal(a, b), name


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 25), max_size=4),
    st.lists(st.integers(3, 25), max_size=4),
    st.integers(0, 99),
    st.sampled_from(["add", "minimum", "maximum"]),
    st.sampled_from([1, 3, 1 << 10]),
    st.sampled_from([1, 2, 3, 5]),
)
def test_equals_the_reference(
    paths: list[int], cycles: list[int], seed: int, op: str, spacing: int, threads: int
) -> None:
    table = table_of(paths, cycles, seed=seed, shuffled=seed % 5 > 0)
    values = np.random.default_rng(seed).integers(-9, 9, len(table)).astype(np.int32)
    before = table.copy(), values.copy()
    expected = path_scan(table, values, op, engine="reference")
    assert expected.cycle.sum() == sum(cycles)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_scan_cpu, "SPACING", spacing)
        for method in METHODS:
            found = path_scan(table, values, op, method=method, threads=threads)
            same(found, expected)
            check_path_scan(table, values, op, found)
    assert np.array_equal(table, before[0])
    assert np.array_equal(values, before[1])


@pytest.mark.slow
@looped("method", METHODS)
@looped(("index", "dtype"), [(np.int64, np.int64), (np.int32, np.float32)])
def test_types(method: str, index: type, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_scan_cpu, "SPACING", 20)
    table = table_of([300, 2, 1], [200, 3], dtype=index)
    values = (np.random.default_rng(0).random(len(table)) * 100).astype(dtype)
    found = path_scan(table, values, method=method, threads=3)
    assert (found.ends.dtype, found.values.dtype) == (index, dtype)
    check_path_scan(table, values, "add", found)
    again = path_scan(table, values, method=method, threads=1)
    assert again.values.tobytes() == found.values.tobytes()  # floats too
    expected = path_scan(table, values, engine="reference")
    assert np.array_equal(found.distances, expected.distances)
    assert np.allclose(found.values, expected.values, rtol=1e-4)


@pytest.mark.slow
@looped("method", METHODS)
def test_operations_of_the_users(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_scan_cpu, "SPACING", 7)
    table = table_of([60, 1, 2], [40, 3])
    values = np.random.default_rng(3).integers(0, 65536, len(table))
    expected = path_scan(table, values, compose, engine="reference")
    found = path_scan(table, values, Operation(compose, "a + b"), method=method)
    same(found, expected)
    check_path_scan(table, values, compose, found)
    last = path_scan(table, np.arange(len(table)), lambda a, b: b, method=method)
    assert np.array_equal(last.values, last.ends)


def test_result() -> None:
    table = np.array([[2, 1], [-1, 0], [0, -1], [4, 5], [3, 5], [4, 3], [-1, -1]])
    scan = path_scan(table, np.array([1, 10, 100, 1, 1, 1, 7]))
    ends, values = scan
    assert ends.tolist() == [[2, 1], [1, 2], [1, 2], [5, 3], [3, 5], [3, 5], [6, 6]]
    assert values.tolist()[:3] == [[101, 11], [10, 111], [111, 100]]
    assert values.tolist()[3:] == [[3, 1], [2, 2], [3, 1], [7, 7]]
    assert scan.cycle.tolist() == [False] * 3 + [True] * 3 + [False]
    assert scan.distances.tolist()[:3] == [[1, 1], [0, 2], [2, 0]]


@looped("engine", ["reference", "cpu"])
def test_broken_tables(engine: str) -> None:
    for table, message in [
        ([[1, -1], [-1, -1]], "vertex 0 lists 1, but 1 does not list 0"),
        # 1 has three: it can list but two of them
        ([[1, -1], [0, 2], [1, -1], [1, -1]], "vertex 3 lists 1, but 1 does not list 3"),
        ([[1, 1], [0, -1]], "vertex 0 lists 1 twice"),
        ([[0, -1]], "vertex 0 lists itself"),
        ([[2, -1], [-1, -1]], r"vertex 0 lists 2, no vertex of 0\.\.1"),
        ([[-1, -3], [-1, -1]], "vertex 0 lists -3, no vertex"),
    ]:
        array = np.array(table)
        with pytest.raises(ValueError, match=f"path_scan: {message}"):
            path_scan(array, np.zeros(len(array)), engine=engine)


def test_bad_arguments() -> None:
    table = table_of([3], [])
    for arguments, error, message in [
        ((table[:, :1], np.ones(3)), ValueError, r"shape \(N, 2\), got \(3, 1\)"),
        ((table.astype(float), np.ones(3)), TypeError, "neighbours must be int32 or int64"),
        ((table, np.ones(4)), ValueError, r"values must have shape \(3,\), got \(4,\)"),
        ((table, np.ones(3, complex)), TypeError, "values must be int32 or int64 or float32"),
        ((table, np.ones(3), "times"), TypeError, "op must be 'add', .* or a function"),
        ((table, np.ones(3), Operation(cuda="a")), TypeError, "op must be"),
    ]:
        with pytest.raises(error, match=f"path_scan: .*{message}"):
            path_scan(*arguments)
    with pytest.raises(ValueError, match="method must be one of 'auto', 'doubling'"):
        path_scan(table, np.ones(3), method="best")


def test_the_check_finds_every_fault() -> None:
    table = table_of([4], [5], shuffled=False)
    values = np.arange(1, 10)
    right = path_scan(table, values)
    check_path_scan(table, values, "add", right)

    def with_entry(name: str, at: Any, entry: Any) -> PathScan:
        array = getattr(right, name).copy()
        array[at] = entry
        if name == "distances":
            made = dataclasses.replace(right)
            made.__dict__["distances"] = array
            return made
        return dataclasses.replace(right, **{name: array})

    for wrong, message in [
        (with_entry("ends", (1, 0), 2), r"ends\[1, 0\] is 2, expected 0"),
        (with_entry("values", (2, 1), 8), r"values\[1, 1\] is 9, expected 10"),
        (with_entry("distances", (2, 1), 3), r"distances\[1, 1\] is 2, expected 4"),
        (with_entry("cycle", 1, True), r"cycle\[0\] is False, unlike"),
        (with_entry("cycle", 0, True), r"cycle\[0\] is True, but 0 is the end"),
        (with_entry("cycle", 4, False), r"cycle\[4\] is False, unlike"),
        (with_entry("ends", slice(4, 9), 7), "4 is smaller than the ends"),
        (with_entry("ends", slice(4, 9), 4), r"ends\[4, 1\]|ends\[8"),
        (dataclasses.replace(right, ends=right.ends[:3]), r"ends must have shape \(9, 2\)"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_path_scan(table, values, "add", wrong)


@pytest.mark.slow
def test_ten_million() -> None:
    n = 10_000_000
    for table in (
        table_of([n], []),
        table_of([2] * (n // 2), []),
        np.full((n, 2), -1, np.int32),
        table_of([n // 4] * 2, [n // 4] * 2),
    ):
        one, other = (path_scan(table, np.ones(n, np.int32), method=m) for m in METHODS)
        same(one, other)
        assert (one.values.min(axis=1) >= 1).all()


@pytest.mark.slow
def test_a_cycle_of_ten_million() -> None:
    n = 10_000_000
    found = path_scan(table_of([], [n]), np.ones(n, np.int32))
    assert found.cycle.all()
    assert (found.ends.min(axis=1) == 0).all()
    assert (found.values.sum(axis=1) == n + 1).all()
